"""What every task works with: the relations, the readings of rules, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.execute.spark.failures import Guards
from tidelog.execute.spark.keep.base import FIRST
from tidelog.execute.spark.keep.entries import Entry, Row, rows_of
from tidelog.execute.spark.keep.fetch import Outgrown, Query, fetch
from tidelog.execute.spark.keep.instances import Ref, instances
from tidelog.execute.spark.keep.meeting import driver_atom, handed_on, meet, touched_rows
from tidelog.execute.spark.keep.query import Literal, number_of, query
from tidelog.execute.spark.keep.relation import KeptRelation, Limits, load
from tidelog.plan.executor import Progress, Watch
from tidelog.plan.maintenance import Abandoned, PhaseReport, Reading
from tidelog.program.model import Const, Negative, Positive, Var
from tidelog.program.types import BOOL, S64

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Drivers = Mapping[str, Sequence[Entry]]  # by relation
Sources = Mapping[int, Literal | None]
HEAD = 0  # the position of the head in a backward reading


@dataclass(frozen=True)
class Found:
    """The head of an instance, and the highest rank of the own tuples it matches; None if there are none."""

    reading: Reading
    row: Row
    highest: int | None


class Work:
    """A running task."""

    def __init__(
        self,
        spark: SparkSession,
        relations: Mapping[str, KeptRelation],
        limits: Limits,
        watch: Watch,
        budget: int | None,
    ) -> None:
        self.spark, self.relations, self.limits = spark, relations, limits
        self.guards = Guards()
        self.report = PhaseReport()
        self._watch, self._budget = watch, budget
        self._considered = 0

    def round(self) -> None:
        """A round is over."""
        self.report.rounds += 1
        self._watch(Progress(self.report.rounds, self.report.new))

    def consider(self, rule: int, count: int, detail: str = "") -> None:
        """Count instances."""
        report = self.report
        report.instances[rule] = report.instances.get(rule, 0) + count
        if detail and count:
            report.details[detail] = report.details.get(detail, 0) + count
        self._considered += count
        if self._budget is not None and self._considered > self._budget:
            raise Abandoned

    # --- tuples ----------------------------------------------------------------------------------

    def load(self, rows: Mapping[str, Iterable[Row]]) -> None:
        """Have entries for rows, where relations have them."""
        load(self.relations, rows)

    def touch(self, relation: str, row: Row) -> Entry:
        """An entry that is to be changed; its row has been loaded."""
        return self.relations[relation].near.touch(row)

    # --- instances -------------------------------------------------------------------------------

    def sources(self, reading: Reading, own: Iterable[str], drivers: Drivers | None) -> Sources | None:
        """What the atoms of a reading read; None if nothing drives it, or a positive atom has nothing."""
        found: dict[int, Literal | None] = {}
        positions = list(range(len(reading.rule.body)))
        if reading.driver is not None:  # first: most readings have nothing to drive them
            positions.insert(0, positions.pop(reading.driver))
            rows = self._driving_rows(reading, drivers)
            if rows is not None and not (rows and meet(reading, rows, self.relations)):
                return None
        for i in positions:
            literal, part = reading.rule.body[i], reading.parts[i]
            if not isinstance(literal, Positive | Negative):
                continue
            assert part is not None
            name = literal.atom.relation
            kept = self.relations[name]
            numbers = name in own and isinstance(literal, Positive)
            if i == reading.driver:
                found[i] = self._driving(kept, reading, drivers, numbers)
            else:
                frame = kept.read(part, numbers)
                found[i] = None if frame is None else Literal(frame, kept.expected(), numbers)
            if found[i] is None and isinstance(literal, Positive):
                return None
        return found

    def _driving_rows(self, reading: Reading, drivers: Drivers | None) -> list[Row] | None:
        """The tuples that drive a reading; None if they are in Spark."""
        if drivers is None:
            return touched_rows(reading, self.relations)
        return [entry.row for entry in drivers.get(driver_atom(reading).relation, ())]

    def _handed_on(self, reading: Reading, own: Sequence[str], drivers: Drivers | None) -> list[Row] | None:
        """The heads of a reading that reads its driver alone, where that is here; None if it does not."""
        if reading.driver is None or driver_atom(reading).relation in own:
            return None
        rows = self._driving_rows(reading, drivers)
        return None if rows is None else handed_on(reading, rows, self.head(reading))

    def _driving(
        self, kept: KeptRelation, reading: Reading, drivers: Drivers | None, numbers: bool
    ) -> Literal | None:
        assert reading.driver is not None
        part = reading.parts[reading.driver]
        assert part is not None
        if drivers is None:
            found = kept.driving(part)
        else:
            entries = drivers.get(kept.relation.name, ())
            found = (kept.numbered(entries), len(entries)) if entries else None
        if found is None:
            return None
        if numbers and drivers is None and kept.bulk is not None:  # which has no numbers
            raise Outgrown
        chosen = [*kept.names, FIRST] if numbers else kept.names
        return Literal(found[0].select(*chosen), found[1], numbers)

    def found(
        self,
        readings: Iterable[Reading],
        own: Sequence[str],
        drivers: Drivers | None = None,
        *,
        backward: bool = False,
        detail: str | Callable[[Reading], str] = "",
    ) -> list[Found]:
        """The heads of the instances of some readings, considered: one query at most, or none."""
        asked: list[tuple[Reading, list[Var]]] = []
        queries: list[Query] = []
        results: list[Found] = []

        def consider(reading: Reading, count: int) -> None:
            self.consider(reading.rule.id, count, detail if isinstance(detail, str) else detail(reading))

        for reading in readings:
            known = self._handed_on(reading, own, drivers)
            if known is not None:
                results += [Found(reading, row, None) for row in known]
                consider(reading, len(known))
                continue
            sources = self.sources(reading, own, drivers)
            if sources is None:
                continue
            numbers = [number_of(i) for i, source in sources.items() if source is not None and source.numbers]
            if backward:
                numbers = [number for number in numbers if number != number_of(HEAD)]
            head = self.head(reading)
            frame = query(self.spark, reading, sources, (*head, *numbers), self.guards)
            if frame is not None:
                asked.append((reading, numbers))
                queries.append((frame, (*(term.type for term in head), *(S64 for _ in numbers))))
        tables = fetch(self.spark, queries, self.limits.touched)
        for (reading, numbers), (_, types), table in zip(asked, queries, tables, strict=True):
            width = len(types) - len(numbers)
            rows = rows_of(table, types[:width])
            ranks = [table.column(width + i).to_pylist() for i in range(len(numbers))]
            above = list(map(max, *ranks)) if len(ranks) > 1 else ranks[0] if ranks else [None] * len(rows)
            results += [Found(reading, row, rank) for row, rank in zip(rows, above, strict=True)]
            consider(reading, len(rows))
        return results

    def instances(
        self, readings: Iterable[Reading], own: Sequence[str], drivers: Drivers, detail: str
    ) -> list[tuple[Ref, list[Ref]]]:
        """The instances that derive some tuples, considered: heads, and the own tuples that they match."""
        asked = []
        for reading in readings:
            sources = self.sources(reading, own, drivers)
            if sources is not None:
                asked.append((reading, sources))
        found = []
        for one in instances(asked, self.relations, self.guards, self.limits):
            self.consider(one.reading.rule.id, 1, detail)
            premises = [ref for i, ref in one.matched.items() if i != HEAD and ref[0] in own]
            found.append((one.head, premises))
        return found

    def head(self, reading: Reading) -> tuple[Var | Const, ...]:
        """What to ask for of the head; the hidden column of a relation without columns."""
        terms = reading.rule.head.terms
        return tuple(t for t in terms if isinstance(t, Var | Const)) or (Const(True, BOOL),)
