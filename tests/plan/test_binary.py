"""Rules broken into joins of two, as text; and programs that mean the same when all rules are broken."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import pytest

from tests.oracle import model_of
from tests.plan.building import apply, fails, holds, let, rule, when
from tests.random_programs import generate
from tidelog.plan.binary import MADE_BY, Chain, break_rule
from tidelog.plan.executor import Version
from tidelog.plan.order import Assumed
from tidelog.plan.printer import print_rule
from tidelog.program.check import check
from tidelog.program.model import (
    Atom,
    Bind,
    Column,
    Negative,
    Positive,
    Program,
    Rule,
    Var,
    variables,
)
from tidelog.program.strata import stratify
from tidelog.program.types import DOUBLE, S64, STRING
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse


def chain(broken: Rule, *own: str) -> list[str]:
    return [print_rule(step) for step in break_rule(broken, frozenset(own), Assumed()).rules]


@pytest.mark.parametrize(
    "short",
    [
        rule("p 1"),
        rule("p x", let("x", apply("mul", "2", "3"))),
        rule("p x", holds("p x"), when("lt", "x", "3")),
        rule("p x", fails("n 1"), holds("p x")),
        rule("p x z", holds("e x y"), holds("p y z")),
        rule("p x z", holds("p x y"), holds("p y z"), when("ne", "x", "z"), let("u", apply("div", "x", "z"))),
        rule("p 3 x", holds("q x x"), when("eq", "y", "3"), fails("p x y")),
        rule("p x y", holds("p x _"), holds("e y")),
        rule("p x m", holds("e x n"), let("m", apply("sub", "n", "1")), holds("p x m")),
    ],
)
def test_a_rule_of_two_atoms_stays_as_it_is(short: Rule) -> None:
    assert break_rule(short, frozenset({"p"}), Assumed()) == Chain((short,))


def test_three_atoms_begin_at_the_recursive_one() -> None:
    r = rule("sg x y", holds("edge a x"), holds("sg a b"), holds("edge b y"), id=2)
    assert chain(r, "sg") == [
        "sg/2/1(b, x) :- sg(a, b), edge(a, x).",
        "sg(x, y) :- sg/2/1(b, x), edge(b, y).",
    ]


def test_all_steps_are_of_the_rule() -> None:
    text = """
        .decl p(x: number, y: symbol, z: float)
        .decl e(x: number)
        p(x, y, z) :- p(x, y, z), e(x), e(u), e(u + 1).
    """
    [r] = check(parse(text)).rules
    found = break_rule(r, frozenset({"p"}), Assumed())
    assert {(step.id, step.text, step.span) for step in found.rules} == {(r.id, r.text, r.span)}
    assert [step.head.relation for step in found.rules] == [*(made.name for made in found.relations), "p"]
    assert {made.made_by for made in found.relations} == {step.made_by for step in found.rules} == {MADE_BY}
    x, y, z = Column("x", S64), Column("y", STRING), Column("z", DOUBLE)
    assert found.relations[0].columns == (x, y, z)


def test_variables_are_kept_as_long_as_they_are_needed() -> None:
    r = rule(
        "p a e",
        holds("p a b"),
        holds("e b c u"),
        holds("f c d v"),
        holds("g d e"),
        when("lt", "u", "v"),
        id=7,
    )
    assert chain(r, "p") == [
        "p/7/1(a, c, u) :- p(a, b), e(b, c, u).",
        "p/7/2(a, d) :- p/7/1(a, c, u), f(c, d, v), u < v.",
        "p(a, e) :- p/7/2(a, d), g(d, e).",
    ]


def test_negated_atoms_count() -> None:
    r = rule("p x z", holds("p x y"), fails("n x _"), holds("e y z"), fails("m z x"))
    assert chain(r, "p") == [
        "p/0/1(x, y) :- p(x, y), not n(x, _).",
        "p/0/2(x, z) :- p/0/1(x, y), e(y, z).",
        "p(x, z) :- p/0/2(x, z), not m(z, x).",
    ]


def test_constants_and_repeated_variables() -> None:
    r = rule("p 5 x", holds("p x c"), holds("e x x"), holds("f 2 x c"), when("eq", "c", "4"))
    assert chain(r, "p") == ["p/0/1(x) :- f(2, x, 4), p(x, 4).", "p(5, x) :- p/0/1(x), e(x, x)."]


def test_a_head_of_constants_needs_no_columns() -> None:
    r = rule("p 5 c", holds("p x c"), holds("e x"), holds("f 1 _"), when("eq", "c", "4"))
    assert chain(r, "p") == ["p/0/1() :- p(x, 4), e(x).", "p(5, 4) :- f(1, _), p/0/1()."]


# --- products ----------------------------------------------------------------------


def test_the_whole_side_of_a_product_comes_last() -> None:
    assert chain(rule("p x y", holds("e y"), holds("p x _")), "p") == ["p(x, y) :- p(x, _), e(y)."]
    assert chain(rule("p x", holds("on"), holds("e x"), holds("p x")), "p", "on") == [
        "p/0/1(x) :- p(x), on().",
        "p(x) :- p/0/1(x), e(x).",
    ]


def test_the_whole_side_of_a_product_is_no_wider_than_needed() -> None:
    r = rule("p x y", holds("p x _"), holds("e y y _"), id=4)
    assert chain(r, "p") == ["p/4/1(y) :- e(y, y, _).", "p(x, y) :- p(x, _), p/4/1(y)."]
    r = rule("p x y", holds("p x u"), holds("e u y"), holds("p 1 2"), holds("f y"))
    found = break_rule(r, frozenset({"p"}), Assumed())
    assert [print_rule(step) for step in found.rules] == [
        "p/0/3() :- p(1, 2).",
        "p/0/1(x, u) :- p(x, u), p/0/3().",
        "p/0/2(x, y) :- p/0/1(x, u), e(u, y).",
        "p(x, y) :- p/0/2(x, y), f(y).",
    ]
    assert [made.name for made in found.relations] == ["p/0/3", "p/0/1", "p/0/2"]


# --- computed variables ------------------------------------------------------------


def test_a_join_on_a_computed_value_alone_is_cut() -> None:
    r = rule("f n", holds("f n"), let("m", apply("sub", "n", "1")), holds("f m"))
    assert chain(r, "f") == ["f/0/1(n, m) :- f(n), m = n - 1.", "f(n) :- f/0/1(n, m), f(m)."]
    r = rule("f n", holds("f n"), let("m", apply("sub", "n", "1")), fails("g m"))
    assert chain(r, "f") == ["f/0/1(n, m) :- f(n), m = n - 1.", "f(n) :- f/0/1(n, m), not g(m)."]


def test_each_expression_comes_where_the_plan_has_it() -> None:
    """`q` and `r` wait for `x + 1`, and `x + 1` for `p` and `g`; the division waits for all."""
    r = rule(
        "p x s",
        holds("p x"),
        let("y", apply("add", "x", "1")),
        when("lt", apply("div", "s", "x"), "9"),
        holds("q y s"),
        holds("r s"),
        holds("g x"),
    )
    assert chain(r, "p") == [
        "p/0/1(x, y) :- p(x), g(x), y = x + 1.",
        "p/0/2(x, s) :- p/0/1(x, y), q(y, s).",
        "p(x, s) :- p/0/2(x, s), r(s), s / x < 9.",
    ]


def test_a_computed_argument_of_the_recursive_atom_is_checked_in_the_end() -> None:
    r = rule("f x m", holds("e x n"), let("m", apply("sub", "n", "1")), holds("f x m"), holds("g n"))
    assert chain(r, "f") == [
        "f/0/1(x, m, n) :- f(x, m), e(x, n).",
        "f(x, m) :- f/0/1(x, m, n), g(n), m == n - 1.",
    ]


def test_no_product_for_the_sake_of_a_recursive_atom() -> None:
    r = rule(
        "r s", holds("a x"), holds("g x"), let("y", apply("add", "x", "1")), holds("q y s"), holds("r s")
    )
    assert chain(r, "r") == [
        "r/0/1(y) :- a(x), g(x), y = x + 1.",
        "r/0/2(s) :- r/0/1(y), q(y, s).",
        "r(s) :- r/0/2(s), r(s).",
    ]


@pytest.mark.parametrize("equal", [when("eq", "x", "y"), when("eq", "y", "x"), let("y", "x")])
def test_a_second_name_is_replaced(equal: Bind) -> None:
    r = rule("p y z", holds("p x"), holds("q y z"), equal)
    assert chain(r, "p") in (["p(x, z) :- p(x), q(x, z)."], ["p(y, z) :- q(y, z), p(y)."])


def test_second_names_of_second_names() -> None:
    body = (let("y", "x"), let("z", "y"), when("lt", apply("add", "z", "u"), "9"))
    r = rule("p z", holds("p x"), holds("q z u"), *body)
    assert chain(r, "p") == ["p(x) :- p(x), q(x, u), x + u < 9."]


# --- programs ----------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """Statistics that are made up, so that other plans are followed."""

    seed: int

    def size(self, relation: str, version: Version) -> int:
        return 1 + self._number(relation)

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        return self._number((relation, columns)) / 20

    def _number(self, key: object) -> int:
        return zlib.crc32(repr((self.seed, key)).encode()) % 1000


def broken(program: Program, seed: int) -> Program:
    """The program with every rule broken."""
    own = {name: frozenset(s.relations) for s in stratify(program) for name in s.relations}
    chains = [break_rule(r, own[r.head.relation], Drawn(seed)) for r in program.rules]
    made = {relation.name: relation for found in chains for relation in found.relations}
    assert len(made) == sum(len(found.relations) for found in chains)
    rules = tuple(step for found in chains for step in found.rules)
    return replace(program, relations={**program.relations, **made}, rules=rules)


def is_safe(step: Rule) -> bool:
    """Whether a rule binds what it uses."""
    atoms = [literal.atom for literal in step.body if isinstance(literal, Positive | Negative)]
    binding = [literal.atom for literal in step.body if isinstance(literal, Positive)]
    binds = [literal for literal in step.body if isinstance(literal, Bind)]
    used = {term for atom in (step.head, *atoms) for term in atom.terms if isinstance(term, Var)}
    used |= {var for bind in binds for var in variables(bind.expr)}
    return used <= {term for atom in binding for term in atom.terms} | {bind.var for bind in binds}


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_broken_program_means_the_same(first: int) -> None:
    for seed in range(first, first + 50):
        try:
            program = check(parse(generate(seed).text))
        except ProgramError:
            continue
        binary = broken(program, seed)
        for step in binary.rules:
            assert sum(isinstance(literal, Positive | Negative) for literal in step.body) <= 2
            assert is_safe(step), step
            if step.head.relation not in program.relations:
                assert all(isinstance(term, Var) for term in step.head.terms), step
                assert len(set(step.head.terms)) == len(step.head.terms), step
        found = model_of(binary)
        assert {name: found[name] for name in program.relations} == model_of(program), seed


def test_a_name_of_no_user() -> None:
    """No program can have a relation of an auxiliary name."""
    found = break_rule(rule("p x", holds("p x"), holds("q x"), holds("r x")), frozenset({"p"}), Assumed())
    [made] = found.relations
    with pytest.raises(ProgramError):
        parse(f".decl {made.name}(x: number)")
    assert found.rules[0].head == Atom(made.name, (Var("x", S64),))
