"""Whose session it is, what is left of it, and what is said when there is no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.execute.spark.executor import SparkExecutor
from tidelog.execute.spark.session import connect, start
from tidelog.syntax.errors import UnsupportedError

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession


def test_the_callers_session_goes_on(spark: SparkSession) -> None:
    for given in (spark, None):  # given, or found to be the active one
        executor = SparkExecutor(given)
        executor.close()
        executor.close()
        assert spark.range(3).count() == 3


OWN = """
from pyspark.sql import SparkSession
from tests.execute.spark.building import Store, relation
from tidelog import Database, TidelogError
from tidelog.execute.spark.executor import SparkExecutor
from tidelog.program.types import S64

first, second = SparkExecutor(), SparkExecutor()
first.close()
store = Store(None, relation("r", S64))
assert store.executor._spark is second._spark
store.insert("r", [(1,), (2,)])
second.close()
frame = store.executor._relations["r"].read()
store.executor._relations["r"].add(*store.executor._relations["r"].fresh(frame.selectExpr("c0 + 1 as c0")))
assert store.rows("r") == {(1,), (2,), (3,)}
session = second._spark
session.conf.set("spark.tidelog.process", "0")
db = Database("p(x) :- q(x).", spark=session)
db.commit(insert={"q": [(1,)]})
store.executor.close()
assert SparkSession.getActiveSession() is None

for use in (
    lambda: db.commit(insert={"q": [(2,)]}),
    lambda: db["p"].to_arrow(),
    lambda: Database("p(x) :- q(x).", spark=session),
    lambda: SparkExecutor(session),
):
    try:
        use()
    except TidelogError as error:
        assert str(error).startswith("error[TL0619]: the Spark session has been stopped\\n"), error
    else:
        raise AssertionError(use)
db.close()
"""


def test_a_session_of_our_own_leaves_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """In a process of its own: shared by executors, stopped with the last, nothing said, nothing left."""
    work, temporary = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    root = Path(__file__).parents[3]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"}
    environment |= {"TMPDIR": str(temporary), "PYTHONPATH": f"{root}:{root / 'src'}"}
    environment["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1"  # starts sooner
    done = subprocess.run(
        [sys.executable, "-c", OWN], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")
    assert list(work.iterdir()) == []
    assert list(temporary.iterdir()) == []


FAILING = """
from tidelog.execute.spark.executor import SparkExecutor
from tidelog.syntax.errors import UnsupportedError

try:
    SparkExecutor()
except UnsupportedError as error:
    print(error)
"""


def failing(tmp_path: Path, script: str, says: str) -> list[str]:
    """What is printed in a process of its own, with a Java that says something and ends at once."""
    java, temporary = tmp_path / "java" / "bin" / "java", tmp_path / "tmp"
    java.parent.mkdir(parents=True)
    temporary.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n", encoding="utf-8")
    java.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"}
    environment |= {"TMPDIR": str(temporary), "JAVA_HOME": str(java.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(temporary.iterdir()) == []
    return done.stdout.splitlines()


def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    first, *told, last = failing(tmp_path, FAILING, "no Java today")
    assert first.startswith("error[TL0604]: Spark does not start: ")
    assert "no Java today" in told
    assert last == (
        "  = hint: Spark needs Java 17 or later and room to work, "
        "or run without Spark, in this process: --engine local"
    )


def test_a_master_that_spark_does_not_understand(tmp_path: Path) -> None:
    script = FAILING.replace("SparkExecutor()", "opened('bogus://x').__enter__()")
    script = "from tidelog.execute.spark.session import opened" + script
    assert failing(tmp_path, script, "Master must either be yarn or start with spark, k8s, or local") == [
        "error[TL0604]: Spark does not start: it does not understand the master 'bogus://x'",
        "  = hint: local, local[4], spark://HOST:PORT, yarn and k8s://https://HOST:PORT are such",
    ]


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UnsupportedError) as caught:
        start(tmp_path)
    with pytest.raises(UnsupportedError) as by_connect:
        connect(tmp_path, "local[2]")  # which starts a server here
    assert str(by_connect.value) == str(caught.value)
    assert str(caught.value) == (
        "error[TL0603]: the Spark engine needs Java 17 or later, and it is not installed\n"
        "  = note: there is no `java` on the PATH\n"
        "  = hint: install it (apt install openjdk-17-jre-headless, brew install openjdk@17) and put "
        "`java` on the PATH or set JAVA_HOME, or run without Spark, in this process: --engine local"
    )


def test_a_session_that_is_there_needs_no_java(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may be on another machine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for given in (spark, None):
        executor = SparkExecutor(given)
        assert executor._spark is spark
        executor.close()


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(UnsupportedError) as caught:
        SparkExecutor()
    assert str(caught.value) == (
        "error[TL0602]: the Spark engine needs PySpark, and it is not installed\n"
        "  = hint: pip install 'tidelog[spark]', or run without Spark, in this process: --engine local"
    )
