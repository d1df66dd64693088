"""Work shared among threads gives what one thread gives: the same rows, each considered once."""

from __future__ import annotations

import random

import pytest

from tests.running import Row, run
from tidelog.execute.local.executor import LocalExecutor
from tidelog.program.check import check
from tidelog.syntax.parser import parse

PROGRAMS = {
    "closure": """
        .decl edge(x: number, y: number)
        .input edge
        .decl tc(x: number, y: number)
        .output tc
        tc(x, y) :- edge(x, y).
        tc(x, z) :- tc(x, y), tc(y, z).
    """,
    "three columns": """
        .decl edge(x: number, y: number)
        .input edge
        .decl via(x: number, y: number, z: number)
        .output via
        via(x, x, y) :- edge(x, y).
        via(x, y, z) :- via(x, _, y), edge(y, z).
    """,
    "five columns": """
        .decl edge(x: number, y: number)
        .input edge
        .decl walk(a: number, b: number, c: number, d: number, e: number)
        .output walk
        walk(x, x, x, x, y) :- edge(x, y).
        walk(b, c, d, e, z) :- walk(_, b, c, d, e), edge(e, z), z < 30.
    """,
    "mutual": """
        .decl edge(x: number, y: number)
        .input edge
        .decl even(x: number, y: number)
        .decl odd(x: number, y: number)
        .output even, odd
        odd(x, y) :- edge(x, y).
        even(x, z) :- odd(x, y), edge(y, z).
        odd(x, z) :- even(x, y), edge(y, z), x != z.
    """,
    "computed": """
        .decl edge(x: number, y: number)
        .input edge
        .decl far(x: number, n: number)
        .output far
        far(x, 1) :- edge(x, _).
        far(y, n + 1) :- far(x, n), edge(x, y), n < 12.
    """,
}


def random_graph(nodes: int, edges: int, spread: int) -> list[Row]:
    rng = random.Random(nodes * edges)
    return [(rng.randrange(nodes) * spread, rng.randrange(nodes) * spread) for _ in range(edges)]


@pytest.mark.parametrize("spread", [1, 1_000_003], ids=["near", "far"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sharing_changes_nothing(name: str, spread: int) -> None:
    program = check(parse(PROGRAMS[name]))
    facts = {"edge": random_graph(150, 400, spread)}
    alone = run(program, LocalExecutor(), facts)
    for threads in (2, 3):
        assert run(program, LocalExecutor(threads, share_from=1), facts) == alone


def test_many_workers_in_a_small_table() -> None:
    """Every worker may take a slot beyond the limit; there must always be an empty one left."""
    program = check(
        parse("""
        .decl a(x: number)
        .input a
        .decl pair(x: number, y: number)
        .output pair
        pair(x, y) :- a(x), a(y).
    """)
    )
    facts: dict[str, list[Row]] = {"a": [(i * 1000,) for i in range(40)]}
    for threads in (4, 15, 20):
        found = run(program, LocalExecutor(threads, share_from=1), facts)
        assert len(found.relations["pair"]) == 1600


def test_tables_grow_while_they_are_shared() -> None:
    """More new rows in one round than the table had room for, many times over."""
    program = check(
        parse("""
        .decl a(x: number)
        .input a
        .decl pair(x: number, y: number)
        .output pair
        pair(x, y) :- a(x), a(y).
    """)
    )
    facts: dict[str, list[Row]] = {"a": [(i * 1009,) for i in range(700)]}
    found = run(program, LocalExecutor(3, share_from=1), facts)
    assert len(found.relations["pair"]) == 700 * 700
    assert list(found.instances.values()) == [700 * 700]
