"""What can be found out about where Spark runs: how many tasks at once, and a directory that it and we see.

Spark Connect offers nothing direct, so this goes by settings of the session, and asks Spark where those
do not tell. What was found is remembered for each application of Spark.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tidelog.execute.spark.place import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Found = TypeVar("_Found")
_known: dict[tuple[str, str], object] = {}  # by application and question


def slots(spark: SparkSession) -> int:
    """How many tasks Spark runs at once.

    That is as many as it makes of a range, when not told otherwise (`spark.default.parallelism`). A barrier
    stage waits for all its slots, so it is never more than there are, as far as settings tell.
    """
    return _once(spark, "slots", lambda: min(_parallelism(spark), limit(spark) or 1 << 16))


def _parallelism(spark: SparkSession) -> int:
    from pyspark.sql import functions as F

    if "connect" not in type(spark).__module__:
        return int(spark.sparkContext.defaultParallelism)
    return int(spark.range(1 << 16).select(F.spark_partition_id()).distinct().count())


def limit(spark: SparkSession) -> int | None:
    """The number of slots that settings tell of; None if they do not."""
    each = _number(spark, "spark.task.cpus") or 1
    cores = _cores(_get(spark, "spark.master"))
    if cores is None and _get(spark, "spark.dynamicAllocation.enabled") != "true":
        executors, wide = _number(spark, "spark.executor.instances"), _number(spark, "spark.executor.cores")
        cores = executors * wide if executors and wide else _number(spark, "spark.cores.max")
    return None if cores is None else max(1, cores // each)


def _cores(master: str) -> int | None:
    """How many cores a local master says that it has."""
    if master == "local":
        return 1
    if found := re.fullmatch(r"local\[(\d+)(,\s*\d+)?\]", master):
        return int(found[1])
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(found[1]) * int(found[2])
    return None


def work(spark: SparkSession) -> Place | None:
    """A directory for the files of this process, if Spark runs on this machine alone."""
    return _once(spark, "work", lambda: _work(spark))


def _work(spark: SparkSession) -> Place | None:
    if not _get(spark, "spark.master").startswith("local"):
        return None
    chosen = os.environ.get("SPARK_LOCAL_DIRS") or _get(spark, "spark.local.dir")
    first = Path(chosen.split(",")[0].strip() or tempfile.gettempdir())
    directory = first if first.is_dir() and os.access(first, os.W_OK) else Path(tempfile.gettempdir())
    if "connect" in type(spark).__module__ and not _is_seen(spark, directory):
        return None
    return Place(str(directory.absolute()))


def _is_seen(spark: SparkSession, directory: Path) -> bool:
    """Whether a Connect server sees our files: it may be local elsewhere."""
    word = secrets.token_hex(16)
    handle, name = tempfile.mkstemp(".txt", "tidelog-", directory)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(word)
        return [row[0] for row in spark.read.text(Place(name).for_spark).collect()] == [word]
    except Exception:  # it is not there, or may not be read
        return False
    finally:
        os.unlink(name)


def _once(spark: SparkSession, question: str, answer: Callable[[], _Found]) -> _Found:
    key = (_get(spark, "spark.app.id") or str(id(spark)), question)
    if key not in _known:
        _known[key] = answer()
    return _known[key]  # type: ignore[return-value]


def _get(spark: SparkSession, name: str) -> str:
    return spark.conf.get(name, "") or ""


def _number(spark: SparkSession, name: str) -> int | None:
    text = _get(spark, name)
    return int(text) if text.isdigit() else None
