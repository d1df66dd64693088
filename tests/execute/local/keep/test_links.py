"""Rows leave sets and indexes and come back, against a plain list of the rows that are linked."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import numpy as np
import pytest

from tidelog.execute.local import filling, memory, probes, tupleset
from tidelog.execute.local import index as indexing
from tidelog.execute.local import layout as at
from tidelog.execute.local.keep import ending
from tidelog.execute.local.keep.keeper import LocalKeeper
from tidelog.execute.local.keep.links import link, set_home, unlink
from tidelog.execute.local.relation import Index, StoredRelation
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64

Row = tuple[int, ...]
ABSENT = 0xFFFFFFF0  # a cell that no row has


class Linked:
    """A relation, and the numbers of its rows that are linked."""

    def __init__(self, arity: int, rows: list[Row], *keys: tuple[int, ...]) -> None:
        columns = tuple(Column(f"c{i}", S64) for i in range(arity))
        self.stored = StoredRelation(Relation("r", columns), 1)
        for key in keys:
            self.stored.index(key)
        self.rows: list[Row] = []
        self.linked: set[int] = set()
        self.add(rows)

    def add(self, rows: list[Row]) -> None:
        """New rows, linked as they are inserted."""
        arity, first = self.stored.arity, len(self.rows)
        known = set(self.rows)
        self.rows += dict.fromkeys(row for row in rows if row not in known)
        fresh = self.rows[first:]
        cells = np.array(fresh, np.uint32).reshape(len(fresh), arity)
        columns = [np.ascontiguousarray(cells[:, i]) for i in range(arity)]
        assert self.stored.insert(columns, len(fresh)) == len(fresh)
        self.linked.update(range(first, len(self.rows)))

    def toggle(self, number: int) -> None:
        if number in self.linked:
            unlink(self.stored.address, number)
            self.linked.remove(number)
        else:
            assert link(self.stored.address, number)
            self.linked.add(number)

    def packed(self, rows: list[Row], width: int) -> memory.Cells:
        cells = np.zeros((len(rows), width), np.uint32)
        for number, row in enumerate(rows):
            cells[number, : len(row)] = row
        return cells

    def check(self) -> None:
        """Set and indexes have the linked rows, and no others."""
        cells = self.packed(self.rows, 2 * self.stored.words)
        found = np.empty(len(cells), np.bool_)
        probes.find_members(self.stored.address, cells.ctypes.data, found)
        assert set(np.flatnonzero(found).tolist()) == self.linked
        assert tupleset.rows_in(self.stored.address) == len(self.linked)
        for index in self.stored.indexes.values():
            self.check_index(index)

    def check_rows(self) -> None:
        """The same, where tuples are stored that have been there before."""
        assert tupleset.rows_in(self.stored.address) == len(self.linked)
        for index in self.stored.indexes.values():
            self.check_index(index)

    def check_index(self, index: Index) -> None:
        expected: dict[Row, list[int]] = {tuple(row[c] for c in index.key): [] for row in self.rows}
        for number in sorted(self.linked):
            expected[tuple(self.rows[number][c] for c in index.key)].append(number)
        assert index.keys == sum(1 for numbers in expected.values() if numbers)
        keys = self.packed([*expected, (ABSENT,) * len(index.key)], 2 * ((len(index.key) + 1) // 2))
        places, counts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        probes.find_matches(index.address, keys.ctypes.data, at.ALL, places, counts)
        assert counts.tolist() == [*map(len, expected.values()), 0]
        left, rows = np.empty(len(self.linked), np.int64), np.empty(len(self.linked), np.int64)
        probes.list_matches(index.address, places, counts, left, rows)
        assert rows.tolist() == [number for numbers in expected.values() for number in numbers]
        self.check_carried(index, places[:40], counts[:40])

    def check_carried(self, index: Index, places: memory.Words, counts: memory.Words) -> None:
        """Entries of some keys have the cells that the key does not have."""
        words = int(index.record[at.ENTRY_WORDS])
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            entries = memory.cells_at(place, 2 * words * count).reshape(count, 2 * words).tolist()
            for number, *cells in entries:
                expected = [self.rows[number][c] for c in index.carried]
                assert cells[: len(expected)] == expected


def keys_of(arity: int) -> list[tuple[int, ...]]:
    """Some keys of one, two and three columns: those that begin or end a row."""
    return [
        key
        for size in (1, 2, 3)
        for key in combinations(range(arity), size)
        if key == tuple(range(size)) or key[-1] == arity - 1
    ]


def random_rows(rng: random.Random, arity: int, size: int, domain: int) -> list[Row]:
    return [tuple(rng.randrange(domain) for _ in range(arity)) for _ in range(size)]


@pytest.mark.parametrize("arity", range(6))
def test_a_few_rows_come_and_go_one_by_one(arity: int) -> None:
    """Tables are tiny, so runs of full slots go round their ends; buckets have a few entries."""
    rng = random.Random(arity)
    relation = Linked(arity, random_rows(rng, arity, 24, 4 if arity > 1 else 60), *keys_of(arity))
    relation.check()
    for _ in range(200):
        relation.toggle(rng.randrange(len(relation.rows)))
        relation.check()
    while relation.linked:
        relation.toggle(min(relation.linked))
        relation.check()
    assert [index.keys for index in relation.stored.indexes.values()] == [0] * len(keys_of(arity))


# How large the numbers are decides whether slots of the set hold blocks or single rows.
@pytest.mark.parametrize("bits", [6, 0], ids=["blocks", "rows"])
@pytest.mark.parametrize("arity", range(1, 6))
def test_many_rows_come_and_go(arity: int, bits: int) -> None:
    rng = random.Random(arity)
    domain = {1: 4000, 2: 60, 3: 14, 4: 7, 5: 5}[arity] if bits else 0xFFFFFF00
    relation = Linked(arity, random_rows(rng, arity, 2000, domain), *keys_of(arity))
    assert relation.stored.record[at.BLOCK_BITS] == bits
    for _ in range(3):
        for number in rng.sample(range(len(relation.rows)), len(relation.rows) // 2):
            relation.toggle(number)
        relation.check()
        relation.add(random_rows(rng, arity, 200, domain))  # while others are gone, and will be back
        relation.check()


def test_rows_that_come_back_may_need_a_larger_table_of_another_kind() -> None:
    """A set of blocks becomes one of rows, and back, while rows are unlinked."""
    rng = random.Random(5)
    relation = Linked(2, random_rows(rng, 2, 2000, 0xFFFFFF00), (0,), (1,))
    assert relation.stored.record[at.BLOCK_BITS] == 0
    for number in range(2000):
        relation.toggle(number)
    relation.check()
    relation.add([(x, y) for x in range(60) for y in range(128)])
    assert relation.stored.record[at.BLOCK_BITS] == 6
    for number in range(0, len(relation.rows), 3):
        relation.toggle(number)
    relation.check()


@pytest.mark.parametrize("arity", [2, 4, 5])
def test_buckets_cross_powers_of_two(arity: int) -> None:
    """From one entry (in the slot where it is one word) to 33 and back, from either end and the middle."""
    for order in (list(range(33)), list(range(32, -1, -1)), [n * 7 % 33 for n in range(33)]):
        relation = Linked(arity, [(5, n, *[1] * (arity - 2)) for n in range(33)], (0,))
        index = relation.stored.index((0,))
        assert index.record[at.ENTRY_WORDS] == {2: 1, 4: 2, 5: 1}[arity]
        for _ in range(2):
            for number in (*order, *order):
                relation.toggle(number)
                relation.check()


def test_places_in_the_pool_are_used_again() -> None:
    rng = random.Random(6)
    relation = Linked(3, random_rows(rng, 3, 500, 12), (0,), (1, 2), (0, 1, 2))

    def all_out_and_in() -> list[int]:
        for _ in range(2):
            for number in rng.sample(range(len(relation.rows)), len(relation.rows)):
                relation.toggle(number)
        return [index.bytes for index in relation.stored.indexes.values()]

    for _ in range(4):
        used = all_out_and_in()  # the order decides how many buckets of a size there are at a time
    used = [size * 5 // 4 for size in used]
    for _ in range(30):
        assert [now <= most for now, most in zip(all_out_and_in(), used, strict=True)] == [True] * 3
    relation.check()


def test_slots_of_an_index_move_up_round_the_end_of_the_table() -> None:
    at_end = [cell for cell in range(500) if indexing.place_key(cell, 16) == 15][:3]
    before_end = [cell for cell in range(500) if indexing.place_key(cell, 16) == 14][:1]
    at_start = [cell for cell in range(500) if indexing.place_key(cell, 16) == 0][:1]
    cells = [*before_end, *at_end, *at_start]
    for order in permutations(range(5)):
        relation = Linked(2, [(cell, 1) for cell in cells], (0,))
        index = relation.stored.index((0,))
        assert index.record[at.INDEX_SIZE] == 16
        for number in order:
            relation.toggle(number)
            relation.check()
        for number in order:
            relation.toggle(number)
            relation.check()


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_slots_of_a_set_move_up_round_the_end_of_the_table(arity: int) -> None:
    rng = random.Random(arity)
    relation = Linked(arity, random_rows(rng, arity, 1800, 0xFFFFFF00))
    stored = relation.stored
    assert stored.record[at.BLOCK_BITS] == 0
    mask, slot = int(stored.record[at.MASK]), np.zeros(stored.words, np.int64)
    cells, at_end = slot.view(np.uint32), list[Row]()
    while len(at_end) < 12:
        row = tuple(rng.randrange(0xFFFFFF00) | (6 if c == arity - 1 else 0) for c in range(arity))
        cells[:arity] = row
        if set_home(stored.address, slot.ctypes.data) >= mask - 1:
            at_end.append(row)
    first = len(relation.rows)
    relation.add(at_end)
    assert stored.record[at.MASK] == mask
    slots = memory.array_at(int(stored.record[at.SLOTS]), stored.words * (mask + 1), np.int64)
    assert slots[stored.words - 1] != tupleset.EMPTY  # it goes on at the start
    for _ in range(20):
        for number in rng.sample(range(first, first + 12), 12):
            relation.toggle(number)
            if rng.random() < 0.3:
                relation.check()
    relation.check()


def test_what_is_not_linked_can_be_unlinked() -> None:
    """A task may have made an index that never had the row."""
    relation = Linked(2, [(1, 2), (1, 3), (4, 4)], (0,))
    relation.toggle(0)
    unlink(relation.stored.address, 0)
    relation.check()
    relation.toggle(2)
    unlink(relation.stored.address, 2)
    relation.check()


@pytest.mark.parametrize("arity", range(1, 6))
@pytest.mark.parametrize("size", [4, 300, 3000])
def test_an_index_that_is_made_late_has_the_linked_rows_alone(arity: int, size: int) -> None:
    rng = random.Random(arity)
    linked = Linked(arity, random_rows(rng, arity, size, 2 + size // 10))
    omitted = np.zeros(len(linked.rows), np.uint8)
    for number in rng.sample(range(len(linked.rows)), len(linked.rows) // 3):
        linked.toggle(number)
        omitted[number] = 1
    for key in keys_of(arity):
        index = Index(linked.stored, key)
        assert filling.build(index.address, len(linked.rows), omitted.ctypes.data)
        linked.check_index(index)
        index.free()


def kept(arity: int, facts: list[Row], *keys: tuple[int, ...]) -> LocalKeeper:
    """A keeper of one relation of facts with indexes."""
    keeper = LocalKeeper()
    keeper.create(Relation("r", tuple(Column(f"c{i}", S64) for i in range(arity))))
    for key in keys:
        keeper.relations["r"].index(key)
    keeper.begin()
    keeper.assert_rows("r", facts)
    keeper.commit()
    return keeper


def check_kept(keeper: LocalKeeper, held: set[Row]) -> None:
    """Set and indexes have the rows that are held, and no others."""
    stored = keeper.relations["r"]
    view = Linked.__new__(Linked)
    view.stored = stored
    view.rows = [tuple(row) for row in stored.cells[:, : stored.arity].tolist()]
    view.linked = set(np.flatnonzero(keeper.ledger("r").held()).tolist())
    assert {view.rows[number] for number in view.linked} == held
    view.check_rows()


@pytest.mark.parametrize("keys", [3, 40, 500])
@pytest.mark.parametrize("order", ["ascending", "descending", "any"])
def test_many_rows_leave_long_buckets_in_one_commit(keys: int, order: str) -> None:
    """All rows of a commit that are lost leave an index together where that takes fewer passes."""
    rng = random.Random(keys)
    facts: list[Row] = [(i, i % keys, i // 7, i % 2) for i in range(3_000)]
    keeper = kept(4, facts, (0,), (1,), (3,), (1, 3), (2,))
    held = set(facts)
    for size in (1, 5, 700, 40, 1_500, 2, 300):
        gone = rng.sample(sorted(held), min(size, len(held)))
        if order != "any":
            gone.sort(reverse=order == "descending")
        new = [(5_000 + rng.randrange(10_000), rng.randrange(keys), 1, 1) for _ in range(size // 3)]
        keeper.begin()
        keeper.retract_rows("r", gone)
        keeper.assert_rows("r", new)
        keeper.commit()
        held = held - set(gone) | set(new)
        check_kept(keeper, held)


@pytest.mark.parametrize("arity", [2, 4])
@pytest.mark.parametrize("left", [0, 1, 2, 64, 65])
@pytest.mark.parametrize("undone", [False, True])
def test_few_rows_are_left_in_long_buckets(arity: int, left: int, undone: bool) -> None:
    """Entries of one word and of two; buckets that become short, a lone entry, or nothing."""
    facts: list[Row] = [(i, i % 3, 1, 1)[:arity] for i in range(3_000)]
    keeper = kept(arity, facts, (0,), (1,))
    gone = [row for row in facts if row[1] == 0][left:] + [row for row in facts if row[1] == 1][
        : -left or None
    ]
    random.Random(left).shuffle(gone)
    keeper.begin()
    keeper.retract_rows("r", gone)
    if undone:
        keeper.rollback()
        check_kept(keeper, set(facts))
        return
    stored = keeper.relations["r"]
    ending.hide_lost(stored.address)  # what a renewal above does
    assert tupleset.rows_in(stored.address) == len(facts) - len(gone)
    assert ending.show_lost(stored.address)
    assert tupleset.rows_in(stored.address) == len(facts)
    keeper.commit()
    check_kept(keeper, set(facts) - set(gone))
    keeper.begin()
    keeper.assert_rows("r", gone)
    keeper.commit()
    check_kept(keeper, set(facts))
