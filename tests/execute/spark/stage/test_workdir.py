"""Files of tasks: there as long as somebody can read them, and not longer than the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidelog.execute.spark.place import Place, place_of
from tidelog.execute.spark.stage.workdir import PREFIX, WorkDirectory, work_directory
from tidelog.syntax.errors import TidelogError

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import tidelog

CLOSURE = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
NODES = 700  # more tuples than are sent to the driver
TUPLES = NODES * (NODES - 1) // 2


def files(directory: Path) -> list[Path]:
    return list(directory.rglob("*.parquet"))


def test_answers_stay_while_somebody_can_read_them(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.tidelog.fixpoint", "barrier")
    session.conf.set("spark.tidelog.work", str(tmp_path))
    db = tidelog.Database(CLOSURE, spark=session, maintained=False)
    edges = session.range(1, NODES).selectExpr("id x", "id + 1 y")
    db.commit(insert={"edge": edges})
    assert len(db["path"]) == TUPLES
    assert files(tmp_path)
    held = db["path"].to_spark().filter("x = 1")
    db.close()
    del db
    gc.collect()
    directory = work_directory(Place(str(tmp_path)))
    directory.begin().settle()
    assert held.count() == NODES - 1
    del held
    for _ in range(30):  # Python tells Java once a second what it has let go of
        gc.collect()
        if hasattr(session, "_jvm"):
            session._jvm.System.gc()
        session.range(2).join(session.range(1), "id").count()  # Spark holds on to its last plans
        directory.begin().settle()
        if not files(tmp_path):
            return
        time.sleep(0.5)
    raise AssertionError(files(tmp_path))


LEAVES = """
import os, sys
from tidelog.execute.spark.place import Place
from tidelog.execute.spark.stage.workdir import work_directory
stage = work_directory(Place(sys.argv[1])).begin()
stage.place.open("0.parquet").close()
print(stage.place.name, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""


def run(directory: Path, end: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES, str(directory), end], capture_output=True, text=True, check=False
    )
    assert done.returncode == (-9 if end == "killed" else 0), done.stderr
    return Path(done.stdout.strip())


def test_nothing_is_left_by_a_process(tmp_path: Path) -> None:
    assert run(tmp_path, "ended").parent.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    mine = WorkDirectory(Place(str(tmp_path)))
    (tmp_path / "another").mkdir()
    left = run(tmp_path, "killed")
    assert (left / "0.parquet").exists()
    run(tmp_path, "ended")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", Path(mine.place.name).name]
    assert Path(mine.place.name).name.startswith(PREFIX)
    mine.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["another"]


def test_places(tmp_path: Path) -> None:
    assert place_of(f"file://{tmp_path}") == place_of(str(tmp_path)) == Place(str(tmp_path))
    assert Place("/a[1]").for_spark == r"file:/a\[1\]"
    assert (Place("s3://bucket/here/") / "x").for_spark == "s3://bucket/here/x"
    with pytest.raises(TidelogError, match="TL0614"):
        place_of("nowhere://bucket/here")
