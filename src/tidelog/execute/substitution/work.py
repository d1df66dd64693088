"""What every task works with: the relations, the readings of rules, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tidelog.execute.substitution.infer import Accept, Instance, Question, Read, infer
from tidelog.execute.substitution.relation import Bucket, Entry, Row, StoredRelation, restore
from tidelog.plan.executor import Progress, Watch
from tidelog.plan.maintenance import Abandoned, PhaseReport, Reading
from tidelog.plan.parts import Part
from tidelog.program.model import Positive, Value

Drivers = Mapping[str, Bucket]

HEAD = 0  # the position of the head in a backward reading
SLICE = 100  # instances between two reports of progress


def by_marks(entry: Entry, read: Read) -> bool:
    """A tuple matches if it is in the part that the atom reads."""
    assert isinstance(read, Part)
    return entry.within(read)


def by_relation(entries: Iterable[Entry]) -> dict[str, Bucket]:
    """Entries sorted into their relations."""
    found: dict[str, Bucket] = {}
    for entry in entries:
        found.setdefault(entry.relation.name, {})[entry] = None
    return found


def restored(row: Row) -> tuple[Value, ...]:
    """A row as users know it."""
    return tuple(restore(value) for value in row)


class Reader:
    """Finds the instances of readings. A reading is planned once, by the sizes it first meets."""

    def __init__(self, relations: Mapping[str, StoredRelation]) -> None:
        self._relations = relations
        self._plans: dict[int, tuple[Reading, Callable[[Question], Iterator[Instance]]]] = {}

    def forget(self) -> None:
        """Forget all plans: relations were made or dropped, or a new commit begins."""
        self._plans.clear()

    def instances(
        self, reading: Reading, drivers: Drivers | None = None, accept: Accept = by_marks
    ) -> Iterator[Instance]:
        """The instances, as they are found; `drivers`, if given, stand for the touched tuples."""
        chosen: Bucket = {}
        if reading.driver is not None:
            literal, part = reading.rule.body[reading.driver], reading.parts[reading.driver]
            assert isinstance(literal, Positive) and part is not None
            name = literal.atom.relation
            if drivers is not None:
                chosen = drivers.get(name, chosen)
            else:
                chosen = dict.fromkeys(self._relations[name].touched(part))
            if not chosen:
                return iter(())
        if id(reading) not in self._plans:  # the reading is kept with its plan, so that its id stays its own
            plan = infer(reading.rule, reading.parts, reading.driver, self._relations)
            self._plans[id(reading)] = (reading, plan)
        return self._plans[id(reading)][1](Question(accept, chosen))


class Work:
    """A running task."""

    def __init__(
        self,
        relations: Mapping[str, StoredRelation],
        reader: Reader,
        watch: Watch,
        budget: int | None,
        remember: bool,
    ) -> None:
        self.relations = relations
        self.instances = reader.instances
        self.report = PhaseReport()
        self._watch = watch
        self._budget = budget
        self._considered = 0
        self._remember = remember

    def touched(self, relations: Iterable[str], part: Part) -> list[Entry]:
        """The touched tuples of some relations that are in a part."""
        return [entry for name in relations for entry in self.relations[name].touched(part)]

    def round(self) -> None:
        """A round is over."""
        self.report.rounds += 1
        self._watch(Progress(self.report.rounds, self.report.new))

    def consider(self, instance: Instance, detail: str = "", without: int | None = None) -> None:
        """Count an instance; position `without` of its reading is not a positive literal of the rule."""
        report, rule = self.report, instance.rule
        report.instances[rule.id] = report.instances.get(rule.id, 0) + 1
        if detail:
            report.details[detail] = report.details.get(detail, 0) + 1
        if self._remember:
            matched = (restored(e.row) for i, e in sorted(instance.matched.items()) if i != without)
            report.considered.append((rule.id, restored(instance.head), *matched))
            report.kinds.append(detail)
        self._considered += 1
        if self._considered % SLICE == 0:
            self._watch(Progress(report.rounds, report.new))
        if self._budget is not None and self._considered > self._budget:
            raise Abandoned

    def found(self, reading: Reading, detail: str = "", drivers: Drivers | None = None) -> list[Instance]:
        """All instances of a reading, considered."""
        without = reading.driver if reading.negated else None
        instances = []
        for instance in self.instances(reading, drivers):
            self.consider(instance, detail, without)
            instances.append(instance)
        return instances

    def one(self, readings: Iterable[Reading], entry: Entry, detail: str = "") -> Instance | None:
        """An instance that derives an entry, considered; no others are looked for once there is one.

        The readings are backward.
        """
        for reading in readings:
            for instance in self.instances(reading, by_relation([entry])):
                self.consider(instance, detail, HEAD)
                return instance
        return None
