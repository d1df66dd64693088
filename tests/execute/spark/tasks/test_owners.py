"""Owners depend on values alone, whatever codes a process has given them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from tests.running import table_of
from tidelog.execute.local.codes import Codes
from tidelog.execute.spark.tasks.owners import Owners
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type, signed, unsigned

VALUES: list[tuple[Type, list[Value]]] = [
    (BOOL, [False, True]),
    (signed(8), [-128, -1, 0, 1, 127]),
    (S64, [0, 1, -1, 2**30 - 1, 2**30, -(2**30), -(2**30) - 1, 2**63 - 1, -(2**63)]),
    (U64, [0, 1, 2**30, 2**63, 2**64 - 1]),
    (unsigned(128), [0, 1, 2**30, 2**64, 2**128 - 1]),
    (BIGINT, [0, -1, 2**30, -(2**30), 2**200, -(2**200)]),
    (FLOAT, [0.0, -0.0, 0.5, math.inf, math.nan]),
    (DOUBLE, [0.0, -0.0, 0.1, -math.inf, math.nan, 5e-324]),
    (STRING, ["", "a", "b", "ä", "a" * 1000, "1"]),
]


def owners_of(values: list[Value], type: Type, tasks: int, codes: Codes) -> list[int]:
    relation = Relation("r", (Column("x", type),))
    cells = codes.from_arrow(table_of(relation, [(v,) for v in values]).column(0), type)
    return Owners(tasks, codes).of(cells.reshape(-1, 1), (0,), (type,)).tolist()


@pytest.mark.parametrize(("type", "values"), VALUES, ids=lambda v: str(v) if isinstance(v, Type) else "")
def test_equal_values_have_the_same_owner_and_others_need_not(type: Type, values: list[Value]) -> None:
    """With so many tasks, different values that had the same owner would be a bad hash."""
    other = Codes()
    owners_of(values[::-1] * 2, type, 7, other)  # codes in another order
    expected = owners_of(values, type, 60_000, Codes())
    assert owners_of(values, type, 60_000, other) == expected
    assert len(set(expected)) == len(values)


@pytest.mark.parametrize("type", [FLOAT, DOUBLE])
def test_all_nans_are_one_value(type: Type) -> None:
    codes = Codes()
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, -1], np.int64).view(np.float64)
    column = pa.chunked_array([pa.array(bits.astype(np.float32 if type == FLOAT else np.float64))])
    cells = codes.from_arrow(column, type).reshape(-1, 1)
    assert len(set(Owners(60_000, codes).of(cells, (0,), (type,)).tolist())) == 1


def test_known_owners() -> None:
    """All processes of a run have the same version of this, but a change should be meant."""
    assert owners_of([0, 1, 2, 3, -1, 2**40], S64, 1000, Codes()) == KNOWN_NUMBERS
    assert owners_of(["", "a", "b"], STRING, 1000, Codes()) == KNOWN_STRINGS


KNOWN_NUMBERS = [0, 939, 337, 883, 853, 872]
KNOWN_STRINGS = [705, 184, 458]


@pytest.mark.parametrize("step", [1, 2, 1000, 1 << 20, 1 << 33, 1 << 40])
@pytest.mark.parametrize("tasks", [2, 3, 8, 200])
def test_regular_numbers_are_spread_evenly(step: int, tasks: int) -> None:
    found = owners_of([step * i for i in range(200 * tasks)], S64, tasks, Codes())
    counts = np.bincount(found, minlength=tasks)
    assert counts.min() >= 100 and counts.max() <= 300


def test_several_columns_count_in_order() -> None:
    codes = Codes()
    cells = np.array([[1, 2], [2, 1], [1, 2], [1, 1]], np.uint32)
    owners = Owners(60_000, codes)
    both = owners.of(cells, (0, 1), (S64, S64)).tolist()
    assert both[0] == both[2]
    assert len(set(both)) == 3
    assert owners.of(cells, (1, 0), (S64, S64)).tolist() == [both[1], both[0], both[1], both[3]]


def test_no_columns_have_one_owner() -> None:
    cells = np.arange(10, dtype=np.uint32).reshape(-1, 1)
    assert Owners(5, Codes()).of(cells, (), ()).tolist() == [0] * 10


def test_no_rows() -> None:
    for type in (S64, STRING, BIGINT, DOUBLE):
        assert len(Owners(5, Codes()).of(np.zeros((0, 1), np.uint32), (0,), (type,))) == 0
