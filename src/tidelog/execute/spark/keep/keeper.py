"""The Spark executor that keeps answers current: a `Keeper` (see `plan.maintenance`).

The tuples that a commit touches are on the driver, with their marks; the relations, however large,
stay where they are and are joined with them there (`relation`). A round of a task is a few Spark
jobs. What outgrows the driver is given up (`Outgrown`, which is `Abandoned`), and the stratum
is derived anew by the ways of `SparkExecutor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from tidelog.execute.spark.delta import FrameDelta
from tidelog.execute.spark.executor import SparkExecutor
from tidelog.execute.spark.letting_go import let_go
from tidelog.plan.executor import Derive, Fixpoint, Group, Task, TaskReport, Watch, unwatched
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
from tidelog.plan.parts import AFTER, Mark
from tidelog.program.model import Relation
from tidelog.program.strata import body_relations
from tidelog.syntax.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from tidelog.execute.spark.keep.relation import KeptRelation, Limits
    from tidelog.execute.spark.keep.work import Work
    from tidelog.execute.spark.state import Rows


class SparkKeeper(SparkExecutor):
    """Holds relations in a Spark session, and brings them up to date."""

    preparing = 0.0  # nothing is prepared
    patience = 20.0  # seconds: a round is a few Spark jobs, and takes its time however few tuples it is about
    kind = "spark"  # of a `Saving` keeper

    def __init__(self, spark: object | None = None, limits: Limits | None = None) -> None:
        self.told = Told()
        from tidelog.execute.spark.keep.relation import Limits

        super().__init__(spark)
        self._limits = limits or Limits()
        self._kept: dict[str, KeptRelation] = {}
        self._before: dict[str, tuple[KeptRelation, bool]] | None = None  # the relations at `begin`
        self._derives: frozenset[str] = frozenset()
        self._filled: set[str] = set()  # of the relations being renewed: by tasks that materialise

    # --- relations -------------------------------------------------------------------------------

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""
        from tidelog.execute.spark.keep.relation import KeptRelation

        kept = self._kept[relation.name] = KeptRelation(self._spark, relation, self._limits)
        kept.derived = relation.name in self._derives

    def drop(self, relation: str) -> None:
        """Forget a relation."""
        del self._kept[relation]

    def insert(self, relation: str, rows: pa.Table | Rows) -> int:
        """Add explicit rows; the number that were new. Within a commit they are asserted."""
        if self._before is not None:
            return self.assert_rows(relation, rows)
        from tidelog.execute.spark.keep.facts import give

        kept = self._kept[relation]
        derived, kept.derived = kept.derived, False
        before = kept.held
        give(kept, rows, add=True)
        kept.prepare()
        kept.commit()
        kept.derived = derived
        return kept.held - before

    def clear(self, relation: str) -> None:
        """Empty a relation."""
        if self._before is not None:
            raise InternalError("relations are not cleared within a commit")
        self.create(self._kept[relation].relation)

    def size(self, relation: str) -> int:
        """The number of tuples held."""
        return self._kept[relation].held

    def table(self, relation: str) -> pa.Table:
        """All tuples held, on the driver."""
        return self._kept[relation].rows().table()

    def rows(self, relation: str) -> Rows:
        """All tuples held, where they are. They stay what they are, as long as the session lasts."""
        return self._kept[relation].rows()

    def facts(self, relation: str) -> pa.Table:
        """The explicit tuples as they are now, on the driver."""
        return self._kept[relation].explicit().table()

    def explicit(self, relation: str) -> Rows:
        """The explicit tuples as they are now, where they are."""
        return self._kept[relation].explicit()

    def close(self) -> None:
        """Give back what the executor holds."""
        self._kept.clear()
        super().close()

    # --- commits ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a commit."""
        if self._before is not None:
            raise InternalError("a commit is under way already")
        self._before = {name: (kept, kept.derived) for name, kept in self._kept.items()}
        self.told.clear()

    def commit(self) -> None:
        """What is AFTER becomes what is held."""
        self._check_commit()
        for kept in self._kept.values():
            kept.prepare()
        for kept in self._kept.values():
            kept.commit()
        self._before = None
        let_go(self._spark)

    def _check_commit(self) -> None:
        """An algorithm that breaks its contract must not leave wrong answers."""
        if self._before is None:
            raise InternalError("no commit is under way")
        unfinished = Mark.QUEUED | Mark.CURRENT | Mark.PROVING
        for name, kept in self._kept.items():
            if kept.aside is not None:
                raise InternalError(f"{name} is still being renewed")
            for row in kept.near.saved if kept.bulk is None else ():
                entry = kept.near.entries[row]
                if entry.marks & unfinished:
                    raise InternalError(f"{name}{row} was not finished")
                if entry.marks & Mark.EXPLICIT and not entry.within(AFTER):
                    raise InternalError(f"{name}{row} is explicit but would not hold")

    def rollback(self) -> None:
        """Everything as it was at `begin`."""
        if self._before is None:
            raise InternalError("no commit is under way")
        self._kept = {}
        for name, (kept, derived) in self._before.items():
            self._kept[name] = kept
            kept.rollback()
            kept.derived = derived
        self._before = None
        self._filled.clear()
        let_go(self._spark)

    def derives(self, relations: Sequence[str]) -> None:
        """Say which relations rules derive into; some may be made only later."""
        self._derives = frozenset(relations)
        for name, kept in self._kept.items():
            kept.derived = name in self._derives

    def assert_rows(self, relation: str, rows: Sequence[Row] | pa.Table | Rows) -> int:
        """Make rows explicit; the number that were not."""
        changed = self._give(relation, rows, add=True)
        self.told.asserted[relation] += changed
        return changed

    def retract_rows(self, relation: str, rows: Sequence[Row] | pa.Table | Rows) -> int:
        """Make rows explicit no more; the number that were."""
        changed = self._give(relation, rows, add=False)
        self.told.retracted[relation] += changed
        return changed

    def _give(self, relation: str, rows: Sequence[Row] | pa.Table | Rows, *, add: bool) -> int:
        from tidelog.execute.spark.keep.facts import give

        return give(self._committing(relation), rows, add=add)

    def _committing(self, relation: str) -> KeptRelation:
        if self._before is None:
            raise InternalError("no commit is under way")
        return self._kept[relation]

    def undo(self, relations: Sequence[str]) -> None:
        """Take back what tasks have done to relations in this commit."""
        for name in relations:
            self._committing(name).undo()
        self._filled.difference_update(relations)

    def renew(self, relations: Sequence[str]) -> None:
        """Set tuples aside and start anew from explicit facts."""
        from tidelog.execute.spark.keep.renewal import renew

        for name in relations:
            renew(self._committing(name))
        self._filled.update(relations)

    def prepare(self, tasks: Sequence[Maintaining | Task]) -> None:
        """Nothing is prepared."""

    def renewed(self, relations: Sequence[str]) -> bool:
        """Mark what is lost and gained against what was set aside."""
        from tidelog.execute.spark.keep.renewal import renewed

        for name in relations:
            renewed(self._committing(name), filled=name in self._filled)
        self._filled.difference_update(relations)
        return True  # nothing is ever made ready

    def changed(self, relation: str) -> tuple[int, int]:
        """The number of tuples lost and gained so far in this commit."""
        return self._committing(relation).changed()

    def changes(self, relation: str) -> tuple[Rows, Rows]:
        """What this commit takes from a relation and adds to it; they stay what they are."""
        return self._committing(relation).changes()

    def delta(self, relation: str) -> FrameDelta:
        """What this commit takes from a relation and adds to it; fetched when it is read."""
        return FrameDelta(*self.changes(relation))

    # --- tasks -----------------------------------------------------------------------------------

    def run(self, task: Task, watch: Watch = unwatched) -> TaskReport:
        """Run a task that materialises, for relations that are being renewed."""
        from tidelog.execute.spark.state import StoredRelation

        heads, read = _relations(task)
        self._relations = {}
        for name in (*heads, *read):
            kept = self._kept[name]
            if kept.stored is not None:
                self._relations[name] = kept.stored
            elif name in heads:
                raise InternalError(f"{name} is filled without being renewed")
            else:
                stored = self._relations[name] = StoredRelation(self._spark, kept.relation)
                stored.insert(kept.now())
        try:
            return super().run(task, watch)
        finally:
            self._relations = {}

    def keep_going(
        self, task: Maintaining | Task, watch: Watch = unwatched, budget: int | None = None
    ) -> PhaseReport:
        """Run a task."""
        from tidelog.execute.spark.keep.work import Work

        started = perf_counter()
        if isinstance(task, Derive | Fixpoint | Group):
            done = self.run(task, watch)
            report = PhaseReport(done.rounds, done.new, done.instances, way=done.way, touched=done.new)
        else:
            work = Work(self._spark, self._kept, self._limits, watch, budget)
            before = self._touched(task)
            try:
                self._maintain(task, work)
            except Abandoned as given_up:
                work.report.seconds = perf_counter() - started
                given_up.reports = [work.report]
                raise
            except Exception as error:
                failure = work.guards.explain(error)
                if failure is None:
                    raise
                raise failure from None
            report = work.report
            report.phase = task.phase
            report.touched = self._touched(task) - before
        report.seconds = perf_counter() - started
        return report

    def _maintain(self, task: Maintaining, work: Work) -> None:
        from tidelog.execute.spark.keep.fetch import Outgrown
        from tidelog.execute.spark.keep.groups import regroup
        from tidelog.execute.spark.keep.steps import steps
        from tidelog.execute.spark.keep.sweep import redeem, sweep
        from tidelog.execute.spark.keep.tally import tally, tally_all

        match task:
            case Sweep():
                sweep(task, work)
            case Redeem():
                redeem(task, work)
            case Regroup():
                regroup(task, work)
            case Tally() if self._starting(task.relations):
                self._filled.difference_update(task.relations)
                try:
                    tally(task, work)
                except Outgrown:
                    tally_all(task, work)
            case Tally():
                tally(task, work)
            case Steps():
                starting = self._starting(task.relations)
                if starting:
                    self._filled.difference_update(task.relations)
                steps(task, work, starting)

    def _touched(self, task: Maintaining) -> int:
        relations = (task.rule.head,) if isinstance(task, Regroup) else task.relations
        return sum(len(self._kept[name].near.saved) for name in relations)

    def _starting(self, relations: Iterable[str]) -> bool:
        return any(self._kept[name].aside is not None for name in relations)

    # --- from one process to another -------------------------------------------------------------

    def state(self, relation: str) -> pa.Table | DataFrame:
        """The tuples held, with all that is known of them; where they are, if they are many."""
        from tidelog.execute.spark.keep.saving import state

        return state(self._kept[relation])

    def restore(self, relation: str, state: pa.Table | DataFrame) -> None:
        """Fill a relation with what `state` gave, or with explicit facts."""
        from tidelog.execute.spark.keep.base import MARKS
        from tidelog.execute.spark.keep.saving import restore

        if hasattr(state, "column_names") and MARKS not in state.column_names:  # a table of facts
            self.insert(relation, state)
        else:
            restore(self._kept[relation], state)

    # --- for tests -------------------------------------------------------------------------------

    def standing(self, relation: str) -> dict[Row, Standing]:
        """All stored tuples with what is known of them."""
        from tidelog.execute.spark.keep.standing import standing

        return standing(self._kept[relation])

    def remember(self, on: bool) -> None:
        """Instances are counted, and not remembered."""


def _relations(task: Task) -> tuple[set[str], set[str]]:
    """The relations that a task derives, and the others that it reads."""
    if isinstance(task, Group):
        return {task.rule.head}, {task.rule.source}
    heads = {form.rule.head.relation for form in task.forms}
    if isinstance(task, Fixpoint):
        heads |= set(task.relations)
    return heads, {name for form in task.forms for name in body_relations(form.rule)} - heads
