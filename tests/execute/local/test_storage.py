"""Rows, their set and indexes against Python's own sets and dictionaries."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tidelog.execute.local import layout as at
from tidelog.execute.local import probes
from tidelog.execute.local.relation import StoredRelation
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64

Row = tuple[int, ...]


def stored(arity: int) -> StoredRelation:
    columns = tuple(Column(f"c{i}", S64) for i in range(arity))
    return StoredRelation(Relation("r", columns), 1)


def insert(relation: StoredRelation, rows: list[Row]) -> int:
    cells = np.array(rows, np.uint32).reshape(len(rows), relation.arity)
    return relation.insert([cells[:, i] for i in range(relation.arity)], len(rows))


def rows_of(relation: StoredRelation) -> list[Row]:
    return [tuple(row[: relation.arity]) for row in relation.cells.tolist()]


def members(relation: StoredRelation, rows: list[Row]) -> list[bool]:
    packed = np.zeros((len(rows), 2 * relation.words), np.uint32)
    packed[:, : relation.arity] = np.array(rows, np.uint32).reshape(len(rows), relation.arity)
    found = np.empty(len(rows), np.bool_)
    probes.find_members(relation.address, packed.ctypes.data, found)
    return found.tolist()


# How large the numbers are decides whether slots hold blocks or single rows.
DOMAINS = {"dense": 70, "sparse": 0xFFFFFFFE, "mixed": 5_000}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("arity", range(1, 8))
def test_a_relation_is_a_set(arity: int, domain: int) -> None:
    rng = random.Random(arity * domain)
    relation, expected = stored(arity), dict[Row, None]()
    for size in (1, 10, 100, 3000, 10_000):
        batch = [tuple(rng.randrange(domain) for _ in range(arity)) for _ in range(size)]
        batch += batch[: size // 2]
        before = len(expected)
        expected.update(dict.fromkeys(batch))
        assert insert(relation, batch) == len(expected) - before
        assert rows_of(relation) == list(expected)
    probe = [tuple(rng.randrange(domain) for _ in range(arity)) for _ in range(5000)] + list(expected)[:5000]
    assert members(relation, probe) == [row in expected for row in probe]


def test_slots_hold_blocks_or_rows_as_the_data_are() -> None:
    relation = stored(2)
    insert(relation, [(i * 7919 % 100_003, i * 104_729 % 99_991) for i in range(20_000)])
    assert relation.record[at.BLOCK_BITS] == 0
    insert(relation, [(x, y) for x in range(400) for y in range(400)])
    assert relation.record[at.BLOCK_BITS] == 6
    assert len(relation) == len(set(rows_of(relation)))


def test_a_relation_without_columns_holds_one_row_at_most() -> None:
    relation = stored(0)
    assert relation.insert([], 3) == 1
    assert relation.insert([], 1) == 0
    assert len(relation) == 1


@pytest.mark.parametrize("arity", range(2, 8))
def test_an_index_lists_the_rows_of_a_key_in_order(arity: int) -> None:
    rng = random.Random(arity)
    relation = stored(arity)
    keys = [tuple(sorted(rng.sample(range(arity), k))) for k in range(1, arity + 1)]
    for size in (5, 50, 5000):
        insert(relation, [tuple(rng.choice((rng.randrange(9), rng.randrange(9**9))) for _ in range(arity))
                          for _ in range(size)])  # fmt: skip
        for key in keys:
            check_index(relation, key)


def check_index(relation: StoredRelation, key: tuple[int, ...]) -> None:
    expected: dict[Row, list[int]] = {}
    for number, row in enumerate(rows_of(relation)):
        expected.setdefault(tuple(row[i] for i in key), []).append(number)
    index = relation.index(key)
    assert index.keys == len(expected)
    packed = np.zeros((len(expected) + 1, 2 * ((len(key) + 1) // 2)), np.uint32)
    packed[: len(expected), : len(key)] = np.array(list(expected), np.uint32)
    packed[-1] = 0xFFFFFFF0  # a key that is not there
    places, counts = np.empty(len(packed), np.int64), np.empty(len(packed), np.int64)
    probes.find_matches(index.address, packed.ctypes.data, at.ALL, places, counts)
    assert counts.tolist() == [*map(len, expected.values()), 0]
    left, rows = np.empty(len(relation), np.int64), np.empty(len(relation), np.int64)
    probes.list_matches(index.address, places, counts, left, rows)
    assert rows.tolist() == [number for numbers in expected.values() for number in numbers]


def test_an_index_of_any_number_of_keys() -> None:
    """Tables are resized at some sizes only, and what goes wrong there goes wrong nowhere else."""
    for size in (*range(250, 400), 716, 717, 718, 1433, 1434, 1435):
        relation = stored(2)
        insert(relation, [(i * 5, i % 7) for i in range(size)])
        check_index(relation, (0,))
        check_index(relation, (1,))
        check_index(relation, (0, 1))


def test_old_rows_are_a_prefix_and_delta_rows_the_rest() -> None:
    relation = stored(2)
    insert(relation, [(x % 3, x) for x in range(30)])
    relation.record[at.DELTA_LO] = 10
    index, key = relation.index((0,)), np.array([[1, 0]], np.uint32)
    places, counts = np.empty(1, np.int64), np.empty(1, np.int64)
    found = {}
    for version in (at.OLD, at.DELTA, at.ALL):
        probes.find_matches(index.address, key.ctypes.data, version, places, counts)
        left, rows = np.empty(counts[0], np.int64), np.empty(counts[0], np.int64)
        probes.list_matches(index.address, places, counts, left, rows)
        found[version] = rows.tolist()
    assert found[at.OLD] == [1, 4, 7]
    assert found[at.DELTA] == [10, 13, 16, 19, 22, 25, 28]
    assert found[at.ALL] == found[at.OLD] + found[at.DELTA]
