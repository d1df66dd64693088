"""Executors: the same plans run in process (local), on Spark, or by substitution (the reference)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.syntax.errors import UnsupportedError

if TYPE_CHECKING:
    from tidelog.plan.executor import Executor


class Engine(StrEnum):
    """The executors by name. The command line reads them here, so this module imports nothing heavy."""

    local = "local"
    spark = "spark"
    substitution = "substitution"


EXECUTORS = tuple(engine.value for engine in Engine)


def open_executor(
    name: str, *, threads: int = 1, spark: object | None = None, keep: bool = False
) -> Executor:
    """A new, empty executor by name; `threads` is for local, `spark` (a SparkSession) for spark.

    With `keep` it is one that keeps answers current (a `Keeper`), if this executor can.
    """
    match name:  # imported only when asked for: each brings its own heavy dependencies
        case "local":
            with Uninterrupted():  # what is half imported cannot be imported again
                if keep:
                    from tidelog.execute.local.keep.keeper import LocalKeeper

                    return LocalKeeper(threads)
                from tidelog.execute.local.executor import LocalExecutor

                return LocalExecutor(threads)
        case "spark" if keep:
            from tidelog.execute.spark.keep.keeper import SparkKeeper

            return SparkKeeper(spark)
        case "spark":
            from tidelog.execute.spark.executor import SparkExecutor

            return SparkExecutor(spark)
        case "substitution":
            from tidelog.execute.substitution.executor import SubstitutionExecutor

            return SubstitutionExecutor()
        case _:
            raise UnsupportedError(
                f"error[TL0607]: there is no executor {name!r}; there are {', '.join(EXECUTORS)}"
            )
