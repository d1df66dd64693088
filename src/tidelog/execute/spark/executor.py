"""The Spark executor: relations as DataFrames, tasks as Spark jobs.

It uses the DataFrame API alone, so that it also works over Spark Connect. Where Spark
runs on other machines, their Python workers need Tidelog installed.
"""

from __future__ import annotations

import logging
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, cast

from tidelog.execute.spark.letting_go import let_go
from tidelog.execute.spark.session import acquire, check_session, release, require_pyspark
from tidelog.plan.executor import Derive, Fixpoint, Group, Progress, Task, TaskReport, Watch, unwatched
from tidelog.program.model import AggregateRule, Relation
from tidelog.syntax.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tidelog.execute.spark.failures import Guards
    from tidelog.execute.spark.fixpoint import Rounds
    from tidelog.execute.spark.state import Rows, StoredRelation


LOG = logging.getLogger("tidelog")


class SparkExecutor:
    """Holds relations in a Spark session: the caller's, which it never stops, or one of its own."""

    name = "spark"

    def __init__(self, spark: object | None = None) -> None:
        if spark is not None:
            require_pyspark()
            check_session(spark)
        self._given = spark is not None
        self._spark: SparkSession = acquire() if spark is None else cast("SparkSession", spark)
        self._relations: dict[str, StoredRelation] = {}
        self._closed = False

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""
        from tidelog.execute.spark.state import StoredRelation

        self._relations[relation.name] = StoredRelation(self._spark, relation)

    def insert(self, relation: str, rows: pa.Table | Rows) -> int:
        """Add rows, of the driver or in Spark; the number that were new."""
        return self._relations[relation].insert(rows)

    def clear(self, relation: str) -> None:
        """Empty a relation."""
        self._relations[relation].clear()

    def size(self, relation: str) -> int:
        """The number of tuples."""
        return self._relations[relation].size()

    def table(self, relation: str) -> pa.Table:
        """All tuples, in no order."""
        return self._relations[relation].table()

    def rows(self, relation: str) -> Rows:
        """All tuples, where they are. They stay what they are, as long as the session lasts."""
        return self._relations[relation].rows()

    @property
    def lasting(self) -> bool:
        """Whether the session is the caller's, and so outlives the executor."""
        return self._given

    def close(self) -> None:
        """Give back what the executor holds; stops the session only if no one else has it."""
        self._relations.clear()
        if not self._closed:
            let_go(self._spark)
        if not self._given and not self._closed:
            release(self._spark)
        self._closed = True

    def run(self, task: Task, watch: Watch = unwatched) -> TaskReport:
        """Run a task."""
        from tidelog.execute.spark.failures import Guards
        from tidelog.execute.spark.fixpoint import Rounds

        started = perf_counter()
        guards = Guards()
        rounds = Rounds(self._spark, self._relations, guards, watch)
        try:
            match task:
                case Derive():
                    rounds.derive(task)
                case Fixpoint():
                    rounds.report = self._fixpoint(task, rounds, watch)
                case Group(rule):
                    rounds.report.new = self._group(rule, guards)
                    rounds.report.rounds = 1
                    watch(Progress(1, rounds.report.new))
        except Exception as error:
            failure = guards.explain(error)
            if failure is None:
                raise
            raise failure from None
        rounds.report.seconds = perf_counter() - started
        return rounds.report

    def _fixpoint(self, task: Fixpoint, rounds: Rounds, watch: Watch) -> TaskReport:
        from tidelog.execute.spark.settings import Way, read_settings
        from tidelog.execute.spark.stage.choose import Choice, choose
        from tidelog.execute.spark.stage.fixpoint import MissingError, SlotsError, Stage
        from tidelog.execute.spark.stage.shuffle import again
        from tidelog.execute.spark.tasks.exchange import PeerError

        stage = Stage(task, self._relations, read_settings(self._spark))
        choice = choose(stage.rules, task.relations, stage.sizes, stage.settings, stage.skew.most)
        if not any(stage.sizes[name] for name in task.relations):
            return TaskReport(way="nothing to begin with")
        report = None
        while report is None:
            try:
                if choice.way is Way.frames:
                    rounds.fixpoint(task)
                    report = rounds.report
                else:
                    start = partial(stage.run, choice, watch)
                    report = again(start) if choice.way is Way.shuffle else start()
                    watch(Progress(report.rounds, report.new))
            except (MissingError, SlotsError, PeerError) as error:
                if stage.settings.way is not None:
                    raise
                LOG.warning("%s", error)
                match error:
                    case MissingError():
                        choice = Choice(Way.frames, "the Python of Spark's workers has no Tidelog")
                    case SlotsError():
                        choice = Choice(Way.shuffle, "Spark does not run all tasks at once")
                    case _:
                        choice = Choice(Way.shuffle, "tasks cannot reach each other")
        report.way = ", ".join([f"{choice.way}: {choice.why}", *([report.way] if report.way else [])])
        return report

    def _group(self, rule: AggregateRule, guards: Guards) -> int:
        from tidelog.execute.spark.groups import group
        from tidelog.execute.spark.state import cut

        source, head = self._relations[rule.source], self._relations[rule.head]
        frame = source.read()
        if head.size():
            raise InternalError(f"the relation {rule.head} of an aggregate is not empty")
        if frame is None:
            return 0
        rows, size = cut(group(rule, source.relation, head.relation, frame, guards))
        head.add(rows, size)
        return size
