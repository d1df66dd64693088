"""The local executor as a keeper: commits, facts asserted and retracted, tasks, renewal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local import rounds
from tidelog.execute.local.executor import WORTH_SHARING, LocalExecutor, polling
from tidelog.execute.local.keep import ending, facts, renewal, saving, traces
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep.delta import CellDelta
from tidelog.execute.local.keep.groups import regroup
from tidelog.execute.local.keep.relation import Ledger, check_rows
from tidelog.execute.local.keep.renewals import Renewals
from tidelog.execute.local.keep.running_proof import RunningProof
from tidelog.execute.local.keep.running_steps import RunningSteps
from tidelog.execute.local.keep.tasks import Running, RunningRedeem, RunningSweep, RunningTally
from tidelog.execute.local.keep.workshop import Workshop
from tidelog.execute.local.memory import Cells, preload
from tidelog.execute.local.relation import StoredRelation
from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.plan.executor import Derive, Fixpoint, Group, TaskReport, Watch, unwatched
from tidelog.plan.executor import Task as Materialising
from tidelog.plan.maintenance import (
    Abandoned,
    Maintaining,
    PhaseReport,
    Proof,
    Redeem,
    Regroup,
    Row,
    Standing,
    Steps,
    Sweep,
    Tally,
    Told,
)
from tidelog.plan.parts import Mark
from tidelog.program.model import Relation
from tidelog.syntax.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa

COMPACT_FROM = 10_000  # rows linked nowhere before a relation is written anew


class LocalKeeper(LocalExecutor):
    """Holds relations with marks and brings them up to date with compiled kernels."""

    kind = "local"  # of a `Saving` keeper
    patience = 0.0
    gradual_from = 16  # changes: so many are taken up in portions, where a task says so

    def __init__(self, threads: int = 1, share_from: int = WORTH_SHARING) -> None:
        super().__init__(threads, share_from)
        preload(ending.take_back)  # when it is needed there may be no memory for it
        self.workshop = Workshop(self.codes, self.relations)
        self._ledgers: dict[str, Ledger] = {}
        self._derived: frozenset[str] = frozenset()
        self._compiled: dict[int, tuple[object, Running]] = {}
        self._renewals = Renewals(self.relations, self._ledgers)
        self._fresh: set[str] = set()  # relations made in this commit
        self._dropped: dict[str, tuple[StoredRelation, Ledger | None]] = {}
        self._underway = False
        self.preparing = 0.0
        self.told = Told()

    # --- relations ---

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""
        with Uninterrupted():
            if relation.name in self.relations:
                self.drop(relation.name)
            super().create(relation)
            self._forget_tasks()
            if self._underway:
                self._fresh.add(relation.name)

    def ledger(self, relation: str) -> Ledger:
        """What is known of a relation's rows."""
        found = self._ledgers.get(relation)
        if found is None:
            explicit = self._renewals.explicit.get(relation)
            stored = self.relations[relation]
            found = Ledger(stored) if explicit is None else Ledger(stored, explicit, new=True)
            self._ledgers[relation] = found
            found.record[at.AT_BEGIN] = len(stored)
        return found

    def drop(self, relation: str) -> None:
        """Forget a relation; a rollback brings it back."""
        with Uninterrupted():
            self._renewals.put_back(relation)  # a rollback brings back what was there before it was renewed
            gone = self.relations.pop(relation), self._ledgers.pop(relation, None)
            if self._underway and relation not in self._fresh:
                self._dropped[relation] = gone
            self._fresh.discard(relation)
            self._forget_tasks()

    def _forget_tasks(self) -> None:
        self._compiled.clear()

    def size(self, relation: str) -> int:
        """The number of tuples in the answers as of the last commit."""
        aside = self._renewals.aside.get(relation)
        ledger = self._ledgers.get(relation) if aside is None else aside.ledger
        if ledger is None:
            return 0 if relation in self._fresh else len(self.relations[relation])
        rows = ledger.record[at.AT_BEGIN] if self._underway else len(self.relations[relation])
        return int(rows - ledger.record[at.DEAD])

    def table(self, relation: str) -> pa.Table:
        """All tuples in the answers as of the last commit."""
        stored = self.relations[relation]
        ledger = self._ledgers.get(relation)
        if relation in self._renewals.explicit:
            return self.to_table(stored.relation, self._renewals.aside[relation].held_cells)
        if ledger is None:
            return super().table(relation)
        if not ledger.touched and not ledger.record[at.DEAD]:
            return super().table(relation)
        return self.to_table(stored.relation, stored.cells[np.flatnonzero(ledger.held())])

    # --- commits ---

    def begin(self) -> None:
        """Start a commit."""
        if self._underway:
            raise InternalError("a commit is under way")
        self._underway = True
        self.told.clear()
        for name, ledger in self._ledgers.items():
            ledger.record[at.AT_BEGIN] = len(self.relations[name])

    def commit(self) -> None:
        """What holds now is what is held."""
        touched = [(name, ledger) for name, ledger in self._ledgers.items() if ledger.touched]
        for _, ledger in touched:
            if not rounds.extend_indexes(ledger.stored.address):
                raise MemoryError  # nothing is final yet
        for name, ledger in touched:
            ending.make_final(ledger.stored.address)
            if int(ledger.record[at.DEAD]) > max(COMPACT_FROM, len(ledger.stored) // 2):
                self._renewals.compact(name)
        self._renewals.discard(self._renewals.aside)
        self._end()

    def rollback(self) -> None:
        """Everything as it was at `begin`."""
        self._renewals.show_lost()  # a task may have failed in the middle of a renewal
        self._renewals.discard(self._fresh)
        for name in self._fresh:
            self.relations.pop(name, None)
            self._ledgers.pop(name, None)
        for name, (stored, old) in self._dropped.items():
            self.relations[name] = stored
            if old is not None:
                self._ledgers[name] = old
        if self._fresh or self._dropped:
            self._forget_tasks()
        for name in tuple(self._renewals.aside):
            self._renewals.put_back(name)
        self._renewals.take_back_numbers()
        for ledger in self._ledgers.values():
            if ledger.touched or ledger.record[at.AT_BEGIN] != len(ledger.stored):
                ending.take_back(ledger.stored.address)
        self._end()

    def _end(self) -> None:
        self._renewals.end()
        self._fresh, self._dropped = set(), {}
        self._underway = False

    def undo(self, relations: Sequence[str]) -> None:
        """Take back what tasks did to relations in this commit."""
        with Uninterrupted():
            for name in relations:
                if not ending.take_back_tasks(self.ledger(name).stored.address):
                    raise MemoryError

    def derives(self, relations: Sequence[str]) -> None:
        """Say which relations rules derive into: said when rules change, so tasks change too."""
        self._derived = frozenset(relations)
        self._forget_tasks()

    # --- facts ---

    def assert_rows(self, relation: str, rows: Sequence[Row] | pa.Table) -> int:
        """Make rows explicit; how many were not."""
        stored = self.relations[relation]
        with Uninterrupted():
            packed, count = self._pack(stored, rows)
            if len(stored) == 0 and count >= COMPACT_FROM:
                new = self._assert_all(relation, stored, packed)
            else:
                self.ledger(relation).need_map()
                derived = relation in self._derived
                new = int(facts.assert_packed(stored.address, packed.ctypes.data, count, derived))
            self.told.asserted[relation] += check_rows(new, relation)
        return new

    def _assert_all(self, relation: str, stored: StoredRelation, packed: Cells) -> int:
        """The first facts of a relation, many of them."""
        columns = [np.ascontiguousarray(packed[:, i]) for i in range(stored.arity)]
        new = stored.insert(columns, len(packed))
        old = self._ledgers.pop(relation, None)
        if old is not None:
            old.free()
        self._ledgers[relation] = Ledger(stored)
        marks = Mark.EXPLICIT | Mark.ASSERTED
        if relation not in self._derived:
            marks |= Mark.ADDED
        if not renewal.touch_all(stored.address, int(marks)):
            raise MemoryError
        return new

    def retract_rows(self, relation: str, rows: Sequence[Row] | pa.Table) -> int:
        """Make rows no longer explicit; how many were."""
        stored = self.relations[relation]
        with Uninterrupted():
            self.ledger(relation).need_map()
            packed, count = self._pack(stored, rows)
            derived = relation in self._derived
            gone = int(facts.retract_packed(stored.address, packed.ctypes.data, count, derived))
            self.told.retracted[relation] += check_rows(gone, relation)
        return gone

    def _pack(self, stored: StoredRelation, rows: Sequence[Row] | pa.Table) -> tuple[Cells, int]:
        """Rows as packed cells, and their number."""
        types = [column.type for column in stored.relation.columns]
        width = 2 * stored.words
        if isinstance(rows, Sequence):
            code = self.codes.code
            packed: Cells = np.zeros((len(rows), width), np.uint32)
            for number, row in enumerate(rows):
                for column, type in enumerate(types):
                    packed[number, column] = code(row[column], type)
            return packed, len(rows)
        packed = np.zeros((rows.num_rows, width), np.uint32)
        for column, type in enumerate(types):
            packed[:, column] = self.codes.from_arrow(rows.column(column), type)
        return packed, rows.num_rows

    # --- tasks ---

    def run(self, task: Materialising, watch: Watch = unwatched) -> TaskReport:
        """Run a task that materialises; inside `renew`, with ranks for what a fixpoint derives."""
        if not isinstance(task, Derive | Fixpoint) or not task.ranks or not self._renewals.explicit:
            return super().run(task, watch)
        self._renewals.note_repeats()
        if isinstance(task, Derive):
            return super().run(task, watch)
        before = {name: len(self.relations[name]) for name in task.relations}
        report = super().run(task, watch)
        for name in task.relations:
            self._renewals.rank(self.ledger(name), before[name])
        return report

    def keep_going(
        self, task: Maintaining | Materialising, watch: Watch = unwatched, budget: int | None = None
    ) -> PhaseReport:
        """Run a task; an interrupt comes when `watch` is told of progress, and never in between."""
        with Uninterrupted() as held:
            return self._keep_going(task, polling(watch, held), budget)

    def _keep_going(self, task: Maintaining | Materialising, watch: Watch, budget: int | None) -> PhaseReport:
        started = time.perf_counter()
        if isinstance(task, Derive | Fixpoint | Group):
            plain = self.run(task, watch)
            report = PhaseReport(plain.rounds, plain.new, plain.instances, phase=type(task).__name__.lower())
            report.touched = plain.new
        elif isinstance(task, Regroup):
            report = regroup(task, self)
        else:
            running = self._ready(task, budget)
            before = sum(self.ledger(name).touched for name in task.relations)
            try:
                running(watch)
            except Abandoned as given_up:
                report = running.report(task.phase, 0)
                report.seconds = time.perf_counter() - started
                given_up.reports = [report]
                raise
            touched = sum(self.ledger(name).touched for name in task.relations) - before
            report = running.report(task.phase, touched)
        report.seconds = time.perf_counter() - started
        return report

    def prepare(self, tasks: Sequence[Maintaining | Materialising]) -> None:
        """Make the indexes that tasks will need, and load the kernels: these, and those of a renewal."""
        with Uninterrupted():
            for task in tasks:
                if not isinstance(task, Derive | Fixpoint | Group | Regroup):
                    running = self._running(task)
                    running.reset(None)
                    running.load()
            self._renewals.load()

    def _ready(self, task: Maintaining, budget: int | None) -> Running:
        """The compiled task, with its indexes, ready to run; the time that these take is kept."""
        kept = self._kept(task)
        if kept is not None and kept.has_indexes:
            kept.reset(budget)
            return kept
        started = time.thread_time()
        running = self._running(task)
        running.reset(budget)
        self.preparing += time.thread_time() - started
        return running

    def _kept(self, task: Maintaining) -> Running | None:
        """The task as it was compiled before, while that is of use."""
        found = self._compiled.get(id(task))
        if found is None or found[1].outgrown or self._starting(task):
            return None
        return found[1]

    def _running(self, task: Maintaining) -> Running:
        """The compiled task."""
        kept = self._kept(task)
        if kept is not None:
            return kept
        running: Running
        match task:
            case Sweep(guard=Proof()):
                running = RunningProof(self, task)
            case Sweep():
                running = RunningSweep(self, task)
            case Redeem():
                running = RunningRedeem(self, task)
            case Tally():
                running = RunningTally(self, task)
            case Steps():
                running = RunningSteps(self, task, self._starting(task))
            case _:
                raise InternalError(f"no task: {task}")
        if not self._starting(task):
            self._compiled[id(task)] = (task, running)  # the task stays alive, so its id stays its own
        return running

    def _starting(self, task: Maintaining) -> bool:
        """Whether a task runs from nothing, inside `renew`."""
        return not isinstance(task, Regroup) and any(
            name in self._renewals.explicit for name in task.relations
        )

    # --- renewal ---

    def renew(self, relations: Sequence[str]) -> None:
        """Set relations aside and start them from their explicit facts."""
        with Uninterrupted():
            self._renewals.set_aside({name: self.ledger(name) for name in relations})

    def renewed(self, relations: Sequence[str]) -> bool:
        """Mark what is lost and gained against what was set aside."""
        with Uninterrupted():
            alike = [self._renewals.compare(self.ledger(name)) for name in relations]
            self._renewals.show_lost()
        return all(alike)

    # --- from one process to another ---

    def state(self, relation: str) -> pa.Table:
        """The tuples held, with all that is known of them."""
        stored, ledger = self.relations[relation], self.ledger(relation)
        rows = np.flatnonzero(ledger.held())
        return saving.with_numbers(self.to_table(stored.relation, stored.cells[rows]), ledger, rows)

    def restore(self, relation: str, state: pa.Table) -> None:
        """Fill a relation with what `state` gave."""
        stored = self.relations[relation]
        if super().insert(relation, state) != state.num_rows:
            raise ValueError(f"{relation} has tuples that are there twice")
        ledger = self._ledgers[relation] = Ledger(stored)
        saving.take_numbers(ledger, state)

    # --- looking ---

    def changed(self, relation: str) -> tuple[int, int]:
        """How many tuples are lost and gained so far."""
        ledger = self._ledgers.get(relation)
        return (0, 0) if ledger is None else ledger.changes()

    def delta(self, relation: str) -> CellDelta:
        """What this commit takes from a relation and adds to it."""
        stored, ledger = self.relations[relation], self._ledgers.get(relation)
        empty = np.empty(0, np.int64)
        lost, gained = (empty, empty) if ledger is None else ledger.changed_rows()
        cells = stored.cells
        return CellDelta(stored.relation, cells[lost], cells[gained], self.to_table)

    def facts(self, relation: str) -> pa.Table:
        """The tuples that are explicit now."""
        stored = self.relations[relation]
        explicit = np.flatnonzero(self.ledger(relation).marks & np.uint16(Mark.EXPLICIT))
        return self.to_table(stored.relation, stored.cells[explicit])

    def standing(self, relation: str) -> dict[Row, Standing]:
        """All stored tuples with what is known of them."""
        stored, ledger = self.relations[relation], self.ledger(relation)
        found: dict[Row, Standing] = {}
        types = [column.type for column in stored.relation.columns]
        for number, (marks, both) in enumerate(
            zip(ledger.marks.tolist(), ledger.numbers.tolist(), strict=True)
        ):
            if not marks:
                continue
            cells = stored.cells[number].tolist()
            row = tuple(self.codes.value(cell, type) for cell, type in zip(cells, types, strict=False))
            trace = traces.read(ledger.address, number) if ledger.record[at.TRACES] else {}
            found[row] = Standing(Mark(marks), both >> 32, both & 0xFFFFFFFF, trace)
        return found

    def memory(self) -> dict[str, int]:
        """Bytes in use by rows, sets and indexes, and by what is known of the rows."""
        total = super().memory() | {"marks": 0, "numbers": 0, "traces": 0, "map": 0}
        for ledger in self._ledgers.values():
            for part, size in ledger.bytes.items():
                total[part] += size
        return total

    def remember(self, on: bool) -> None:
        """The kernels only count instances."""

    def close(self) -> None:
        """Give the memory back."""
        for ledger in self._ledgers.values():
            ledger.free()
        self._ledgers, self._compiled = {}, {}
        for memo in self.workshop.memos.values():
            memo.stored.free()
        self.workshop.memos = {}
        super().close()
