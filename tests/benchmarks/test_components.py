"""The facts of the benchmark of proportion: many small graphs, nothing between them."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.proportion import LARGEST, SMALLEST, components, draws


@pytest.mark.parametrize("facts", [1, 100, 10_000])
def test_at_least_so_many_distinct_facts(facts: int) -> None:
    tables = components(facts, seed=1)
    rows = [(name, *row.values()) for name, table in tables.items() for row in table.to_pylist()]
    assert len(rows) == len(set(rows))
    # One component more than needed, at most.
    assert facts <= len(rows) < facts + 4 * LARGEST


def test_components_are_small_and_separate() -> None:
    tables = components(10_000, seed=1)
    nodes = tables["weight"]["x"].to_pylist()
    group = {node: node for node in nodes}

    def leader(node: int) -> int:
        while group[node] != node:
            node = group[node]
        return node

    for edge in tables["edge"].to_pylist():
        group[leader(edge["x"])] = leader(edge["y"])
    sizes = Counter(Counter(map(leader, nodes)).values())
    assert sorted(nodes) == list(range(len(nodes)))
    assert set(tables["closed"]["x"].to_pylist()) < set(nodes)
    assert (min(sizes), max(sizes)) == (SMALLEST, LARGEST)


def test_some_components_have_cycles() -> None:
    edges = {(edge["x"], edge["y"]) for edge in components(10_000, seed=1)["edge"].to_pylist()}
    assert any((y, x) in edges for x, y in edges)


def test_draws_take_the_relations_in_turn() -> None:
    tables = components(1000, seed=1)
    turns = ("edge", "closed", "weight")
    drawn = draws(tables, turns, 5, seed=3)
    assert [name for name, _ in drawn] == ["edge", "closed", "weight", "edge", "closed"]
    assert all(0 <= row < tables[name].num_rows for name, row in drawn)
    assert drawn == draws(tables, turns, 5, seed=3)
