"""Answers derived anew at every commit, in a new engine: for engines that cannot bring theirs up to date.

Explicit facts are kept beside the engine, as tables, or in Spark (`frames`). What has changed is
found by comparing the answers before and after when somebody asks; until then, or until the next
commit, the engine before stays open, unless its answers are in a Spark session that is not its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn
from weakref import ref

from tidelog.execute.spark.executor import SparkExecutor
from tidelog.io.plain import Row, rows_of_table, table_of_values
from tidelog.plan.executor import Executor
from tidelog.program.model import Column, Relation
from tidelog.session.backend import Outcome, Work
from tidelog.session.errors import no_changes
from tidelog.session.evaluate import evaluate
from tidelog.session.frames.changes import FrameComparison
from tidelog.session.frames.facts import FrameFacts
from tidelog.session.frames.given import EVERYTHING, GivenFrame
from tidelog.session.frames.held import InSpark
from tidelog.session.report import Reporting, Watch

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.plan.maintenance import Delta

Lock = AbstractContextManager[object]


class TableFacts:
    """The explicit facts of a relation, as tables. Operations make others; these stay as they are."""

    def __init__(self, columns: tuple[Column, ...], tables: tuple[pa.Table, ...] = ()) -> None:
        self._columns = columns
        self.sources = tables  # what an executor is given

    def insert(self, table: pa.Table, *, counted: bool) -> tuple[TableFacts, int]:
        """With more facts, and how many of the rows had no effect, if that is counted."""
        known = _count_in(table, self.sources, self._columns) if counted else 0
        return TableFacts(self._columns, (*self.sources, table)), known

    def delete(self, table: pa.Table) -> tuple[TableFacts, int]:
        """Without some facts, and how many of the rows had no effect."""
        tables, missed = _without(self.sources, table, self._columns)
        return TableFacts(self._columns, tables), missed


Facts = Mapping[str, TableFacts | FrameFacts]


@dataclass
class Compared:
    """What tells two tables apart."""

    deleted: pa.Table
    inserted: pa.Table


Entry = tuple[Relation, "Delta", tuple[int, int]]


class Comparison(Mapping[str, Entry]):
    """What has changed from one engine to another, found when it is first asked for."""

    def __init__(self, old: Executor | None, new: Executor, work: Work, lock: Lock) -> None:
        self._lock = lock
        self._engines: tuple[Executor | None, Executor] | None = (old, new)
        self._before = {} if old is None or work.old is None else work.old.relations
        self._after = work.new.relations
        self._found: dict[str, Entry] = {}

    def settle(self) -> dict[str, Entry]:
        """Compare now, if that has not been done."""
        with self._lock:
            if self._engines is not None:
                old, new = self._engines
                for name, relation in {**self._before, **self._after}.items():
                    was = old.table(name) if old is not None and name in self._before else None
                    delta = _compare(was, new.table(name) if name in self._after else None, relation)
                    counts = (delta.deleted.num_rows, delta.inserted.num_rows)
                    if counts != (0, 0):
                        self._found[name] = (relation, delta, counts)
                self._engines = None
        return self._found

    def __getitem__(self, name: str) -> Entry:
        return self.settle()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.settle())

    def __len__(self) -> int:
        return len(self.settle())


class Untold(Mapping[str, Entry]):
    """Changes that nobody kept."""

    def _refuse(self) -> NoReturn:
        raise no_changes()

    def __getitem__(self, name: str) -> Entry:
        self._refuse()

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()


class Recomputed:
    """Explicit facts, and an engine with what follows from them."""

    in_place = False

    def __init__(
        self, opener: Callable[[], Executor], watch: Watch | None, lock: Lock, *, compare: bool
    ) -> None:
        """`lock` is held while engines are replaced; without `compare` nobody asks what has changed."""
        self._opener, self._watch, self._lock, self._compare = opener, watch, lock, compare
        self._facts: Facts = {}
        self._executor: Executor | None = None
        self._next: tuple[Facts, Executor | None] = ({}, None)
        self._retired: Executor | None = None
        self._last: ref[Comparison | FrameComparison] | None = None
        self._pending: ref[Comparison | FrameComparison] | None = None

    def prepare(self, work: Work) -> Outcome:
        """Derive everything in a new engine."""
        facts, inserts, deletes = self._apply(work)
        self._next = (facts, None)
        started = perf_counter()
        executor = self._opener()
        self._next = (facts, executor)
        ready = perf_counter()
        sources = {name: found.sources for name, found in facts.items()}
        report = evaluate(work.new.program, sources, executor, self._watch)
        empty = frozenset(name for name in work.forgettable if executor.size(name) == 0)
        changed: Mapping[str, Entry] = Untold()
        if self._compare:
            changed = comparison = self._comparison(executor, work)
            self._pending = ref(comparison)
        report = replace(
            report,
            start_seconds=ready - started,
            version=work.version,
            ignored_inserts=inserts,
            ignored_deletes=deletes + work.ignored_deletes,
        )
        before = frozenset() if work.old is None else frozenset(work.old.relations)
        definition = work.new.without(empty)
        return Outcome(definition, Reporting(report), changed, (before | empty) - definition.relations.keys())

    def _comparison(self, executor: Executor, work: Work) -> Comparison | FrameComparison:
        if not _lasting(executor):
            return Comparison(self._executor, executor, work, self._lock)
        before = {} if work.old is None else work.old.relations
        old, new = (
            {name: engine.rows(name) for name in relations} if isinstance(engine, SparkExecutor) else {}
            for engine, relations in ((self._executor, before), (executor, work.new.relations))
        )
        return FrameComparison(old, new)

    def _apply(self, work: Work) -> tuple[Facts, int, int]:
        relations = work.new.program.relations
        facts = {name: found for name, found in self._facts.items() if name in relations}
        inserts = deletes = 0
        for insert, name, rows, counted in work.operations:
            if rows is EVERYTHING:
                facts.pop(name, None)
                continue
            if name not in relations:  # it went with the last rule that spoke of it
                deletes += len(rows) if counted and not isinstance(rows, GivenFrame) else 0
                continue
            relation = relations[name]
            found = facts.get(name) or TableFacts(relation.columns)
            if isinstance(rows, GivenFrame) and isinstance(found, TableFacts):
                found = FrameFacts.of(relation, found.sources, rows)
            if isinstance(rows, list | tuple):
                rows = table_of_values(rows, relation.columns)
            known = missed = 0
            if isinstance(rows, GivenFrame) and rows.of_changes:
                assert isinstance(found, FrameFacts)
                found, known, missed = found.apply(rows)
            elif not insert:
                found, missed = found.delete(rows)
            elif isinstance(found, FrameFacts):
                found, known = found.insert(rows)
            else:
                found, known = found.insert(rows, counted=self._compare)
            facts[name] = found
            inserts += known
            deletes += missed if counted else 0
        return facts, inserts, deletes

    def commit(self) -> None:
        """The new engine takes the place of the old one."""
        self._retire()
        self._retired, self._last = self._executor, self._pending
        self._facts, self._executor = self._next
        self._next = ({}, None)
        if not self._compare or _lasting(self._executor):
            self._retire()

    def _retire(self) -> None:
        """Close the engine before the current one, once everything alive has been compared with it."""
        comparison = self._last() if self._last is not None else None
        if comparison is not None:
            comparison.settle()
        if self._retired is not None:
            self._retired.close()
            self._retired = None

    def rollback(self) -> None:
        """Forget the new engine."""
        executor = self._next[1]
        self._next, self._pending = ({}, None), None
        if executor is not None:
            executor.close()

    def size(self, relation: Relation) -> int:
        """The number of tuples."""
        return 0 if self._executor is None else self._executor.size(relation.name)

    def table(self, relation: Relation) -> pa.Table:
        """The tuples of a relation."""
        assert self._executor is not None
        return self._executor.table(relation.name)

    def held(self, relation: Relation) -> pa.Table | InSpark:
        """The tuples of a relation as they are now, in Spark if they can stay there."""
        executor = self._executor
        if isinstance(executor, SparkExecutor) and executor.lasting:
            return executor.rows(relation.name)
        return self.table(relation)

    def close(self) -> None:
        """Give back what the engine holds."""
        self._retire()
        if self._executor is not None:
            self._executor.close()
            self._executor = None
        self._facts = {}


def _lasting(executor: Executor | None) -> bool:
    """Whether what an executor holds can be kept without it."""
    return isinstance(executor, SparkExecutor) and executor.lasting


def _identity(row: Row) -> tuple[object, ...]:
    """A row as what it is stored as: NaN is one value, 0.0 and -0.0 are two."""
    return tuple(("float", value.hex()) if isinstance(value, float) else value for value in row)


def _identities(table: pa.Table, columns: tuple[Column, ...]) -> list[tuple[object, ...]]:
    return [_identity(row) for row in rows_of_table(table, columns)]


def _count_in(table: pa.Table, tables: tuple[pa.Table, ...], columns: tuple[Column, ...]) -> int:
    """How many of a table's rows have been there before."""
    seen = {row for earlier in tables for row in _identities(earlier, columns)}
    rows = _identities(table, columns)
    return len(rows) - len(set(rows) - seen)


