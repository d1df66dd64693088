"""Rules as they are after checking."""

from __future__ import annotations

import pytest

from tests.program.showing import checked, rules


def test_computed_arguments() -> None:
    assert rules("p(x + 1, 2 * 3) :- q(x), r(x * 2), !s(x - 1), !u(2 + 2).") == [
        "p($1, 6) :- q(x), r($3), eq($3, mul(x, 2)), $4 := sub(x, 1), not s($4), not u(4), $1 := add(x, 1)"
    ]


def test_computed_floats() -> None:
    """They are joined as they are stored, or compared so where the atom itself binds their variables."""
    declared = ".decl q(x: float)\n.decl r(x: float, y: float)\n.decl p(x: float)\n"
    assert rules(declared + "p(x) :- q(x), r(x, -x), r(y, -y).") == [
        "p(x) :- q(x), $1 := neg(x), r(x, $1), r(y, $2), eq(to_string($2), to_string(neg(y)))"
    ]


def test_several_heads() -> None:
    assert rules("p(x + 1), q(x, x * 2) :- r(x).") == [
        "p($1) :- r(x), $1 := add(x, 1)",
        "q(x, $2) :- r(x), $2 := mul(x, 2)",
    ]


def test_facts() -> None:
    program = checked('p(1 + 2, "a"), q(true). r().')
    assert [(fact.relation, fact.row) for fact in program.facts] == [
        ("p", (3, "a")),
        ("q", (True,)),
        ("r", ()),
    ]
    assert program.rules == ()


@pytest.mark.parametrize(
    ("body", "lowered"),
    [
        ("q(x), y = x", "q(x), y := x"),
        ("q(x), x = y", "q(x), y := x"),
        ("y = x + 1, q(x)", "y := add(x, 1), q(x)"),
        ("x = 3, y = x", "x := 3, y := x"),
        ("q(x), q(y), x = y", "q(x), q(y), eq(x, y)"),
        ("q(x), y = 1, y = 2", "q(x), y := 1, eq(y, 2)"),
        ("q(x), y = z, z = x", "q(x), y := z, z := x"),
        ("q(x), y = x and x > 1", "q(x), y := x, gt(x, 1)"),
        ("q(x), q(y), x > 1 or y > 1", "q(x), q(y), or(gt(x, 1), gt(y, 1))"),
        ("q(x), x + 1 = y", "q(x), y := add(x, 1)"),
        ("q(x), q(y), x + y = y", "q(x), q(y), eq(add(x, y), y)"),
        ("q(x), y = if (x > 1) x else -x", "q(x), y := if(gt(x, 1), x, neg(x))"),
    ],
)
def test_what_binds(body: str, lowered: str) -> None:
    assert rules(f"p(x, y) :- {body}.") == [f"p(x, y) :- {lowered}"]


def test_let() -> None:
    text = "relation A(x: s64)\nrelation B(x: s64)\nB(z) :- A(x), var z = y * 2, var y = x + 1, y != 3."
    assert rules(text) == ["B(z) :- A(x), z := mul(y, 2), y := add(x, 1), ne(y, 3)"]


def test_named_fields() -> None:
    declared = "relation A(x: s64, y: s64)\nrelation B(x: s64, y: s64)\n"
    assert rules(declared + "B(.y = 3, .x = v) :- A(.y = v), not A(.x = v).") == [
        "B(v, 3) :- A(_, v), not A(v, _)"
    ]


def test_text_of_a_rule_is_one_line_without_comments() -> None:
    text = 'p(x) :-   // first\n    q(x, "a  // b"),\n    /* no */ x > 1.'
    assert checked(text).rules[0].text == 'p(x) :- q(x, "a  // b"), x > 1.'


def test_ids_are_unique() -> None:
    program = checked("d(x, n) :- e(x, _), n = count : { e(x, y), y > 1 }. p(x) :- d(x, _).")
    ids = [r.id for r in program.rules] + [a.id for a in program.aggregates]
    assert sorted(ids) == list(range(1, 1 + len(ids)))


def test_logic_on_integers() -> None:
    assert rules("p(land(x, y)) :- q(x, y).") == ["p($1) :- q(x, y), $1 := if(and(ne(x, 0), ne(y, 0)), 1, 0)"]


def test_cat_of_many() -> None:
    assert rules('p(cat(x, "-", y)) :- q(x, y).') == ["p($1) :- q(x, y), $1 := concat(concat(x, '-'), y)"]
