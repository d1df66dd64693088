"""Aggregates as relations."""

from __future__ import annotations

from tests.program.showing import checked, problems, rules


def test_plain_atom_is_grouped_as_it_is() -> None:
    assert rules("d(x, n) :- e(x, _), n = count : { e(x, _) }.") == [
        "d$1$count := count of e by (0)",
        "d(x, n) :- e(x, _), d$1$count(x, n)",
    ]


def test_nothing_counts_zero() -> None:
    assert rules("d(x, n) :- v(x), n = count : { e(x, y), y > 3 }.") == [
        "d$1$count$in(x, y) :- e(x, y), gt(y, 3)",
        "d$1$count := count of d$1$count$in by (0)",
        "d$1$count$all(x, $1) :- d$1$count(x, $1)",
        "d$1$count$all(x, 0) :- v(x), not d$1$count(x, _)",
        "d(x, n) :- v(x), d$1$count$all(x, n)",
    ]


def test_minimum_of_nothing_is_nothing() -> None:
    assert rules("d(x, n) :- v(x), n = min y + 1 : { e(x, y) }.") == [
        "d$1$min$in(x, $1) :- v(x), e(x, y), $1 := add(y, 1)",
        "d$1$min := min 1 of d$1$min$in by (0)",
        "d(x, n) :- v(x), d$1$min(x, n)",
    ]


def test_anonymous_variables_are_bindings_too() -> None:
    assert rules("s(n) :- n = sum p : { sale(1, _, p) }.")[:2] == [
        "s$1$sum$in($1, p) :- sale(1, $1, p)",
        "s$1$sum := sum 1 of s$1$sum$in by ()",
    ]


def test_whole_relation() -> None:
    assert rules("s(n) :- n = count : { e(_, _) }.") == [
        "s$1$count := count of e by ()",
        "s$1$count$all($3) :- s$1$count($3)",
        "s$1$count$all(0) :- not s$1$count(_)",
        "s(n) :- s$1$count$all(n)",
    ]


def test_key_that_the_body_does_not_bind() -> None:
    assert rules("r(x, n) :- v(x), w(x, z), z > 1, n = max y : { e(y), y < x }.") == [
        "r$1$max$in(x, y) :- v(x), e(y), lt(y, x)",
        "r$1$max := max 1 of r$1$max$in by (0)",
        "r(x, n) :- v(x), w(x, z), gt(z, 1), r$1$max(x, n)",
    ]


def test_keys_come_from_atoms_outside_the_recursion() -> None:
    text = "l(0, 0). l(y, n) :- l(x, _), e(x, y), n = count : { e(z, _), z < x }."
    assert "l$1$count$in(x, z, $1) :- e(x, y), e(z, $1), lt(z, x)" in rules(text)


def test_what_can_fail_sees_only_keys_that_are_asked_for() -> None:
    assert rules("r(x, n) :- v(x), x != 0, n = max z : { e(x, y), z = y / x }.")[0] == (
        "r$1$max$in(x, z) :- v(x), ne(x, 0), e(x, y), z := div(y, x)"
    )


def test_key_whose_value_can_fail_brings_all_along() -> None:
    text = "r(z, n) :- v(x, y), y != 0, z = x / y, n = count : { e(z, _), e(_, z) }."
    assert "r$1$count$all(z, 0) :- v(x, y), ne(y, 0), z := div(x, y), not r$1$count(z, _)" in rules(text)


def test_inside_expressions_and_conditions() -> None:
    assert rules("p(n) :- n = 1 + count : { e(_) }, 3 < max x : { e(x) }.") == [
        "p$1$count := count of e by ()",
        "p$1$count$all($2) :- p$1$count($2)",
        "p$1$count$all(0) :- not p$1$count(_)",
        "p$2$max := max 0 of e by ()",
        "p(n) :- p$1$count$all($3), n := add(1, $3), p$2$max($4), lt(3, $4)",
    ]


def test_one_within_another() -> None:
    assert rules("p(x, n) :- v(x), n = count : { e(x, y), 2 < count : { e(y, _) } }.") == [
        "p$1$count := count of e by (0)",
        "p$1$count$all(y, $2) :- p$1$count(y, $2)",
        "p$1$count$all(y, 0) :- e(x, y), not p$1$count(y, _)",
        "p$2$count$in(x, y, $3) :- e(x, y), p$1$count$all(y, $3), lt(2, $3)",
        "p$2$count := count of p$2$count$in by (0)",
        "p$2$count$all(x, $4) :- p$2$count(x, $4)",
        "p$2$count$all(x, 0) :- v(x), not p$2$count(x, _)",
        "p(x, n) :- v(x), p$2$count$all(x, n)",
    ]


