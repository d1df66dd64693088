"""Whether a renewal leaves rows where they are or replaces them, everything else is the same."""

from __future__ import annotations

import random
import signal
from contextlib import suppress

import pytest

from tests.oracle import model_of
from tests.running import Row, keeper_of
from tidelog import Database, EvaluationError
from tidelog.execute.local.keep import relation, renewals
from tidelog.execute.local.keep.heads import KNOWN
from tidelog.maintain.algorithms import ALGORITHMS
from tidelog.plan.maintenance import Standing

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl lone(x: number)
.decl far(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lone(x) :- edge(x, _), !path(x, x).
far(x, y) :- path(x, y), !edge(x, y), lone(x).
far(x, z) :- far(x, y), path(y, z).
.decl bad(x: number)
.decl part(y: number)
part(y) :- path(_, z), bad(x), y = z / x.
"""
RELATIONS = ("edge", "path", "lone", "far")
ALWAYS, NEVER = 1, 1 << 40  # of `renewals.FEW`, where anything moves

State = dict[str, dict[Row, Standing]]


def state(db: Database) -> State:
    """All that is known of all tuples, but for counts, which not every renewal finds out."""
    keeper = keeper_of(db)
    return {
        name: {
            row: Standing(known.marks, known.first, known.count if not known.count & KNOWN else 0)
            for row, known in keeper.standing(name).items()
        }
        for name in RELATIONS
    }


def stays(db: Database, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether rows have stayed, in each renewal from now on."""
    keeper = keeper_of(db)
    found: list[bool] = []
    renewed = keeper.renewed

    def told(relations: tuple[str, ...]) -> bool:
        found.append(renewed(relations))
        return found[-1]

    monkeypatch.setattr(keeper, "renewed", told)
    return found


def some_pairs(rng: random.Random, most: int) -> list[Row]:
    return [(rng.randrange(9), rng.randrange(9)) for _ in range(rng.randrange(most))]


@pytest.mark.parametrize("seed", range(8))
def test_rows_stay_or_are_replaced(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two databases go through the same."""
    rng = random.Random(seed)
    staying, moving = (Database(PROGRAM, algorithm="recompute") for _ in range(2))
    for db in (staying, moving):
        db.commit(insert={"edge": [(i, i + 1) for i in range(8)], "path": [(8, 8)]})
    stayed, moved = stays(staying, monkeypatch), stays(moving, monkeypatch)
    facts: dict[str, set[Row]] = {"edge": {(i, i + 1) for i in range(8)}, "path": {(8, 8)}}
    for turn in range(40):
        delete = {"edge": some_pairs(rng, 4), "path": some_pairs(rng, 4)}
        insert = {"edge": some_pairs(rng, 3), "path": some_pairs(rng, 3)}
        if fails := rng.random() < 0.3:  # once paths have been derived
            insert["bad"] = [(0,)]
        found = []
        for db, few in ((staying, ALWAYS), (moving, NEVER)):
            monkeypatch.setattr(renewals, "FEW", few)
            before = state(db)
            try:
                changes = db.commit(delete=delete, insert=insert)
            except EvaluationError:
                assert fails
                assert state(db) == before
            else:
                found.append({name: (c.deleted, c.inserted) for name, c in changes.items()})
        if found:
            facts = {name: facts[name] - set(delete[name]) | set(insert[name]) for name in facts}
            assert found[0] == found[1], turn
        assert state(staying) == state(moving), turn
        model = model_of(staying.program, facts)
        for name in RELATIONS:
            assert set(staying[name]) == model[name], (turn, name)
    assert sum(stayed) > 10
    assert sum(moved) < sum(stayed)


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "auto"])
def test_every_algorithm_goes_on_with_rows_that_stayed(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(5)
    monkeypatch.setattr(renewals, "FEW", ALWAYS)
    db = Database(PROGRAM, algorithm="recompute")
    edges: set[Row] = {(i, i + 1) for i in range(8)}
    db.commit(insert={"edge": sorted(edges)})
    for turn in range(16):
        db.algorithm = "recompute" if turn % 2 else algorithm
        gone, come = set(some_pairs(rng, 4)), set(some_pairs(rng, 4))
        db.commit(delete={"edge": sorted(gone)}, insert={"edge": sorted(come)})
        edges = edges - gone | come
        model = model_of(db.program, {"edge": edges})
        assert {name: set(db[name]) for name in RELATIONS} == {name: model[name] for name in RELATIONS}, turn


def test_little_moves_and_indexes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(PROGRAM, algorithm="recompute")
    edges = [(i, i + 1) for i in range(30)]
    db.commit(insert={"edge": edges})
    stayed = stays(db, monkeypatch)
    path = keeper_of(db).relations["path"]
    index = path.index((1,))
    before = rows_in_order(db)
    db.commit(delete={"edge": [(0, 1)]})
    db.commit(insert={"edge": [(0, 1)]})
    assert stayed[0] is stayed[-1] is True
    assert path.index((1,)) is index
    assert index.keys == 30
    assert rows_in_order(db)[: len(before)] == before


def test_much_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(PROGRAM, algorithm="recompute")
    db.commit(insert={"edge": [(i, i + 1) for i in range(30)]})
    stayed = stays(db, monkeypatch)
    db.commit(delete={"edge": [(15, 16)]})
    assert stayed[0] is False
    assert len(db["path"]) == 16 * 15 // 2 + 15 * 14 // 2


def rows_in_order(db: Database) -> list[dict[str, object]]:
    """The tuples of `path` as they are stored, those that are gone too."""
    keeper = keeper_of(db)
    stored = keeper.relations["path"]
    found: list[dict[str, object]] = keeper.to_table(stored.relation, stored.cells).to_pylist()
    return found


class Interrupted:
    """A module whose function is followed by Ctrl-C, the first time and the times after it up to a number."""

    def __init__(self, module: object, name: str, at: int) -> None:
        self._module, self._name, self._left = module, name, at

    def __getattr__(self, name: str) -> object:
        found = getattr(self._module, name)
        if name != self._name:
            return found

        def interrupted(*args: object) -> object:
            result = found(*args)
            self._left -= 1
            if self._left == 0:
                signal.raise_signal(signal.SIGINT)
            return result

        return interrupted


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    ("module", "name"),
    [("rounds", "begin_anew"), ("memory", "free"), ("memory", "allocate_zeroed"), ("memory", "array_at")],
)
@pytest.mark.parametrize("few", [ALWAYS, NEVER])
def test_an_interrupt_in_a_renewal(
    module: str, name: str, at: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes, all is as before, or the commit has happened."""
    monkeypatch.setattr(renewals, "FEW", few)
    db = Database(PROGRAM, algorithm="recompute")
    edges = [(i, i + 1) for i in range(30)]
    db.commit(insert={"edge": edges})
    before = state(db)
    with monkeypatch.context() as patch:
        patch.setattr(relation, module, Interrupted(getattr(relation, module), name, at))
        with suppress(KeyboardInterrupt):
            db.commit(delete={"edge": edges[:1]})
    if len(db["edge"]) == len(edges):
        assert state(db) == before
        db.commit(delete={"edge": edges[:1]})
    db.algorithm = "ranked"
    db.commit(delete={"edge": edges[1:2]}, insert={"edge": edges[:1]})
    facts: dict[str, set[Row]] = {"edge": {*edges[:1], *edges[2:]}}
    model = model_of(db.program, facts)
    assert {name: set(db[name]) for name in RELATIONS} == {name: model[name] for name in RELATIONS}
