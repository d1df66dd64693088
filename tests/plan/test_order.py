"""Join orders, shown as the plans they lead to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from tests.plan.building import apply, fails, holds, let, rule, var, when
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.lower import plan_form
from tidelog.plan.order import Assumed, Statistics, order_body
from tidelog.plan.printer import print_plan
from tidelog.program.model import Atom, Bind, Const, Filter, Positive, Rule
from tidelog.program.types import DOUBLE


@dataclass(frozen=True)
class Known:
    """Statistics from a table of sizes, and of fanouts where they differ from the square root."""

    sizes: dict[str, int] = field(default_factory=dict)
    fanouts: dict[tuple[str, tuple[int, ...]], float] = field(default_factory=dict)

    def size(self, relation: str, version: Version) -> int:
        return self.sizes.get(relation, 1000)

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        return self.fanouts.get((relation, columns), math.sqrt(self.size(relation, Version.ALL)))


def plan(r: Rule, recursive: tuple[str, ...] = (), statistics: Statistics | None = None) -> list[str]:
    forms: tuple[RuleForm, ...] = delta_forms(r, set(recursive)) or (whole_form(r),)
    return [print_plan(plan_form(form, statistics or Assumed()).root) for form in forms]


def test_the_delta_comes_first() -> None:
    r = rule("tc x z", holds("tc x y"), holds("tc y z"))
    assert plan(r, ("tc",)) == [
        "π[x, z](tc.delta(x, y) ⋈ tc(y, z))",
        "π[x, z](tc.delta(y, z) ⋈ tc.old(x, y))",
    ]


def test_from_the_delta_on_both_sides() -> None:
    r = rule("ma x w", holds("d y x"), holds("va y z"), holds("d z w"))
    assert plan(r, ("va",)) == ["π[x, w](va.delta(y, z) ⋈ d(y, x) ⋈ d(z, w))"]


def test_the_smaller_start_wins() -> None:
    r = rule("h x", holds("big x y"), holds("small y"))
    assert plan(r, statistics=Known({"big": 10_000, "small": 10})) == ["π[x](small(y) ⋈ big(x, y))"]


def test_the_smaller_fanout_comes_next() -> None:
    r = rule("h x", holds("a x"), holds("wide x y"), holds("narrow x z"), holds("last y z"))
    known = Known({"a": 5}, {("wide", (0,)): 50.0, ("narrow", (0,)): 2.0, ("last", (1,)): 1.5})
    assert plan(r, statistics=known) == ["π[x](a(x) ⋈ narrow(x, z) ⋈ last(y, z) ⋈ wide(x, y))"]


def test_a_bound_atom_is_a_check_and_comes_at_once() -> None:
    r = rule("h x", holds("p x y"), holds("q y z"), holds("r x x"))
    assert plan(r, ("p",)) == ["π[x](p.delta(x, y) ⋈ r(x, x) ⋈ q(y, z))"]


def test_products_come_last() -> None:
    # tiny is small, but joining it first would be a product.
    r = rule("h x w", holds("p x y"), holds("tiny w"), holds("q y z"))
    assert plan(r, ("p",), Known({"tiny": 1})) == ["π[x, w](p.delta(x, y) ⋈ q(y, z) ⋈ tiny(w))"]


def test_filters_and_negations_come_as_soon_as_they_can() -> None:
    r = rule(
        "h x z", holds("p x y"), holds("q y z"), fails("n y _"), when("lt", "x", "y"), when("ne", "x", "z")
    )
    assert plan(r, ("p",)) == ["π[x, z](σ[x != z](σ[x < y](p.delta(x, y) ▷ n(y, _)) ⋈ q(y, z)))"]


@pytest.mark.parametrize("fixing", [let("x", "3"), when("eq", "x", "3"), when("eq", "3", "x")])
def test_a_fixed_variable_selects_in_the_scans(fixing: object) -> None:
    r = Rule(0, rule("h x z").head, (holds("p x y"), holds("q y z x"), fixing))  # type: ignore[arg-type]
    assert plan(r, ("p",)) == ["π[3, z](p.delta(3, y) ⋈ q(y, z, 3))"]


def test_two_values_for_one_variable() -> None:
    r = rule("h x", holds("p x"), when("eq", "x", "3"), when("eq", "x", "4"))
    assert plan(r) == ["π[3](σ[3 == 4](p(3)))"]


def test_a_float_is_compared_as_a_number() -> None:
    """0.0 == -0.0, but as stored values they differ: the filter must stay a filter."""
    x = var("x", DOUBLE)
    r = Rule(0, Atom("h", (x,)), (Positive(Atom("p", (x,))), when("eq", x, Const(0.0, DOUBLE))))
    assert plan(r) == ["π[x](σ[x == 0.0](p(x)))"]


def test_a_body_without_atoms() -> None:
    assert plan(rule("h x", let("x", apply("mul", "2", "3")))) == ["π[x](ε[x = 2 * 3]({()}))"]
    assert plan(rule("h 1", fails("p _"))) == ["π[1]({()} ▷ p(_))"]


# --- expressions that can fail --------------------------------------------------


def test_a_division_waits_for_its_guard() -> None:
    r = rule("h x z", let("z", apply("div", "x", "y")), holds("p x y"), when("ne", "y", "0"), holds("q x"))
    assert plan(r) == ["π[x, z](ε[z = x / y](σ[y != 0](p(x, y)) ⋈ q(x)))"]


def test_what_needs_the_result_waits_for_it() -> None:
    r = rule("h x z", let("z", apply("add", "x", "1")), when("lt", "z", "9"), fails("n z"), holds("p x"))
    assert plan(r) == ["π[x, z](σ[z < 9](ε[z = x + 1](p(x))) ▷ n(z))"]


def test_several_failing_literals_keep_their_order() -> None:
    r = rule("h x", when("lt", apply("div", "9", "x"), "4"), let("z", apply("add", "x", "1")), holds("p x"))
    assert plan(r) == ["π[x](ε[z = x + 1](σ[9 / x < 4](p(x))))"]
    r = rule("h x", let("z", apply("add", "x", "1")), when("lt", apply("div", "9", "x"), "4"), holds("p x"))
    assert plan(r) == ["π[x](σ[9 / x < 4](ε[z = x + 1](p(x))))"]


def test_an_atom_with_a_computed_argument_is_joined() -> None:
    """`h(x, s) :- p(x), q(x + 1, s), r(s), g(x).`: r would be a product before q is there."""
    r = rule(
        "h x s", holds("p x"), let("y", apply("add", "x", "1")), holds("q y s"), holds("r s"), holds("g x")
    )
    expected = ["π[x, s](ε[y = x + 1](p(x) ⋈ g(x)) ⋈ q(y, s) ⋈ r(s))"]
    assert plan(r, statistics=Known({"p": 10, "r": 1})) == expected
    assert plan(r, statistics=Known({"p": 10, "r": 100_000})) == expected


def test_a_computed_argument_of_the_delta_is_checked() -> None:
    r = rule("f x m", holds("e x n"), let("m", apply("sub", "n", "1")), holds("f x m"))
    assert plan(r, ("f",)) == ["π[x, m](σ[m == n - 1](f.delta(x, m) ⋈ e(x, n)))"]


def test_a_computed_argument_of_an_unconnected_delta_is_joined() -> None:
    r = rule("f n", holds("number n"), let("m", apply("sub", "n", "1")), holds("f m"))
    assert plan(r, ("f",)) == ["π[n](ε[m = n - 1](number(n)) ⋈ f.delta(m))"]


def test_a_computed_float_argument_is_joined_as_it_is_stored() -> None:
    n, m, x = var("n", DOUBLE), var("m", DOUBLE), var("x")
    body = (
        Positive(Atom("e", (x, n))),
        Bind(m, apply("add", n, Const(1.0, DOUBLE), type=DOUBLE)),
        Positive(Atom("f", (x, m))),
    )
    assert plan(Rule(0, Atom("f", (x, m)), body), ("f",)) == [
        "π[x, m](ε[m = n + 1.0](e(x, n)) ⋈ f.delta(x, m))"
    ]


@pytest.mark.parametrize("equation", [when("eq", "y", "x"), when("eq", "x", "y")])
def test_an_equation_joins(equation: Filter) -> None:
    r = rule("h x y", holds("p x"), holds("q y z"), equation)
    assert plan(r, ("p",)) == ["π[x, y](ε[y = x](p.delta(x)) ⋈ q(y, z))"]


def test_a_failing_equation_joins_what_would_be_a_product() -> None:
    r = rule("h x s", holds("p x"), holds("q y s"), when("eq", "y", apply("add", "x", "1")), holds("g x"))
    assert plan(r) == ["π[x, s](ε[y = x + 1](p(x) ⋈ g(x)) ⋈ q(y, s))"]
    # Here q is joined on x, and can guard the division.
    r = rule("h x y", holds("p x z"), holds("q x y"), when("eq", "y", apply("div", "x", "z")))
    assert plan(r) == ["π[x, y](σ[y == x / z](p(x, z) ⋈ q(x, y)))"]


def test_equations_that_need_one_another_are_checks() -> None:
    body = (when("eq", "y", apply("add", "x", "1")), when("eq", "x", apply("sub", "y", "1")))
    assert plan(rule("h x", holds("p x"), holds("q y"), *body), ("p",)) == [
        "π[x](σ[x == y - 1](ε[y = x + 1](p.delta(x)) ⋈ q(y)))"
    ]
    r = rule("h x", holds("q y x"), when("eq", "y", apply("add", "x", "1")))
    assert plan(r) == ["π[x](σ[y == x + 1](q(y, x)))"]


class Counting(Assumed):
    """Counts the questions, as a measure of the planner's work."""

    asked = 0

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        Counting.asked += 1
        return super().fanout(relation, columns)


def test_a_long_body_is_planned_with_little_work() -> None:
    """Each greedy pass asks at most once for each pair of atoms; three starts are tried."""
    n = 150
    links = [holds(f"e{i} x{i} x{i + 1}") for i in range(n)]
    steps = [when("eq", f"x{i + 1}", apply("add", f"y{i}", "1")) for i in range(n - 1)]
    chain = rule("h x0", *links)
    star = rule("h x0", *(holds(f"e{i} x0 x{i + 1}") for i in range(n)))
    computed = rule("h x0", *(holds(f"e{i} x{i} y{i}") for i in range(n)), *steps)
    for r in (chain, star, computed):
        for form in (whole_form(r), *delta_forms(r, {"e7"})):
            Counting.asked = 0
            assert sorted(order_body(form, Counting())) == list(range(len(r.body)))
            assert Counting.asked <= 3 * n * n
    assert order_body(delta_forms(chain, {"e0"})[0], Assumed()) == tuple(range(n))


def test_the_order_is_a_permutation() -> None:
    r = rule("h x", holds("p x y"), when("eq", "x", "3"), fails("n y"), let("z", apply("add", "y", "1")))
    assert sorted(order_body(whole_form(r), Assumed())) == [0, 1, 2, 3]
