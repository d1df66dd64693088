"""Sessions for histories on Spark: one for each combination of settings, all of one Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_used: list[SparkSession] = []  # the first is in use, the others wait


@contextmanager
def using(spark: SparkSession) -> Iterator[None]:
    """Let histories on Spark use sessions like this one."""
    _used.insert(0, spark)
    try:
        yield
    finally:
        _used.pop(0)
        session.cache_clear()


@contextmanager
def starting() -> Iterator[None]:
    """Start Spark for histories, and stop it."""
    if reason := spark_session.missing():
        raise SystemExit(f"Spark {reason}")
    with TemporaryDirectory(prefix="properties-", ignore_cleanup_errors=True) as directory:
        spark = spark_session.classic(Path(directory))
        try:
            with using(spark):
                yield
        finally:
            spark.stop()


@cache
def session(fixpoint: str, process: str) -> SparkSession:
    """A session where `spark.tidelog.fixpoint` and `spark.tidelog.process` are as given, unless empty."""
    made = _used[0].newSession()
    for name, value in {
        **{name: value for name, value in spark_session.SETTINGS.items() if name.startswith("spark.sql.")},
        "spark.tidelog.fixpoint": fixpoint,
        "spark.tidelog.process": process,
    }.items():
        if value:
            made.conf.set(name, value)
    return made
