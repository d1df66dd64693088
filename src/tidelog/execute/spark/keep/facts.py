"""Facts asserted and retracted: few on the driver, many where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.execute.spark.keep.bulk import Bulk
from tidelog.execute.spark.keep.entries import Row, rows_of, stored_rows
from tidelog.execute.spark.keep.relation import KeptRelation, load
from tidelog.execute.spark.state import Rows
from tidelog.execute.spark.state import rows_of as spark_rows
from tidelog.execute.spark.types import to_cells
from tidelog.plan.maintenance import Row as Values
from tidelog.plan.parts import Mark

if TYPE_CHECKING:
    import pyarrow as pa


def give(kept: KeptRelation, rows: Sequence[Values] | pa.Table | Rows, *, add: bool) -> int:
    """Make rows explicit, or not so any more; how many were not so before."""
    few = _few(kept, rows)
    if few is None:
        return _give_many(kept, rows, add=add)
    load({kept.relation.name: kept}, {kept.relation.name: few})
    near, changed = kept.near, 0
    for row in few:
        entry = near.entries.get(row)
        if (entry is not None and bool(entry.marks & Mark.EXPLICIT)) is add:
            continue
        if entry is None and not add:
            continue
        entry = near.touch(row)
        if add:
            back = entry.marks & Mark.RETRACTED
            entry.marks = entry.marks & ~Mark.RETRACTED | Mark.EXPLICIT | (0 if back else Mark.ASSERTED)
        else:
            back = entry.marks & Mark.ASSERTED
            entry.marks = entry.marks & ~(Mark.EXPLICIT | Mark.ASSERTED) | (0 if back else Mark.RETRACTED)
        if not kept.derived:
            near.hold(entry, add)
        changed += 1
    return changed


def _few(kept: KeptRelation, rows: Sequence[Values] | pa.Table | Rows) -> list[Row] | None:
    """The rows on the driver, unless they or those touched before are too many."""
    room = kept.limits.touched - len(kept.near.saved)
    if kept.bulk is not None or (rows.size if isinstance(rows, Rows) else len(rows)) > room:
        return None
    if isinstance(rows, Sequence):
        return stored_rows(kept.relation, rows)
    if not isinstance(rows, Rows):
        return rows_of(to_cells(rows, kept.types), kept.types)
    frame = rows.read()
    if frame is None:
        return []
    return rows_of(frame.toArrow() if rows.given is None else rows.given, kept.types)


def _give_many(kept: KeptRelation, rows: Sequence[Values] | pa.Table | Rows, *, add: bool) -> int:
    given = rows if isinstance(rows, Rows) else _in_spark(kept, rows)
    explicit = kept.explicit()
    before = kept.rows()
    frame = given.read()
    if frame is None:
        now = explicit
    elif not add:
        now = explicit.minus(given)
    elif not explicit.size and not isinstance(rows, Rows):
        now = given  # what the driver has is without repetitions
    else:
        now = explicit.plus(frame)
    kept.bulk = kept.facts_bulk = Bulk(before, before if kept.derived else now, now)
    return abs(now.size - explicit.size)


def _in_spark(kept: KeptRelation, rows: Sequence[Values] | pa.Table) -> Rows:
    if isinstance(rows, Sequence):
        from tidelog.execute.spark.keep.base import table_of

        cells = table_of(list(dict.fromkeys(stored_rows(kept.relation, rows))), kept.types)
        return Rows(kept.spark, kept.relation, (kept.spark.createDataFrame(cells),), (cells.num_rows,))
    return spark_rows(kept.spark, kept.relation, rows)
