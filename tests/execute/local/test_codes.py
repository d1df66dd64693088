"""Values to codes and back."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from tidelog.execute.local.codes import Codes
from tidelog.program.arrow import arrow_type
from tidelog.program.model import Value
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type, signed, unsigned

VALUES: dict[Type, list[Value]] = {
    BOOL: [True, False],
    signed(8): [-128, -1, 0, 127],
    S64: [0, -1, 2**30 - 1, 2**30, -(2**30), -(2**30) - 1, 2**63 - 1, -(2**63)],
    unsigned(32): [0, 2**30, 2**32 - 1],
    U64: [0, 2**30, 2**63, 2**64 - 1],
    unsigned(128): [0, 2**64, 2**128 - 1],
    BIGINT: [0, -1, 10**40, -(10**40)],
    DOUBLE: [0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324],
    FLOAT: [0.0, 0.5, math.inf],
    STRING: ["", "a", "tab\tnewline\n", "käse", "NA"],
}


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_round_trip(type: Type) -> None:
    codes, values = Codes(), VALUES[type]
    cells = [codes.code(value, type) for value in values]
    assert len(set(cells)) == len(values)
    assert [codes.value(cell, type) for cell in cells] == values
    assert [math.copysign(1, v) for v in values if isinstance(v, float)] == [
        math.copysign(1, v) for c in cells if isinstance(v := codes.value(c, type), float)
    ]


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_columns_agree_with_single_values(type: Type) -> None:
    codes, values = Codes(), VALUES[type]
    shown = [str(v) for v in values] if pa.types.is_string(arrow_type(type)) else values
    column = pa.chunked_array([pa.array(shown, arrow_type(type))])
    cells = codes.from_arrow(column, type)
    assert cells.tolist() == [codes.code(value, type) for value in values]
    assert codes.to_arrow(cells, type).to_pylist() == shown


def test_every_nan_is_the_same_value() -> None:
    codes = Codes()
    odd_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    assert codes.code(math.nan, DOUBLE) == codes.code(float(odd_nan), DOUBLE)
    column = pa.chunked_array([pa.array(np.array([math.nan, odd_nan]), pa.float64(), from_pandas=False)])
    assert len(set(codes.from_arrow(column, DOUBLE).tolist())) == 1


def test_the_table_of_wide_values_grows() -> None:
    codes = Codes()
    values = np.arange(10_000, dtype=np.int64) * (1 << 40)
    assert codes.decode(codes.encode(values, S64), S64).tolist() == values.tolist()
