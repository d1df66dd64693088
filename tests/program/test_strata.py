"""Strata: components in order, base and recursive rules told apart."""

from __future__ import annotations

from tests.program.showing import checked
from tidelog.program.strata import components, stratify


def strata(text: str) -> list[tuple[tuple[str, ...], list[str], list[str], str | None]]:
    return [
        (
            s.relations,
            [r.text for r in s.base],
            [r.text for r in s.recursive],
            s.aggregate.op.value if s.aggregate is not None else None,
        )
        for s in stratify(checked(text))
    ]


def test_closure() -> None:
    assert strata("tc(x, y) :- e(x, y). tc(x, z) :- tc(x, y), e(y, z).") == [
        (("tc",), ["tc(x, y) :- e(x, y)."], ["tc(x, z) :- tc(x, y), e(y, z)."], None)
    ]


def test_what_is_read_comes_first() -> None:
    text = "top(x) :- middle(x), !low(x). middle(x) :- low(x). low(x) :- e(x)."
    assert [s[0] for s in strata(text)] == [("low",), ("middle",), ("top",)]


def test_mutual_recursion_is_one_stratum() -> None:
    text = "even(0). odd(y) :- even(x), next(x, y). even(y) :- odd(x), next(x, y). n(x) :- even(x)."
    assert [(s[0], len(s[1]), len(s[2])) for s in strata(text)] == [(("even", "odd"), 0, 2), (("n",), 1, 0)]


def test_aggregate_is_alone() -> None:
    assert [(s[0], s[3]) for s in strata("d(x, n) :- e(x, _), n = count : { e(x, _) }.")] == [
        (("d$1$count",), "count"),
        (("d",), None),
    ]


def test_relations_without_rules_are_in_no_stratum() -> None:
    assert strata("e(1, 2). f(3).") == []


def test_chain_of_any_length() -> None:
    text = "\n".join(f"r{i + 1}(x) :- r{i}(x)." for i in range(10_000))
    found = stratify(checked(text))
    assert [s.relations for s in found] == [(f"r{i}",) for i in range(1, 10_001)]


def test_cycle_of_any_length() -> None:
    names = [str(i) for i in range(10_000)]
    reads = {str(i): [str((i + 1) % 10_000)] for i in range(10_000)}
    (only,) = components(names, reads)
    assert sorted(only) == sorted(names)


def test_components() -> None:
    reads = {"a": ["b"], "b": ["c", "a"], "c": ["d"], "d": ["c", "e"], "f": ["a", "f"]}
    assert [sorted(c) for c in components(["a", "b", "c", "d", "e", "f"], reads)] == [
        ["e"],
        ["c", "d"],
        ["a", "b"],
        ["f"],
    ]
