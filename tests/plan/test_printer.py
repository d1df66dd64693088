"""Plans as text, against golden files: `golden/NAME.dl` prints as `golden/NAME.plan`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.building import apply, expr, fails, holds, let, rule, when
from tidelog.plan.algebra import Unit
from tidelog.plan.printer import print_expr, print_plan, print_rule, print_strata
from tidelog.program.check import check
from tidelog.program.model import Apply, Const, Expr
from tidelog.program.strata import stratify
from tidelog.program.types import BOOL, DOUBLE, STRING, unsigned
from tidelog.syntax.parser import read

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.dl")))
def test_golden(name: str) -> None:
    program = check(read(GOLDEN / f"{name}.dl"))
    printed = print_strata(program, stratify(program))
    assert printed == (GOLDEN / f"{name}.plan").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (apply("sub", apply("sub", "x", "y"), "z"), "x - y - z"),
        (apply("sub", "x", apply("sub", "y", "z")), "x - (y - z)"),
        (apply("mul", apply("add", "x", "1"), "2"), "(x + 1) * 2"),
        (apply("neg", apply("add", "x", "1")), "-(x + 1)"),
        (apply("or", apply("and", "x", "y"), "z"), "x and y or z"),
        (apply("not", apply("eq", "x", "y", type=BOOL)), "not (x == y)"),
        (apply("if", apply("lt", "x", "0"), "1", "2"), "if(x < 0, 1, 2)"),
        (Apply("cast", (expr("x"),), unsigned(8)), "(x as u8)"),
        (Const('a"b\n', STRING), '"a\\"b\\n"'),
        (Const(True, BOOL), "true"),
        (Const(0.1, DOUBLE), "0.1"),
    ],
)
def test_expressions(value: Expr, text: str) -> None:
    assert print_expr(value) == text


def test_rules_and_nodes() -> None:
    body = (holds("p x _"), fails("q x 1"), when("lt", "x", "3"), let("y", apply("add", "x", "1")))
    assert print_rule(rule("h y", *body)) == "h(y) :- p(x, _), not q(x, 1), x < 3, y = x + 1."
    assert print_plan(Unit()) == "{()}"
