"""Rule forms evaluated together: once for a `Derive`, in rounds for a `Fixpoint`.

In each round the forms of one head relation are one Spark job: their rows are
joined, put together, made distinct and compared with what the relation holds; what
is new is checkpointed, which cuts the lineage, and is the next round's DELTA. The
rows of each form are counted on the way: they are its rule instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Observation, SparkSession

from tidelog.execute.spark.failures import Guards
from tidelog.execute.spark.handing_on import columns_handed_on, handed_on
from tidelog.execute.spark.lower import Source, lower
from tidelog.execute.spark.state import Sizes, StoredRelation, count_rows, rows_counted
from tidelog.plan.algebra import RulePlan
from tidelog.plan.executor import Derive, Fixpoint, Progress, RuleForm, TaskReport, Version, Watch
from tidelog.plan.lower import plan_form
from tidelog.program.model import Positive

Fresh = dict[str, tuple[DataFrame, int] | None]


class Rounds:
    """The evaluation of one task."""

    def __init__(
        self, spark: SparkSession, relations: Mapping[str, StoredRelation], guards: Guards, watch: Watch
    ) -> None:
        self._relations, self._watch = relations, watch
        self._source = Source(spark, self._read, guards)
        self.report = TaskReport()

    def _read(self, relation: str, version: Version) -> DataFrame | None:
        return self._relations[relation].read(version)

    def derive(self, task: Derive) -> None:
        """Evaluate each form once."""
        others = [form for form in task.forms if not self._hand_on(form, task.forms)]
        fresh = self._evaluate(self._plans(others))
        for name, found in fresh.items():
            if found is not None:
                self._relations[name].add(*found)
        self._finish_round(fresh)

    def _hand_on(self, form: RuleForm, all: Sequence[RuleForm]) -> bool:
        """Let the head have the rows of the body, if that is all that is to be derived into it."""
        rule = form.rule
        head, columns = self._relations[rule.head.relation], columns_handed_on(rule)
        if columns is None or head.size() or sum(f.rule.head.relation == head.relation.name for f in all) > 1:
            return False
        [body] = rule.body
        assert isinstance(body, Positive), "columns are handed on"
        rows = handed_on(self._relations[body.atom.relation].rows(), head.relation, columns)
        head.insert(rows)
        self.report.instances[rule.id] = rows.size
        self.report.new += rows.size
        return True

    def fixpoint(self, task: Fixpoint) -> None:
        """Evaluate the forms in rounds, until a round derives nothing new."""
        own = {name: self._relations[name] for name in task.relations}
        for relation in own.values():
            relation.begin()
        plans: list[RulePlan] = []
        while any(relation.size(Version.DELTA) for relation in own.values()):
            # Sizes change most in the first rounds: join orders are chosen anew in rounds 1, 2, 4, 8, ...
            if self.report.rounds & (self.report.rounds + 1) == 0:
                plans = self._plans(task.forms)
            fresh = self._evaluate(plans)
            for name, relation in own.items():
                relation.advance(fresh.get(name))
            self._finish_round(fresh)

    def _plans(self, forms: Sequence[RuleForm]) -> list[RulePlan]:
        return [plan_form(form, Sizes(self._relations)) for form in forms]

    def _finish_round(self, fresh: Fresh) -> None:
        self.report.rounds += 1
        self.report.new += sum(found[1] for found in fresh.values() if found is not None)
        self._watch(Progress(self.report.rounds, self.report.new))

    def _evaluate(self, plans: Sequence[RulePlan]) -> Fresh:
        """What the plans derive that is new, by head relation. Changes no relation."""
        candidates: dict[str, list[DataFrame]] = {}
        counts: list[tuple[int, Observation, DataFrame]] = []
        for plan in plans:
            rule = plan.form.rule
            self.report.instances.setdefault(rule.id, 0)
            frame = lower(plan, self._source)
            if frame is not None:
                counted, observation = count_rows(frame)
                candidates.setdefault(rule.head.relation, []).append(counted)
                counts.append((rule.id, observation, frame))
        fresh = {
            name: self._relations[name].fresh(reduce(DataFrame.unionAll, frames))
            for name, frames in candidates.items()
        }
        for rule_id, observation, frame in counts:
            self.report.instances[rule_id] += rows_counted(observation, frame)
        return fresh
