"""Memory that is not there in the middle of a commit: everything is as it was, or as it should be."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.running import keeper_of
from tidelog import Database, ResourceError
from tidelog.execute.local import layout as at
from tidelog.execute.local import rounds
from tidelog.execute.local.keep import keeper as keepers
from tidelog.execute.local.keep import ledger, relation, renewal, renewals
from tidelog.execute.local.keep.relation import Ledger
from tidelog.execute.local.memory import Owned, Words
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


class NoRows:
    """The kernels of rounds, but that there is no room to begin a relation anew."""

    def begin_anew(self, *_: int) -> bool:
        return False

    def __getattr__(self, name: str) -> object:
        return getattr(rounds, name)


@pytest.mark.parametrize("what", ["rows", "ledger", "index"])
def test_compaction(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    db = chain()
    monkeypatch.setattr(keepers, "COMPACT_FROM", 10)
    with monkeypatch.context() as without:
        if what == "rows":
            without.setattr(relation, "rounds", NoRows())
        elif what == "ledger":
            without.setattr(relation, "ledgers", NoRoom())
        else:
            without.setattr(StoredRelation, "_fill", no_fill)
        db.commit(delete={"edge": EDGES[KEPT:]})
    check_that_it_goes_on(db, KEPT)


@pytest.mark.parametrize(("what", "kernels"), [("rounds", NoRows()), ("ledgers", NoRoom())])
def test_renewal(monkeypatch: pytest.MonkeyPatch, what: str, kernels: object) -> None:
    db = chain()
    db.algorithm = "recompute"
    with monkeypatch.context() as without:
        without.setattr(relation, what, kernels)
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


@pytest.mark.parametrize("what", ["numbers", "more numbers", "rows"])
def test_rows_that_stay(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Nothing but a few rows is to change, and there is no room for that."""
    db = chain()
    db.algorithm = "recompute"
    with monkeypatch.context() as without:
        if what == "numbers":
            without.setattr(Owned, "resize", no_room)
        elif what == "more numbers":
            without.setattr(Ledger, "swap_numbers", no_room)
        else:
            without.setattr(renewals, "renewal", NoRoomForNew())
        with pytest.raises(ResourceError):
            db.commit(insert={"edge": [(99, 100)]})
    assert len(db["edge"]) == len(EDGES)
    db.commit(insert={"edge": [(99, 100)]}, delete={"edge": EDGES[-1:]})
    db.commit(insert={"edge": EDGES[-1:]}, delete={"edge": [(99, 100)]})
    check_that_it_goes_on(db, len(EDGES))


class NoRoomForNew:
    """The kernels of renewals, but that there is no room for rows that are new, once others are marked."""

    def mark_moved(self, relation: int, numbers: int, rows: int, row_numbers: Words) -> int:
        renewal.mark_moved(relation, numbers, rows, row_numbers[:0])
        return ledger.NO_ROOM

    def __getattr__(self, name: str) -> object:
        return getattr(renewal, name)


def no_room(*_: object) -> None:
    raise MemoryError


def test_an_index_of_a_renewal() -> None:
    """One that was made meanwhile, and half filled when there was no more memory, is made again later."""
    db = chain()
    keeper = keeper_of(db)
    path, held = keeper.relations["path"], keeper.ledger("path")
    key = (0, 1)
    assert key not in path.indexes
    aside = relation.Aside(path, held, len(path))
    aside.take()
    index = path.index(key)
    path.insert([np.arange(9, dtype=np.uint32)] * 2, 9)
    assert index.keys == 9
    index.record[at.UPTO] = 0  # as `filling.build` leaves it then
    aside.put_back(None)
    assert path.index(key).keys == len(db["path"])
    check_that_it_goes_on(db, len(EDGES))


@pytest.mark.parametrize("algorithm", ["auto", "counting", "dred"])
def test_a_limit(algorithm: str) -> None:
    """A process that may have no more memory: there is none to take a commit back either."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, algorithm], capture_output=True, text=True, timeout=200
    )
    assert done.stdout == "error[TL0601]: out of memory\n", done.stderr


LIMITED = """
import resource, sys
from tidelog import Database, ResourceError

PAIRS = ".decl a(x: number) .decl p(x: number, y: number) .decl q(x: number, y: number)"
RULES = "p(x, y) :- a(x), a(y). q(x, y) :- p(x, y). q(x, y) :- q(x, y), p(x, y), x < 0."
RULES += "q(x, z) :- q(x, y), p(y, z), x < 0."

def held():
    return [sorted(db[name]) for name in "apq"]

db = Database(PAIRS + RULES, algorithm=sys.argv[1])
db.commit(insert={"a": [(i,) for i in range(50)]})
db.commit(insert={"a": [(50,)]})
db.commit(delete={"a": [(50,)]})
before = held()
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (4096 * pages + 2**27, -1))
try:
    db.commit(insert={"a": [(i,) for i in range(100, 12_000)]})
except ResourceError as error:
    print(str(error).splitlines()[0])
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert held() == before
for number in range(51, 60):
    changes = db.commit(insert={"a": [(number + 1000,)]})
    assert len(changes["p"].inserted) == len(changes["q"].inserted) == 2 * number - 1
db.commit(delete={"a": [(i,) for i in range(50)]})
assert len(db["p"]) == len(db["q"]) == 81
"""
