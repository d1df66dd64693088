"""Aggregates over the rows of a group.

Results do not depend on the order of the rows: integers are added exactly and
checked once, floats are added as if exactly and rounded once. Among floats NaN
counts as larger than every number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tidelog.execute.substitution.relation import Row, StoredRelation, restore, store
from tidelog.program.functions import FunctionFailure, fit, round_float
from tidelog.program.model import AggregateRule, Aggregation, Value
from tidelog.program.types import Type
from tidelog.syntax.errors import EvaluationError, InternalError


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


def aggregate(op: Aggregation, values: Sequence[Value], type: Type) -> Value:
    """The aggregate of some values, as a value of `type`; FunctionFailure when it does not fit."""
    match op:
        case Aggregation.MIN:
            return min(values, key=_rank)
        case Aggregation.MAX:
            return max(values, key=_rank)
        case Aggregation.SUM:
            return _sum(values, type)
        case Aggregation.MEAN:
            numbers = [v for v in values if not isinstance(v, str)]
            if all(isinstance(v, int) for v in numbers):
                return round_float(_as_float(Fraction(sum(map(int, numbers)), len(numbers))), type)
            return round_float(_float_sum(numbers) / len(numbers), type)
        case _:
            raise InternalError(f"{op} is not computed from values")


def _rank(value: Value) -> tuple[bool, Value]:
    return (isinstance(value, float) and math.isnan(value), value)


def _sum(values: Sequence[Value], type: Type) -> Value:
    numbers = [v for v in values if not isinstance(v, str)]
    if type.kind == "float":
        return round_float(_float_sum(numbers), type)
    return fit(sum(map(int, numbers)), type)


def _float_sum(numbers: Sequence[bool | int | float]) -> float:
    """The sum of floats, rounded once; infinite where it is too large for a double."""
    try:
        return math.fsum(numbers)
    except ValueError:  # both infinities
        return math.nan
    except OverflowError:  # an intermediate sum is too large; the whole may not be
        infinite = [n for n in numbers if math.isinf(n)]
        return infinite[0] if infinite else _as_float(sum(map(Fraction, numbers), Fraction()))


def _as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
