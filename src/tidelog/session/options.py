"""What a database is made with: its program, and how its answers are kept."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidelog.execute import EXECUTORS, open_executor
from tidelog.session.backend import Backend
from tidelog.session.errors import no_choice
from tidelog.session.report import Watch
from tidelog.syntax.ast import Module
from tidelog.syntax.errors import TidelogError
from tidelog.syntax.parser import parse, read

if TYPE_CHECKING:
    from tidelog.maintain.protocol import Algorithm
    from tidelog.plan.maintenance import Keeper


def program_module(program: str | Path) -> Module:
    """The program of a file, or of a text."""
    if isinstance(program, Path):
        return read(program)
    if not isinstance(program, str):
        raise TypeError(f"a program is a path or text, not {type(program).__name__}")
    if program and os.path.exists(program):  # also a directory, so that it is named as one
        return read(Path(program))
    if program.endswith((".dl", ".ddl")) and not any(c in program for c in "\n(:"):
        raise TidelogError(f"error[TL0510]: there is no file {program}")
    return parse(program)


def thread_count(threads: object) -> int:
    """A number of threads. Raises TidelogError for what is none."""
    if isinstance(threads, Integral) and not isinstance(threads, bool) and int(threads) >= 1:
        return int(threads)
    raise TidelogError(f"error[TL0509]: no engine runs on threads={threads!r}: give a whole number from 1 on")


def check_engine(engine: str, spark: object | None) -> None:
    """Raise TidelogError for an engine that there is not, or for a session that it cannot use."""
    if engine not in EXECUTORS:
        raise no_choice("engine", engine, EXECUTORS)
    if spark is not None and engine != "spark":
        raise TidelogError(
            f"error[TL0509]: the engine {engine} does not use a Spark session\n"
            "  = hint: leave out engine=, and the session says it; or leave out spark="
        )
    if spark is not None:
        from tidelog.execute.spark.session import check_session

        check_session(spark)


def check_choice(algorithm: str, policy: str) -> None:
    """Raise TidelogError for names that are none."""
    from tidelog.maintain.algorithms import CHOICES, named
    from tidelog.maintain.auto import POLICIES

    try:
        named(algorithm)
    except (TypeError, ValueError):
        raise no_choice("algorithm", algorithm, CHOICES) from None
    if policy not in POLICIES:
        raise no_choice("policy", policy, POLICIES)


@dataclass
class Options:
    """How the answers of a database are kept (see `Database`). The algorithm may be changed meanwhile."""

    engine: str
    spark: object | None
    threads: int
    algorithm: str
    policy: str
    watch: Watch | None
    maintained: bool

    def chosen(self) -> str | Algorithm:
        """What maintenance is told to use."""
        if self.policy == "full":
            return "recompute"
        if self.algorithm == "auto" and self.policy != "auto":
            from tidelog.maintain.auto import Auto

            return Auto(self.policy)
        return self.algorithm

    def keeping(self) -> Backend:
        """A backend that keeps answers current; on Spark it says itself where."""
        if self.engine == "spark":
            from tidelog.session.placed import Placed

            return Placed(self.spark, self.threads, self.chosen, self.watch)
        from tidelog.session.maintained import Maintained

        keeper = cast("Keeper", open_executor(self.engine, threads=self.threads, keep=True))
        return Maintained(keeper, self.chosen(), self.watch)

    def deriving(self, lock: AbstractContextManager[object], *, compare: bool) -> Backend:
        """A backend that derives answers anew; with `compare` it can tell what has changed."""
        from tidelog.session.recomputed import Recomputed

        opener = partial(open_executor, self.engine, threads=self.threads, spark=self.spark)
        return Recomputed(opener, self.watch, lock, compare=compare)
