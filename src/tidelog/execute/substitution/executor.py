"""The reference executor: small, obvious, and slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from tidelog.execute.substitution.changes import Changes, stored_rows
from tidelog.execute.substitution.counts import tally
from tidelog.execute.substitution.groups import regroup
from tidelog.execute.substitution.materialise import aggregate, derive, fixpoint
from tidelog.execute.substitution.relation import Entry, StoredRelation
from tidelog.execute.substitution.steps import steps
from tidelog.execute.substitution.sweep import redeem, sweep
from tidelog.execute.substitution.work import Reader, Work, restored
from tidelog.plan.executor import Derive, Fixpoint, Group, Task, Watch, unwatched
from tidelog.plan.maintenance import (
    Abandoned,
    Maintaining,
    PhaseReport,
    Redeem,
    Regroup,
    Row,
    Standing,
    Steps,
    Sweep,
    Tally,
    Told,
)
from tidelog.plan.parts import AFTER, GAINED, LOST, Mark
from tidelog.program.model import Relation
from tidelog.syntax.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa

UNFINISHED = Mark.QUEUED | Mark.CURRENT | Mark.PROVING


class SubstitutionExecutor:
    """Holds relations as Python dictionaries and evaluates rules by substitution."""

    name = "substitution"

    preparing = 0.0  # nothing is prepared
    patience = 0.0

    def __init__(self) -> None:
        self.told = Told()
        self._relations: dict[str, StoredRelation] = {}
        self._reader = Reader(self._relations)
        self._before: dict[str, tuple[StoredRelation, bool]] | None = None  # the relations at `begin`
        self._derives: frozenset[str] = frozenset()  # what rules derive into
        self._remember = False

    # --- relations -------------------------------------------------------------------

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""
        stored = self._relations[relation.name] = StoredRelation(relation)
        stored.derived = relation.name in self._derives
        if self._before is not None:
            stored.begin()
        self._reader.forget()

    def drop(self, relation: str) -> None:
        """Forget a relation."""
        del self._relations[relation]
        self._reader.forget()

    def insert(self, relation: str, rows: pa.Table) -> int:
        """Add explicit rows; the number that were new. Within a commit they are asserted."""
        if self._before is not None:
            return self.assert_rows(relation, rows)
        stored = self._relations[relation]
        fresh = 0
        for row in stored_rows(stored.relation, rows):
            fresh += row not in stored.entries
            stored.touch(row).marks |= Mark.EXPLICIT | Mark.HELD
        return fresh

    def clear(self, relation: str) -> None:
        """Empty a relation."""
        if self._before is not None:
            raise InternalError("relations are not cleared within a commit")
        stored = StoredRelation(self._relations[relation].relation)
        stored.derived = self._relations[relation].derived
        self._relations[relation] = stored
        self._reader.forget()

    def size(self, relation: str) -> int:
        """The number of tuples held."""
        return len(self._relations[relation])

    def table(self, relation: str) -> pa.Table:
        """All tuples held, in no order."""
        from tidelog.execute.substitution.arrow import table_of

        stored = self._relations[relation]
        return table_of(stored.relation, stored.held())

    def close(self) -> None:
        """Give back what the executor holds."""
        self._relations.clear()
        self._reader.forget()

    # --- commits ---------------------------------------------------------------------

    def begin(self) -> None:
        """Start a commit."""
        if self._before is not None:
            raise InternalError("a commit is under way already")
        self._before = {name: (stored, stored.derived) for name, stored in self._relations.items()}
        self.told.clear()
        for stored in self._relations.values():
            stored.begin()
        self._reader.forget()

    def commit(self) -> None:
        """What is AFTER becomes what is held."""
        self._check_commit()
        for stored in self._relations.values():
            stored.commit()
        self._before = None

    def _check_commit(self) -> None:
        """An algorithm that breaks its contract must not leave wrong answers."""
        if self._before is None:
            raise InternalError("no commit is under way")
        for stored in self._relations.values():
            if stored.aside is not None:
                raise InternalError(f"{stored.name} is still being renewed")
            for row in stored.contents.saved:
                entry = stored.entries[row]
                if entry.marks & UNFINISHED:
                    raise InternalError(f"{_shown(entry)} was not finished")
                if entry.marks & Mark.EXPLICIT and not entry.within(AFTER):
                    raise InternalError(f"{_shown(entry)} is explicit but would not hold")

    def rollback(self) -> None:
        """Everything as it was at `begin`."""
        if self._before is None:
            raise InternalError("no commit is under way")
        self._relations.clear()  # the reader has this very dictionary
        for name, (stored, derived) in self._before.items():
            self._relations[name] = stored
            stored.rollback()
            stored.derived = derived
        self._before = None
        self._reader.forget()

    def derives(self, relations: Sequence[str]) -> None:
        """Say which relations rules derive into; some may be made only later."""
        self._derives = frozenset(relations)
        for name, stored in self._relations.items():
            was, stored.derived = stored.derived, name in relations
            if was != stored.derived and stored.committing:
                for row in list(stored.contents.saved):
                    entry = stored.entries[row]
                    entry.hold(bool(entry.marks & (Mark.HELD if stored.derived else Mark.EXPLICIT)))

    def assert_rows(self, relation: str, rows: Sequence[Row] | pa.Table) -> int:
        """Make rows explicit; the number that were not."""
        stored, changed = self._committing(relation), 0
        for row in stored_rows(stored.relation, rows):
            entry = stored.entries.get(row)
            if entry is None or not entry.marks & Mark.EXPLICIT:
                entry = stored.touch(row)
                retracted = entry.marks & Mark.RETRACTED
                entry.marks = entry.marks & ~Mark.RETRACTED | Mark.EXPLICIT
                entry.marks |= 0 if retracted else Mark.ASSERTED
                if not stored.derived:
                    entry.hold(True)
                changed += 1
        self.told.asserted[relation] += changed
        return changed

    def retract_rows(self, relation: str, rows: Sequence[Row] | pa.Table) -> int:
        """Make rows explicit no more; the number that were."""
        stored, changed = self._committing(relation), 0
        for row in stored_rows(stored.relation, rows):
            entry = stored.entries.get(row)
            if entry is not None and entry.marks & Mark.EXPLICIT:
                asserted = entry.touch().marks & Mark.ASSERTED
                entry.marks &= ~(Mark.EXPLICIT | Mark.ASSERTED)
                entry.marks |= 0 if asserted else Mark.RETRACTED
                if not stored.derived:
                    entry.hold(False)
                changed += 1
        self.told.retracted[relation] += changed
        return changed

    def facts(self, relation: str) -> pa.Table:
        """The tuples that are explicit now, in no order."""
        from tidelog.execute.substitution.arrow import table_of

        stored = self._relations[relation]
        explicit = [row for row, entry in stored.entries.items() if entry.marks & Mark.EXPLICIT]
        return table_of(stored.relation, explicit)

    def _committing(self, relation: str) -> StoredRelation:
        if self._before is None:
            raise InternalError("no commit is under way")
        return self._relations[relation]

    def undo(self, relations: Sequence[str]) -> None:
        """Take back what tasks have done to relations in this commit."""
        for name in relations:
            self._committing(name).undo()

    def renew(self, relations: Sequence[str]) -> None:
        """Set tuples aside and start anew from explicit facts."""
        for name in relations:
            self._committing(name).renew()

    def prepare(self, tasks: Sequence[Maintaining | Task]) -> None:
        """Nothing is prepared."""

    def renewed(self, relations: Sequence[str]) -> bool:
        """Mark what is lost and gained against what was set aside."""
        for name in relations:
            self._committing(name).renewed()
        return True  # nothing is ever made ready

    def changed(self, relation: str) -> tuple[int, int]:
        """The number of tuples lost and gained so far in this commit."""
        stored = self._committing(relation)
        return len(stored.touched(LOST)), len(stored.touched(GAINED))

    def delta(self, relation: str) -> Changes:
        """What this commit takes from a relation and adds to it."""
        stored = self._committing(relation)
        rows = [[entry.row for entry in stored.touched(part)] for part in (LOST, GAINED)]
        return Changes.of(stored.relation, *rows)

    # --- tasks -----------------------------------------------------------------------

    def run(self, task: Task, watch: Watch = unwatched) -> PhaseReport:
        """Run a task that materialises."""
        return self.keep_going(task, watch)

    def keep_going(
        self, task: Maintaining | Task, watch: Watch = unwatched, budget: int | None = None
    ) -> PhaseReport:
        """Run a task."""
        started = perf_counter()
        for stored in self._relations.values():
            stored.log = {}
        work = Work(self._relations, self._reader, watch, budget, self._remember)
        try:
            self._work_on(task, work)
        except Abandoned as given_up:
            work.report.seconds = perf_counter() - started
            given_up.reports = [work.report]
            raise
        report = work.report
        report.phase = getattr(task, "phase", "")
        report.touched = sum(self._logged())
        report.seconds = perf_counter() - started
        return report

    def _work_on(self, task: Maintaining | Task, work: Work) -> None:
        match task:
            case Derive():
                derive(task, work)
            case Fixpoint():
                fixpoint(task, work)
            case Group():
                aggregate(task, work)
            case Sweep():
                sweep(task, work)
            case Redeem():
                redeem(task, work)
            case Tally():
                tally(task, work)
            case Steps():
                steps(task, work, self._from_nothing(task.relations))
            case Regroup():
                regroup(task, work)

    def _from_nothing(self, relations: Iterable[str]) -> bool:
        return any(self._relations[name].aside is not None for name in relations)

    def _logged(self) -> Iterable[bool]:
        """For each tuple that a task has looked at to change it, whether it did."""
        return (e.state != was for stored in self._relations.values() for e, was in stored.log.items())

    # --- for tests -------------------------------------------------------------------

    def standing(self, relation: str) -> dict[Row, Standing]:
        """All stored tuples with what is known of them."""
        return {
            restored(row): Standing(Mark(entry.marks), entry.first, entry.count, dict(entry.trace))
            for row, entry in self._relations[relation].entries.items()
            if entry.marks
        }

    def remember(self, on: bool) -> None:
        """Whether tasks remember every rule instance they consider."""
        self._remember = on


def _shown(entry: Entry) -> str:
    return f"{entry.relation.name}{restored(entry.row)}"
