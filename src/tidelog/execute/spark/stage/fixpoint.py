"""A fixpoint as one Spark stage, from the driver's side.

The rows that it begins with and those of strata below become one DataFrame (`feed`); Spark hands
it to tasks that run the local engine's kernels (`work`); what they yield is cut off from its lineage
and goes to the relations. What differs between the ways is which rows a task is given:

- single: one task has all rows;
- pivot: a task has the rows of its values of the pivot, and all rows of strata below;
- barrier: all tasks run at once, whatever rows they are given, and send them to each other;
- shuffle: not one stage but a job for each round, which tasks take turns in (`shuffle`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelog.execute.spark.settings import Settings, Way
from tidelog.execute.spark.stage import feed, work
from tidelog.execute.spark.stage.choose import Choice
from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.stage.output import IntoFiles, Outlet, ThroughSpark
from tidelog.execute.spark.stage.progress import watched
from tidelog.execute.spark.stage.shuffle import in_rounds
from tidelog.execute.spark.stage.skew import Sampled
from tidelog.execute.spark.stage.workdir import StageDirectory, work_directory
from tidelog.execute.spark.state import Sizes, StoredRelation, cut, frame_of
from tidelog.execute.spark.types import cells_schema
from tidelog.plan.executor import Fixpoint, TaskReport, Watch, unwatched
from tidelog.plan.placement import Distribution, distribute
from tidelog.program.model import Relation, Rule
from tidelog.program.strata import body_relations
from tidelog.syntax.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class MissingError(UnsupportedError):
    """Spark's Python workers cannot run the local engine."""

    def __init__(self) -> None:
        super().__init__(
            "error[TL0611]: the Python of Spark's workers has no Tidelog\n"
            "  = hint: install it there; on one machine, set PYSPARK_PYTHON to the Python that has it "
            "before the session is made\n"
            "  = hint: spark.tidelog.fixpoint=frames does without, and is slow"
        )


class SlotsError(UnsupportedError):
    """Spark cannot run all tasks of a fixpoint at once."""

    def __init__(self, tasks: int) -> None:
        super().__init__(
            f"error[TL0617]: Spark cannot run {tasks} tasks of a fixpoint at once\n"
            "  = hint: set spark.tidelog.tasks to how many it can; barrier stages need executors that "
            "stay (spark.dynamicAllocation.enabled=false)"
        )


