"""No program, however broken, gives anything but a checked program or a ProgramError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.program.showing import problems, rules
from tidelog.program.check import check
from tidelog.program.strata import stratify
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse

OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "++", "<", "==", "and", "or", "<<", "&"])
EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "y", "z", "_", "1", "300", "-5", "2.5", '"s"', "true", "9223372036854775808"]),
    lambda inner: st.one_of(
        st.tuples(inner, OPERATORS, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(
            st.sampled_from(["strlen", "cat", "min", "nope", "to_number", "pow", "match"]), inner, inner
        ).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        inner.map(lambda e: f"(if (x) {e} else 1)"),
        inner.map(lambda e: f"as({e}, u8)"),
        inner.map(lambda e: f"(count : {{ a({e}, y) }})"),
        inner.map(lambda e: f"(sum {e} : {{ b(z), a(x, y), y < {e} }})"),
    ),
    max_leaves=6,
)
ATOMS = st.one_of(
    st.tuples(st.sampled_from(["a", "q"]), EXPRESSIONS, EXPRESSIONS).map(lambda t: f"{t[0]}({t[1]}, {t[2]})"),
    st.tuples(st.sampled_from(["b", "c", "d"]), EXPRESSIONS).map(lambda t: f"{t[0]}({t[1]})"),
    EXPRESSIONS.map(lambda e: f"a(.k = {e})"),
)
LITERALS = st.one_of(
    ATOMS,
    ATOMS.map(lambda a: f"!{a}"),
    EXPRESSIONS,
    EXPRESSIONS.map(lambda e: f"x = {e}"),
    EXPRESSIONS.map(lambda e: f"var z = {e}"),
    EXPRESSIONS.map(lambda e: f"var n = {e}.group_by((x, y)).sum()"),
)
RULES = st.tuples(ATOMS, st.lists(LITERALS, max_size=4)).map(
    lambda t: f"{t[0]} :- {', '.join(t[1])}." if t[1] else f"{t[0]}."
)
DECLARATIONS = st.sampled_from(
    ["", ".decl a(k: number, v: symbol)\n.decl b(x: float)\n.decl c(x: nope)\n", "relation d(x: u8)\n"]
)


@settings(max_examples=200, deadline=None)
@given(DECLARATIONS, st.lists(RULES, min_size=1, max_size=4))
def test_any_program(declarations: str, lines: list[str]) -> None:
    text = declarations + "\n".join(lines)
    try:
        program = check(parse(text))
    except ProgramError as error:
        assert error.diagnostics
        return
    for stratum in stratify(program):
        assert stratum.relations


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent / "errors").glob("*.dl")), ids=lambda p: p.stem
)
def test_lines_left_out(path: Path) -> None:
    """A golden program with any of its lines missing."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for index in range(len(lines)):
        try:
            check(parse("".join(lines[:index] + lines[index + 1 :])))
        except ProgramError as error:
            assert error.diagnostics


def test_deep_expressions() -> None:
    assert len(rules("p(y) :- e(x), y = " + " + ".join(["x"] * 190) + ".")) == 1
    assert len(rules("p(y) :- e(x), y = " + "if (x > 0) x else " * 150 + "x.")) == 1


def test_long_sums() -> None:
    with pytest.raises(ProgramError) as caught:
        parse("p(y) :- e(x), y = " + " + ".join(["x"] * 2_000) + ".")
    (problem,) = caught.value.diagnostics
    assert problem.code == "TL0008"
    assert problem.message == "an expression of about 200 operations in a row, or more"
    with pytest.raises(ProgramError, match="nested more than 200 deep"):
        parse("p(y) :- e(x), y = " + "-" * 300 + "x.")
    # What the hint says helps.
    part = f"({' + '.join(['x'] * 150)})"
    assert len(rules("p(y) :- e(x), y = " + " + ".join([part] * 20) + ".")) == 1


def test_aggregates_within_aggregates() -> None:
    aggregate = "count : { e(x) }"
    for i in range(60):
        aggregate = f"count : {{ e(x{i}), x{i} < {aggregate} }}"
    assert len(rules(f"p(n) :- n = {aggregate}.")) > 60


def test_many_problems() -> None:
    facts = "".join(f'e({i}, "a").\n' for i in range(2_000))
    assert len(problems(f".decl e(x: number, y: number)\n{facts}")) == 2_000


def test_one_mistake_in_an_untyped_program_is_told_once() -> None:
    facts = "".join(f'e({i}, "a").\n' for i in range(100))
    assert problems(f"e(1, 2).\n{facts}") == [
        "TL0202 2:6 column `c1` of `e` is an integer, but this is string"
    ]
