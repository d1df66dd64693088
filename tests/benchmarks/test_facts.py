"""Facts are drawn the same way each time, and checksums see tuples but not their order."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.facts import checksum, distinct, draw, every


def pairs(*rows: tuple[int, int]) -> pa.Table:
    return pa.table({"x": [x for x, _ in rows], "y": [y for _, y in rows]})


def test_checksum_does_not_see_the_order() -> None:
    assert checksum(pairs((1, 2), (3, 4), (-5, 6))) == checksum(pairs((-5, 6), (1, 2), (3, 4)))


def test_checksum_sees_every_cell_and_its_place() -> None:
    rows = [pairs((1, 2)), pairs((2, 1)), pairs((1, 3)), pairs((1, 2), (1, 2)), pairs((-1, 2)), pairs()]
    assert len({checksum(table) for table in rows}) == len(rows)


def test_checksums_add_up() -> None:
    whole = checksum(pairs((1, 2), (3, 4)))
    assert (checksum(pairs((1, 2))) + checksum(pairs((3, 4)))) % 2**64 == whole


def test_checksum_does_not_depend_on_the_width_of_integers() -> None:
    wide = pairs((1, -2), (3, 4))
    narrow = wide.cast(pa.schema([("x", pa.int32()), ("y", pa.int32())]))
    assert checksum(wide) == checksum(narrow)


def test_distinct_keeps_the_first_of_each() -> None:
    assert distinct(pairs((3, 1), (1, 2), (3, 1), (0, 0))).to_pydict() == {"x": [3, 1, 0], "y": [1, 2, 0]}


def test_every_counts_from_one() -> None:
    table = pa.table({"x": list(range(1, 11))})
    assert every(table, 3, 3).to_pydict() == {"x": [3, 6, 9]}
    assert every(table, 4, 1).to_pydict() == {"x": [1, 5, 9]}


def test_draw_takes_distinct_facts_from_all_relations() -> None:
    tables = {"a": pa.table({"x": list(range(300))}), "b": pa.table({"x": [1000, 1000, *range(1001, 1100)]})}
    drawn = draw(tables, 100, seed=7)
    rows = [(name, x) for name, table in drawn.items() for x in table["x"].to_pylist()]
    assert len(rows) == len(set(rows)) == 100
    assert {name for name, _ in rows} == {"a", "b"}
    assert all((name == "a") == (x < 300) for name, x in rows)


def test_draw_depends_on_the_seed_alone() -> None:
    tables = {"a": pa.table({"x": list(range(1000))})}
    first, again, other = draw(tables, 10, seed=1), draw(tables, 10, seed=1), draw(tables, 10, seed=2)
    assert first["a"].equals(again["a"])
    assert not first["a"].equals(other["a"])


def test_draw_of_more_than_there_are_takes_all() -> None:
    assert draw({"a": pairs((1, 2), (1, 2), (3, 4))}, 10, seed=1)["a"].num_rows == 2
