"""An order of a search backwards waits in reserve until the index it needs is worth making."""

from __future__ import annotations

import pytest

from tests.running import keeper_of
from tidelog import Database

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
SOURCES, HUB = 300, -1


def hub() -> set[tuple[int, int]]:
    """Each source reaches the hub in two ways, and few nodes in all, while very many edges end at the hub.

    A chain beside it has paths that are longer than edges into a node are many.
    """
    sources = range(0, 3 * SOURCES, 3)
    chain = {(10_000 + i, 10_001 + i) for i in range(60)}
    return chain | {e for s in sources for e in ((s, s + 1), (s, s + 2), (s + 1, HUB), (s + 2, HUB))}


@pytest.mark.parametrize("algorithm", ["ranked", "fbf"])
def test_the_order_is_taken_into_use_when_it_would_have_paid(algorithm: str) -> None:
    db, edges = Database(PROGRAM, algorithm=algorithm), hub()
    db.commit(insert={"edge": sorted(edges)})
    indexes = keeper_of(db).relations["path"].indexes
    assert (0,) not in indexes
    waited = 0
    for source in range(0, 3 * SOURCES, 3):
        gone = (source, source + 1)
        changes = db.commit(delete={"edge": [gone]})
        assert changes["path"].deleted == [gone]  # the hub is still reached the other way
        edges.remove(gone)
        waited += (0,) not in indexes
    # Of 600 edges into the hub, two begin at what a source reaches; there are 3,330 paths to index.
    assert 4 <= waited <= 8
    assert set(db["path"]) == closure(edges)


def test_it_is_not_where_it_would_not_have_paid() -> None:
    db = Database(PROGRAM, algorithm="ranked")
    edges = {(i, i + 1) for i in range(200)} | {(i, i + 2) for i in range(200)}
    db.commit(insert={"edge": sorted(edges)})
    for i in range(0, 200, 5):
        db.commit(delete={"edge": [(i, i + 1)]})
        edges.remove((i, i + 1))
    assert (0,) not in keeper_of(db).relations["path"].indexes
    assert set(db["path"]) == closure(edges)


def closure(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    after: dict[int, set[int]] = {}
    for x, y in edges:
        after.setdefault(x, set()).add(y)
    found: set[tuple[int, int]] = set()
    for x in after:
        waiting, seen = [x], set[int]()
        while waiting:
            for y in after.get(waiting.pop(), set()) - seen:
                seen.add(y)
                waiting.append(y)
        found |= {(x, y) for y in seen}
    return found
