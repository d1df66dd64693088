"""Aggregates that Python workers compute; like `cells`, without anything of Spark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from tidelog.execute.spark.cells import decode, encode
from tidelog.program.functions import FunctionFailure, fit, round_float
from tidelog.program.model import Aggregation, Value
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa


def aggregate_lists(op: Aggregation, source: Type, result: Type, columns: Sequence[pa.Array]) -> pa.Array:
    """The aggregate of each list of values in the one column; None where it does not fit its type."""
    (lists,) = columns
    flat = decode(lists.flatten(), source)
    found: list[Value | None] = []
    end = 0
    for values in lists:
        start, end = end, end + len(values)
        try:
            found.append(_aggregate(op, cast("list[int] | list[float]", flat[start:end]), result))
        except FunctionFailure:
            found.append(None)
    return encode(found, result)


def mean_of_sums(result: Type, columns: Sequence[pa.Array]) -> pa.Array:
    """The means of integers, from a column of exact sums and one of counts."""
    pairs = zip(*(column.to_pylist() for column in columns), strict=True)
    return encode([round_float(_as_float(Fraction(int(s), n)), result) for s, n in pairs], result)


def _aggregate(op: Aggregation, values: Sequence[int] | Sequence[float], result: Type) -> Value:
    match op:
        case Aggregation.MIN:
            return min(values)
        case Aggregation.MAX:
            return max(values)
        case Aggregation.SUM if result.is_integral:
            return fit(sum(map(int, values)), result)
        case Aggregation.SUM:
            return round_float(exact_sum(values), result)
        case _ if all(isinstance(value, int) for value in values):
            return round_float(_as_float(Fraction(sum(map(int, values)), len(values))), result)
        case _:
            return round_float(exact_sum(values) / len(values), result)


def exact_sum(numbers: Sequence[int] | Sequence[float]) -> float:
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
