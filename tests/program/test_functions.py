"""The meaning of functions, at the edges."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.program.functions import FUNCTIONS, FunctionFailure, can_cast, can_fail, evaluate
from tidelog.program.model import Apply, Const, Value, Var
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type, signed, unsigned

S8, U8 = signed(8), unsigned(8)
MAX, MIN = 2**63 - 1, -(2**63)


def call(function: str, type: Type, *args: tuple[Value, Type]) -> Apply:
    return Apply(function, tuple(Const(v, t) for v, t in args), type)


def of(function: str, type: Type, *args: Value) -> Value:
    """A function whose arguments have the type of its result."""
    return evaluate(call(function, type, *((a, type) for a in args)), {})


def fails(function: str, type: Type, *args: Value) -> str:
    with pytest.raises(FunctionFailure) as raised:
        of(function, type, *args)
    return str(raised.value)


@pytest.mark.parametrize(
    ("function", "type", "args", "result"),
    [
        ("add", S64, (MAX, -1), MAX - 1),
        ("sub", U8, (5, 5), 0),
        ("mul", BIGINT, (10**30, 10**30), 10**60),
        ("div", S64, (7, -2), -3),
        ("div", S64, (-7, 2), -3),
        ("div", S64, (-7, -2), 3),
        ("mod", S64, (7, -2), 1),
        ("mod", S64, (-7, 2), -1),
        ("mod", S64, (MIN, -1), 0),
        ("neg", U8, (0,), 0),
        ("abs", S8, (-127,), 127),
        ("pow", S64, (2, 62), 2**62),
        ("pow", S64, (-1, 10**15), 1),
        ("pow", S64, (-1, 10**15 + 1), -1),
        ("pow", S64, (0, 0), 1),
        ("pow", S64, (0, 10**18), 0),
        ("band", U8, (12, 10), 8),
        ("bor", U8, (12, 10), 14),
        ("bxor", U8, (12, 10), 6),
        ("bnot", U8, (1,), 254),
        ("bnot", S8, (1,), -2),
        ("shl", U8, (1, 7), 128),
        ("shl", S64, (0, 10**12), 0),
        ("shr", S64, (-8, 1), -4),
        ("shr", S64, (-8, 10**12), -1),
        ("shr", BIGINT, (1 << 100, 99), 2),
        ("min", S64, (3, 1, 2), 1),
        ("max", STRING, ("a", "b"), "b"),
        ("div", DOUBLE, (1.0, 0.0), math.inf),
        ("div", DOUBLE, (1.0, -0.0), -math.inf),
        ("div", DOUBLE, (-1.0, 0.0), -math.inf),
        ("pow", DOUBLE, (10.0, 400.0), math.inf),
        ("pow", DOUBLE, (-10.0, 401.0), -math.inf),
        ("pow", DOUBLE, (0.0, -1.0), math.inf),
        ("pow", DOUBLE, (-0.0, -1.0), -math.inf),
        ("mod", DOUBLE, (-7.5, 2.0), -1.5),
        ("add", FLOAT, (0.10000000149011612, 0.20000000298023224), 0.30000001192092896),
        ("mul", FLOAT, (3e38, 10.0), math.inf),
        ("concat", STRING, ("a", "b"), "ab"),
        ("lower", STRING, ("ÄB",), "äb"),
        ("upper", STRING, ("äb",), "ÄB"),
        ("trim", STRING, ("\t a b\n",), "a b"),
        ("replace", STRING, ("aXbX", "X", "--"), "a--b--"),
        ("reverse", STRING, ("abc",), "cba"),
    ],
)
def test_value(function: str, type: Type, args: tuple[Value, ...], result: Value) -> None:
    assert repr(of(function, type, *args)) == repr(result)


@pytest.mark.parametrize(
    ("function", "type", "args", "message"),
    [
        ("add", S64, (MAX, 1), "integer overflow"),
        ("sub", U8, (0, 1), "integer overflow"),
        ("mul", S64, (2**32, 2**31), "integer overflow"),
        ("div", S64, (MIN, -1), "integer overflow"),
        ("div", S64, (1, 0), "division by zero"),
        ("mod", S64, (1, 0), "division by zero"),
        ("neg", S8, (-128,), "integer overflow"),
        ("neg", U8, (1,), "integer overflow"),
        ("abs", S8, (-128,), "integer overflow"),
        ("pow", S64, (2, 63), "integer overflow"),
        ("pow", BIGINT, (2, 10**12), "integer overflow"),
        ("pow", S64, (2, -1), "negative exponent"),
        ("shl", U8, (1, 8), "integer overflow"),
        ("shl", BIGINT, (1, 10**12), "integer overflow"),
        ("shl", S64, (1, -1), "negative shift"),
        ("shr", S64, (1, -1), "negative shift"),
    ],
)
def test_failure(function: str, type: Type, args: tuple[Value, ...], message: str) -> None:
    assert fails(function, type, *args) == message


def test_nan() -> None:
    assert math.isnan(float(of("div", DOUBLE, 0.0, 0.0)))
    assert math.isnan(float(of("mod", DOUBLE, 1.0, 0.0)))
    assert math.isnan(float(of("pow", DOUBLE, -2.0, 0.5)))
    assert math.isnan(float(of("min", DOUBLE, 1.0, math.nan)))
    assert evaluate(call("eq", BOOL, (math.nan, DOUBLE), (math.nan, DOUBLE)), {}) is False


@pytest.mark.parametrize(
    ("start", "length", "result"),
    [(0, 2, "ab"), (1, 9, "bcd"), (4, 1, ""), (9, 1, ""), (-1, 2, ""), (1, -1, ""), (2, 0, "")],
)
def test_substring(start: int, length: int, result: str) -> None:
    assert evaluate(call("substring", STRING, ("abcd", STRING), (start, S64), (length, S64)), {}) == result


def test_strings_to_other_types() -> None:
    assert evaluate(call("length", U64, ("äöü", STRING)), {}) == 3
    assert evaluate(call("contains", BOOL, ("whole", STRING), ("hol", STRING)), {}) is True
    assert evaluate(call("starts_with", BOOL, ("whole", STRING), ("wh", STRING)), {}) is True
    assert evaluate(call("ends_with", BOOL, ("whole", STRING), ("wh", STRING)), {}) is False
    assert evaluate(call("matches", BOOL, ("a.*c", STRING), ("abc", STRING)), {}) is True
    assert evaluate(call("matches", BOOL, ("b", STRING), ("abc", STRING)), {}) is False
    assert evaluate(call("to_number", S64, ("-12", STRING)), {}) == -12


@pytest.mark.parametrize("text", ["", "x", "1.5", " 1", "1_0", "٣", "+", "0x1"])
def test_text_that_is_no_number(text: str) -> None:
    with pytest.raises(FunctionFailure, match=r"^not a number$"):
        evaluate(call("to_number", S64, (text, STRING)), {})


def test_number_too_long() -> None:
    for type in (S64, BIGINT):
        with pytest.raises(FunctionFailure, match=r"^integer overflow$"):
            evaluate(call("cast", type, ("9" * 5_000, STRING)), {})


def test_bad_pattern() -> None:
    with pytest.raises(FunctionFailure, match=r"^not a regular expression$"):
        evaluate(call("matches", BOOL, ("(", STRING), ("a", STRING)), {})


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (200, S64, U8, 200),
        (True, BOOL, S64, 1),
        (2.9, DOUBLE, S64, 2),
        (-2.9, DOUBLE, S64, -2),
        (0.1, DOUBLE, FLOAT, 0.10000000149011612),
        (1e300, DOUBLE, FLOAT, math.inf),
        (3, S64, DOUBLE, 3.0),
        (10**400, BIGINT, DOUBLE, math.inf),
        ("17", STRING, U8, 17),
        ("1e3", STRING, DOUBLE, 1000.0),
        (17, S64, STRING, "17"),
        (0.10000000149011612, FLOAT, STRING, "0.1"),
        (0.1, DOUBLE, STRING, "0.1"),
        (False, BOOL, STRING, "false"),
        (math.nan, DOUBLE, STRING, "nan"),
    ],
)
def test_cast(value: Value, source: Type, target: Type, result: Value) -> None:
    node = call("cast", target, (value, source))
    assert repr(evaluate(node, {})) == repr(result)
    assert can_cast(source, target)


@pytest.mark.parametrize(
    ("value", "source", "target", "message"),
    [
        (256, S64, U8, "cast out of range"),
        (-1, S64, U64, "cast out of range"),
        (1e30, DOUBLE, S64, "cast out of range"),
        (math.nan, DOUBLE, S64, "cast out of range"),
        (math.inf, DOUBLE, BIGINT, "cast out of range"),
        ("x", STRING, S64, "not a number"),
        ("1_0.0", STRING, DOUBLE, "not a number"),
        ("256", STRING, U8, "integer overflow"),
    ],
)
def test_cast_failure(value: Value, source: Type, target: Type, message: str) -> None:
    node = call("cast", target, (value, source))
    assert can_fail(node)
    with pytest.raises(FunctionFailure) as raised:
        evaluate(node, {})
    assert str(raised.value) == message


def test_lazy() -> None:
    bad = call("eq", BOOL, (1, S64), (1, S64))
    bad = Apply("eq", (call("div", S64, (1, S64), (0, S64)), Const(1, S64)), BOOL)
    yes, no = Const(True, BOOL), Const(False, BOOL)
    assert evaluate(Apply("and", (no, bad), BOOL), {}) is False
    assert evaluate(Apply("or", (yes, bad), BOOL), {}) is True
    assert evaluate(Apply("if", (Var("c", BOOL), yes, bad), BOOL), {"c": True}) is True
    with pytest.raises(FunctionFailure):
        evaluate(Apply("if", (Var("c", BOOL), yes, bad), BOOL), {"c": False})


@pytest.mark.parametrize(
    ("node", "result"),
    [
        (call("add", S64, (1, S64), (1, S64)), True),
        (call("add", DOUBLE, (1.0, DOUBLE), (1.0, DOUBLE)), False),
        (call("eq", BOOL, (1, S64), (1, S64)), False),
        (call("cast", S64, (1, U8)), False),
        (call("cast", U8, (1, S64)), True),
        (call("cast", BIGINT, (1, S64)), False),
        (call("cast", FLOAT, (1, S64)), False),
        (call("matches", BOOL, ("a+", STRING), ("a", STRING)), False),
        (call("matches", BOOL, ("(", STRING), ("a", STRING)), True),
        (Apply("eq", (call("div", S64, (1, S64), (2, S64)), Const(1, S64)), BOOL), True),
        (Var("x", S64), False),
    ],
)
def test_can_fail(node: Apply | Var, result: bool) -> None:
    assert can_fail(node) is result


NUMBERS = st.integers(-(2**70), 2**70)


@given(st.sampled_from(["add", "sub", "mul", "div", "mod", "band", "bor", "bxor"]), NUMBERS, NUMBERS)
def test_no_integer_leaves_its_type(function: str, a: int, b: int) -> None:
    for type in (S8, U8, S64, U64):
        low, high = type.bounds()
        x, y = max(low, min(a, high)), max(low, min(b, high))
        try:
            result = of(function, type, x, y)
        except FunctionFailure:
            assert FUNCTIONS[function].can_fail
        else:
            assert low <= int(result) <= high
