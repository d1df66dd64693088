"""What stays the same when a program changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.program.check import check
from tidelog.program.declare import Earlier
from tidelog.program.identity import Numbers, canonical, stabilise, used_numbers
from tidelog.program.model import Program
from tidelog.program.types import S64, STRING, UNKNOWN
from tidelog.syntax import ast
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse


def form(text: str) -> str:
    rule = parse(text).items[0]
    assert isinstance(rule, ast.Rule)
    return canonical(rule)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p(x) :- q(x, y).", "p( a ):-q(a,b)."),
        ("p(x) :- q(x), !r(x).", "p(x) :- q(x), not r(x)."),
        ("p(n) :- n = count : { q(x) }.", "p(a) :- a == count : { q(b) }."),
        ("p(x) :- q(x, y), var m = y.group_by(x).min().", "p(k) :- q(k, v), var l = v.group_by(k).min()."),
        ("p(.a = x) :- q(.b = x), x + 1 > 2.", "p(.a = y) :- q(.b = y), (y + 1) > 2."),
    ],
)
def test_the_same_rule(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p(x) :- q(x, y).", "p(x) :- q(y, x)."),
        ("p(x) :- q(x, x).", "p(x) :- q(x, y)."),
        ("p(x) :- q(x, _).", "p(x) :- q(x, y)."),
        ("p(1) :- q(1).", "p(1) :- q(1.0)."),
        ('p(1) :- q("x").', "p(1) :- q(x)."),
        ("p(x) :- q(x), r(x).", "p(x) :- r(x), q(x)."),
        ("p(.a = x) :- q(x).", "p(.b = x) :- q(x)."),
        ("p(x) :- q(x), !r(x).", "p(x) :- q(x), r(x)."),
    ],
)
def test_another_rule(one: str, other: str) -> None:
    assert form(one) != form(other)


def numbers(program: Program) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for rule in program.rules:
        found.setdefault(rule.head.relation, []).append(rule.id)
    for aggregate in program.aggregates:
        found.setdefault(aggregate.head, []).append(aggregate.id)
    return found


TEXT = """
a(x, n) :- p(x), n = count : { e(x, _) }.
b(x) :- p(x), e(x, _).
c(x, m) :- p(x), m = max y : { e(x, y), y > 0 }.
p(1). e(1, 2).
"""


def test_what_was_there_keeps_its_numbers() -> None:
    module = parse(TEXT)
    old = check(module)
    assert numbers(old) == {
        "a$1$count$all": [2, 3],
        "a": [4],
        "b": [5],
        "c$2$max$in": [6],
        "c": [8],
        "a$1$count": [1],
        "c$2$max": [7],
    }
    assert used_numbers(old) == Numbers(9, 3)
    more = parse("d(x, s) :- p(x), s = sum y : { e(x, y), y > 1 }, 0 < s.").items
    changed = replace(module, items=(*more, *module.items[1:]))
    new, after = stabilise(old, check(changed), used_numbers(old))
    kept = {name: ids for name, ids in numbers(old).items() if name[0] in "bc"}
    made = {name: ids for name, ids in numbers(new).items() if name not in kept}
    assert {name: numbers(new)[name] for name in kept} == kept
    assert set(made) == {"d$3$sum$in", "d$3$sum", "d$3$sum$all", "d"}
    assert sorted(i for ids in made.values() for i in ids) == list(range(9, after.rule))
    assert after.aggregate == 4
    again, last = stabilise(new, check(changed), after)
    assert (again, last) == (new, after)


def test_a_rule_that_comes_back_is_a_new_one() -> None:
    module = parse("b(x) :- p(x). p(1).")
    old = check(module)
    less, after = stabilise(old, check(replace(module, items=module.items[1:])), used_numbers(old))
    back = parse("b(x) :- p(x).").items
    new, _ = stabilise(less, check(replace(module, items=(*back, *module.items[1:]))), after)
    assert (numbers(old), numbers(less), numbers(new)) == ({"b": [1]}, {}, {"b": [2]})


def test_types_make_no_other_rule() -> None:
    module = parse("q(x) :- p(x), x != y, r(y).")
    old = check(module)
    new, after = stabilise(old, check(module, {"p": (S64,)}), used_numbers(old))
    assert numbers(new) == numbers(old) and after == used_numbers(old)
    assert new.rules != old.rules


def test_columns_keep_their_types() -> None:
    earlier = Earlier({"p": (S64, UNKNOWN)})
    program = check(parse('p(x, "a") :- q(x).'), earlier=earlier)
    assert [c.type for c in program.relations["p"].columns] == [S64, STRING]
    assert program.relations["q"].columns[0].type == S64
    with pytest.raises(ProgramError) as caught:
        check(parse("p(1.5, y) :- q(y)."), earlier=earlier)
    assert "column c0 of `p` is s64 so far" in str(caught.value)
    with pytest.raises(ProgramError) as caught:
        check(parse("p(x) :- q(x)."), earlier=earlier)
    assert [d.code for d in caught.value.diagnostics] == ["TL0102"]


def test_what_had_facts_in_the_program_is_no_input() -> None:
    program = check(parse("q(x) :- p(x), r(x)."), {"p": (S64,)}, earlier=Earlier({}, frozenset({"p"})))
    assert {name: r.is_input for name, r in program.relations.items()} == {"p": False, "q": False, "r": True}
