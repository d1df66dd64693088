"""The same over Spark Connect, in a process of its own: a process has classic sessions or these."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark  # one Connect server at a time: all have the same port

SCRIPT = """
import gc

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.dataframe import DataFrame as Connected

import tidelog
from tests.session.states import TYPED

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
settings = dict(spark.conf.getAll)


def rows(frame):
    assert isinstance(frame, Connected)
    return sorted(map(tuple, frame.collect()))


def raised(db, relation, frame):
    try:
        db.commit(insert={relation: frame})
    except tidelog.DataError as error:
        return str(error).splitlines()


def main():
    db = tidelog.Database(TYPED, spark=spark)
    db.commit(insert={"Edge": spark.createDataFrame([(2, 1), (3, 2), (3, 2)], "to int, from long")})
    assert db.report.ignored_inserts == 1
    first = db["Path"]
    assert rows(first.to_spark()) == [(1, 2), (1, 3), (2, 3)]

    feed = [("update_preimage", 1, 2), ("update_postimage", 1, 3), ("insert", 3, 4)]
    with db.transaction() as tx:
        tx.apply("Edge", spark.createDataFrame(feed, "_change_type string, from long, to long"))
    found = tx.changes.to_spark("Path")
    assert found.columns == ["from", "to", "_change_type", "_commit_version", "_commit_timestamp"]
    assert rows(found.drop("_commit_timestamp")) == [
        (1, 2, "delete", 2), (1, 4, "insert", 2), (2, 4, "insert", 2), (3, 4, "insert", 2)
    ]
    assert tx.changes["Path"].deleted == [(1, 2)]
    db.commit(delete={"Edge": spark.createDataFrame([(3, 4)], "a long, b long")}, insert={"Edge": [(7, 8)]})
    assert list(db["Path"]) == [(1, 3), (2, 3), (7, 8)]
    assert (7, 8) in db["Path"] and (8, 7) not in db["Path"]
    assert len(first) == 3 and list(first) == [(1, 2), (1, 3), (2, 3)]

    version = db.version
    assert raised(db, "Edge", spark.createDataFrame([(1, None)], "x int, y int"))[:2] == [
        "error[TL0504]: cannot insert into Edge: a wrong row",
        "  --> column 2 (to): null, and there are no nulls",
    ]
    texts = spark.createDataFrame([("1", "two")], "x string, y string")
    wrong = raised(db, "Edge", texts.select(F.col("x").cast("long"), F.col("y").cast("long")))
    assert wrong[0] == "error[TL0504]: cannot insert into Edge: Spark cannot compute the DataFrame"
    assert "CAST_INVALID_INPUT" in wrong[1]
    assert raised(db, "Edge", texts)[0] == "error[TL0504]: cannot insert into Edge: 2 columns do not fit"
    assert (db.version, list(db["Path"])) == (version, [(1, 3), (2, 3), (7, 8)])
    try:
        db.stream(spark.readStream.format("rate").load(), "Edge")
        raise AssertionError("a stream has begun")
    except tidelog.UnsupportedError as error:
        said = "a stream cannot be followed over Spark Connect: what is given its batches runs on the server"
        assert str(error).splitlines()[0] == f"error[TL0612]: {said}"

    kept = db["Path"].to_spark()
    db.close()
    del db, tx
    gc.collect()
    assert rows(kept) == [(1, 3), (2, 3), (7, 8)]

    spark.conf.set("spark.tidelog.process", "30")
    with tidelog.Database("p(y, x) :- q(x, y).", spark=spark) as other:
        other.commit(insert={"q": [(1, 2), (3, 4)]})
        kept = other["p"].to_spark()
        changes = other.commit(insert={"q": spark.range(20).select("id", (F.col("id") + 1).alias("next"))})
        assert other.report.place.startswith("on Spark from now on")
        assert len(other["p"]) == 20 == other["p"].to_spark().count()
        assert repr(other["p"]).splitlines()[2].split() == ["1", "0"]
        assert len(changes["p"]) == 18 == changes.to_spark("p").count()
        other.commit(delete={"q": spark.createDataFrame([(3, 4)], "a long, b long")})
        assert (len(other["p"]), rows(kept)) == (19, [(2, 1), (4, 3)])
    spark.conf.unset("spark.tidelog.process")

    assert dict(spark.conf.getAll) == settings
    assert spark.range(3).count() == 3


try:
    main()
finally:
    spark.stop()  # without it the process would wait for ever
"""


def test_over_connect(tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("needs the client of Spark Connect: pip install 'tidelog[connect]'")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17 or later")
    root = Path(__file__).parents[3]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]),
        "PYSPARK_PYTHON": sys.executable,
        "TMPDIR": str(tmp_path),
        "SPARK_LOCAL_DIRS": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
