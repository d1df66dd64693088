"""Steps: the iterations of the old run and of the new one, together, on the driver.

The reference (`execute.substitution.steps`) has the method and its words: fₒ and fₙ are the first
iteration of a tuple in the old run and in the new one; instances of the old run are put aside as
soon as something of them is known to differ (*leaving*), the new run meets what is new to it or meets
something different (*meeting*), and tuples that lost their first iteration are looked up (*again*).
Here the tuples of an iteration are treated together: an iteration is a few Spark jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidelog.execute.spark.keep.differing import (
    EITHER,
    NEVER,
    OLD_RUN,
    Derivation,
    Differing,
    Drivers,
    Key,
    before,
)
from tidelog.execute.spark.keep.entries import Entry, Row
from tidelog.execute.spark.keep.fetch import Outgrown
from tidelog.execute.spark.keep.first_run import first_run
from tidelog.execute.spark.keep.instances import Ref
from tidelog.execute.spark.keep.work import Work
from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import EVERYTHING, Mark
from tidelog.plan.step_readings import step_readings
from tidelog.syntax.errors import InternalError, UnsupportedError

Refs = dict[Ref, None]


def steps(task: Steps, work: Work, starting: bool) -> None:
    """Bring numbers and marks from the old run to the new one; `starting`: the old run is empty."""
    if not starting:
        _Runs(task, work, starting).go()
        return
    rules = (*task.base, *task.recursive, *task.added)
    try:
        _Runs(replace(task, base=(), recursive=(), removed=(), added=rules), work, starting).go()
    except Outgrown:
        if any(work.relations[name].aside is None for name in task.relations):
            raise UnsupportedError(
                "error[TL0618]: dbsp keeps relations of its own on the driver, and these have outgrown it\n"
                "  = hint: choose another algorithm"
            ) from None
        first_run(task, work)


class _Runs:
    """The two runs, side by side."""

    def __init__(self, task: Steps, work: Work, starting: bool) -> None:
        self.task, self.work = task, work
        self.runs = Differing(task, work)
        self.own = self.runs.own
        self.changes: dict[Ref, dict[int, int]] = {}  # of counts, by iteration
        # By iteration: what may leave, whom the new run meets, whom to look up again, whom to look at.
        self.leaving: dict[int, dict[Key, Derivation]] = {}
        self.meeting: dict[int, Refs] = {}
        self.again: dict[int, dict[Key, Derivation]] = {}
        self.looking: dict[int, Refs] = {}
        self.forms = step_readings(task, self.own, from_nothing=starting)

    # --- instances that differ -------------------------------------------------------------------

    def _leave(self, readings: Iterable[Reading], drivers: Drivers | None) -> None:
        """Put instances of the old run aside until their iteration comes."""
        for one in self.runs.instances(readings, OLD_RUN, drivers):
            derivation = self.runs.derivation(one)
            iteration = self.runs.old_iteration(derivation)
            self.leaving.setdefault(iteration, {})[derivation.key] = derivation

    def _note(self, readings: Iterable[Reading], drivers: Drivers | None, after: int) -> None:
        """Note tuples of the old run's later iterations that meet something different."""
        for one in self.runs.instances(readings, EITHER, drivers):
            for ref in one.matched.values():
                if ref[0] in self.own and after < (old := self.runs.old_first(ref)) < NEVER:
                    self.meeting.setdefault(old, {})[ref] = None

    def _look_up_again(self, refs: Refs, iteration: int) -> None:
        """Put aside, for their iterations, the instances that derived tuples after their first iteration."""
        for one in self.runs.instances(self.forms.backward, OLD_RUN, self.runs.drivers(refs)):
            derivation = self.runs.derivation(one, shift=1)
            later = self.runs.old_iteration(derivation)
            if later > iteration:
                self.again.setdefault(later, {})[derivation.key] = derivation

    def _found(self, iteration: int) -> dict[Key, Derivation]:
        """The instances of an iteration of the new run that may not be in that of the old run."""
        if iteration == 1:
            found = self.runs.instances(self.forms.first_gained, before(iteration), None)
        else:
            met = self.meeting.pop(iteration - 1, {})
            drivers = self.runs.drivers(ref for ref in met if self.runs.new_first(ref) == iteration - 1)
            found = self.runs.instances(self.forms.new_forms, before(iteration), drivers) if drivers else []
        derivations = map(self.runs.derivation, found)
        return {derivation.key: derivation for derivation in derivations}

    # --- the loop --------------------------------------------------------------------------------

    def go(self) -> None:
        """All iterations."""
        self._leave(self.forms.lost, None)
        self._note(self.forms.gained, None, 0)
        self._explicit_facts()
        iteration: int | None = 1
        while iteration is not None:
            self._iteration(iteration)
            self.work.report.rounds = iteration - 1
            self.work.round()
            pending = [*self.leaving, *self.again, *self.looking, *(i + 1 for i in self.meeting)]
            iteration = min((i for i in pending if i > iteration), default=None)
        self._write()

    def _explicit_facts(self) -> None:
        """Explicit facts count as one instance in iteration 1."""
        for name in self.task.relations:
            for entry in self.work.relations[name].touched(EVERYTHING):
                change = bool(entry.marks & Mark.ASSERTED) - bool(entry.marks & Mark.RETRACTED)
                if change:
                    self._count((name, entry.row), 1, change)

    def _iteration(self, iteration: int) -> None:
        leaving = self.leaving.pop(iteration, {})
        found, again = self._found(iteration), self.again.pop(iteration, {})
        self._load(d.head for some in (leaving, found, again) for d in some.values())
        for derivation in leaving.values():  # step 2
            if self.runs.new_iteration(derivation) != iteration:
                self.work.consider(derivation.rule, 1, "deletion")
                self._count(derivation.head, iteration, -1)
        for derivation in found.values():  # step 3
            if self.runs.old_iteration(derivation) != iteration:
                self.work.consider(derivation.rule, 1, "insertion")
                self._count(derivation.head, iteration, 1)
        for derivation in again.values():  # step 4
            if (
                self.runs.new_first(derivation.head) == NEVER
                and self.runs.new_iteration(derivation) == iteration
            ):
                self.work.consider(derivation.rule, 1, "rediscovery")
                self._count(derivation.head, iteration, 1)
        self._settle(self.looking.pop(iteration, {}), iteration)  # step 5

    def _load(self, refs: Iterable[Ref]) -> None:
        rows: dict[str, list[Row]] = {}
        for name, row in refs:
            rows.setdefault(name, []).append(row)
        self.work.load(rows)

    def _count(self, ref: Ref, iteration: int, change: int) -> None:
        """Change a tuple's count in an iteration. With "first", later iterations are not counted."""
        kept = self.task.keep == "trace" or (
            self.runs.old_first(ref) == iteration if change < 0 else self.runs.new_first(ref) >= iteration
        )
        if kept:
            by_iteration = self.changes.setdefault(ref, {})
            by_iteration[iteration] = by_iteration.get(iteration, 0) + change
            self.looking.setdefault(iteration, {})[ref] = None

    def _settle(self, refs: Refs, iteration: int) -> None:
        """Decide which tuples are there from this iteration on, and what follows from changes."""
        come: Refs = {}
        gone: Refs = {}
        moved: Refs = {}
        for ref in refs:
            old = self.runs.old_first(ref)
            if self.runs.new_first(ref) >= iteration:
                count = self._count_in(ref, iteration)
                if count < 0:
                    raise InternalError(f"{ref[0]}{ref[1]} has lost more than it had")
                if count and old != iteration:
                    self.runs.firsts[ref] = iteration
                    self.meeting.setdefault(iteration, {})[ref] = None
                    come[ref] = None
                    if iteration < old < NEVER:
                        self.looking.setdefault(old, {})[ref] = None
                elif not count and old == iteration:
                    self.runs.firsts[ref] = NEVER
                    entry = self.runs.entry(ref)
                    for later, _ in () if entry is None else entry.trace:
                        if later > iteration:
                            self.looking.setdefault(later, {})[ref] = None
                    gone[ref] = None
            if old == iteration and self.runs.new_first(ref) != old:
                moved[ref] = None
        if come and self.forms.met_forms:
            self._have(come)
            self._note(self.forms.met_forms, self.runs.drivers(come), iteration)
        if gone and self.task.keep == "first":
            self._look_up_again(gone, iteration)
        if moved:
            self._leave(self.forms.old_forms, self.runs.drivers(moved))

    def _have(self, refs: Refs) -> None:
        """Tuples that the new run alone has are read too from now on."""
        for name, row in refs:
            self.work.relations[name].near.entries.setdefault(row, Entry(row, None))

    def _count_in(self, ref: Ref, iteration: int) -> int:
        """A tuple's count in an iteration of the new run."""
        entry = self.runs.entry(ref)
        before = 0
        if entry is not None and self.task.keep == "trace":
            before = dict(entry.trace).get(iteration, 0)
        elif entry is not None:
            before = entry.count if entry.first == iteration else 0
        return before + self.changes.get(ref, {}).get(iteration, 0)

    def _write(self) -> None:
        """Write down the new numbers, and mark what holds."""
        for ref in {**self.runs.firsts, **self.changes}:
            name, row = ref
            changes, first = self.changes.get(ref, {}), self.runs.new_first(ref)
            near = self.work.relations[name].near
            count = self._count_in(ref, first)
            entry = near.touch(row)
            if self.task.keep == "trace":
                trace = dict(entry.trace)
                counts = {i: trace.get(i, 0) + changes.get(i, 0) for i in {*trace, *changes}}
                entry.trace = tuple(sorted((i, count) for i, count in counts.items() if count))
                if min((i for i, _ in entry.trace), default=NEVER) != first:
                    raise InternalError(f"the trace of {name}{row} is wrong")
            else:
                entry.count = count
            entry.first = first if first < NEVER else 0
            self.work.report.new += near.hold(entry, entry.first > 0)