def _without(
    tables: tuple[pa.Table, ...], gone: pa.Table, columns: tuple[Column, ...]
) -> tuple[tuple[pa.Table, ...], int]:
    """Tables without some rows, and how many of these were not there."""
    rows = _identities(gone, columns)
    wanted, found, kept = set(rows), set(), []
    for table in tables:
        places = []
        for place, row in enumerate(_identities(table, columns)):
            if row in wanted:
                found.add(row)
            else:
                places.append(place)
        kept.append(_take(table, places) if len(places) < table.num_rows else table)
    return tuple(table for table in kept if table.num_rows), len(rows) - len(found)


def _compare(old: pa.Table | None, new: pa.Table | None, relation: Relation) -> Compared:
    from tidelog.program.arrow import arrow_schema

    nothing = arrow_schema(relation).empty_table()
    if old is None or not old.num_rows:
        return Compared(nothing, nothing if new is None else new)
    if new is None or not new.num_rows:
        return Compared(old, nothing)
    before, after = _identities(old, relation.columns), _identities(new, relation.columns)
    gone, came = set(before) - set(after), set(after) - set(before)
    return Compared(
        _take(old, [i for i, row in enumerate(before) if row in gone]),
        _take(new, [i for i, row in enumerate(after) if row in came]),
    )


def _take(table: pa.Table, places: list[int]) -> pa.Table:
    import pyarrow as pa

    return table.take(pa.array(places, pa.int64()))
