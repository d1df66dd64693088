"""Aggregates: the rows of a relation by group, and one value for each."""

from __future__ import annotations

from tidelog.execute.substitution.relation import Row, StoredRelation, restore, store
from tidelog.program.aggregation import aggregate
from tidelog.program.functions import FunctionFailure
from tidelog.program.model import AggregateRule, Aggregation
from tidelog.syntax.errors import EvaluationError


def group(rule: AggregateRule, source: StoredRelation, head: StoredRelation) -> list[Row]:
    """The head rows of an aggregate: one for each group that has rows."""
    groups: dict[Row, list[Row]] = {}
    for row in source.rounds:
        groups.setdefault(tuple(row[i] for i in rule.keys), []).append(row)
    result = head.relation.columns[-1].type
    rows = []
    for key, members in groups.items():
        values = [] if rule.value is None else [restore(row[rule.value]) for row in members]
        try:
            value = len(members) if rule.op is Aggregation.COUNT else aggregate(rule.op, values, result)
        except FunctionFailure as failure:
            names = [source.relation.columns[i].name for i in rule.keys]
            shown: dict[str, object] = dict(zip(names, map(restore, key), strict=True))
            raise EvaluationError(str(failure), rule.text, shown, rule.span) from None
        rows.append((*key, store(value)))
    return rows
