"""Rules that fail on some values: every executor names the same rule and the same values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running import run
from tidelog.plan.executor import Executor
from tidelog.program.check import check
from tidelog.syntax.errors import EvaluationError
from tidelog.syntax.parser import parse

LARGEST = 2**63 - 1
NUMBERS = ".decl n(x: number, y: number)\n.decl h(x: number)\n.output h\nn(7, 0). n(6, 3).\n"
CASES = {
    "division by zero": (
        NUMBERS + "h(z) :- n(x, y), z = x / y.",
        "division by zero",
        "h(z) :- n(x, y), z = x / y.",
        {"x": 7, "y": 0},
    ),
    "remainder": (
        NUMBERS + "h(x) :- n(x, y), x % y = 0.",
        "division by zero",
        "h(x) :- n(x, y), x % y = 0.",
        {"x": 7, "y": 0},
    ),
    "overflow": (
        NUMBERS + f"n({LARGEST}, 1).\nh(x + y) :- n(x, y).",
        "integer overflow",
        "h(x + y) :- n(x, y).",
        {"x": LARGEST, "y": 1},
    ),
    "overflow of a product": (
        NUMBERS + f"n({2**62}, 2).\nh(x * y) :- n(x, y).",
        "integer overflow",
        "h(x * y) :- n(x, y).",
        {"x": 2**62, "y": 2},
    ),
    "negation of the smallest": (
        NUMBERS + f"n(-{2**63}, 1).\nh(-x) :- n(x, _).",
        "integer overflow",
        "h(-x) :- n(x, _).",
        {"x": -(2**63)},
    ),
    "narrow": (
        "input relation N(x: u8)\noutput relation H(x: u8)\nN(200).\nN(100).\nH(x + 100) :- N(x).",
        "integer overflow",
        "H(x + 100) :- N(x).",
        {"x": 200},
    ),
    "below zero": (
        "input relation N(x: u64)\noutput relation H(x: u64)\nN(3).\nN(0).\nH(x - 1) :- N(x).",
        "integer overflow",
        "H(x - 1) :- N(x).",
        {"x": 0},
    ),
    "cast": (
        "input relation N(x: s64)\noutput relation H(x: u8)\nN(3).\nN(256).\nH(x as u8) :- N(x).",
        "cast out of range",
        "H(x as u8) :- N(x).",
        {"x": 256},
    ),
    "not a number": (
        '.decl s(x: symbol)\n.decl h(x: number)\n.output h\ns("12"). s("x2").\nh(to_number(x)) :- s(x).',
        "not a number",
        "h(to_number(x)) :- s(x).",
        {"x": "x2"},
    ),
    "in a fixpoint": (
        NUMBERS + f"h({LARGEST - 2}).\nh(x + 1) :- h(x).",
        "integer overflow",
        "h(x + 1) :- h(x).",
        {"x": LARGEST},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_failure(name: str, executor: Callable[[], Executor]) -> None:
    text, message, rule, values = CASES[name]
    with pytest.raises(EvaluationError) as problem:
        run(check(parse(text)), executor())
    assert str(problem.value).splitlines()[0] == f"error[TL0401]: {message}"
    assert problem.value.rule == rule
    assert problem.value.values == values
    assert problem.value.span is not None


def test_sum(executor: Callable[[], Executor]) -> None:
    text = NUMBERS + f"n(1, {2**62}). n(1, {2**62 + 1}).\nh(s) :- n(x, _), s = sum y : {{ n(x, y) }}."
    with pytest.raises(EvaluationError) as problem:
        run(check(parse(text)), executor())
    assert str(problem.value).splitlines()[0] == "error[TL0401]: integer overflow"
    assert problem.value.rule == "h(s) :- n(x, _), s = sum y : { n(x, y) }."
    assert list(problem.value.values.values()) == [1]