def test_one_after_another() -> None:
    lowered = rules("p(m) :- m = sum y : { e(y), y < n }, n = count : { e(_) }.")
    assert lowered[3:5] == [
        "p$2$sum$in(n, y) :- p$1$count$all(n), e(y), lt(y, n)",
        "p$2$sum := sum 1 of p$2$sum$in by (0)",
    ]
    assert lowered[-1] == "p(m) :- p$2$sum$all(n, m), p$1$count$all(n)"


def test_same_name_in_two_aggregates_is_two_variables() -> None:
    text = 'a(1). b("x"). p(n, m) :- n = max x : { a(x) }, m = max x : { b(x) }.'
    assert [str(c.type) for c in checked(text).relations["p"].columns] == ["s64", "string"]


def test_in_arguments() -> None:
    assert rules("p(count : { e(_) }) :- q(max x : { e(x) }), !r(min x : { e(x) }).") == [
        "p$1$max := max 0 of e by ()",
        "p$2$min := min 0 of e by ()",
        "p$3$count := count of e by ()",
        "p$3$count$all($7) :- p$3$count($7)",
        "p$3$count$all(0) :- not p$3$count(_)",
        "p($1) :- q($2), p$1$max($3), eq($2, $3), p$2$min($4), $5 := $4, not r($5), p$3$count$all($1)",
    ]


def test_atom_binds_the_key_of_its_own_argument() -> None:
    assert rules("p(y) :- a(max x : { e(x, y) }, y).") == [
        "p$1$max := max 0 of e by (1)",
        "p(y) :- a($1, y), p$1$max(y, $2), eq($1, $2)",
    ]


SALES = "relation Sale(shop: string, item: string, price: s64)\nrelation Out(shop: string, n: s64)\n"


def test_group_by() -> None:
    assert rules(SALES + "Out(s, t) :- Sale(s, _, p), p > 1, var t = p.group_by(s).sum(), t > 10.") == [
        "Out$1$sum$in(s, $1, p) :- Sale(s, $1, p), gt(p, 1)",
        "Out$1$sum := sum 2 of Out$1$sum$in by (0)",
        "Out(s, t) :- Out$1$sum(s, t), gt(t, 10)",
    ]


def test_group_by_twice() -> None:
    text = SALES + 'Out("", m) :- Sale(s, _, p), var t = p.group_by(s).sum(), var m = t.group_by(()).max().'
    assert rules(text) == [
        "Out$1$sum := sum 2 of Sale by (0)",
        "Out$2$max := max 1 of Out$1$sum by ()",
        "Out('', m) :- Out$2$max(m)",
    ]


def test_group_by_computed_key_and_value() -> None:
    text = SALES + "Out(s, t) :- Sale(s, _, p), var t = (p * 2).group_by((s, p % 2)).max()."
    assert rules(text) == [
        "Out$1$max$in(s, $3, $1) :- Sale(s, $2, p), $1 := mul(p, 2), $3 := mod(p, 2)",
        "Out$1$max := max 2 of Out$1$max$in by (0, 1)",
        "Out(s, t) :- Out$1$max(s, $3, t)",
    ]


def test_name_is_free_again_after_group_by() -> None:
    text = SALES + "Out(s, t) :- Sale(s, i, p), var t = p.group_by(s).sum(), Sale(i, _, t)."
    assert rules(text)[-1] == "Out(s, t) :- Out$1$sum(s, t), Sale(i, _, t)"


def test_made_relations_are_neither_inputs_nor_outputs() -> None:
    program = checked("d(x, n) :- v(x), n = count : { e(x, y), y > 3 }.")
    made = [r for r in program.relations.values() if "$" in r.name]
    assert [(r.name, r.made_by, r.is_input, r.is_output) for r in made] == [
        ("d$1$count$in", "aggregate", False, False),
        ("d$1$count", "aggregate", False, False),
        ("d$1$count$all", "aggregate", False, False),
    ]


def test_aggregate_of_a_shared_variable_only() -> None:
    assert problems("p(x, n) :- v(x), n = sum x : { e(_) }.") == []
