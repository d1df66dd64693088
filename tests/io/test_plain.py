"""A few rows of Python values: which need no conversion, and which are left to a closer look."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.io.plain import FEW, PlainRows, rows_of_table, table_of_values
from tidelog.program.functions import BIGINT_BITS
from tidelog.program.model import Column
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, UNKNOWN, Type, unsigned


class Text(str):
    """A string that is not quite one."""


@pytest.mark.parametrize(
    ("type", "value", "plain"),
    [
        (S64, 2**63 - 1, True),
        (S64, 2**63, False),
        (S64, -(2**63), True),
        (S64, True, False),
        (S64, 1.0, False),
        (unsigned(8), 255, True),
        (unsigned(8), -1, False),
        (unsigned(128), 2**128 - 1, True),
        (BIGINT, 1 - 2**BIGINT_BITS, True),
        (BIGINT, 2**BIGINT_BITS, False),
        (STRING, "é", True),
        (STRING, "\ud800", False),
        (STRING, Text("a"), False),
        (BOOL, True, True),
        (BOOL, 1, False),
        (DOUBLE, float("nan"), True),
        (DOUBLE, 1, False),
        (FLOAT, 0.5, False),
        (UNKNOWN, 1, False),
        (S64, None, False),
    ],
)
def test_values(type: Type, value: object, plain: bool) -> None:
    rows = [(value,)]
    assert PlainRows([Column("x", type)])(rows) == (rows if plain else None)


@pytest.mark.parametrize(
    "rows",
    [
        [[1, "a"]],
        [(1,)],
        [(1, "a", 2)],
        [{"x": 1, "y": "a"}],
        [(1, "a"), (2, 3)],
        iter([(1, "a")]),
        "ab",
        None,
        [(1, "a")] * (FEW + 1),
    ],
)
def test_rows_for_a_closer_look(rows: object) -> None:
    assert PlainRows([Column("x", S64), Column("y", STRING)])(rows) is None


def test_rows_are_copied() -> None:
    rows: list[Any] = [(1,), (2,)]
    kept = PlainRows([Column("x", S64)])(rows)
    rows.clear()
    assert kept == [(1,), (2,)]
    assert PlainRows([])(((),)) == [()]
    assert PlainRows([Column("x", S64)])([]) == []


def test_there_and_back() -> None:
    columns = [Column("a", BIGINT), Column("b", DOUBLE), Column("c", STRING), Column("d", BOOL)]
    rows = [(10**40, -0.0, "x", True), (-1, 2.5, "", False)]
    assert repr(list(rows_of_table(table_of_values(rows, columns), columns))) == repr(rows)
    assert list(rows_of_table(table_of_values([()], []), [])) == [()]
    assert list(rows_of_table(table_of_values([], columns), columns)) == []
