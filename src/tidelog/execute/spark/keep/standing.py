"""All that is known of the tuples of a relation, on the driver: for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.execute.spark.keep.base import NUMBER_TYPES, states_of
from tidelog.execute.spark.keep.entries import Entry, known_rows, rows_of
from tidelog.execute.spark.keep.fetch import fetch
from tidelog.plan.maintenance import Row, Standing
from tidelog.plan.parts import Mark

if TYPE_CHECKING:
    from tidelog.execute.spark.keep.relation import KeptRelation


def standing(kept: KeptRelation) -> dict[Row, Standing]:
    """All stored tuples with what is known of them, on the driver."""
    if kept.bulk is not None:
        return _standing_in_bulk(kept)
    entries = dict(kept.near.entries)
    if kept.base is not None:
        query = (kept.base.frame, (*kept.types, *NUMBER_TYPES))
        table = fetch(kept.spark, [query], kept.base.size)[0]
        for row, state in states_of(table, kept.relation):
            entries.setdefault(row, Entry(row, state))
    marked = [entry for entry in entries.values() if entry.marks]
    rows = known_rows(kept.relation, [entry.row for entry in marked])
    return {
        row: Standing(Mark(entry.marks), entry.first, entry.count, dict(entry.trace))
        for row, entry in zip(rows, marked, strict=True)
    }


def _standing_in_bulk(kept: KeptRelation) -> dict[Row, Standing]:
    bulk = kept.bulk
    assert bulk is not None
    marks: dict[Row, Mark] = {}
    for rows, mark in (
        (bulk.before, Mark.HELD),
        (bulk.lost, Mark.DELETED),
        (bulk.gained, Mark.ADDED),
        (bulk.explicit, Mark.EXPLICIT),
    ):
        frame = rows.read()
        if frame is not None:
            for row in known_rows(kept.relation, rows_of(frame.toArrow(), kept.types)):
                marks[row] = marks.get(row, Mark(0)) | mark
    return {row: Standing(mark) for row, mark in marks.items()}
