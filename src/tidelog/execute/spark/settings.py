"""Settings of a Spark session that are ours: `spark.tidelog.*`.

| setting                    | meaning                                                            | default |
|----------------------------|--------------------------------------------------------------------|---------|
| `spark.tidelog.fixpoint`   | how recursion runs: single, pivot, barrier, shuffle, frames, auto   | auto    |
| `spark.tidelog.tasks`      | how many tasks share a fixpoint; 0: as many as Spark runs at once   | 0       |
| `spark.tidelog.small`      | a fixpoint that begins with so many rows at most runs in one task   | 100000  |
| `spark.tidelog.whole`      | a task of a pivot is given so many rows of strata below at most     | 5000000 |
| `spark.tidelog.process`    | so many tuples of a database are kept in this process at most       | 1000000 |
| `spark.tidelog.work`       | a directory that driver and tasks all see, as a path or a URI       | —       |
| `spark.tidelog.checkpoint` | seconds between checkpoints of a long fixpoint; 0: none             | 60      |

Without `work`, a Spark that runs on this machine alone has one where its own files are; others have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tidelog.execute.spark import machine
from tidelog.execute.spark.place import Place, place_of
from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "spark.tidelog."
PROCESS = 1_000_000


class Way(StrEnum):
    """How a fixpoint runs."""

    single = "single"
    pivot = "pivot"
    barrier = "barrier"
    shuffle = "shuffle"
    frames = "frames"


@dataclass(frozen=True)
class Settings:
    """What the settings of a session say; `way` is None where we choose."""

    way: Way | None
    tasks: int
    small: int = 100_000
    whole: int = 5_000_000
    slots: int | None = None  # as many tasks can run at once, if that is known
    work: Place | None = None
    checkpoint: float = 60.0


def read_settings(spark: SparkSession) -> Settings:
    """The settings of a session."""
    work = _get(spark, "work", "")
    return Settings(
        way=_way(_get(spark, "fixpoint", "auto")),
        tasks=_number(spark, "tasks", 0) or machine.slots(spark),
        small=_number(spark, "small", Settings.small),
        whole=_number(spark, "whole", Settings.whole),
        slots=machine.limit(spark),
        work=place_of(work) if work else machine.work(spark),
        checkpoint=_seconds(spark, "checkpoint", Settings.checkpoint),
    )


def process_limit(spark: SparkSession) -> int:
    """How many tuples a database may have before they are kept on Spark."""
    return _number(spark, "process", PROCESS)


def _get(spark: SparkSession, name: str, default: str) -> str:
    return spark.conf.get(PREFIX + name, default) or default


def _number(spark: SparkSession, name: str, default: int) -> int:
    text = _get(spark, name, str(default))
    if not text.isascii() or not text.isdigit():
        raise TidelogError(f"error[TL0609]: {PREFIX}{name} is {text!r}, and should be a whole number")
    return int(text)


def _seconds(spark: SparkSession, name: str, default: float) -> float:
    text = _get(spark, name, str(default))
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise TidelogError(f"error[TL0609]: {PREFIX}{name} is {text!r}, and should be a number of seconds")
    return found


def _way(text: str) -> Way | None:
    if text == "auto":
        return None
    try:
        return Way(text)
    except ValueError:
        ways = ", ".join(["auto", *Way])
        raise TidelogError(
            f"error[TL0609]: {PREFIX}fixpoint is {text!r}, and should be one of {ways}"
        ) from None
