"""Negated atoms without `_`, as text before and after."""

from __future__ import annotations

import pytest

from tests.program.showing import atom, checked, literal
from tidelog.program.aggregates import label
from tidelog.program.model import Program
from tidelog.program.projections import project_negations


def shown(program: Program) -> list[str]:
    return [f"{rule.id} {atom(rule.head)} :- {', '.join(map(literal, rule.body))}" for rule in program.rules]


def test_a_projection_for_each_set_of_columns() -> None:
    program = project_negations(
        checked("""
            a(x) :- p(x), !e(x, _), !e(_, x).
            b(x) :- p(x), !e(_, _), !f(1, _, x).
            c(x) :- p(x), !e(x, _), !p(x), e(x, _).
        """)
    )
    assert shown(program) == [
        "1 a(x) :- p(x), not e$only$0(x), not e$only$1(x)",
        "2 b(x) :- p(x), not e$only$(), not f$only$0_2(1, x)",
        "3 c(x) :- p(x), not e$only$0(x), not p(x), e(x, _)",
        "4 e$only$0($0) :- e($0, _)",
        "5 e$only$1($1) :- e(_, $1)",
        "6 e$only$() :- e(_, _)",
        "7 f$only$0_2($0, $2) :- f($0, _, $2)",
    ]
    made = program.relations["f$only$0_2"]
    assert made.made_by == program.rules[-1].made_by == "projection"
    assert made.columns == tuple(program.relations["f"].columns[i] for i in (0, 2))
    assert program.rules[0].text == "a(x) :- p(x), !e(x, _), !e(_, x)."


def test_a_program_that_needs_none_stays_the_same() -> None:
    program = checked("a(x) :- p(x), !q(x), r(x, _).")
    assert project_negations(program) is program


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("e$only$0", "e (only column 1)"),
        ("e$only$0_2", "e (only columns 1, 3)"),
        ("e$only$", "e (only whether any)"),
        ("s$1$sum$only$0", "s (sum) (only column 1)"),
        ("s$1$sum$in", "s (sum, values)"),
        ("e", "e"),
    ],
)
def test_names_for_people(name: str, told: str) -> None:
    assert label(name) == told