class Stage:
    """One fixpoint over stored relations."""

    def __init__(self, task: Fixpoint, stored: Mapping[str, StoredRelation], settings: Settings) -> None:
        self.task, self.settings = task, settings
        self.rules = rules_of(task)
        names = dict.fromkeys([*task.relations, *(n for rule in self.rules for n in body_relations(rule))])
        self.stored = {name: stored[name] for name in names}
        self.relations: dict[str, Relation] = {name: s.relation for name, s in self.stored.items()}
        self.layout = Layout(tuple(self.relations.values()))
        self.skew = Sampled(self.stored, settings.tasks)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each relation that the fixpoint reads."""
        return {name: stored.size() for name, stored in self.stored.items()}

    def run(self, choice: Choice, watch: Watch = unwatched) -> TaskReport:
        """Run it; new rows are added to the relations."""
        if self.settings.work is None:
            return self._stored(self._answers(choice, ThroughSpark(self.layout), watch))
        directory = work_directory(self.settings.work).begin()
        try:
            outlet = IntoFiles(self.layout, directory.place, self.settings.tasks)
            with watched(directory.place, watch):
                return self._left(self._answers(choice, outlet, watch), directory)
        finally:
            directory.settle()

    def _answers(self, choice: Choice, outlet: Outlet, watch: Watch) -> DataFrame:
        """What tasks will yield."""
        layout, tasks = self.layout, self.settings.tasks
        match choice.way:
            case Way.single:
                function = work.alone(layout, outlet, self.task, self.relations, tasks)
                return feed.in_tasks(self._rows().repartition(1), function, outlet.ddl)
            case Way.pivot:
                assert choice.pivots is not None
                function = work.alone(layout, outlet, self.task, self.relations, 1)
                return feed.in_tasks(self._by_pivot(choice.pivots), function, outlet.ddl)
            case Way.shuffle:
                with self._understood():
                    rows, spread = self._rows(), self._distribution()
                    return in_rounds(rows, layout, outlet, spread, self.rules, tasks, watch)
            case _:
                distribution = self._distribution()
                secret, seconds = secrets.token_bytes(32), self.settings.checkpoint
                function = work.shared(layout, outlet, distribution, self.rules, secret, seconds)
                tasks = min(tasks, self.settings.slots or tasks)
                given = self._rows().repartition(tasks)
                answers = feed.in_tasks(given, function, outlet.ddl, barrier=True)
                # Spark takes every stage that reads what a barrier stage left, also by way of a checkpoint,
                # for a barrier stage too, unless there is a shuffle in between; and it runs a barrier
                # stage again, if a task is lost, only if it is followed by a shuffle.
                return answers.repartition(tasks, *outlet.keys)

    def _distribution(self) -> Distribution:
        """Where tasks that share the fixpoint keep which tuples."""
        sizes = Sizes(self.stored)
        return distribute(self.rules, self.relations, self.task.relations, sizes, skew=self.skew)

    def _rows(self) -> DataFrame:
        """All rows that the fixpoint begins with."""
        return feed.together(
            [
                feed.common(self.layout, stored.relation, frame)
                for stored in self.stored.values()
                if (frame := stored.read()) is not None
            ]
        )

    def _by_pivot(self, pivots: Mapping[str, int]) -> DataFrame:
        tasks = self.settings.tasks
        parts = []
        for name, stored in self.stored.items():
            frame = stored.read()
            if frame is not None:
                target = feed.everyone(tasks)
                if name in pivots:
                    target = feed.owner_of(stored.relation, [pivots[name]], tasks)
                parts.append(feed.common(self.layout, stored.relation, frame, target))
        rows = feed.together(parts)
        return rows.repartitionById(tasks, rows[feed.TARGET]).drop(feed.TARGET)

    def _stored(self, answers: DataFrame) -> TaskReport:
        """Let Spark store what tasks yield, and add it to the relations."""
        with self._understood():
            answers, _ = cut(answers)
        report, new = self._reported(feed.said(answers))
        for name, count in new.items():
            if count:
                self.stored[name].add(feed.rows_of(self.layout, self.relations[name], answers), count)
        return report

    def _left(self, answers: DataFrame, directory: StageDirectory) -> TaskReport:
        """Add what tasks have left in files, or sent to the driver, to the relations."""
        with self._understood():
            found = feed.found(answers)
        report, _ = self._reported(found.said)
        spark = answers.sparkSession
        for name, files in found.files.items():
            frame = directory.frame(spark, cells_schema(self.relations[name]), files)
            self.stored[name].add(frame, found.counts[name])
        for name, tables in found.tables.items():
            table = pa.concat_tables(tables)
            self.stored[name].add(frame_of(spark, table), table.num_rows)
        return report

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Let a failing stage be an error that says what is wrong."""
        try:
            yield
        except Exception as error:
            if work.is_missing(error):
                raise MissingError from None
            if work.is_without_slots(error):
                raise SlotsError(self.settings.tasks) from None
            if work.is_worker_lost(error):
                raise work.worker_lost(self.rules) from error
            raise

    def _reported(self, said: Sequence[Mapping[str, Any]]) -> tuple[TaskReport, dict[str, int]]:
        """What all tasks together did, and the number of new tuples of each relation."""
        failed = work.failure_said(said)
        if failed is not None:
            raise failed
        report = TaskReport()
        new = dict.fromkeys(self.task.relations, 0)
        resumed = max((told.get("resumed", 0) for told in said), default=0)
        if resumed:
            report.way = f"gone on from round {resumed:,}, after a task was lost"
        for told in said:
            report.rounds = max(report.rounds, told["rounds"])
            for name, count in told["new"].items():
                new[name] += count
            for rule, count in told["instances"].items():
                report.instances[int(rule)] = report.instances.get(int(rule), 0) + count
        report.new = sum(new.values())
        return report, new


def rules_of(task: Fixpoint) -> tuple[Rule, ...]:
    """The rules of a fixpoint, each once."""
    return tuple(dict.fromkeys(form.rule for form in task.forms))
