"""Marks, the map from tuples to rows, and the end of commits, against dictionaries."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from typing import cast

import numpy as np
import pytest

from tests.oracle import model_of
from tests.running import Row, rows_of, table_of
from tidelog.execute.local.keep import keeper as keepers
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep import rowmap
from tidelog.execute.local.keep.keeper import LocalKeeper
from tidelog.maintain.algorithms import ALGORITHMS
from tidelog.maintain.update import Maintenance
from tidelog.plan.maintenance import Keeper, Standing
from tidelog.plan.parts import LASTING, Mark
from tidelog.program.check import check
from tidelog.program.model import Column, Relation
from tidelog.program.strata import stratify
from tidelog.program.types import S64
from tidelog.syntax.parser import parse

EXPLICIT, HELD, DELETED, ADDED = Mark.EXPLICIT, Mark.HELD, Mark.DELETED, Mark.ADDED
FACT = HELD | EXPLICIT


def relation(name: str, arity: int) -> Relation:
    return Relation(name, tuple(Column(f"c{i}", S64) for i in range(arity)))


def opened(arity: int, facts: Iterable[Row] = (), *keys: tuple[int, ...]) -> LocalKeeper:
    """A keeper with a relation e of facts, with indexes."""
    keeper = LocalKeeper()
    keeper.create(relation("e", arity))
    for key in keys:
        keeper.relations["e"].index(key)
    keeper.begin()
    keeper.assert_rows("e", list(facts))
    keeper.commit()
    return keeper


def numbers_in_map(keeper: LocalKeeper, rows: Sequence[Row]) -> list[int]:
    """For each tuple, the number of the row that has it; -1: none."""
    stored, ledger = keeper.relations["e"], keeper.ledger("e")
    ledger.need_map()
    packed, _ = keeper._pack(stored, rows)
    return [
        int(rowmap.find_row(stored.address, packed.ctypes.data + 8 * stored.words * i))
        for i in range(len(rows))
    ]


class Model:
    """What a relation without rules should be, in a commit."""

    def __init__(self) -> None:
        self.held: set[Row] = set()
        self.now: set[Row] = set()

    def standing(self) -> dict[Row, Standing]:
        found = {}
        for row in self.held | self.now:
            marks = Mark(0)
            if row in self.held:
                marks |= HELD | (EXPLICIT if row in self.now else DELETED | Mark.RETRACTED)
            else:
                marks |= EXPLICIT | ADDED | Mark.ASSERTED
            found[row] = Standing(marks)
        return found


def check_map(keeper: LocalKeeper, rows: Sequence[Row], stored: Collection[Row]) -> None:
    """The map has the rows of the tuples that are stored, and no others."""
    cells = keeper.relations["e"].cells[:, : len(rows[0])].tolist()
    for row, number in zip(rows, numbers_in_map(keeper, rows), strict=True):
        assert (number >= 0) == (row in stored), row
        if number >= 0:
            coded = [keeper.codes.code(value, S64) for value in row]
            assert cells[number] == coded


@pytest.mark.parametrize("arity", [1, 2, 3, 5])
def test_facts_come_and_go_as_in_a_dictionary(arity: int) -> None:
    """Batches of all sizes, commits and rollbacks; the same tuples again and again."""
    rng = random.Random(arity)
    rows: list[Row] = list(
        dict.fromkeys(tuple(rng.randrange(1 << 20) for _ in range(arity)) for _ in range(600))
    )
    keeper, model = opened(arity, (), (0,)), Model()
    for turn in range(25):
        before = keeper.standing("e")
        assert before == {row: Standing(FACT) for row in model.held}
        keeper.begin()
        for _ in range(rng.randrange(4)):
            chosen = rng.choices(rows, k=rng.choice((0, 1, 3, 40, 200)))
            if rng.random() < 0.5:
                assert keeper.assert_rows("e", chosen) == len(set(chosen) - model.now)
                model.now |= set(chosen)
            else:
                assert keeper.retract_rows("e", chosen) == len(set(chosen) & model.now)
                model.now -= set(chosen)
            assert keeper.standing("e") == model.standing()
            assert keeper.changed("e") == (len(model.held - model.now), len(model.now - model.held))
            assert keeper.size("e") == len(model.held)
            check_map(keeper, sorted(model.held | model.now) or rows, model.held | model.now)
        if rng.random() < 0.4:
            keeper.rollback()
            assert keeper.standing("e") == before
            model.now = set(model.held)
        else:
            delta = keeper.delta("e")
            assert rows_of(relation("e", arity), delta.deleted) == model.held - model.now
            assert rows_of(relation("e", arity), delta.inserted) == model.now - model.held
            keeper.commit()
            model.held = set(model.now)
        check_map(keeper, rows, model.held)
        assert rows_of(relation("e", arity), keeper.table("e")) == model.held, turn
        assert keeper.ledger("e").touched == 0


def test_a_relation_without_columns() -> None:
    keeper = opened(0)
    for _ in range(3):
        keeper.begin()
        assert keeper.assert_rows("e", [(), ()]) == 1
        keeper.rollback()
        assert keeper.standing("e") == {}
        keeper.begin()
        assert keeper.assert_rows("e", [()]) == 1
        keeper.commit()
        assert keeper.standing("e") == {(): Standing(FACT)}
        keeper.begin()
        assert keeper.retract_rows("e", [()]) == 1
        assert keeper.size("e") == 1
        keeper.commit()
        assert (keeper.standing("e"), keeper.size("e")) == ({}, 0)


def test_the_map_loses_rows_in_any_order() -> None:
    """A map of 16 slots: runs of full slots go round the end of the table."""
    rng = random.Random(1)
    for _ in range(40):
        rows = [(rng.randrange(1 << 30),) for _ in range(7)]
        keeper = opened(1, rows)
        check_map(keeper, rows, set(rows))
        assert keeper.ledger("e").record[at.MAP_MASK] == 15
        left = set(rows)
        for row in rng.sample(rows, 7):
            keeper.begin()
            keeper.retract_rows("e", [row])
            keeper.commit()
            left.remove(row)
            check_map(keeper, rows, left)
        assert keeper.ledger("e").record[at.MAP_USED] == 0


def test_a_commit_outgrows_every_array_and_is_taken_back() -> None:
    facts: list[Row] = [(i, i % 10) for i in range(50)]
    keeper = opened(2, facts, (0,), (1,))
    before, room = keeper.standing("e"), int(keeper.ledger("e").record[at.ROOM])
    keeper.begin()
    keeper.retract_rows("e", facts[:10])
    for start in range(0, 5000, 500):
        assert keeper.assert_rows("e", [(i, i % 7 + 100) for i in range(start, start + 500)]) == 500
    keeper.retract_rows("e", [(i, i % 7 + 100) for i in range(0, 5000, 2)])
    assert int(keeper.ledger("e").record[at.ROOM]) > 10 * room
    assert keeper.size("e") == 50
    keeper.rollback()
    assert keeper.standing("e") == before
    assert len(keeper.relations["e"]) == 50
    keeper.begin()
    assert keeper.assert_rows("e", [(7, 107), *facts]) == 1
    keeper.commit()
    assert set(keeper.standing("e")) == {(7, 107), *facts}
    assert [index.keys for index in keeper.relations["e"].indexes.values()] == [50, 11]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_many_first_facts(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They go another way, and lead to the same place."""
    monkeypatch.setattr(keepers, "COMPACT_FROM", 100)
    keeper = opened(2)
    rows: list[Row] = [(i, i * i) for i in range(150)]
    keeper.begin()
    assert keeper.assert_rows("e", table_of(relation("e", 2), [*rows, *rows[:20]])) == 150
    assert keeper.standing("e") == dict.fromkeys(rows, Standing(EXPLICIT | ADDED | Mark.ASSERTED))
    assert (keeper.size("e"), keeper.changed("e")) == (0, (0, 150))
    assert keeper.retract_rows("e", rows[:3]) == 3
    getattr(keeper, end)()
    kept = rows[3:] if end == "commit" else []
    assert keeper.standing("e") == dict.fromkeys(kept, Standing(FACT))
    assert keeper.size("e") == keeper.table("e").num_rows == len(kept)
    keeper.begin()
    assert keeper.assert_rows("e", rows) == 150 - len(kept)
    keeper.commit()
    assert keeper.standing("e") == dict.fromkeys(rows, Standing(FACT))


