"""Running rule forms: planned, assembled, and driven to the end, by one worker or several.

`Run` is the state of one task. Forms that the rule interpreter can do run as kernels;
the others are evaluated column by column (`columns`). When all forms are of the first
kind, a lone worker's whole fixpoint is one kernel call, interrupted only to report
progress, to share a large round among workers, or to choose join orders anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tidelog.execute.local import columns, join, rounds
from tidelog.execute.local import layout as at
from tidelog.execute.local.assemble import MAX_REGISTERS, MAX_STEPS, assemble
from tidelog.execute.local.codes import Codes
from tidelog.execute.local.memory import Words
from tidelog.execute.local.relation import StoredRelation
from tidelog.execute.local.statistics import StoredStatistics
from tidelog.plan.algebra import RulePlan
from tidelog.plan.executor import Progress, RuleForm, TaskReport, Watch
from tidelog.plan.lower import plan_form
from tidelog.syntax.errors import InternalError

BUDGET = 1 << 18  # driver rows between two reports of progress
WORTH_SPLITTING = 256  # driver rows of a form in a round that is shared
REPLAN_GROWTH = 4  # new join orders when a relation is this many times as large
REPLAN_ROWS = 1000


@dataclass
class Worker:
    """The private memory of one worker."""

    registers: Words
    positions: Words
    bytes: Words
    counted: Words

    @property
    def addresses(self) -> tuple[int, int, int]:
        """Where the registers, the stack and the scratch memory are."""
        return self.registers.ctypes.data, self.positions.ctypes.data, self.bytes.ctypes.data

    @property
    def counts(self) -> int:
        """Where the numbers of rule instances are, one for each form."""
        return int(self.counted.ctypes.data)


def new_worker(forms: int) -> Worker:
    """Memory for a worker that runs this many forms."""
    return Worker(
        np.zeros(MAX_REGISTERS + 1, np.int64),
        np.zeros(3 * (MAX_STEPS + 1), np.int64),
        np.zeros(join.SCRATCH_BYTES // 8, np.int64),
        np.zeros(max(1, forms), np.int64),
    )


class Run:
    """One task's forms over the relations that it derives."""

    def __init__(
        self,
        forms: Sequence[RuleForm],
        derived: Sequence[str],
        relations: Mapping[str, StoredRelation],
        codes: Codes,
        pool: ThreadPoolExecutor | None,
        threads: int,
        share_from: int,
    ) -> None:
        self.forms, self.relations, self.codes = tuple(forms), relations, codes
        self.changing = frozenset(derived)
        self.derived = [relations[name] for name in derived]
        self.addresses: Words = np.array([r.address for r in self.derived], np.int64)
        self.pool, self.threads, self.share_from = pool, threads, share_from
        self.run: Words = np.zeros(at.RUN_WORDS, np.int64)
        self.run[at.RUN_ROW] = -1
        self.run[at.RUN_ALONE] = 1
        self.workers = [new_worker(len(self.forms)) for _ in range(threads)]
        self.interpreted = [0] * len(self.forms)  # instances counted by `columns`
        self.plan()

    # --- plans ---

    def plan(self) -> None:
        """Choose join orders for the sizes as they are now, and assemble."""
        statistics = StoredStatistics(self.relations)
        self.code: Words
        code: list[int] = []
        self.plans: list[RulePlan] = []
        self.starts: list[int | None] = []
        for form in self.forms:
            plan = plan_form(form, statistics)
            words = assemble(plan, self.relations.__getitem__, self.codes, self.changing, len(code))
            self.plans.append(plan)
            self.starts.append(None if words is None else len(code))
            code += words or []
        self.code = np.array(code or [0], np.int64)
        self.kernel_forms: Words = np.array([s for s in self.starts if s is not None], np.int64)
        self.run[at.RUN_WIDE] = self.codes.wide_address
        self.limits: Words = np.array(
            [max(REPLAN_ROWS, REPLAN_GROWTH * len(r)) for r in self.derived], np.int64
        )

    # --- rounds ---

    def fixpoint(self, watch: Watch) -> TaskReport:
        """Run rounds until one derives nothing."""
        started = time.perf_counter()
        for relation in self.derived:
            relation.all_delta()
        if all(start is not None for start in self.starts):
            self._rounds_in_kernel(watch)
        else:
            while self._shared_round():
                watch(Progress(int(self.run[at.RUN_ROUND]), int(self.run[at.RUN_NEW])))
                if self._outgrown():
                    self.plan()
        self._settle()
        return self._report(started)

    def once(self, watch: Watch) -> TaskReport:
        """Run every form a single time."""
        started = time.perf_counter()
        self._shared_round()
        self._settle()
        watch(Progress(1, int(self.run[at.RUN_NEW])))
        return self._report(started)

    def _rounds_in_kernel(self, watch: Watch) -> None:
        """Rounds that are worth it are shared among the workers, the others run in one kernel call."""
        large = self.share_from if self.threads > 1 else 1 << 62
        shared = sum(map(len, self.derived)) >= large
        while True:
            if shared:
                before = self._considered()
                if not self._shared_round():
                    return
                shared = self._considered() - before >= large
                state = rounds.GROWN if self._outgrown() else rounds.PAUSED
            else:
                state = self._lone_rounds(large)
                shared = state in (rounds.LARGE, rounds.GROWN) and bool(self.run[at.RUN_HEAVY])
            watch(Progress(int(self.run[at.RUN_ROUND]), int(self.run[at.RUN_NEW])))
            if state == rounds.FINISHED:
                return
            if state == rounds.GROWN:
                self.plan()
            elif state == rounds.OUT_OF_MEMORY:
                self._no_memory()
            elif state == rounds.TOO_MANY_ROWS:
                self._too_many()

    def _lone_rounds(self, large: int) -> int:
        worker = self.workers[0]
        self.run[at.RUN_CONSIDERED] = worker.counted.sum()
        return rounds.run_rounds(
            self.code.ctypes.data, self.kernel_forms, self.addresses, self.limits,
            *worker.addresses, self.run.ctypes.data, worker.counts, BUDGET, large,
        )  # fmt: skip

    def _considered(self) -> int:
        return sum(int(worker.counted.sum()) for worker in self.workers)

    def _outgrown(self) -> bool:
        return any(len(r) > limit for r, limit in zip(self.derived, self.limits, strict=True))

    def _shared_round(self) -> bool:
        """One round, form by form, with as many workers as it is worth. False: nothing was new."""
        for number, start in enumerate(self.starts):
            if start is None:
                self.interpreted[number] += columns.evaluate(
                    self.plans[number], self.relations, self.codes, self.changing
                )
                self.run[at.RUN_WIDE] = self.codes.wide_address
            else:
                self._form(number, start)
        new = rounds.end_round(self.addresses, self.threads, self.run.ctypes.data)
        if new < 0:
            self._no_memory() if new == -1 else self._too_many()
        self.run[at.RUN_TASK] = 0
        everyone = self.threads if new >= self.share_from else 1
        done = self._everyone(
            everyone, lambda _: bool(rounds.share_indexes(self.addresses, self.run.ctypes.data))
        )
        if not all(done):
            self._no_memory()
        return bool(new)

    def _form(self, number: int, start: int) -> None:
        low, high = rounds.driver_range(self.code.ctypes.data, start)
        if self.threads == 1 or high - low < min(self.share_from, WORTH_SPLITTING):
            w = self.workers[0]
            state, _ = join.run_form(
                self.code.ctypes.data, start, *w.addresses, low, high, 0,
                self.run.ctypes.data, w.counts, number,
            )  # fmt: skip
            if state != join.COMPLETE:
                self._no_memory()
            return
        head = self.relations[self.forms[number].rule.head.relation]
        self.run[at.RUN_CURSOR], self.run[at.RUN_END] = low, high
        chunk = max(1, min(1024, (high - low) // (32 * self.threads)))
        left = [(0, 0)] * self.threads

        def work(me: int) -> int:
            w = self.workers[me]
            state, left_low, left_high = rounds.share_form(
                self.code.ctypes.data, start, *w.addresses, *left[me], me,
                self.run.ctypes.data, w.counts, number, chunk,
            )  # fmt: skip
            left[me] = (left_low, left_high)
            return int(state)

        while True:
            head.lift_limit()
            self.run[at.RUN_ALONE] = 0
            states = self._everyone(self.threads, work)
            self.run[at.RUN_ALONE] = 1
            head.restore_limit()
            if join.NO_MEMORY in states:
                self._no_memory()
            if join.MUST_GROW not in states:
                return
            if not head.grow():
                self._no_memory()

    def _everyone(self, threads: int, work: Callable[[int], int]) -> list[int]:
        """Run a part of the work in every worker; the caller's thread is the first of them."""
        if threads == 1 or self.pool is None:
            return [work(0)]
        others = [self.pool.submit(work, me) for me in range(1, threads)]
        return [work(0), *(other.result() for other in others)]

    # --- results ---

    def _settle(self) -> None:
        for relation in self.derived:
            relation.settle()
            relation.drop_outputs()

    def _report(self, started: float) -> TaskReport:
        report = TaskReport(int(self.run[at.RUN_ROUND]), int(self.run[at.RUN_NEW]))
        for number, form in enumerate(self.forms):
            counted = sum(int(w.counted[number]) for w in self.workers) + self.interpreted[number]
            report.instances[form.rule.id] = report.instances.get(form.rule.id, 0) + counted
        report.seconds = time.perf_counter() - started
        return report

    def _no_memory(self) -> None:
        raise MemoryError(f"out of memory while deriving {', '.join(sorted(self.changing))}")

    def _too_many(self) -> None:
        raise InternalError("a relation has more rows than row numbers")
