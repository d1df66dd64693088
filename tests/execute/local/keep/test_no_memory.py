"""Memory that is not there in the middle of a commit: everything is as it was, or as it should be."""

from __future__ import annotations

import pytest

from tidelog import Database, ResourceError
from tidelog.execute.local.keep import keeper as keepers
from tidelog.execute.local.keep import ledger, relation
from tidelog.execute.local.relation import Index, StoredRelation

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EDGES = [(i, i + 1) for i in range(60)]
KEPT = 10


class NoRoom:
    """The ledger's kernels, but that there is no room for a new ledger."""

    def make_room(self, *_: int) -> bool:
        return False

    def __getattr__(self, name: str) -> object:
        return getattr(ledger, name)


def no_fill(stored: StoredRelation, index: Index) -> None:
    raise MemoryError


def chain(*, algorithm: str = "ranked") -> Database:
    """A closure whose update has made its indexes."""
    db = Database(PROGRAM, algorithm=algorithm)
    db.commit(insert={"edge": EDGES})
    db.commit(delete={"edge": EDGES[:1]})
    db.commit(insert={"edge": EDGES[:1]})
    return db


def check_that_it_goes_on(db: Database, edges: int) -> None:
    """The chain has so many edges, and loses one more as it should."""
    assert (len(db["edge"]), len(db["path"])) == (edges, edges * (edges + 1) // 2)
    db.algorithm = "ranked"
    lost = db.commit(delete={"edge": [(0, 1)]})["path"].deleted
    assert lost == [(0, y) for y in range(1, edges + 1)]


@pytest.mark.parametrize("what", ["ledger", "index"])
def test_compaction(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    db = chain()
    monkeypatch.setattr(keepers, "COMPACT_FROM", 10)
    with monkeypatch.context() as without:
        if what == "ledger":
            without.setattr(relation, "ledgers", NoRoom())
        else:
            without.setattr(StoredRelation, "_fill", no_fill)
        db.commit(delete={"edge": EDGES[KEPT:]})
    check_that_it_goes_on(db, KEPT)


def test_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    db = chain()
    db.algorithm = "recompute"
    with monkeypatch.context() as without:
        without.setattr(relation, "ledgers", NoRoom())
        with pytest.raises(ResourceError):
            db.commit(delete={"edge": EDGES[KEPT:]})
    check_that_it_goes_on(db, len(EDGES))


def test_update_after_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    db = chain()
    db.algorithm = "recompute"
    db.commit(delete={"edge": EDGES[KEPT:]})
    db.algorithm = "ranked"
    with monkeypatch.context() as without:  # the indexes that updates need have been resting
        without.setattr(StoredRelation, "_fill", no_fill)
        with pytest.raises(ResourceError):
            db.commit(delete={"edge": EDGES[:1]})
    check_that_it_goes_on(db, KEPT)
