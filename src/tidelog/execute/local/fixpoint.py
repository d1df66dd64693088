"""Running rule forms: planned, assembled, and driven to the end, by one worker or several.

`Run` is the state of one task. Forms that the rule interpreter can do run as kernels;
the others are evaluated column by column (`columns`). When all forms are of the first
kind, a lone worker's whole fixpoint is one kernel call, interrupted only to report
progress, to share a large round among workers, or to choose join orders anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from tidelog.execute.local import columns, insert, join, rounds
from tidelog.execute.local import layout as at
from tidelog.execute.local.assemble import MAX_REGISTERS, MAX_STEPS, assemble
from tidelog.execute.local.codes import Codes
from tidelog.execute.local.memory import Words
from tidelog.execute.local.relation import StoredRelation
from tidelog.execute.local.statistics import StoredStatistics
from tidelog.plan.algebra import RulePlan
from tidelog.plan.executor import Progress, RuleForm, TaskReport, Watch
from tidelog.plan.lower import plan_form
from tidelog.syntax.errors import UnsupportedError

BUDGET = 1 << 23  # rule instances between two reports of progress
NEVER = 1 << 62
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
        rows = sum(map(len, self.derived))
        if rows:
            self._rounds(watch, heavy=rows >= self.share_from)
        self._settle()
        return self._report(started)

    def resume(self, watch: Watch) -> None:
        """Run rounds until one derives nothing, the first over the DELTA that relations have now."""
        self._rounds(watch, heavy=False)

    def once(self, watch: Watch) -> TaskReport:
        """Run every form a single time."""
        started = time.perf_counter()
        self._round(watch)
        self._settle()
        watch(self._progress())
        return self._report(started)

    def _rounds(self, watch: Watch, *, heavy: bool) -> None:
        """Heavy rounds are shared among the workers; others run in a kernel, many rounds to a call."""
        more = True
        while more:
            if (heavy and self.threads > 1) or None in self.starts:
                before = self._considered()
                more = self._round(watch)
                heavy = self._considered() - before >= self.share_from
            else:
                state = self._kernel_rounds()
                more = state != rounds.FINISHED
                heavy = state in (rounds.LARGE, rounds.GROWN) and bool(self.run[at.RUN_HEAVY])
            watch(self._progress())
            if more and any(len(r) > limit for r, limit in zip(self.derived, self.limits, strict=True)):
                self.plan()

    def _kernel_rounds(self) -> int:
        worker = self.workers[0]
        large = self.share_from if self.threads > 1 else NEVER
        self.run[at.RUN_CONSIDERED] = worker.counted.sum()
        state = rounds.run_rounds(
            self.code.ctypes.data, self.kernel_forms, self.addresses, self.limits,
            *worker.addresses, self.run.ctypes.data, worker.counts, BUDGET, large,
        )  # fmt: skip
        if state == rounds.OUT_OF_MEMORY:
            self._no_memory()
        if state == rounds.TOO_MANY_ROWS:
            self._too_many()
        return state

    def _round(self, watch: Watch) -> bool:
        """One round, form by form, with as many workers as it is worth. False: nothing was new."""
        for number, start in enumerate(self.starts):
            if start is None:
                self.interpreted[number] += columns.evaluate(
                    self.plans[number], self.relations, self.codes, self.changing
                )
                self.run[at.RUN_WIDE] = self.codes.wide_address
            else:
                self._form(number, start, watch)
        new = rounds.absorb_all(self.addresses, self.threads, self.run.ctypes.data)
        if new < 0:
            self._no_memory() if new == rounds.NO_ROOM else self._too_many()
        self.run[at.RUN_TASK] = 0
        everyone = self.threads if new >= self.share_from else 1
        done = self._everyone(
            everyone, lambda _: bool(rounds.share_indexes(self.addresses, self.run.ctypes.data))
        )
        if not all(done):
            self._no_memory()
        return bool(new)

    def _form(self, number: int, start: int, watch: Watch) -> None:
        """Run a form over all its driver's rows, in parts, so that progress shows and interrupts work."""
        low, high = rounds.driver_range(self.code.ctypes.data, start)
        head = self.relations[self.forms[number].rule.head.relation]
        alone = self.threads == 1 or not self._worth_splitting(number, high - low)
        threads = 1 if alone else self.threads
        self.run[at.RUN_CURSOR], self.run[at.RUN_END] = low, high
        self.run[at.RUN_ALONE] = int(alone)
        chunk = max(1, min(1024, (high - low) // (32 * threads)))
        left = [(0, 0)] * threads

        def work(me: int) -> int:
            w = self.workers[me]
            state, left_low, left_high = rounds.share_form(
                self.code.ctypes.data, start, *w.addresses, *left[me], me,
                self.run.ctypes.data, w.counts, number, chunk, BUDGET,
            )  # fmt: skip
            left[me] = (left_low, left_high)
            return int(state)

        states = [insert.PAUSED]
        while any(state != insert.COMPLETE for state in states):
            if not alone:
                head.lift_limit()
            states = self._everyone(threads, work)
            head.restore_limit()
            if insert.NO_MEMORY in states or (insert.MUST_GROW in states and not head.grow()):
                self._no_memory()
            if insert.PAUSED in states:
                watch(self._progress())
        self.run[at.RUN_ALONE] = 1

    def _worth_splitting(self, number: int, rows: int) -> bool:
        """Whether a form over so many rows has enough work for several workers, from what it did so far."""
        work = max(8 * rows, sum(int(w.counted[number]) for w in self.workers))
        return rows >= min(WORTH_SPLITTING, self.share_from) and work >= self.share_from

    def _everyone(self, threads: int, work: Callable[[int], int]) -> list[int]:
        """Run a part of the work in every worker; the caller's thread is the first of them."""
        others = [self.pool.submit(work, me) for me in range(1, threads)] if self.pool else []
        try:
            return [work(0), *(other.result() for other in others)]
        finally:
            wait(others)  # nobody may still be at work when the memory is given back

    # --- results ---

    def _progress(self) -> Progress:
        return Progress(int(self.run[at.RUN_ROUND]), int(self.run[at.RUN_NEW]))

    def _considered(self) -> int:
        return sum(int(w.counted.sum()) for w in self.workers) + sum(self.interpreted)

    def instances(self, number: int) -> int:
        """The rule instances that a form has been considered for."""
        return sum(int(w.counted[number]) for w in self.workers) + self.interpreted[number]

    def _settle(self) -> None:
        for relation in self.derived:
            relation.settle()
            relation.drop_outputs()

    def _report(self, started: float) -> TaskReport:
        report = TaskReport(int(self.run[at.RUN_ROUND]), int(self.run[at.RUN_NEW]))
        for number, form in enumerate(self.forms):
            counted = report.instances.get(form.rule.id, 0)
            report.instances[form.rule.id] = counted + self.instances(number)
        report.seconds = time.perf_counter() - started
        return report

    def _no_memory(self) -> None:
        raise MemoryError(f"out of memory while deriving {', '.join(sorted(self.changing))}")

    def _too_many(self) -> None:
        names = ", ".join(sorted(self.changing))
        raise UnsupportedError(
            f"error[TL0605]: more than {rounds.MAX_ROWS:,} rows in one of {names}: "
            "the local engine can number no more"
        )
