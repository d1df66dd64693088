"""Values of scripts: what is read, what is refused and where, and how values are written."""

from __future__ import annotations

import math

import pytest

from tidelog.io.dat.errors import ScriptError
from tidelog.io.dat.items import Compound, read_item, write_record, write_value
from tidelog.io.dat.script import Script
from tidelog.io.nested import order_key
from tidelog.io.values import accept
from tidelog.program.model import Column, Value
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, Type


def item(text: str) -> Value | Compound:
    script = Script(iter(text.splitlines(keepends=True)))
    found = read_item(script).value
    assert not script.skip(), f"left over: {script.text[script.at :]}"
    return found


def plain(value: Value | Compound) -> object:
    """A value without offsets."""
    if not isinstance(value, Compound):
        return value
    parts = [plain(part.value) for part in value.parts]
    if value.fields is not None:
        return value.name, {str(f.value): p for f, p in zip(value.fields, parts, strict=True)}
    return (value.name or value.kind), parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("-5", -5),
        ("- 5", -5),
        ("1_000_000_", 1_000_000),
        ("0xabCD", 0xABCD),
        ("-0x10", -16),
        ("0xc3226515_018c", 0xC3226515018C),
        ("1.5", 1.5),
        ("-0.32", -0.32),
        ("+1.0", 1.0),
        ("32E-2", 0.32),
        ("5.", 5.0),
        (".567", 0.567),
        ("-32.0e2", -3200.0),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("true", True),
        ("false", False),
        ('""', ""),
        ('"foo"', "foo"),
        (r'"foo\nbar\t\a"', "foo\nbar\t\x07"),
        (r'"\b\f\v\r\?\'\"\\"', "\b\f\v\r?'\"\\"),
        (r'"\\a\\n"', "\\a\\n"),
        (r'"\u{394}\0"', "Δ\0"),
        ('"semi;colon # no comment, Δ"', "semi;colon # no comment, Δ"),
        ('"two\nlines"', "two\nlines"),
        ("# before\n  7 # after\n", 7),
    ],
)
def test_plain_values(text: str, expected: Value) -> None:
    found = item(text)
    assert (type(found), found) == (type(expected), expected)


def test_an_integer_may_be_longer_than_python_reads() -> None:
    assert item("9" * 5_000) == 10**5_000 - 1


def test_nan_is_read() -> None:
    found = item("NaN")
    assert isinstance(found, float) and math.isnan(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(true, false)", ("tuple", [True, False])),
        ("()", ("tuple", [])),
        ("[1, [2]]", ("array", [1, ("array", [2])])),
        ("Leaf", ("Leaf", [])),
        ("std::Some{1}", ("std::Some", [1])),
        (
            '_C{.f1 = true, .f2 = D{E, 25, "x"}}',
            ("_C", {"f1": True, "f2": ("D", [("E", []), 25, "x"])}),
        ),
    ],
)
def test_compound_values(text: str, expected: object) -> None:
    assert plain(item(text)) == expected


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("12abc", "expected a value, found `12abc`", 1),
        ("32'd10", "expected a value, found `32`", 1),
        ("1e999", "number too large for a float", 1),
        ("  *", "expected a value, found `*`", 3),
        ('  "open', "this string is not closed", 3),
        (r'"a\q"', r"unknown escape '\q'", 1),
        (r'"\u{d800}"', "there is no such character", 1),
        ("(1 2)", "expected `,` or `)`, found `2`", 4),
        ("(1,", "the script ends where a value was expected", 4),
        ("C{.x 1}", "expected `=`, found `1`", 6),
        ("C{.x = 1, 2}", "expected a field as in `.x = 1`, found `2`", 11),
        ('%"file"', "values are not read from files or from JSON here", 1),
        ("[" * 102, "values nested more than 100 deep", 102),
    ],
)
def test_values_that_cannot_be_read(text: str, message: str, column: int) -> None:
    with pytest.raises(ScriptError) as raised:
        item(text)
    problem = raised.value.diagnostic
    assert problem is not None and problem.span is not None
    assert (problem.code, problem.message) == ("TL0701", message)
    assert str(problem.span) == f"<stdin>:1:{column}"


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        (1, S64, "1"),
        (-(10**30), BIGINT, "-1000000000000000000000000000000"),
        (True, BOOL, "true"),
        (False, BOOL, "false"),
        (1.0, DOUBLE, "1"),
        (-0.0, DOUBLE, "-0.0"),
        (0.1, DOUBLE, "0.1"),
        (1e300, DOUBLE, "1" + "0" * 300),
        (1.5e-7, DOUBLE, "0.00000015"),
        (1.6666666666666667, DOUBLE, "1.6666666666666667"),
        (1.6666666269302368, FLOAT, "1.6666666"),
        (0.10000000149011612, FLOAT, "0.1"),
        (3.4028234663852886e38, FLOAT, "34028235" + "0" * 31),
        (100.0, FLOAT, "100"),
        (math.nan, DOUBLE, "NaN"),
        (math.inf, DOUBLE, "inf"),
        (-math.inf, FLOAT, "-inf"),
        ("", STRING, '""'),
        ('say "hi"\\', STRING, r'"say \"hi\"\\"'),
        ("a\nb\tc\r\x07Δ'", STRING, r'"' + "a\\nb\\tc\\r\\u{7}Δ'" + '"'),
    ],
)
def test_values_are_written_and_read_again(value: Value, type: Type, expected: str) -> None:
    assert write_value(value, type) == expected
    again = item(expected)
    if type.kind == "float":
        again = accept(again, type)  # as a column of that type would hold it
    assert repr(again) == repr(value)


def test_records() -> None:
    columns = (Column("x", S64), Column("s", STRING))
    assert write_record("R", columns, (1, "a")) == 'R{.x = 1, .s = "a"}'
    assert write_record("Empty", (), ()) == "Empty{}"


def test_order_of_rows() -> None:
    rows: list[tuple[Value, ...]] = [(math.nan,), (0.0,), (-0.0,), (-1.0,), (math.inf,)]
    assert [repr(row[0]) for row in sorted(rows, key=order_key)] == ["-1.0", "-0.0", "0.0", "inf", "nan"]
