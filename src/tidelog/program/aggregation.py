"""What aggregates mean: the value of a group, from the values of its rows.

Results do not depend on the order of the rows: integers are added exactly and
checked once, floats are added as if exactly and rounded once. Among floats NaN
counts as larger than every number, and -0.0 as smaller than 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tidelog.program.functions import fit, round_float
from tidelog.program.model import Aggregation, Value
from tidelog.program.types import Type
from tidelog.syntax.errors import InternalError


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


def _rank(value: Value) -> tuple[bool, Value, float]:
    if isinstance(value, float):
        return (math.isnan(value), value, math.copysign(1.0, value))
    return (False, value, 1.0)


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
