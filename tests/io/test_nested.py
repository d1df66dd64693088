"""Arrays and structs: one text for one value, and what users get is what they gave."""

from __future__ import annotations

import pickle
from collections import namedtuple
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidelog.io.columnar import read_table, write_table
from tidelog.io.nested import Struct, outward_rows, outward_table, text_of, value_of
from tidelog.io.rows import table_of_rows
from tidelog.io.sort import sorted_table
from tidelog.io.values import parse_text
from tidelog.program.model import Column, Relation
from tidelog.program.types import Type, parse_type
from tidelog.session.database import Database
from tidelog.syntax.errors import DataError

Point = namedtuple("Point", "y x")
Names = namedtuple("Names", "names x")


def type_of(name: str) -> Type:
    found = parse_type(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("[s64]", [1, -2], "[1,-2]"),
        ("[s64]", (), "[]"),
        ("[s64]", np.array([3, 4]), "[3,4]"),
        ("[double]", [1, 0.1, -0.0], "[1.0,0.1,-0.0]"),
        ("[float]", [0.1], "[0.10000000149011612]"),
        ("[double]", ["NaN", float("inf"), float("nan")], "[NaN,Infinity,NaN]"),
        ("[bigint]", [10**30, "7", Decimal(8)], '["1000000000000000000000000000000","7","8"]'),
        ("[u64]", [Decimal(2**64 - 1)], "[18446744073709551615]"),
        ("[[string]]", [['é\n"', "\\"], []], '[["é\\n\\"","\\\\"],[]]'),
        ("{x: s64, y: s64}", {"y": 2, "x": 1}, '{"x":1,"y":2}'),
        ("{x: s64, y: s64}", Point(2, 1), '{"x":1,"y":2}'),
        ("{x: s64, y: s64}", (1, 2), '{"x":1,"y":2}'),
        ("{x: s64, y: s64}", Struct(["y", "x"], [2, 1]), '{"x":1,"y":2}'),
        ('{"a b": [bool]}', {"a b": [True]}, '{"a b":[true]}'),
        ("{x: s64, names: [string]}", Names(["x", "names"], 1), '{"x":1,"names":["x","names"]}'),
        ("{x: s64, y: [double]}", '{"y": [1], "x": 2}', '{"x":2,"y":[1.0]}'),
    ],
)
def test_the_text_of_a_value(name: str, given: object, text: str) -> None:
    type = type_of(name)
    assert text_of(given, type) == text
    assert text_of(value_of(text, type), type) == text


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("[s64]", 1, "is not an array [s64]"),
        ("[s64]", None, "is not an array [s64]"),
        ("[s64]", "12", "is not an array [s64]"),
        ("[s64]", {"x": 1}, "is not an array [s64]"),
        ("[s64]", Struct(["x"], [1]), "is not an array [s64]"),
        ("[s64]", [1, None], "is not an array [s64]: [1] is None, which is not an s64"),
        ("[u8]", [1, 256], "is not an array [u8]: [1] is 256, which is outside u8 (0 to 255)"),
        ("[s64]", [True], "is not an array [s64]: [0] is True, which is not an s64"),
        ("[[s64]]", [[1], [2, "x"]], "is not an array [[s64]]: [1][1] is 'x', which is not an s64"),
        ("{x: s64}", {"y": 1}, "is not a struct {x: s64}: it has no x, and it has y too"),
        ("{x: s64}", {"x": 1, "y": 1}, "is not a struct {x: s64}: it has y too"),
        ("{x: s64}", '{"x": 1, "x": 2}', "is not a struct {x: s64} in JSON"),
        ("[s64]", [Decimal("1.5")], "is not an array [s64]: [0] is Decimal('1.5'), which is not an s64"),
        (
            "[double]",
            [Decimal("sNaN")],
            "is not an array [double]: [0] is Decimal('sNaN'), which is not a double",
        ),
        ("{x: s64}", (1, 2), "is not a struct {x: s64}"),
        (
            "{x: {y: [s64]}}",
            {"x": {"y": [None]}},
            "is not a struct {x: {y: [s64]}}: x.y[0] is None, which is not an s64",
        ),
    ],
)
def test_what_does_not_fit(name: str, given: object, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        text_of(given, type_of(name))
    assert str(raised.value) == problem


def test_a_field_of_text_is_json() -> None:
    assert (
        parse_text('{"y": [1, 2.5],\n "x": "a"}', type_of("{x: string, y: [double]}"))
        == '{"x":"a","y":[1.0,2.5]}'
    )
    for text in ("", "[1", "[1] 2", "{'x': 1}", "[" * 100_000):
        with pytest.raises(ValueError, match=r"is not an array \[s64\] in JSON"):
            parse_text(text, type_of("[s64]"))


def test_a_struct_is_a_tuple_with_names() -> None:
    made: Any = Struct(["x", "count"], [1, (2, 3)])
    assert made == (1, (2, 3))
    assert hash(made) == hash((1, (2, 3)))
    assert (made.x, made["x"], made[0], made["count"], made[-1:]) == (1, 1, 1, (2, 3), ((2, 3),))
    assert made.asdict() == {"x": 1, "count": (2, 3)}
    assert repr(made) == "{x: 1, count: (2, 3)}"
    assert repr(Struct(["", "a b"], [1, 2])) == '{"": 1, "a b": 2}'
    again = pickle.loads(pickle.dumps(made))
    assert (again, again.x) == (made, 1)
    with pytest.raises(AttributeError, match="no field 'z'"):
        made.z  # noqa: B018
    with pytest.raises(KeyError):
        made["z"]


ROWS = [
    (2, {"at": [float("nan")], "tag": "b"}, [10**25]),
    (1, {"at": [0.0, 1.0], "tag": "b"}, []),
    (1, {"at": [-0.0, 2.0], "tag": "b"}, [9, 10]),
    (1, {"at": [-0.0, 2.0], "tag": "b"}, [10]),
    (1, {"at": [], "tag": "c"}, [10]),
]


def test_arrow_tables_have_lists_and_structs() -> None:
    table, columns = table_of_rows("r", None, ROWS)
    named = Relation("r", columns)
    outward = outward_table(table, named)
    assert outward.schema.field(1).type == pa.struct([("at", pa.list_(pa.float64())), ("tag", pa.string())])
    assert outward.schema.field(2).type == pa.list_(pa.string())  # of big integers, as columns of these are
    back, same = table_of_rows("r", columns, outward)
    assert (back, same) == (table, columns)
    inferred = table_of_rows("r", None, outward.select([0, 1]))[1]
    assert [c.type for c in inferred] == [c.type for c in columns[:2]]


def test_types_that_values_tell() -> None:
    def told(*values: object) -> list[str]:
        return [str(column.type) for column in table_of_rows("r", None, [values])[1]]

    assert told([1], [[True]], {"x": [1.5]}) == ["[s64]", "[[bool]]", "{x: [double]}"]
    assert told(np.array([1, 2]), np.array([1])) == ["[s64]", "[s64]"]
    assert told(Point(1, "a"), Struct(["x"], [(1, 2)])) == ["{y: s64, x: string}", "{x: [s64]}"]
    untold: list[object] = [[], {}, {1: 2}, [{}]]
    for value in untold:
        with pytest.raises(DataError, match="does not tell the types of its parts: declare the relation"):
            told(value)


def test_text_files_are_read_value_by_value(tmp_path: Path) -> None:
    """However the JSON of a value is written; and what is none has its line."""
    (tmp_path / "r.facts").write_text("1\t[1,2]\n2\t[1, 2]\n3\t[ 1,2]\n", encoding="utf-8")
    with Database(".decl r(i: number, x: [number])\n.input r\n.decl s(x: [number])\ns(x) :- r(_, x).") as db:
        db.load(tmp_path)
        assert list(db["s"]) == [((1, 2),)]
        (tmp_path / "r.facts").write_text("4\t[4]\n5\tgarbage\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"r\.facts:2: .*'garbage' is not an array \[s64\] in JSON"):
            db.load(tmp_path)


def test_sorted_part_by_part() -> None:
    table, columns = table_of_rows("r", None, ROWS)
    rows = list(outward_rows(sorted_table(table, columns), columns))
    assert [str(row) for row in rows] == [
        "(1, {at: (), tag: 'c'}, (10,))",
        "(1, {at: (-0.0, 2.0), tag: 'b'}, (9, 10))",
        "(1, {at: (-0.0, 2.0), tag: 'b'}, (10,))",
        "(1, {at: (0.0, 1.0), tag: 'b'}, ())",
        "(2, {at: (nan,), tag: 'b'}, (10000000000000000000000000,))",
    ]


def test_unsigned_integers_in_orc(tmp_path: Path) -> None:
    named = Relation("r", (Column("a", type_of("[u8]")), Column("b", type_of("{x: [u64]}"))))
    table, columns = table_of_rows("r", named.columns, [([255], {"x": [2**64 - 1]})])
    write_table(table, named, "orc", tmp_path / "file")
    assert read_table(named, "orc", tmp_path / "file") == (table, columns)


@pytest.mark.parametrize("format", ["parquet", "orc", "json"])
def test_files_have_lists_and_structs(format: str, tmp_path: Path) -> None:
    table, columns = table_of_rows("r", None, ROWS)
    named = Relation("r", columns)
    write_table(table, named, format, tmp_path / "file")
    back, same = read_table(named, format, tmp_path / "file")
    assert same == columns
    assert back == sorted_table(table, columns)
