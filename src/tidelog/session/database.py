"""A program, its facts, and the answers that follow from them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from threading import RLock
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import WeakSet, finalize

from tidelog.execute import EXECUTORS, open_executor
from tidelog.io.output import write_files
from tidelog.plan.executor import Executor
from tidelog.program.check import check
from tidelog.program.model import Column, Program, Relation
from tidelog.session.answer import Answer
from tidelog.session.errors import UnknownRelationError
from tidelog.session.evaluate import evaluate
from tidelog.session.report import Report, Watch
from tidelog.session.transaction import Transaction, Types
from tidelog.session.writer import Writer
from tidelog.syntax.ast import Module, RelationDecl
from tidelog.syntax.errors import ResourceError, TidelogError
from tidelog.syntax.parser import parse, read

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _State:
    """What the last commit left: the program as its facts type it, the facts, the answers."""

    program: Program
    types: Mapping[str, Types]
    facts: Mapping[str, tuple[pa.Table, ...]]
    executor: Executor | None = None
    report: Report = field(default_factory=Report)


class Database:
    """A Datalog program with its facts.

    `program` is a path, the name of an existing file, or the text of a program. `engine`
    is local (in process, the default), spark, or substitution (the slow reference);
    `threads` is for local, `spark` (a SparkSession) for spark. `watch` is told how evaluations
    proceed.
    """

    def __init__(
        self,
        program: str | Path,
        *,
        engine: str = "local",
        threads: int = 1,
        spark: object | None = None,
        watch: Watch | None = None,
    ) -> None:
        if engine not in EXECUTORS:
            raise TidelogError(
                f"error[TL0509]: there is no engine {engine!r}; engines are {', '.join(EXECUTORS)}"
            )
        self.engine, self._spark, self._watch = engine, spark, watch
        self._threads = _thread_count(threads)
        self._module = _module(program)
        self._state = _State(check(self._module), {}, {})
        self._untyped = not any(isinstance(item, RelationDecl) for item in self._module.items)
        self._writer = Writer()
        self._reading = RLock()  # nobody reads from an executor while it is replaced
        self._answers: WeakSet[Answer] = WeakSet()

    # --- reading ---------------------------------------------------------------

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The program's relations, in order of declaration."""
        found = self._state.program.relations
        return {name: relation for name, relation in found.items() if relation.made_by is None}

    @property
    def program(self) -> Program:
        """The checked program."""
        return self._state.program

    @property
    def report(self) -> Report:
        """What the last evaluation did, stratum by stratum."""
        self._executor()
        return self._state.report

    def __getitem__(self, relation: str) -> Answer:
        found = self.relations.get(relation)
        if found is None:
            raise UnknownRelationError(relation, self.relations)
        with self._reading:
            executor = self._executor()
            answer = Answer(found, executor.size(relation), lambda: executor.table(relation), self._reading)
            self._answers.add(answer)
        return answer

    def __contains__(self, relation: object) -> bool:
        return relation in self.relations

    def __iter__(self) -> Iterator[str]:
        return iter(self.relations)

    def __repr__(self) -> str:
        return f"<tidelog.Database of {', '.join(self.relations) or 'no relations'}>"

    def _executor(self) -> Executor:
        """The engine with the current answers. What the program alone says is derived on first use."""
        with self._reading:
            if self._state.executor is None:
                self._replace(self._state.program, self._state.types, self._state.facts)
            assert self._state.executor is not None
            return self._state.executor

    # --- changing ----------------------------------------------------------------

    def transaction(self) -> Transaction:
        """Begin a transaction; there is one at a time, another thread waits for its turn."""
        self._writer.begin()
        begun = Transaction(self)
        # One that is dropped without an end gives its turn back when it is collected.
        release = finalize(begun, self._writer.end)
        release.atexit, begun.release = False, release
        return begun

    def load(self, directory: str | Path) -> None:
        """Read the facts of every input relation from its file, in a transaction of its own."""
        with self.transaction() as tx:
            tx.load(directory)

    def write(self, directory: str | Path) -> list[Path]:
        """Write every output relation to its file, all of them or none; the files written."""
        with self._reading:
            executor = self._executor()
            outputs = [(r, executor.table(n)) for n, r in self.relations.items() if r.is_output]
        return write_files(outputs, Path(directory))

    def columns_of(self, relation: str) -> tuple[Column, ...] | None:
        """The columns of a relation one may insert into; None for a new one of an untyped program."""
        found = self.relations.get(relation)
        if found is not None:
            return found.columns
        if self._untyped and relation.isidentifier():
            return None
        raise UnknownRelationError(relation, self.relations)

    @property
    def types_taken(self) -> Mapping[str, Types]:
        """The types that undeclared relations have taken from the facts committed so far."""
        return self._state.types

    def inputs(self) -> list[Relation]:
        """The relations that facts are read for."""
        return [r for r in self.relations.values() if r.is_input]

    def finish(self, transaction: Transaction, *, commit: bool) -> None:
        """End a transaction (see `Transaction.commit` and `Transaction.rollback`)."""
        try:
            if commit and transaction.inserted:
                self._apply(transaction)
        finally:
            transaction.release()

    def _apply(self, transaction: Transaction) -> None:
        old = self._state
        facts = dict(old.facts)
        for name, tables in transaction.inserted.items():
            facts[name] = (*facts.get(name, ()), *tables)
        types = {**old.types, **transaction.types}
        program = check(self._module, types) if types != old.types else old.program
        self._replace(program, types, facts)

    def _replace(
        self, program: Program, types: Mapping[str, Types], facts: Mapping[str, tuple[pa.Table, ...]]
    ) -> None:
        """Derive everything in a new engine, and only then let go of the old one."""
        started = perf_counter()
        executor = open_executor(self.engine, threads=self._threads, spark=self._spark)
        ready = perf_counter()
        try:
            report = evaluate(program, facts, executor, self._watch)
        except BaseException as error:
            executor.close()
            if isinstance(error, MemoryError):
                raise ResourceError(str(error)) from error
            raise
        report = replace(report, start_seconds=ready - started)
        with self._reading:
            old = self._state.executor
            for answer in list(self._answers):
                answer.freeze()
            self._answers.clear()
            self._state = _State(program, types, facts, executor, report)
            if old is not None:
                old.close()

    # --- the end -------------------------------------------------------------------

    def close(self) -> None:
        """Give back what the engine holds. Answers already taken stay valid."""
        with self._reading:
            executor = self._state.executor
            if executor is not None:
                for answer in list(self._answers):
                    answer.freeze()
                self._answers.clear()
                self._state = _State(self._state.program, self._state.types, self._state.facts)
                executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _thread_count(threads: object) -> int:
    if isinstance(threads, Integral) and not isinstance(threads, bool) and int(threads) >= 1:
        return int(threads)
    raise TidelogError(f"error[TL0509]: no engine runs on threads={threads!r}: give a whole number from 1 on")


def _module(program: str | Path) -> Module:
    if isinstance(program, Path):
        return read(program)
    if not isinstance(program, str):
        raise TypeError(f"a program is a path or text, not {type(program).__name__}")
    if os.path.exists(program):  # also a directory, so that it is named as one
        return read(Path(program))
    if program.endswith((".dl", ".ddl")) and not any(c in program for c in "\n(:"):
        raise TidelogError(f"error[TL0510]: there is no file {program}")
    return parse(program)
