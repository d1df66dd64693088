"""Groups that have changed are found and computed anew, whatever the number of their columns and rows."""

from __future__ import annotations

from collections import defaultdict

import pytest

import tidelog
from tidelog.execute.local.keep import groups

Row = tuple[int, ...]
MANY = groups.FIRST_ROOM + 44  # rows of one group: they have to be listed twice


def summed(rows: set[Row]) -> set[Row]:
    """The sum of the last column for each group; the first column numbers the rows."""
    totals: dict[Row, int] = defaultdict(int)
    for _, *key, weight in rows:
        totals[tuple(key)] += weight
    return {(*key, total) for key, total in totals.items()}


@pytest.mark.parametrize("keys", range(6))
def test_groups_of_any_number_of_columns(keys: int) -> None:
    names = [f"k{i}" for i in range(keys)]
    declared = ", ".join(f"{name}: number" for name in (*names, "w"))
    db = tidelog.Database(f"""
        .decl weight(id: number, {declared})
        .decl total({declared})
        .input weight
        .output total
        total({", ".join((*names, "s"))}) :-
            weight({", ".join(("_", *names, "_"))}),
            s = sum w : {{ weight({", ".join(("id", *names, "w"))}) }}.
    """)
    large = {(i, *[7] * keys, i % 50) for i in range(MANY)}
    small = {(1_000 + i, *[i % (2 + k) for k in range(keys)], i) for i in range(60)}
    rows = large | small
    db.commit(insert={"weight": sorted(rows)})
    commits: list[tuple[set[Row], set[Row]]] = [
        (set(), {(3, *[7] * keys, 3)}),
        ({(5_000, *[7] * keys, 9), (5_001, *[8] * keys, 9)}, {row for row in small if row[0] % 7 == 0}),
        (set(), large),
        (large, small),
    ]
    for come, gone in commits:
        before = summed(rows)
        rows = (rows - gone) | come
        after = summed(rows)
        changes = db.commit(insert={"weight": sorted(come)}, delete={"weight": sorted(gone)})["total"]
        assert set(db["total"]) == after
        assert (set(changes.deleted), set(changes.inserted)) == (before - after, after - before)
