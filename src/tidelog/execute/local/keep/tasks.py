"""Maintenance tasks, compiled: code, cursors and the calls into the kernels.

A task is compiled once and kept for as long as the task object is used again; join orders are
chosen anew when a relation has outgrown them. `Running` is what compiled tasks have in
common: going in and out of a kernel until it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local.keep import heads
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep import sweep as kernels
from tidelog.execute.local.keep.assemble import Code, Cursor
from tidelog.execute.local.memory import Words, array_at
from tidelog.execute.local.statistics import StoredStatistics
from tidelog.plan.executor import Progress, Watch
from tidelog.plan.maintenance import (
    Abandoned,
    Instances,
    PhaseReport,
    Reading,
    Redeem,
    Supported,
    Sweep,
    Tally,
)
from tidelog.program.model import Positive
from tidelog.syntax.errors import UnsupportedError

if TYPE_CHECKING:
    from tidelog.execute.local.keep.keeper import LocalKeeper

UNLIMITED = 1 << 62
NONE: Words = np.empty(0, np.int64)
COUNTED = {
    Instances.GAINED: heads.GAINED,
    Instances.LOST: heads.LOST,
    Instances.MIXED: heads.MIXED,
    Instances.FORMER_LOST: heads.FORMER_LOST,
}
PORTIONS = 3  # after the first, which is an eighth: of fewer changes, one that is dear tells nothing
SLICE = 5_000  # tuples looked at between two reports of progress
REPLAN_GROWTH, REPLAN_ROWS = 4, 1000


class Running:
    """A compiled task."""

    ranks = False
    counts = False  # whether heads have numbers

    def __init__(self, keeper: LocalKeeper, relations: Sequence[str]) -> None:
        self.keeper = keeper
        self.names = tuple(relations)
        self.code = Code(keeper.workshop, StoredStatistics(keeper.relations), frozenset(relations))
        self.run: Words = np.zeros(at.R_WORDS, np.int64)
        self.own: Words = np.array([keeper.relations[name].address for name in relations], np.int64)

    def finish(self) -> None:
        """All readings are added: make the arrays."""
        self.words = self.code.array()
        self.place = int(self.words.ctypes.data)
        self.cursors = [Cursor(self.code), Cursor(self.code)]
        self.counted: Words = np.zeros(max(1, len(self.code.rules)), np.int64)
        stored = self.keeper.relations
        self.limits = {name: max(REPLAN_ROWS, REPLAN_GROWTH * len(stored[name])) for name in self.code.read}
        for name in {*self.code.read, *self.code.looked_up, *self.names}:
            self.keeper.ledger(name)
        self.mapped = tuple({*self.code.looked_up, *self.names})
        self.address = int(self.run.ctypes.data)
        self.run[at.R_COUNTS] = self.counted.ctypes.data
        self.run[at.R_CURSOR] = self.cursors[0].address
        self.run[at.R_GUARD_CURSOR] = self.cursors[1].address
        for cursor in self.cursors:
            cursor.record[at.C_WORK] = self.address + 8 * at.R_WORK

    @property
    def outgrown(self) -> bool:
        """Whether a relation is so much larger than when the join orders were chosen."""
        stored = self.keeper.relations
        return any(len(stored[name]) > limit for name, limit in self.limits.items())

    @property
    def has_indexes(self) -> bool:
        """Whether the indexes are there; a renewal lets them rest."""
        stored = self.keeper.relations
        return all(columns in stored[name].indexes for name, columns in self.code.probed)

    def group(
        self, readings: Sequence[Reading], *, backward: bool = False, sign: int = 0
    ) -> tuple[Words, Words]:
        """Add readings: their places, and the number of the own relation that drives each (-1: another)."""
        places, owners = [], []
        for reading in readings:
            place, driver = self.code.add(reading, backward=backward, sign=sign)
            places.append(place)
            owners.append(self.names.index(driver) if driver in self.names else -1)
        return np.array(places, np.int64), np.array(owners, np.int64)

    def __call__(self, watch: Watch) -> None:
        """Run, after `reset`."""
        raise NotImplementedError

    def load(self) -> None:
        """Have the kernel in memory before it is needed: loading it takes as long as many commits."""

    def reset(self, budget: int | None) -> None:
        """Be ready to run from the beginning."""
        run = self.run
        run[: at.R_COUNTS] = 0
        run[at.R_WORK] = run[at.R_UNDECIDED] = run[at.R_PORTION] = run[at.R_FURTHER] = 0
        self.budget = UNLIMITED if budget is None else budget
        run[at.R_BUDGET] = min(self.budget, SLICE)
        run[at.R_RANKS] = int(self.ranks)
        self.counted[:] = 0
        for name, columns in self.code.probed:
            self.keeper.relations[name].index(columns)
        self.take_from_reserve()
        for name in self.mapped:
            self.keeper.ledger(name).need_map()
        if self.ranks or self.counts:
            for name in self.names:
                self.keeper.ledger(name).keep_numbers()

    def take_from_reserve(self) -> None:
        """Let orders be chosen that were in reserve, if their indexes are there or have become worth making.

        They have when the matches that these orders would have saved are as many as there are rows to index:
        so all that is done with and without them is at most twice what the better of the two would be.
        """
        relations = self.keeper.relations
        for reserve in tuple(self.code.reserves):
            needed = {(name, columns) for _, name, columns in reserve.probes}
            missing = [name for name, columns in needed if columns not in relations[name].indexes]
            regret = self.words[reserve.form + at.F_REGRET]
            if missing and regret <= sum(len(relations[name]) for name in missing):
                continue
            for step, name, columns in reserve.probes:
                self.words[step + at.INDEX] = relations[name].index(columns).address
                self.code.probed.add((name, columns))
            self.words[reserve.order + at.F_OTHER] = self.words[reserve.form + at.F_OTHER]
            self.words[reserve.form + at.F_OTHER] = reserve.order
            self.words[reserve.form + at.F_REGRET] = self.words[reserve.form + at.F_RESERVE] = 0
            self.code.reserves.remove(reserve)
        for reserve in self.code.reserves:
            least = self.words[reserve.form + at.F_RESERVE] or reserve.expected
            self.words[reserve.form + at.F_RESERVE] = min(least, reserve.expected)

    def drive(self, kernel: Callable[[], int], watch: Watch) -> None:
        """Call a kernel until it is done, computing the values that it asks for in between."""
        codes = self.keeper.codes
        while True:
            for cursor in self.cursors:
                cursor.record[at.C_WIDE] = codes.wide_address  # it moves when there are more of them
            state = kernel()
            if state == at.DONE:
                return
            if state == at.MISSING_IN_FRAME:
                self.answer(int(self.run[at.R_ASKING]))
            elif state in (at.MISSING, at.MISSING_IN_GUARD):
                self.answer(self.cursors[1 if state == at.MISSING_IN_GUARD else 0].address)
            elif state in (at.OVER_BUDGET, at.PORTION_DONE):
                if self.run[at.R_WORK] > self.budget:
                    raise Abandoned
                self.take_from_reserve()
                self.run[at.R_BUDGET] = min(self.budget, int(self.run[at.R_WORK]) + SLICE)
            elif state == at.TOO_MANY:
                names = ", ".join(self.names)
                raise UnsupportedError(
                    f"error[TL0605]: too many rows, or derivations of one of them, in {names}: "
                    "the local engine can count no further"
                )
            else:
                raise MemoryError(f"out of memory while keeping {', '.join(self.names)}")
            watch(Progress(int(self.run[at.R_ROUNDS]), int(self.run[at.R_NEW]), self.share()))

    def share(self) -> float:
        """The part of its changes that it has taken up."""
        return float(0.5 ** int(self.run[at.R_PORTION]))

    def answer(self, cursor: int) -> None:
        """Compute the value that the cursor at an address has stopped for."""
        record = array_at(cursor, at.C_WORDS, np.int64)
        step = int(self.words[record[at.C_FORM] + at.F_STEPS]) + at.STEP_WORDS * int(record[at.C_LEVEL])
        call = self.code.calls[step]
        registers = array_at(int(record[at.C_REGISTERS]), self.code.registers, np.int64)
        call.memo.compute([int(registers[r]) for r in call.registers], call.rule, self.keeper.codes)

    def report(self, phase: str, touched: int) -> PhaseReport:
        """What the run did."""
        report = PhaseReport(
            int(self.run[at.R_ROUNDS]), int(self.run[at.R_NEW]), phase=phase, touched=touched
        )
        report.work = int(self.run[at.R_WORK])
        if self.run[at.R_CONSIDERED]:
            for rule, counted in zip(self.code.rules, self.counted.tolist(), strict=False):
                if counted:
                    report.instances[rule] = report.instances.get(rule, 0) + counted
        return report


class RunningSweep(Running):
    """A sweep, unguarded or guarded by `Supported`."""

    def __init__(self, keeper: LocalKeeper, task: Sweep) -> None:
        super().__init__(keeper, task.relations)
        self.task, self.ranks = task, task.ranks or isinstance(task.guard, Supported)
        self.seeds, _ = self.group(task.seeds)
        self.forms, self.owners = self.group(task.forms)
        guard = task.guard if isinstance(task.guard, Supported) else Supported(())
        self.guards, self.guard_owners = self.group(guard.forms, backward=True)
        self.guarded, self.fresh = guard is task.guard, guard.fresh
        drivers = [reading.rule.body[reading.driver] for reading in task.seeds if reading.driver is not None]
        self.drivers = {literal.atom.relation for literal in drivers if isinstance(literal, Positive)}
        self.gradual = task.gradual and len(drivers) == len(task.seeds)
        self.finish()

    def has_many(self) -> bool:
        """Whether there are so many changes that they are taken up in portions."""
        told = self.keeper.told
        changes = sum(sum(self.keeper.changed(name)) for name in self.drivers)
        changes += sum(told.retracted[name] + told.asserted[name] for name in self.names)
        return changes >= self.keeper.gradual_from

    def load(self) -> None:
        """Sweep over nothing."""
        kernels.sweep(
            NONE, self.place, NONE, NONE, NONE, NONE, NONE, self.guarded, 0, 0, 0, 0, self.address
        )  # fmt: skip

    def report(self, phase: str, touched: int) -> PhaseReport:
        """What the run did, and what it left open."""
        report = super().report(phase, touched)
        if self.guarded:
            report.undecided = int(self.run[at.R_UNDECIDED])
        return report

    def __call__(self, watch: Watch) -> None:
        """Sweep."""
        parts, task = self.keeper.workshop.parts, self.task
        start, reach, fresh = (parts.address(part) for part in (task.start, task.reach, self.fresh))
        self.run[at.R_RANKS] = int(task.ranks)
        self.run[at.R_INSTANCES] = COUNTED[task.instances] if self.ranks else 0
        self.run[at.R_PORTION] = PORTIONS if self.gradual and self.has_many() else 0
        self.drive(
            lambda: int(
                kernels.sweep(
                    self.own, self.place, self.seeds, self.forms, self.owners, self.guards,
                    self.guard_owners, self.guarded, fresh, start, reach, int(task.settle), self.address,
                )
            ),
            watch,
        )  # fmt: skip


class RunningRedeem(Running):
    """One-step rederivation."""

    def __init__(self, keeper: LocalKeeper, task: Redeem) -> None:
        super().__init__(keeper, task.relations)
        self.task, self.ranks = task, task.ranks
        self.forms, self.owners = self.group(task.forms, backward=True)
        self.finish()

    def share(self) -> float:
        """How much of what was touched it has looked at: the next higher power of two, as in portions."""
        touched = [self.keeper.ledger(name).touched for name in self.names]
        done = sum(touched[: self.run[at.R_RELATION]]) + int(self.run[at.R_POSITION])
        return min(0.5**portion for portion in range(PORTIONS + 1) if done <= sum(touched) * 0.5**portion)

    def load(self) -> None:
        """Rederive nothing."""
        kernels.redeem(NONE, self.place, NONE, NONE, 0, 0, self.address)

    def __call__(self, watch: Watch) -> None:
        """Rederive."""
        parts, task = self.keeper.workshop.parts, self.task
        candidates, known = parts.address(task.candidates), parts.address(task.known)
        self.drive(
            lambda: int(
                kernels.redeem(
                    self.own, self.place, self.forms, self.owners, candidates, known, self.address
                )
            ),
            watch,
        )  # fmt: skip


class RunningTally(Running):
    """One count for each tuple."""

    counts = True

    def __init__(self, keeper: LocalKeeper, task: Tally) -> None:
        super().__init__(keeper, task.relations)
        self.task = task
        lost, _ = self.group(task.lost, sign=-1)
        gained, _ = self.group(task.gained, sign=1)
        self.forms = np.concatenate([gained, lost])
        self.finish()

    def __call__(self, watch: Watch) -> None:
        """Count."""
        self.drive(lambda: int(kernels.run_changes(self.place, self.forms, self.address, 0)), watch)
        if not kernels.mark_by_count(self.own):
            raise MemoryError(f"out of memory while keeping {', '.join(self.names)}")
