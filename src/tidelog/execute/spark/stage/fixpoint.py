"""A fixpoint as one Spark stage, from the driver's side.

The rows that it begins with and those of strata below become one DataFrame (`feed`); Spark hands
it to tasks that run the local engine's kernels (`work`); what they yield is cut off from its lineage
and goes to the relations. What differs between the ways is which rows a task is given:

- single: one task has all rows;
- pivot: a task has the rows of its values of the pivot, and all rows of strata below;
- barrier: all tasks run at once, whatever rows they are given, and send them to each other.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.execute.spark.settings import Settings, Way
from tidelog.execute.spark.stage import feed, work
from tidelog.execute.spark.stage.choose import Choice
from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.state import Sizes, StoredRelation, cut
from tidelog.plan.executor import Fixpoint, TaskReport
from tidelog.plan.placement import distribute
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


class Stage:
    """One fixpoint over stored relations."""

    def __init__(self, task: Fixpoint, stored: Mapping[str, StoredRelation], settings: Settings) -> None:
        self.task, self.settings = task, settings
        self.rules = rules_of(task)
        names = dict.fromkeys([*task.relations, *(n for rule in self.rules for n in body_relations(rule))])
        self.stored = {name: stored[name] for name in names}
        self.relations: dict[str, Relation] = {name: s.relation for name, s in self.stored.items()}
        self.layout = Layout(tuple(self.relations.values()))

    @property
    def sizes(self) -> dict[str, int]:
        """The number of rows of each relation that the fixpoint reads."""
        return {name: stored.size() for name, stored in self.stored.items()}

    def run(self, choice: Choice) -> TaskReport:
        """Run it; new rows are added to the relations."""
        match choice.way:
            case Way.single:
                given = self._rows().repartition(1)
                function = work.alone(self.layout, self.task, self.relations, self.settings.tasks)
                answers = feed.in_tasks(given, function, self.layout)
            case Way.pivot:
                assert choice.pivots is not None
                given = self._by_pivot(choice.pivots)
                function = work.alone(self.layout, self.task, self.relations, 1)
                answers = feed.in_tasks(given, function, self.layout)
            case _:
                distribution = distribute(self.rules, self.relations, self.task.relations, Sizes(self.stored))
                given = self._rows().repartition(self.settings.tasks)
                function = work.shared(self.layout, distribution, secrets.token_bytes(32))
                answers = feed.in_tasks(given, function, self.layout, barrier=True)
                # Spark takes every stage that reads what a barrier stage left, also by way of a checkpoint,
                # for a barrier stage too, unless there is a shuffle in between.
                answers = answers.repartition(self.settings.tasks, *self.layout.names)
        return self._take(answers)

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

    def _take(self, answers: DataFrame) -> TaskReport:
        """Add what tasks have yielded to the relations."""
        try:
            answers, _ = cut(answers)
        except Exception as error:
            failed = work.failure(error)
            if failed is not None:
                raise failed from None
            if work.is_missing(error):
                raise MissingError from None
            raise
        report = TaskReport()
        new = dict.fromkeys(self.task.relations, 0)
        for told in feed.said(answers):
            report.rounds = max(report.rounds, told["rounds"])
            for name, count in told["new"].items():
                new[name] += count
            for rule, count in told["instances"].items():
                report.instances[int(rule)] = report.instances.get(int(rule), 0) + count
        for name, count in new.items():
            if count:
                self.stored[name].add(feed.rows_of(self.layout, self.relations[name], answers), count)
        report.new = sum(new.values())
        return report


def rules_of(task: Fixpoint) -> tuple[Rule, ...]:
    """The rules of a fixpoint, each once."""
    return tuple(dict.fromkeys(form.rule for form in task.forms))
