"""Rows given from Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tidelog.io.rows import table_of_rows
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Column, Relation
from tidelog.program.types import UNKNOWN, parse_type
from tidelog.syntax.errors import DataError

TOO_LONG = "an integer of 20,001 bits is outside bigint (13,000 bits)"
SO_LONG = "an integer of 19,999 bits is outside bigint (13,000 bits)"


def columns(types: str) -> tuple[Column, ...]:
    found = [UNKNOWN if t == "?" else parse_type(t) for t in types.split()]
    return tuple(Column(f"x{i}", t) for i, t in enumerate(found) if t is not None)


def taken(types: str, rows: object) -> list[tuple[object, ...]]:
    table, found = table_of_rows("r", columns(types), rows)
    assert table.schema == arrow_schema(Relation("r", found))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def error(types: str, rows: object) -> str:
    with pytest.raises(DataError) as caught:
        taken(types, rows)
    return str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "a"), (2, "b")],
        ((1, "a"), (2, "b")),
        [[1, "a"], (2, "b")],
        [{"x0": 1, "x1": "a"}, {"x1": "b", "x0": 2}],
        [{"x0": 1, "x1": "a"}, (2, "b")],
        {(1, "a"): None, (2, "b"): None}.keys(),
        pa.table({"x0": [1, 2], "x1": ["a", "b"]}),
        pa.table({"x1": ["a", "b"], "x0": [1, 2]}),
        pa.table({"p": [1, 2], "q": ["a", "b"]}),
        pa.table({"x0": pa.array([1, 2], pa.uint8()), "x1": pa.array(["a", "b"], pa.large_string())}),
        pa.table({"x0": [1, 2], "x1": pa.array(["a", "b"]).dictionary_encode()}),
        pa.record_batch({"x0": [1, 2], "x1": ["a", "b"]}),
    ],
)
def test_collections(rows: object) -> None:
    assert taken("s64 string", rows) == [(1, "a"), (2, "b")]


def test_generator() -> None:
    assert taken("s64 s64", ((i, i * i) for i in range(3))) == [(0, 0), (1, 1), (2, 4)]


def test_nothing() -> None:
    assert taken("s64 string", []) == []
    assert taken("", []) == []


def test_no_columns() -> None:
    assert taken("", [(), ()]) == [(True,)]


def test_numpy() -> None:
    assert taken("s64 s64", np.array([[1, 2], [3, 4]])) == [(1, 2), (3, 4)]
    assert taken("s64 double", [(np.int8(1), np.float32(0.5))]) == [(1, 0.5)]
    assert taken("s64 s64", list(np.array([[1, 2]]))) == [(1, 2)]


def test_every_type() -> None:
    row = (True, -128, 2**64 - 1, 10**30, -(2**127), 1, 2, "é")
    assert taken("bool s8 u64 bigint s128 float double string", [row]) == [
        (True, -128, 2**64 - 1, str(10**30), str(-(2**127)), 1.0, 2.0, "é")
    ]


def test_integers_of_any_size_are_floats() -> None:
    assert taken("double", [(1,), (2.5,), (2**60 + 1,)]) == [(1.0,), (2.5,), (float(2**60),)]
    assert taken("double", pa.table({"a": [2**60 + 1]})) == [(float(2**60),)]


def test_big_integers_from_arrow_are_text() -> None:
    assert taken("bigint", pa.table({"a": ["12345678901234567890", "+5"]})) == [
        ("12345678901234567890",),
        ("5",),
    ]
    assert taken("bigint", pa.table({"a": [5]})) == [("5",)]
    assert taken("u128", pa.table({"a": ["5"]})) == [("5",)]
    assert error("bigint", pa.table({"a": ["5", "x"]})).splitlines()[1] == (
        "  --> row 2: column 1 (x0): 'x' is not a bigint"
    )


def test_wrong_rows_are_all_named() -> None:
    rows = [(1, "a"), (True, "b"), (1.0, "c"), ("2", "d"), (None, "e"), (2**63, "f"), (7, None)]
    assert error("s64 string", rows) == (
        "error[TL0504]: cannot insert into r: 6 wrong rows\n"
        "  --> row 2: column 1 (x0): True is not an s64\n"
        "  --> row 3: column 1 (x0): 1.0 is not an s64\n"
        "  --> row 4: column 1 (x0): '2' is not an s64\n"
        "  --> row 5: column 1 (x0): None is not an s64\n"
        "  --> row 6: column 1 (x0): 9223372036854775808 is outside s64 "
        "(-9223372036854775808 to 9223372036854775807)\n"
        "  --> row 7: column 2 (x1): None is not a string"
    )


@pytest.mark.parametrize(
    ("types", "rows", "message"),
    [
        ("s64 s64", [(1, 2), (3,)], "row 2: 1 column instead of 2 (x0: s64, x1: s64)"),
        ("s64 s64", [(1, 2, 3)], "row 1: 3 columns instead of 2 (x0: s64, x1: s64)"),
        ("s64 s64", [{"x0": 1}], "row 1: no value for x1"),
        ("s64", [{"x0": 1, "y": 2}], "row 1: no column is named y"),
        ("bool", [(1,)], "row 1: column 1 (x0): 1 is not a bool"),
        ("double", [(True,)], "row 1: column 1 (x0): True is not a double"),
        ("string", [("\ud800",)], "row 1: column 1 (x0): '\\ud800' is not valid UTF-8 text"),
        ("u8", [(256,)], "row 1: column 1 (x0): 256 is outside u8 (0 to 255)"),
        ("bit<12>", [(4096,)], "row 1: column 1 (x0): 4096 is outside bit<12> (0 to 4095)"),
        ("float", [(1e300,)], "row 1: column 1 (x0): 1e+300 is too large for a float"),
        ("float", pa.table({"a": [1e300]}), "row 1: column 1 (x0): 1e+300 is too large for a float"),
        ("s64", pa.table({"a": [1, None]}), "row 2: column 1 (x0): None is not an s64"),
        ("s64", pa.table({"a": [1.0]}), "row 1: column 1 (x0): 1.0 is not an s64"),
        ("s64", pa.table({"a": [True]}), "row 1: column 1 (x0): True is not an s64"),
        ("u8", pa.table({"a": [1, -1]}), "row 2: column 1 (x0): -1 is outside u8 (0 to 255)"),
        ("bit<12>", pa.table({"a": [4096]}), "row 1: column 1 (x0): 4096 is outside bit<12> (0 to 4095)"),
        ("bigint", [(1 << 20_000,)], f"row 1: column 1 (x0): {TOO_LONG}"),
        ("?", [(7,), (1 << 20_000,)], f"row 2: column 1 (x0): {TOO_LONG}"),
        ("bigint", pa.table({"a": ["5", "1" + "0" * 6020]}), f"row 2: column 1 (x0): {SO_LONG}"),
        ("?", [(1,), ("a",)], "row 2: column 1 (x0): 'a' is not an s64"),
        ("?", [(None,)], "row 1: column 1 (x0): None is not a bool, a number or a string"),
    ],
)
def test_wrong_row(types: str, rows: object, message: str) -> None:
    assert error(types, rows) == f"error[TL0504]: cannot insert into r: 1 wrong row\n  --> {message}"


@pytest.mark.parametrize("row", ["ab", 5, None])
def test_not_a_row(row: object) -> None:
    assert error("string string", [("a", "b"), row]) == (
        "error[TL0504]: cannot insert into r: 1 wrong row\n"
        f"  --> row 2: {row!r} is not a row\n"
        "  = hint: a row is a tuple, as in (x0, x1)"
    )


@pytest.mark.parametrize("rows", ["ab", 5, {"x0": [1]}, None])
def test_not_rows(rows: object) -> None:
    assert error("s64", rows) == (
        f"error[TL0504]: cannot insert into r: {rows!r} is not a collection of rows\n"
        "  = hint: give a list of tuples, as in [(1, 2), (2, 3)], or a table"
    )


def test_one_value_is_no_row() -> None:
    assert error("s64", [5]).endswith("  = hint: a row is a tuple, as in (x0,)")


def test_a_frame_that_has_no_rows_yet() -> None:
    assert error("s64", pl.LazyFrame({"x0": [1]})) == (
        "error[TL0504]: cannot insert into r: a LazyFrame is not a collection of rows\n"
        "  = hint: its rows are there after `.collect()`"
    )


@pytest.mark.parametrize("other", ["y", "x1"])
def test_a_table_with_some_of_the_names(other: str) -> None:
    with pytest.raises(DataError) as caught:
        table_of_rows("r", columns("s64 s64"), pa.table([[1], [2]], names=["x1", other]))
    assert str(caught.value) == (
        "error[TL0504]: cannot insert into r: the names match 1 of 2 columns only\n"
        f"  = note: the columns given are x1, {other}\n"
        "  = note: the columns are x0, x1\n"
        "  = hint: give all of them these names, or none of them to go by position"
    )


def test_table_with_too_many_columns() -> None:
    assert error("s64", pa.table({"a": [1], "b": [2]})) == (
        "error[TL0504]: cannot insert into r: 2 columns instead of 1 (x0: s64)\n"
        "  = note: the columns given are a, b"
    )


@pytest.mark.parametrize(
    ("rows", "types"),
    [
        ([(1, 1.5, "a", True)], ["s64", "double", "string", "bool"]),
        ([(1,), (2.5,)], ["double"]),
        ([(2**63,), (1,)], ["bigint"]),
        ([(np.int32(1), np.float32(1), np.bool_(True))], ["s64", "double", "bool"]),
        (pa.table({"a": pa.array([1], pa.int8()), "b": ["x"]}), ["s64", "string"]),
        (pa.table({"a": pa.array([1], pa.uint64()), "b": pa.array([1.0], pa.float32())}), ["u64", "double"]),
    ],
)
def test_types_from_rows(rows: object, types: list[str]) -> None:
    table, found = table_of_rows("r", None, rows)
    assert [str(column.type) for column in found] == types
    assert [column.name for column in found] == [f"c{i}" for i in range(len(types))]
    assert table.schema == arrow_schema(Relation("r", found))


def frames() -> list[Callable[[dict[str, list[object]]], object]]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return [pandas.DataFrame, lambda data: polars.DataFrame(data, strict=False)]


def test_data_frames() -> None:
    for frame in frames():
        assert taken("s64 string", frame({"x0": [1, 2], "x1": ["a", "b"]})) == [(1, "a"), (2, "b")]
        assert taken("s64 string", frame({"x1": ["a"], "x0": [1]})) == [(1, "a")]
        assert taken("s64 string", frame({"u": [1], "v": ["a"]})) == [(1, "a")]
        assert taken("s64 string", frame({"x0": [], "x1": []})) == []
        assert error("s64", frame({"x0": [1.5]})).endswith("row 1: column 1 (x0): 1.5 is not an s64")
        assert error("string", frame({"x0": ["a", None]})).endswith(
            "row 2: column 1 (x0): None is not a string"
        )


def test_pandas_with_mixed_objects() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x0": pandas.Series([1, "a", 2], dtype=object)})
    assert error("s64", frame).endswith("row 2: column 1 (x0): 'a' is not an s64")
    long = pandas.DataFrame({"x0": pandas.Series([10**30, 1], dtype=object)})
    assert taken("bigint", long) == [(str(10**30),), ("1",)]


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (pd.Series([1, 2]), "one column (pandas Series)"),
        (pd.Index([1, 2]), "one column (pandas Index)"),
        (pl.Series([1, 2]), "one column (polars Series)"),
        (pa.array([1, 2]), "one column (pyarrow Int64Array)"),
        (pa.chunked_array([[1, 2]]), "one column (pyarrow ChunkedArray)"),
    ],
)
def test_a_column_is_not_rows(column: object, what: str) -> None:
    for found in (columns("s64 s64"), columns("s64"), None):
        with pytest.raises(DataError) as caught:
            table_of_rows("E", found, column)
        assert str(caught.value) == (
            f"error[TL0504]: cannot insert into E: {what} is not a collection of rows\n"
            "  = hint: give a list of tuples, as in [(1, 2), (2, 3)], or a table"
        )
