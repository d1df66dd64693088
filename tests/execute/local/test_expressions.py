"""Expressions over columns mean what `program.functions` says, failures included."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.execute.local.test_codes import VALUES
from tidelog.execute.local.codes import Codes
from tidelog.execute.local.expressions import Columns, FailedRow, to_cells
from tidelog.program.functions import FunctionFailure, evaluate
from tidelog.program.model import Apply, Const, Expr, Value, Var
from tidelog.program.types import BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type, signed

NUMBERS = [S64, U64, signed(8), DOUBLE, FLOAT]
ARITHMETIC = ["add", "sub", "mul", "div", "mod"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
CASES = [
    *((f, t, t) for t in NUMBERS for f in ARITHMETIC),
    *((f, t, BOOL) for t in [*NUMBERS, STRING] for f in COMPARISONS),
    ("concat", STRING, STRING),
]


def same(a: Value, b: Value) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and a == b


def by_columns(expr: Expr, rows: list[dict[str, Value]], types: dict[str, Type]) -> list[Value]:
    codes = Codes()
    cells = {
        name: np.array([codes.code(row[name], type) for row in rows], np.uint32)
        for name, type in types.items()
    }
    result = to_cells(Columns(cells, len(rows), codes).evaluate(expr), expr.type, codes)
    return [codes.value(cell, expr.type) for cell in result.tolist()]


@pytest.mark.parametrize(("function", "type", "result"), CASES, ids=lambda x: str(x))
def test_agreement(function: str, type: Type, result: Type) -> None:
    expr = Apply(function, (Var("x", type), Var("y", type)), result)
    rows: list[dict[str, Value]] = [{"x": x, "y": y} for x, y in itertools.product(VALUES[type], repeat=2)]
    good, bad = [], []
    for row in rows:
        try:
            good.append((row, evaluate(expr, row)))
        except FunctionFailure as failure:
            bad.append((row, str(failure)))
    types = {"x": type, "y": type}
    found = by_columns(expr, [row for row, _ in good], types) if good else []
    assert all(same(a, b) for a, (_, b) in zip(found, good, strict=True))
    for row, message in bad:
        with pytest.raises(FailedRow) as failed:
            by_columns(expr, [good[0][0], row], types)
        assert (failed.value.message, failed.value.row) == (message, 1)


def test_a_side_that_is_not_taken_is_not_evaluated() -> None:
    x = Var("x", S64)
    inverse = Apply("div", (Const(12, S64), x), S64)
    positive = Apply("gt", (x, Const(0, S64)), BOOL)
    large = Apply("gt", (inverse, Const(3, S64)), BOOL)
    rows: list[dict[str, Value]] = [{"x": value} for value in (0, 1, 3, 6)]
    guarded = Apply("if", (positive, inverse, Const(-1, S64)), S64)
    assert by_columns(guarded, rows, {"x": S64}) == [-1, 12, 4, 2]
    assert by_columns(Apply("and", (positive, large), BOOL), rows, {"x": S64}) == [False, True, True, False]
    zero = Apply("eq", (x, Const(0, S64)), BOOL)
    assert by_columns(Apply("or", (zero, large), BOOL), rows, {"x": S64}) == [True, True, True, False]
    with pytest.raises(FailedRow) as failed:
        by_columns(Apply("if", (positive, Const(0, S64), inverse), S64), rows[::-1], {"x": S64})
    assert (failed.value.message, failed.value.row) == ("division by zero", 3)