def test_what_comes_goes_and_comes_again_is_in_an_index_made_meanwhile() -> None:
    """The index is made while the tuple is stored but has no marks."""
    keeper = opened(2, [(1, 1)])
    keeper.begin()
    keeper.assert_rows("e", [(1, 2)])
    keeper.retract_rows("e", [(1, 2)])
    index = keeper.relations["e"].index((1,))
    keeper.assert_rows("e", [(1, 2)])
    assert index.keys == 2
    keeper.commit()
    assert index.keys == 2


# --- compaction -----------------------------------------------------------------

PROGRAM = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number)
.output p
.output q
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
q(x) :- p(x, x).
"""


class Numbers:
    """The closure of some edges, kept current."""

    def __init__(self, algorithm: str) -> None:
        self.program = check(parse(PROGRAM))
        self.strata = tuple(stratify(self.program))
        self.keeper = LocalKeeper()
        self.maintenance = Maintenance(cast(Keeper, self.keeper), algorithm)
        for made in self.program.relations.values():
            self.keeper.create(made)
        self.edges: set[Row] = set()

    def change(self, edges: set[Row]) -> None:
        self.maintenance.begin(self.strata)
        self.keeper.retract_rows("e", sorted(self.edges - edges))
        self.keeper.assert_rows("e", sorted(edges - self.edges))
        self.maintenance.update({"e"})
        self.maintenance.commit()
        self.edges = set(edges)

    def state(self) -> dict[str, dict[Row, Standing]]:
        return {name: self.keeper.standing(name) for name in self.program.relations}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_compaction_keeps_all_that_is_known(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One keeper writes its relations anew all the time, the other never does."""
    rng = random.Random(3)
    compact, plain = Numbers(algorithm), Numbers(algorithm)
    rewritten = 0
    for _ in range(25):
        edges: set[Row] = {(rng.randrange(9), rng.randrange(9)) for _ in range(rng.randrange(3, 14))}
        most = len(compact.keeper.relations["p"])
        monkeypatch.setattr(keepers, "COMPACT_FROM", 4)
        compact.change(edges)
        monkeypatch.setattr(keepers, "COMPACT_FROM", 10_000)
        plain.change(edges)
        rewritten += len(compact.keeper.relations["p"]) < most
        assert compact.state() == plain.state()
        model = model_of(compact.program, {"e": edges})
        for name, made in compact.program.relations.items():
            assert rows_of(made, compact.keeper.table(name)) == model[name], name
            assert compact.keeper.size(name) == len(model[name])
            marks = [known.marks for known in compact.state()[name].values()]
            assert all(mark & HELD and not mark & ~LASTING for mark in marks)
    assert rewritten >= 3
    assert len(compact.keeper.relations["p"]) < len(plain.keeper.relations["p"]) or algorithm == "recompute"


def test_compaction_gives_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "COMPACT_FROM", 500)
    facts: list[Row] = [(i, i % 3) for i in range(3000)]
    keeper = opened(2, facts, (0,), (1,))
    before = keeper.memory()
    keeper.begin()
    keeper.retract_rows("e", facts[20:])
    keeper.commit()
    after = keeper.memory()
    assert len(keeper.relations["e"]) == 20
    assert (after["rows"], after["marks"]) == (160, 40)
    assert all(after[part] < before[part] // 8 for part in ("set", "indexes"))
    assert keeper.standing("e") == dict.fromkeys(facts[:20], Standing(FACT))
    marks: list[int] = np.unique(keeper.ledger("e").marks).tolist()
    assert marks == [int(FACT)]
