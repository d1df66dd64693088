"""Aggregates: one row for each group of a relation's rows."""

from __future__ import annotations

from typing import cast

import numpy as np

from tidelog.execute.local.codes import Codes
from tidelog.execute.local.expressions import Array, is_coded, to_column
from tidelog.execute.local.memory import Cells
from tidelog.execute.local.relation import StoredRelation
from tidelog.program.aggregation import aggregate
from tidelog.program.functions import FunctionFailure
from tidelog.program.model import AggregateRule, Aggregation, Relation, Value
from tidelog.syntax.errors import EvaluationError

SAFE_VALUE = 1 << 31  # fewer than 2^32 values below this have a 64-bit sum


def group(rule: AggregateRule, source: StoredRelation, head: StoredRelation, codes: Codes) -> int:
    """Compute an aggregate into its head; the number of groups."""
    cells = source.cells_now
    if len(cells) == 0:
        return 0
    columns = grouped(rule, cells, source.relation, head.relation, codes)
    return head.insert(columns, len(columns[-1]))


def grouped(rule: AggregateRule, cells: Cells, source: Relation, head: Relation, codes: Codes) -> list[Cells]:
    """The columns of the aggregate over some rows, at least one: a row for each group."""
    members = _by_group(cells[:, list(rule.keys)])
    starts = np.flatnonzero(members.first)
    keys = cells[members.order[starts]][:, list(rule.keys)]
    values = _values(rule, cells, source, members.order, starts, keys, codes, head)
    return [*(np.ascontiguousarray(keys[:, i]) for i in range(len(rule.keys))), values]


class _Members:
    """Rows sorted by group: `order` are row numbers, `first` marks the first of each group."""

    def __init__(self, order: Array, first: Array) -> None:
        self.order, self.first = order, first


def _by_group(keys: Cells) -> _Members:
    if keys.shape[1] == 0:
        first = np.zeros(len(keys), np.bool_)
        first[0] = True
        return _Members(np.arange(len(keys)), first)
    order = np.lexsort(tuple(keys[:, i] for i in range(keys.shape[1])))
    ordered = keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return _Members(order, first)


def _values(
    rule: AggregateRule,
    rows: Cells,
    source: Relation,
    order: Array,
    starts: Array,
    keys: Cells,
    codes: Codes,
    head: Relation,
) -> Cells:
    """The result of each group, as cells."""
    result = head.columns[-1].type
    if rule.op is Aggregation.COUNT:
        return codes.encode(np.diff(starts, append=len(order)), result)
    assert rule.value is not None
    type = source.columns[rule.value].type
    column = to_column(np.ascontiguousarray(rows[order, rule.value]), type, codes)
    if type.kind == "int" and not is_coded(type):
        if rule.op in (Aggregation.MIN, Aggregation.MAX):
            pick = np.minimum if rule.op is Aggregation.MIN else np.maximum
            return codes.encode(pick.reduceat(column, starts), result)
        if rule.op is Aggregation.SUM and column.min() > -SAFE_VALUE and column.max() < SAFE_VALUE:
            sums = np.add.reduceat(column, starts)
            low, high = result.bounds()
            if ((sums >= low) & (sums <= high)).all():
                return codes.encode(sums, result)
    cells = np.empty(len(starts), np.uint32)
    ends = [*starts[1:].tolist(), len(order)]
    for number, (low, high) in enumerate(zip(starts.tolist(), ends, strict=True)):
        items = column[low:high].tolist()
        values = [codes.value(item, type) for item in items] if is_coded(type) else items
        try:
            value = aggregate(rule.op, cast(list[Value], values), result)
        except FunctionFailure as failure:
            shown: dict[str, object] = {}
            for i, column_number in enumerate(rule.keys):
                key = source.columns[column_number]
                shown[key.name] = codes.value(int(keys[number, i]), key.type)
            raise EvaluationError(str(failure), rule.text, shown, rule.span) from None
        cells[number] = codes.code(value, result)
    return cells
