"""Two runs of a stratum's rules, as far as they are known to differ: their tuples, and their instances.

fₒ and fₙ are the first iteration of a tuple in the old run and in the new one. Of most tuples both
are what the base says; where fₙ is another it is here. What `steps` reads is made of both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import FIRST, hidden, table_of
from tidelog.execute.spark.keep.entries import Entry, Row
from tidelog.execute.spark.keep.fetch import Outgrown
from tidelog.execute.spark.keep.instances import Instance, Ref, instances
from tidelog.execute.spark.keep.meeting import driver_atom, meet, touched_rows
from tidelog.execute.spark.keep.query import Literal
from tidelog.execute.spark.keep.work import Work
from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import AFTER, BEFORE, GAINED, LOST
from tidelog.program.model import Atom, Negative, Positive, Wildcard

NEVER = sys.maxsize

Key = tuple[object, ...]
Drivers = Mapping[str, Sequence[Row]]  # by relation


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


def before(iteration: int) -> View:
    """The tuples that the new run has before an iteration."""
    return View(lambda old, new: new < iteration, F.col(FIRST) < F.lit(iteration))


class Differing:
    """The tuples and instances of the old run and the new one."""

    def __init__(self, task: Steps, work: Work) -> None:
        self.work = work
        self.own = frozenset(task.relations)
        self.rules = {r.id: r for r in (*task.base, *task.recursive, *task.removed, *task.added)}
        self.removed = {rule.id for rule in task.removed}
        self.added = {rule.id for rule in task.added}
        self.firsts: dict[Ref, int] = {}  # where fₙ is not fₒ; NEVER also while it is not known
        self._olds: dict[Ref, int] = {}  # fₒ of tuples that are not near
        self._denials: dict[tuple[str, tuple[int, ...]], dict[Row, list[Entry]]] = {}

    # --- firsts ----------------------------------------------------------------------------------

    def entry(self, ref: Ref) -> Entry | None:
        """What the driver knows of a tuple."""
        return self.work.relations[ref[0]].near.entries.get(ref[1])

    def old_first(self, ref: Ref) -> int:
        """fₒ of a tuple."""
        entry = self.entry(ref)
        return self._olds.get(ref, NEVER) if entry is None else entry.first or NEVER

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

    def drivers(self, refs: Iterable[Ref]) -> dict[str, list[Row]]:
        """Some tuples, to drive."""
        rows: dict[str, list[Row]] = {}
        for name, row in refs:
            rows.setdefault(name, []).append(row)
        return rows

    def _firsts(self, name: str, rows: Sequence[Row]) -> DataFrame:
        import pyarrow as pa

        olds = (self.old_first((name, row)) for row in rows)
        firsts = pa.array([0 if old == NEVER else old for old in olds], pa.int64())
        kept = self.work.relations[name]
        return kept.spark.createDataFrame(table_of(rows, kept.types, {FIRST: firsts}))

    def instances(self, readings: Iterable[Reading], view: View, drivers: Drivers | None) -> list[Instance]:
        """The instances of readings, with own tuples as a view has them."""
        views: dict[str, Literal | None] = {}
        driving: dict[str, Literal] = {}
        asked = []
        for reading in readings:
            sources = self._sources(reading, view, views, drivers, driving)
            if sources is not None:
                asked.append((reading, sources))
        work = self.work
        found = instances(asked, work.relations, work.guards, work.limits)
        for one in found:
            for i, number in one.numbers.items():
                self._olds.setdefault(one.matched[i], number or NEVER)
        return found

    def _sources(
        self,
        reading: Reading,
        view: View,
        views: dict[str, Literal | None],
        drivers: Drivers | None,
        driving: dict[str, Literal],
    ) -> dict[int, Literal | None] | None:
        """What the atoms of a reading read; `views` and `driving` have what others have read."""
        found: dict[int, Literal | None] = {}
        positions = list(range(len(reading.rule.body)))
        if reading.driver is not None:
            positions.insert(0, positions.pop(reading.driver))
            rows: Sequence[Row] | None
            if drivers is None:
                rows = touched_rows(reading, self.work.relations)
            else:
                rows = drivers.get(driver_atom(reading).relation, ())
            if rows is not None and not (rows and meet(reading, rows, self.work.relations, self.own)):
                return None
        for i in positions:
            literal, part = reading.rule.body[i], reading.parts[i]
            if not isinstance(literal, Positive | Negative):
                continue
            assert part is not None
            name = literal.atom.relation
            kept = self.work.relations[name]
            if i == reading.driver:
                if drivers is None:
                    changed = kept.driving(part)
                    found[i] = changed and Literal(changed[0].select(*kept.names), changed[1])
                else:
                    if name not in driving:
                        some = drivers[name]
                        driving[name] = Literal(self._firsts(name, some), len(some), numbers=True)
                    found[i] = driving[name]
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

    def derivation(self, one: Instance, shift: int = 0) -> Derivation:
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


def _after(firsts: Iterable[int]) -> int:
    latest = max(firsts, default=0)
    return latest + 1 if latest < NEVER else NEVER
