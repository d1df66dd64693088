from __future__ import annotations

import math

import pytest

from tidelog.io.values import accept, int_text, parse_text, text_int
from tidelog.program.types import (
    BIGINT,
    BOOL,
    DOUBLE,
    FLOAT,
    S64,
    STRING,
    U64,
    UNKNOWN,
    Type,
    signed,
    unsigned,
)

LONG = 10**5000 + 7
LARGEST = 2**13_000 - 1


@pytest.mark.parametrize(
    ("text", "type", "cell"),
    [
        ("5", S64, 5),
        ("-9223372036854775808", S64, -(2**63)),
        ("+5", S64, 5),
        (" 7 ", S64, 7),
        ("007", S64, 7),
        ("0xff", S64, 255),
        ("18446744073709551615", U64, 2**64 - 1),
        ("4095", unsigned(12), 4095),
        ("true", BOOL, True),
        ("1", BOOL, True),
        ("false", BOOL, False),
        ("0", BOOL, False),
        ("+007", BIGINT, "7"),
        ("-0", BIGINT, "0"),
        ("123456789012345678901234567890", BIGINT, "123456789012345678901234567890"),
        ("-170141183460469231731687303715884105728", signed(128), "-170141183460469231731687303715884105728"),
        ("1.5", DOUBLE, 1.5),
        ("1e3", DOUBLE, 1000.0),
        (".5", DOUBLE, 0.5),
        ("-inf", DOUBLE, -math.inf),
        ("0.1", FLOAT, 0.10000000149011612),
        ("", STRING, ""),
        (" NA ", STRING, " NA "),
        ("x", UNKNOWN, "x"),
    ],
)
def test_text(text: str, type: Type, cell: object) -> None:
    found = parse_text(text, type)
    assert (found, found.__class__) == (cell, cell.__class__)


@pytest.mark.parametrize(
    ("text", "type", "reason"),
    [
        ("", S64, "is not an s64"),
        ("1.0", S64, "is not an s64"),
        ("1_000", S64, "is not an s64"),
        ("٣", S64, "is not an s64"),
        ("-0xf", S64, "is not an s64"),
        ("0xffffffffffffffff", S64, "is outside s64 (-9223372036854775808 to 9223372036854775807)"),
        ("-1", unsigned(8), "is outside u8 (0 to 255)"),
        ("4096", unsigned(12), "is outside bit<12> (0 to 4095)"),
        ("True", BOOL, "is not a bool"),
        ("2", BOOL, "is not a bool"),
        ("1_0.5", DOUBLE, "is not a double"),
        ("1e400", DOUBLE, "is too large for a double"),
        ("1e39", FLOAT, "is too large for a float"),
        ("1e5", BIGINT, "is not a bigint"),
        (int_text(LARGEST + 1), BIGINT, "is outside bigint (13,000 bits)"),
        ("-1" + "0" * 5000, BIGINT, "is outside bigint (13,000 bits)"),
        ("0x" + "f" * 4000, BIGINT, "is outside bigint (13,000 bits)"),
        ("a\udcff", STRING, "is not valid UTF-8 text"),
    ],
)
def test_wrong_text(text: str, type: Type, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_text(text, type)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("value", "type", "cell"),
    [
        (5, S64, 5),
        (True, BOOL, True),
        (5, DOUBLE, 5.0),
        (2**53 + 1, DOUBLE, 9007199254740992.0),
        (0.1, FLOAT, 0.10000000149011612),
        (math.inf, FLOAT, math.inf),
        (-(10**30), BIGINT, "-" + "1" + "0" * 30),
        (LARGEST, BIGINT, str(LARGEST)),
        ("x", STRING, "x"),
    ],
)
def test_python_value(value: object, type: Type, cell: object) -> None:
    found = accept(value, type)
    assert (found, found.__class__) == (cell, cell.__class__)


@pytest.mark.parametrize(
    ("value", "type", "reason"),
    [
        (True, S64, "is not an s64"),
        (True, DOUBLE, "is not a double"),
        (1.0, S64, "is not an s64"),
        (1, BOOL, "is not a bool"),
        ("1", S64, "is not an s64"),
        (None, STRING, "is not a string"),
        (b"x", STRING, "is not a string"),
        (2**63, S64, "is outside s64 (-9223372036854775808 to 9223372036854775807)"),
        (10**400, DOUBLE, "is too large for a double"),
        (1e300, FLOAT, "is too large for a float"),
        ("5", BIGINT, "is not a bigint"),
        (-LARGEST - 1, BIGINT, "is outside bigint (13,000 bits)"),
        pytest.param(LONG, BIGINT, "is outside bigint (13,000 bits)", id="long"),
        (None, UNKNOWN, "is not a bool, a number or a string"),
    ],
)
def test_wrong_python_value(value: object, type: Type, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        accept(value, type)
    assert str(caught.value) == reason


def test_integers_longer_than_python_prints() -> None:
    text = int_text(LONG)
    assert (len(text), text[:2], text[-2:]) == (5001, "10", "07")
    assert text_int(text) == LONG
    assert parse_text(str(-LARGEST), BIGINT) == str(-LARGEST)


def test_numpy_scalars_are_values() -> None:
    import numpy as np

    assert accept(np.int32(5), S64) == 5
    assert accept(np.bool_(True), BOOL) is True
    assert accept(np.float32(0.5), DOUBLE) == 0.5
    assert accept(np.str_("x"), STRING) == "x"
