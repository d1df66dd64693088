"""Steps: the iterations of the old run and of the new one, together, on the driver.

The reference (`execute.substitution.steps`) has the method and its words: fₒ and fₙ are the first
iteration of a tuple in the old run and in the new one; instances of the old run are put aside as
soon as something of them is known to differ (*leaving*), the new run meets what is new to it or meets
something different (*meeting*), and tuples that lost their first iteration are looked up (*again*).
Here the tuples of an iteration are treated together: an iteration is a few Spark jobs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import FIRST, hidden, table_of
from tidelog.execute.spark.keep.entries import Entry, Row
from tidelog.execute.spark.keep.fetch import Outgrown
from tidelog.execute.spark.keep.first_run import first_run
from tidelog.execute.spark.keep.instances import Instance, Ref, instances
from tidelog.execute.spark.keep.query import Literal
from tidelog.execute.spark.keep.work import Work
from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import AFTER, BEFORE, GAINED, LOST, Mark, Part
from tidelog.plan.readings import backward, driven, gained_readings, lost_readings, reads_own, whole
from tidelog.program.model import Atom, Negative, Positive, Rule, Wildcard
from tidelog.syntax.errors import InternalError

NEVER = sys.maxsize
EVERYTHING = ~Part(0)

Key = tuple[object, ...]
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
        first_run(task, work)


@dataclass(frozen=True)
class Derivation:
    """An instance as the runs see it: its own tuples, and whether everything else is in a run."""

    rule: int
    head: Ref
    own: tuple[Ref, ...]
    old: bool
    new: bool
    key: Key


@dataclass(frozen=True)
class View:
    """Which own tuples are read: by fₒ and fₙ, and the same said of the base, where they are one."""

    accepts: Callable[[int, int], bool]
    base: Column | None = None


OLD_RUN = View(lambda old, new: old < NEVER)
EITHER = View(lambda old, new: old < NEVER or new < NEVER)


def _before(iteration: int) -> View:
    return View(lambda old, new: new < iteration, F.col(FIRST) < F.lit(iteration))


class _Runs:
    """The two runs, as far as they are known to differ."""

    def __init__(self, task: Steps, work: Work, starting: bool) -> None:
        self.task, self.work = task, work
        self.own = frozenset(task.relations)
        self.rules = {r.id: r for r in (*task.base, *task.recursive, *task.removed, *task.added)}
        self.removed = {rule.id for rule in task.removed}
        self.added = {rule.id for rule in task.added}
        # Where fₙ is not fₒ (NEVER also while it is not known), and differences of counts by iteration.
        self.firsts: dict[Ref, int] = {}
        self.olds: dict[Ref, int] = {}  # fₒ of tuples that are not near
        self.changes: dict[Ref, dict[int, int]] = {}
        # By iteration: what may leave, whom the new run meets, whom to look up again, whom to look at.
        self.leaving: dict[int, dict[Key, Derivation]] = {}
        self.meeting: dict[int, Refs] = {}
        self.again: dict[int, dict[Key, Derivation]] = {}
        self.looking: dict[int, Refs] = {}
        self._denials: dict[tuple[str, tuple[int, ...]], dict[Row, list[Entry]]] = {}
        self._read_rules(starting)

    def _read_rules(self, starting: bool) -> None:
        task, own = self.task, self.own
        removed = [rule for rule in task.removed if reads_own(rule, own)]
        added = [rule for rule in task.added if reads_own(rule, own)]
        base_removed = [rule for rule in task.removed if not reads_own(rule, own)]
        base_added = [rule for rule in task.added if not reads_own(rule, own)]

        def driven_by_own(rules: Iterable[Rule], part: Part) -> list[Reading]:
            return [form for rule in rules for form in driven(rule, own, part, part, part, part, part)]

        self.lost = [form for rule in (*task.base, *task.recursive) for form in lost_readings(rule, own)]
        self.lost += [whole(rule, BEFORE, BEFORE) for rule in (*base_removed, *removed)]
        self.first_gained = [form for rule in task.base for form in gained_readings(rule, own)]
        self.first_gained += [whole(rule, AFTER, AFTER) for rule in base_added]
        self.gained = [_positive(form) for rule in task.recursive for form in gained_readings(rule, own)]
        if not starting:  # else there is no tuple of the old run to be met
            self.gained += [_positive(whole(rule, AFTER, AFTER)) for rule in added]
        self.old_forms = driven_by_own(task.recursive, BEFORE)
        self.new_forms = driven_by_own((*task.recursive, *added), AFTER)
        self.met_forms = [
            _positive(form)
            for form in self.new_forms
            if sum(isinstance(lit, Positive) and lit.atom.relation in own for lit in form.rule.body) > 1
        ]
        old_rules = (*task.base, *task.recursive)
        self.backward = [backward(rule, AFTER, own, BEFORE, BEFORE, BEFORE) for rule in old_rules]

    # --- firsts ----------------------------------------------------------------------------------

    def entry(self, ref: Ref) -> Entry | None:
        """What the driver knows of a tuple."""
        return self.work.relations[ref[0]].near.entries.get(ref[1])

    def old_first(self, ref: Ref) -> int:
        """fₒ of a tuple."""
        entry = self.entry(ref)
        return self.olds.get(ref, NEVER) if entry is None else entry.first or NEVER

    def new_first(self, ref: Ref) -> int:
        """fₙ of a tuple as far as it is known: right wherever it is less than the current iteration."""
        known = self.firsts.get(ref)
        return self.old_first(ref) if known is None else known

    def old_iteration(self, derivation: Derivation) -> int:
        """The old run's iteration that an instance is in."""
        return _after(map(self.old_first, derivation.own)) if derivation.old else NEVER

    def new_iteration(self, derivation: Derivation) -> int:
        """The new run's iteration that an instance is in; right up to the current iteration."""
        return _after(map(self.new_first, derivation.own)) if derivation.new else NEVER

    # --- what atoms read --------------------------------------------------------------------------

    def _read_own(self, name: str, view: View) -> Literal | None:
        kept = self.work.relations[name]
        if kept.bulk is not None:
            raise Outgrown
        hide, add = [], []
        for row, entry in kept.near.entries.items():
            first = self.firsts.get((name, row))
            if entry.base is not None:
                if first is None and entry.first == entry.base.first:
                    continue  # the base's row will do
                hide.append(entry)
            old = entry.first or NEVER
            if view.accepts(old, old if first is None else first):
                add.append(entry)
        frames = []
        if kept.base is not None:
            frame = kept.base.frame if view.base is None else kept.base.frame.filter(view.base)
            if hide:
                frame = hidden(frame, kept.frame(hide), kept.types)
            frames.append(frame.select(*kept.names, FIRST))
        if add:
            frames.append(kept.numbered(add).select(*kept.names, FIRST))
        if not frames:
            return None
        frame = frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])
        return Literal(frame, kept.expected(), numbers=True)

    def _drivers(self, refs: Iterable[Ref]) -> dict[str, Literal]:
        """Some tuples, to drive."""
        rows: dict[str, list[Row]] = {}
        for name, row in refs:
            rows.setdefault(name, []).append(row)
        return {
            name: Literal(self._firsts(name, some), len(some), numbers=True) for name, some in rows.items()
        }

    def _firsts(self, name: str, rows: Sequence[Row]) -> DataFrame:
        import pyarrow as pa

        olds = (self.old_first((name, row)) for row in rows)
        firsts = pa.array([0 if old == NEVER else old for old in olds], pa.int64())
        kept = self.work.relations[name]
        return kept.spark.createDataFrame(table_of(rows, kept.types, {FIRST: firsts}))

    def _instances(
        self, readings: Iterable[Reading], view: View, drivers: Mapping[str, Literal] | None
    ) -> list[Instance]:
        """The instances of readings, with own tuples as a view has them."""
        views: dict[str, Literal | None] = {}
        asked = []
        for reading in readings:
            sources = self._sources(reading, view, views, drivers)
            if sources is not None:
                asked.append((reading, sources))
        work = self.work
        found = instances(asked, work.relations, work.guards, work.limits)
        for one in found:
            for i, number in one.numbers.items():
                self.olds.setdefault(one.matched[i], number or NEVER)
        return found

    def _sources(
        self,
        reading: Reading,
        view: View,
        views: dict[str, Literal | None],
        drivers: Mapping[str, Literal] | None,
    ) -> dict[int, Literal | None] | None:
        found: dict[int, Literal | None] = {}
        positions = list(range(len(reading.rule.body)))
        if reading.driver is not None:
            positions.insert(0, positions.pop(reading.driver))
        for i in positions:
            literal, part = reading.rule.body[i], reading.parts[i]
            if not isinstance(literal, Positive | Negative):
                continue
            assert part is not None
            name = literal.atom.relation
            kept = self.work.relations[name]
            if i == reading.driver:
                if drivers is not None:
                    found[i] = drivers.get(name)
                else:
                    driving = kept.driving(part)
                    found[i] = driving and Literal(driving[0].select(*kept.names), driving[1])
            elif name in self.own:
                if name not in views:
                    views[name] = self._read_own(name, view)
                found[i] = views[name]
            else:
                frame = kept.read(part)
                found[i] = None if frame is None else Literal(frame, kept.expected())
            if found[i] is None and isinstance(literal, Positive):
                return None
        return found

    # --- instances -------------------------------------------------------------------------------

    def _derivation(self, one: Instance, shift: int = 0) -> Derivation:
        """An instance with what the runs make of it; `shift`: 1 if the head is before the body."""
        rule = self.rules[one.reading.rule.id]
        own, matched = [], []
        old, new = rule.id not in self.added, rule.id not in self.removed
        for i, literal in enumerate(rule.body):
            match literal:
                case Positive():
                    ref = one.matched[i + shift]
                    matched.append(ref)
                    if ref[0] in self.own:
                        own.append(ref)
                    elif (entry := self.entry(ref)) is not None:
                        old, new = old and entry.within(BEFORE), new and entry.within(AFTER)
                case Negative(atom):
                    met = one.matched.get(i + shift)
                    cells = one.denied[i + shift] if met is None else met[1]
                    for entry in self._denying(atom, cells if atom.terms else ()):
                        old, new = old and not entry.within(LOST), new and not entry.within(GAINED)
        key = (rule.id, one.head, *matched)
        return Derivation(rule.id, one.head, tuple(own), old, new, key)

    def _denying(self, atom: Atom, cells: Row) -> Sequence[Entry]:
        """The changed tuples that match a negated atom; all others match in both runs, or in none."""
        kept = self.work.relations[atom.relation]
        if kept.bulk is not None:
            raise Outgrown
        columns = tuple(i for i, term in enumerate(atom.terms) if not isinstance(term, Wildcard))
        if (atom.relation, columns) not in self._denials:
            index: dict[Row, list[Entry]] = {}
            for entry in kept.near.touched(LOST | GAINED):
                index.setdefault(tuple(entry.row[i] for i in columns), []).append(entry)
            self._denials[atom.relation, columns] = index
        if len(cells) > len(columns):  # a tuple that drives
            cells = tuple(cells[i] for i in columns)
        return self._denials[atom.relation, columns].get(cells, ())

    def _leave(self, readings: Iterable[Reading], drivers: Mapping[str, Literal] | None) -> None:
        """Put instances of the old run aside until their iteration comes."""
        for one in self._instances(readings, OLD_RUN, drivers):
            derivation = self._derivation(one)
            iteration = self.old_iteration(derivation)
            self.leaving.setdefault(iteration, {})[derivation.key] = derivation

    def _note(self, readings: Iterable[Reading], drivers: Mapping[str, Literal] | None, after: int) -> None:
        """Note tuples of the old run's later iterations that meet something different."""
        for one in self._instances(readings, EITHER, drivers):
            for ref in one.matched.values():
                if ref[0] in self.own and after < (old := self.old_first(ref)) < NEVER:
                    self.meeting.setdefault(old, {})[ref] = None

    def _look_up_again(self, refs: Refs, iteration: int) -> None:
        """Put aside, for their iterations, the instances that derived tuples after their first iteration."""
        for one in self._instances(self.backward, OLD_RUN, self._drivers(refs)):
            derivation = self._derivation(one, shift=1)
            later = self.old_iteration(derivation)
            if later > iteration:
                self.again.setdefault(later, {})[derivation.key] = derivation

    def _found(self, iteration: int) -> dict[Key, Derivation]:
        """The instances of an iteration of the new run that may not be in that of the old run."""
        if iteration == 1:
            found = self._instances(self.first_gained, _before(iteration), None)
        else:
            met = self.meeting.pop(iteration - 1, {})
            drivers = self._drivers(ref for ref in met if self.new_first(ref) == iteration - 1)
            found = self._instances(self.new_forms, _before(iteration), drivers) if drivers else []
        derivations = map(self._derivation, found)
        return {derivation.key: derivation for derivation in derivations}

    # --- the loop --------------------------------------------------------------------------------

    def go(self) -> None:
        """All iterations."""
        self._leave(self.lost, None)
        self._note(self.gained, None, 0)
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
            if self.new_iteration(derivation) != iteration:
                self.work.consider(derivation.rule, 1, "deletion")
                self._count(derivation.head, iteration, -1)
        for derivation in found.values():  # step 3
            if self.old_iteration(derivation) != iteration:
                self.work.consider(derivation.rule, 1, "insertion")
                self._count(derivation.head, iteration, 1)
        for derivation in again.values():  # step 4
            if self.new_first(derivation.head) == NEVER and self.new_iteration(derivation) == iteration:
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
            self.old_first(ref) == iteration if change < 0 else self.new_first(ref) >= iteration
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
            old = self.old_first(ref)
            if self.new_first(ref) >= iteration:
                count = self._count_in(ref, iteration)
                if count < 0:
                    raise InternalError(f"{ref[0]}{ref[1]} has lost more than it had")
                if count and old != iteration:
                    self.firsts[ref] = iteration
                    self.meeting.setdefault(iteration, {})[ref] = None
                    come[ref] = None
                    if iteration < old < NEVER:
                        self.looking.setdefault(old, {})[ref] = None
                elif not count and old == iteration:
                    self.firsts[ref] = NEVER
                    entry = self.entry(ref)
                    for later, _ in () if entry is None else entry.trace:
                        if later > iteration:
                            self.looking.setdefault(later, {})[ref] = None
                    gone[ref] = None
            if old == iteration and self.new_first(ref) != old:
                moved[ref] = None
        if come and self.met_forms:
            self._have(come)
            self._note(self.met_forms, self._drivers(come), iteration)
        if gone and self.task.keep == "first":
            self._look_up_again(gone, iteration)
        if moved:
            self._leave(self.old_forms, self._drivers(moved))

    def _have(self, refs: Refs) -> None:
        """Tuples that the new run alone has are read too from now on."""
        for name, row in refs:
            self.work.relations[name].near.entries.setdefault(row, Entry(row, None))

    def _count_in(self, ref: Ref, iteration: int) -> int:
        """A tuple's count in an iteration of the new run."""
        entry = self.entry(ref)
        before = 0
        if entry is not None and self.task.keep == "trace":
            before = dict(entry.trace).get(iteration, 0)
        elif entry is not None:
            before = entry.count if entry.first == iteration else 0
        return before + self.changes.get(ref, {}).get(iteration, 0)

    def _write(self) -> None:
        """Write down the new numbers, and mark what holds."""
        for ref in {**self.firsts, **self.changes}:
            name, row = ref
            changes, first = self.changes.get(ref, {}), self.new_first(ref)
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


def _after(firsts: Iterable[int]) -> int:
    latest = max(firsts, default=0)
    return latest + 1 if latest < NEVER else NEVER


def _positive(reading: Reading) -> Reading:
    """The positive literals of a reading alone; it has no head to speak of."""
    rule = reading.rule
    kept = [i for i, literal in enumerate(rule.body) if isinstance(literal, Positive)]
    return Reading(
        replace(rule, head=Atom(rule.head.relation, ()), body=tuple(rule.body[i] for i in kept)),
        tuple(reading.parts[i] for i in kept),
        None if reading.driver is None else kept.index(reading.driver),
    )
