"""Aggregates: the rows of a relation by group, and one value for each."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.execute.substitution.relation import Entry, Row, StoredRelation, restore, store
from tidelog.execute.substitution.work import Work
from tidelog.plan.maintenance import Regroup
from tidelog.plan.parts import AFTER, GAINED, LOST
from tidelog.program.aggregation import aggregate
from tidelog.program.functions import FunctionFailure
from tidelog.program.model import AggregateRule, Aggregation
from tidelog.syntax.errors import EvaluationError


def group(rule: AggregateRule, source: StoredRelation, head: StoredRelation) -> list[Row]:
    """The head rows of an aggregate: one for each group that has rows."""
    groups: dict[Row, list[Row]] = {}
    for row, entry in source.entries.items():
        if entry.within(AFTER):
            groups.setdefault(tuple(row[i] for i in rule.keys), []).append(row)
    return [_row(rule, source, head, key, members) for key, members in groups.items()]


def regroup(task: Regroup, work: Work) -> None:
    """Compute anew the groups that have lost or gained rows, and no others."""
    rule = task.rule
    source, head = work.relations[rule.source], work.relations[rule.head]
    changed = {tuple(e.row[i] for i in rule.keys): None for e in source.touched(LOST | GAINED)}
    for key in changed:
        members = [e.row for e in _with_key(source, rule.keys, key) if e.within(AFTER)]
        rows = [_row(rule, source, head, key, members)] if members else []
        for entry in _with_key(head, tuple(range(len(key))), key):
            entry.hold(entry.row in rows)
        for row in rows:
            work.report.new += len(head.add([row]))
    work.report.details["groups"] = len(changed)
    work.round()


def _with_key(stored: StoredRelation, columns: tuple[int, ...], key: Row) -> Iterable[Entry]:
    return list(stored.index(columns).get(key, ()) if columns else stored.entries.values())


def _row(
    rule: AggregateRule, source: StoredRelation, head: StoredRelation, key: Row, members: list[Row]
) -> Row:
    """The head row of a group."""
    values = [] if rule.value is None else [restore(row[rule.value]) for row in members]
    result = head.relation.columns[-1].type
    try:
        value = len(members) if rule.op is Aggregation.COUNT else aggregate(rule.op, values, result)
    except FunctionFailure as failure:
        names = [source.relation.columns[i].name for i in rule.keys]
        shown: dict[str, object] = dict(zip(names, map(restore, key), strict=True))
        raise EvaluationError(str(failure), rule.text, shown, rule.span) from None
    return (*key, store(value))
