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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from tidelog.execute.spark import machine
from tidelog.execute.spark.place import Place, place_of
from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "spark.tidelog."
_Value = TypeVar("_Value")
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
    """The settings of a session. Raises TidelogError."""
    work = _get(spark, "work", "", str)
    return Settings(
        way=_get(spark, "fixpoint", "auto", _way),
        tasks=_get(spark, "tasks", "0", _number) or machine.slots(spark),
        small=_get(spark, "small", str(Settings.small), _number),
        whole=_get(spark, "whole", str(Settings.whole), _number),
        slots=machine.limit(spark),
        work=place_of(work) if work else machine.work(spark),
        checkpoint=_get(spark, "checkpoint", str(Settings.checkpoint), _seconds),
    )


def process_limit(spark: SparkSession) -> int:
    """How many tuples a database may have before they are kept on Spark. Raises TidelogError."""
    return _get(spark, "process", str(PROCESS), _number)


def _get(spark: SparkSession, name: str, default: str, read: Callable[[str], _Value]) -> _Value:
    text = spark.conf.get(PREFIX + name, default) or default
    try:
        return read(text)
    except ValueError as error:
        raise TidelogError(f"error[TL0609]: {_wrong(PREFIX + name, text, error)}") from None


def check_setting(name: str, text: str) -> None:
    """Raise TidelogError for one of our settings that there is not, or for a value it cannot have."""
    wrong = setting_problem(name, text)
    if wrong is not None:
        raise TidelogError(f"error[TL0609]: {wrong}")


def setting_problem(name: str, text: str) -> str | None:
    """What is wrong with a setting of a session, if it is one of ours."""
    if not name.startswith(PREFIX):
        return None
    read = _READERS.get(name.removeprefix(PREFIX))
    if read is None:
        return f"there is no setting {name}; there are {', '.join(PREFIX + known for known in _READERS)}"
    try:
        read(text)
    except ValueError as error:
        return _wrong(name, text, error)
    return None


def _wrong(name: str, text: str, error: ValueError) -> str:
    return f"{name} is {text!r}, and should be {error}"


# --- values: each raises ValueError, which says what there should be ---------------


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError("a whole number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError("a number of seconds")
    return found


def _way(text: str) -> Way | None:
    if text == "auto":
        return None
    if text not in list(Way):
        raise ValueError(f"one of {', '.join(['auto', *Way])}")
    return Way(text)


_READERS: Mapping[str, Callable[[str], object]] = {
    "fixpoint": _way,
    "tasks": _number,
    "small": _number,
    "whole": _number,
    "process": _number,
    "work": str,
    "checkpoint": _seconds,
}
