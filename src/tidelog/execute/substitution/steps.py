"""Steps: the iterations of the old run and of the new one, together (see `plan.maintenance`).

In our words, with fₒ(t) and fₙ(t) for the first iteration of a tuple in the old and in the
new run (never: not at all). Tuples of other strata are there from the beginning, if
they are BEFORE (old) or AFTER (new). An instance is in iteration k of a run if its rule
is in the run, its negated atoms fail there, and the latest f of its own tuples is k - 1.

  1 k := the next iteration in which something may differ
  2 what the old run has in k and the new one has not takes one from its head's count in k
  3 what the new run has in k and the old one has not adds one
  4 with "first": tuples that lost their first iteration and have none yet are looked up again
  5 with the counts of k known, fₙ is decided for the tuples looked at in k; if it is not
    fₒ then instances with that tuple may differ, in this iteration or later
  6 go on with 1, while there is such an iteration

For step 2 an instance of the old run is put aside, under its iteration, as soon as something of
it is known to be different (`_leave`). For step 3 the new run is evaluated semi-naively, but
only from tuples that were not there in the old run's iteration k - 1, and from tuples that were
and are known to meet something different (`_note`). Both find too much rather than too little:
whether an instance is in the other run's iteration too is decided when its turn comes.

An expression that can fail is evaluated only for tuples that are together in one of the runs:
noting looks at positive atoms alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tidelog.execute.substitution.infer import Accept, Instance, Read, matching
from tidelog.execute.substitution.relation import Entry
from tidelog.execute.substitution.work import HEAD, Drivers, Work, by_marks, by_relation, restored
from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import AFTER, BEFORE, EVERYTHING, Mark
from tidelog.plan.step_readings import step_readings
from tidelog.program.model import Negative, Positive
from tidelog.syntax.errors import InternalError

NEVER = sys.maxsize

Key = tuple[object, ...]


@dataclass(frozen=True)
class Derivation:
    """An instance as the runs see it: its own tuples, and whether everything else is in a run."""

    instance: Instance
    without: int | None  # the position in `instance` that is not a positive literal of the rule
    head: Entry
    own: tuple[Entry, ...]
    old: bool
    new: bool
    key: Key


def steps(task: Steps, work: Work, from_nothing: bool) -> None:
    """Bring numbers and marks from the old run to the new one; `from_nothing`: the old run is empty."""
    if from_nothing:
        rules = (*task.base, *task.recursive, *task.added)
        task = replace(task, base=(), recursive=(), removed=(), added=rules)
    _Runs(task, work, from_nothing).go()


class _Runs:
    """The two runs, as far as they are known to differ."""

    def __init__(self, task: Steps, work: Work, from_nothing: bool) -> None:
        self.task = task
        self.work = work
        self.own = frozenset(task.relations)
        self.rules = {r.id: r for r in (*task.base, *task.recursive, *task.removed, *task.added)}
        self.removed = {rule.id for rule in task.removed}
        self.added = {rule.id for rule in task.added}
        # Where fₙ is not fₒ (NEVER also while it is not known), and differences of counts by iteration.
        self.firsts: dict[Entry, int] = {}
        self.changes: dict[Entry, dict[int, int]] = {}
        # By iteration: what may leave, whom the new run meets, whom to look up again, whom to look at.
        self.leaving: dict[int, dict[Key, Derivation]] = {}
        self.meeting: dict[int, dict[Entry, None]] = {}
        self.again: dict[int, dict[Key, Derivation]] = {}
        self.looking: dict[int, dict[Entry, None]] = {}
        self.forms = step_readings(task, self.own, from_nothing=from_nothing)

    # --- firsts ----------------------------------------------------------------------

    def old_first(self, entry: Entry) -> int:
        """fₒ of a tuple."""
        return entry.first or NEVER

    def new_first(self, entry: Entry) -> int:
        """fₙ of a tuple as far as it is known: right wherever it is less than the current iteration."""
        return self.firsts.get(entry, entry.first or NEVER)

    def old_iteration(self, derivation: Derivation) -> int:
        """The old run's iteration that an instance is in."""
        return _after(map(self.old_first, derivation.own)) if derivation.old else NEVER

    def new_iteration(self, derivation: Derivation) -> int:
        """The new run's iteration that an instance is in; right up to the current iteration."""
        return _after(map(self.new_first, derivation.own)) if derivation.new else NEVER

    def _accept(self, ok: Callable[[Entry], bool]) -> Accept:
        def accept(entry: Entry, read: Read) -> bool:
            return ok(entry) if entry.relation.name in self.own else by_marks(entry, read)

        return accept

    # --- instances -------------------------------------------------------------------

    def derivations(
        self, reading: Reading, ok: Callable[[Entry], bool], drivers: Drivers | None, shift: int = 0
    ) -> Iterable[Derivation]:
        """The instances of a reading; own tuples must be `ok`. `shift`: 1 if the head is before the body."""
        without = HEAD if shift else reading.driver if reading.negated else None
        for instance in self.work.instances(reading, drivers, self._accept(ok)):
            rule = self.rules[instance.rule.id]
            own, matched = [], []
            old, new = rule.id not in self.added, rule.id not in self.removed
            for i, literal in enumerate(rule.body):
                match literal:
                    case Positive():
                        entry = instance.matched[i + shift]
                        matched.append(entry)
                        if entry.relation.name in self.own:
                            own.append(entry)
                        else:
                            old, new = old and entry.within(BEFORE), new and entry.within(AFTER)
                    case Negative(atom):
                        found = matching(atom, self.work.relations[atom.relation], instance.values)
                        old = old and not any(entry.within(BEFORE) for entry in found)
                        new = new and not any(entry.within(AFTER) for entry in found)
            head = self.work.relations[rule.head.relation].touch(instance.head)
            key = (rule.id, head, *matched)
            yield Derivation(instance, without, head, tuple(own), old, new, key)

    def _in_old(self, entry: Entry) -> bool:
        return entry.first > 0

    def _leave(self, readings: Iterable[Reading], drivers: Drivers | None) -> None:
        """Put instances of the old run aside until their iteration comes."""
        for reading in readings:
            for derivation in self.derivations(reading, self._in_old, drivers):
                iteration = self.old_iteration(derivation)
                self.leaving.setdefault(iteration, {})[derivation.key] = derivation

    def _note(self, readings: Iterable[Reading], drivers: Drivers | None, after: int) -> None:
        """Note tuples of the old run's later iterations that meet something different."""
        accept = self._accept(lambda entry: self._in_old(entry) or self.new_first(entry) < NEVER)
        for reading in readings:
            for instance in self.work.instances(reading, drivers, accept):
                for entry in instance.matched.values():
                    if entry.relation.name in self.own and after < entry.first:
                        self.meeting.setdefault(entry.first, {})[entry] = None

    def _look_up_again(self, entry: Entry, iteration: int) -> None:
        """Put aside, for their iterations, the instances that derived a tuple after its first iteration."""
        for reading in self.forms.backward:
            for derivation in self.derivations(reading, self._in_old, by_relation([entry]), shift=1):
                later = self.old_iteration(derivation)
                if later > iteration:
                    self.again.setdefault(later, {})[derivation.key] = derivation

    def _found(self, iteration: int) -> dict[Key, Derivation]:
        """The instances of an iteration of the new run that may not be in that of the old run."""
        readings: Iterable[tuple[Reading, Drivers | None]]
        if iteration == 1:
            readings = [(reading, None) for reading in self.forms.first_gained]
        else:
            met = self.meeting.pop(iteration - 1, {})
            drivers = by_relation(entry for entry in met if self.new_first(entry) == iteration - 1)
            readings = [(reading, drivers) for reading in self.forms.new_forms]

        def ok(entry: Entry) -> bool:
            return self.new_first(entry) < iteration

        return {d.key: d for reading, by in readings for d in self.derivations(reading, ok, by)}

    # --- the loop --------------------------------------------------------------------

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
        for entry in self.work.touched(self.task.relations, EVERYTHING):
            change = bool(entry.marks & Mark.ASSERTED) - bool(entry.marks & Mark.RETRACTED)
            if change:
                self._count(entry, 1, change)

    def _iteration(self, iteration: int) -> None:
        for derivation in self.leaving.pop(iteration, {}).values():  # step 2
            if self.new_iteration(derivation) != iteration:
                self.work.consider(derivation.instance, "deletion", derivation.without)
                self._count(derivation.head, iteration, -1)
        for derivation in self._found(iteration).values():  # step 3
            if self.old_iteration(derivation) != iteration:
                self.work.consider(derivation.instance, "insertion", derivation.without)
                self._count(derivation.head, iteration, 1)
        for derivation in self.again.pop(iteration, {}).values():  # step 4
            if self.new_first(derivation.head) == NEVER and self.new_iteration(derivation) == iteration:
                self.work.consider(derivation.instance, "rediscovery", derivation.without)
                self._count(derivation.head, iteration, 1)
        for entry in self.looking.pop(iteration, {}):  # step 5
            self._settle(entry, iteration)

    def _count(self, entry: Entry, iteration: int, change: int) -> None:
        """Change a tuple's count in an iteration. With "first", later iterations are not counted."""
        kept = self.task.keep == "trace" or (
            self.old_first(entry) == iteration if change < 0 else self.new_first(entry) >= iteration
        )
        if kept:
            by_iteration = self.changes.setdefault(entry, {})
            by_iteration[iteration] = by_iteration.get(iteration, 0) + change
            self.looking.setdefault(iteration, {})[entry] = None

    def _settle(self, entry: Entry, iteration: int) -> None:
        """Decide whether a tuple is there from this iteration on, and what follows if that is a change."""
        old = self.old_first(entry)
        if self.new_first(entry) >= iteration:
            count = self._count_in(entry, iteration)
            if count < 0:
                raise InternalError(f"{entry.relation.name}{restored(entry.row)} has lost more than it had")
            if count and old != iteration:
                self.firsts[entry] = iteration
                self.meeting.setdefault(iteration, {})[entry] = None
                self._note(self.forms.met_forms, by_relation([entry]), iteration)
                if iteration < old < NEVER:
                    self.looking.setdefault(old, {})[entry] = None
            elif not count and old == iteration:
                self.firsts[entry] = NEVER
                for later in entry.trace:
                    if later > iteration:
                        self.looking.setdefault(later, {})[entry] = None
                if self.task.keep == "first":
                    self._look_up_again(entry, iteration)
        if old == iteration and self.new_first(entry) != old:
            self._leave(self.forms.old_forms, by_relation([entry]))

    def _count_in(self, entry: Entry, iteration: int) -> int:
        """A tuple's count in an iteration of the new run."""
        if self.task.keep == "trace":
            before = entry.trace.get(iteration, 0)
        else:
            before = entry.count if entry.first == iteration else 0
        return before + self.changes.get(entry, {}).get(iteration, 0)

    def _write(self) -> None:
        """Write down the new numbers, and mark what holds."""
        for entry in {**self.firsts, **self.changes}:
            changes, first = self.changes.get(entry, {}), self.new_first(entry)
            entry.touch()
            if self.task.keep == "trace":
                counts = {i: entry.trace.get(i, 0) + changes.get(i, 0) for i in {*entry.trace, *changes}}
                entry.trace = {i: count for i, count in counts.items() if count}
                if min(entry.trace, default=NEVER) != first:
                    raise InternalError(f"the trace of {entry.relation.name}{restored(entry.row)} is wrong")
            else:
                entry.count = self._count_in(entry, first)
            entry.first = first if first < NEVER else 0
            before = entry.within(AFTER)
            entry.hold(entry.first > 0)
            self.work.report.new += not before and entry.within(AFTER)


def _after(firsts: Iterable[int]) -> int:
    latest = max(firsts, default=0)
    return latest + 1 if latest < NEVER else NEVER
