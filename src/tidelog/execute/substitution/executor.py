"""The reference executor: small, obvious, and slow."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from tidelog.execute.substitution.groups import group
from tidelog.execute.substitution.infer import infer
from tidelog.execute.substitution.relation import Row, StoredRelation
from tidelog.plan.executor import (
    Derive,
    Fixpoint,
    Group,
    Progress,
    RuleForm,
    Task,
    TaskReport,
    Watch,
    unwatched,
)
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa


class SubstitutionExecutor:
    """Holds relations as Python dictionaries and evaluates rules by substitution."""

    name = "substitution"

    def __init__(self) -> None:
        self._relations: dict[str, StoredRelation] = {}

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""
        self._relations[relation.name] = StoredRelation(relation)

    def insert(self, relation: str, rows: pa.Table) -> int:
        """Add rows; the number that were new."""
        from tidelog.execute.substitution.arrow import rows_of

        stored = self._relations[relation]
        return len(stored.add(rows_of(stored.relation, rows)))

    def clear(self, relation: str) -> None:
        """Empty a relation."""
        self._relations[relation].clear()

    def size(self, relation: str) -> int:
        """The number of tuples."""
        return len(self._relations[relation])

    def table(self, relation: str) -> pa.Table:
        """All tuples, in no order."""
        from tidelog.execute.substitution.arrow import table_of

        stored = self._relations[relation]
        return table_of(stored.relation, stored.rounds)

    def close(self) -> None:
        """Give back what the executor holds."""
        self._relations.clear()

    def run(self, task: Task, watch: Watch = unwatched) -> TaskReport:
        """Run a task."""
        started = perf_counter()
        report = TaskReport()
        match task:
            case Derive(forms):
                for relation, rows in self._round(forms, 0, report).items():
                    report.new += len(self._relations[relation].add(rows))
                report.rounds = 1
                watch(Progress(1, report.new))
            case Fixpoint():
                self._fixpoint(task, report, watch)
            case Group(rule):
                head = self._relations[rule.head]
                report.new = len(head.add(group(rule, self._relations[rule.source], head)))
                report.rounds = 1
                watch(Progress(1, report.new))
        report.seconds = perf_counter() - started
        return report

    def _fixpoint(self, task: Fixpoint, report: TaskReport, watch: Watch) -> None:
        """Rounds until one derives nothing; what a round derives is seen from the next one on."""
        own = [self._relations[name] for name in task.relations]
        for relation in own:
            relation.begin()
        while any(relation.delta for relation in own):
            report.rounds += 1
            derived = self._round(task.forms, report.rounds, report)
            for relation in own:
                relation.delta = relation.add(derived.get(relation.relation.name, {}), report.rounds)
                report.new += len(relation.delta)
            watch(Progress(report.rounds, report.new))

    def _round(
        self, forms: tuple[RuleForm, ...], number: int, report: TaskReport
    ) -> dict[str, dict[Row, None]]:
        """The head rows of all instances of the forms, by relation."""
        derived: dict[str, dict[Row, None]] = {}
        for form in forms:
            rows = derived.setdefault(form.rule.head.relation, {})
            count = 0
            for row in infer(form, self._relations)(number):
                rows[row] = None
                count += 1
            report.instances[form.rule.id] = report.instances.get(form.rule.id, 0) + count
        return derived
