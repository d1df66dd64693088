"""Relations started anew: what they were is set aside, and compared with what they have become."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import MARKS, NUMBER_TYPES, NUMBERS, states_of
from tidelog.execute.spark.keep.bulk import Bulk
from tidelog.execute.spark.keep.entries import FACTS, NOTHING, Near, Row, State, holding, rows_of
from tidelog.execute.spark.keep.fetch import fetch
from tidelog.execute.spark.keep.relation import Aside, KeptRelation, load_all
from tidelog.execute.spark.state import Rows, StoredRelation
from tidelog.plan.parts import AFTER, Mark
from tidelog.syntax.errors import InternalError


def renew(kept: KeptRelation) -> None:
    """Set all tuples aside, and begin with the explicit ones."""
    if kept.aside is not None:
        raise InternalError(f"{kept.relation.name} is being renewed already")
    explicit = kept.explicit()
    aside = Aside(kept.base, kept.near, kept.bulk, kept.rows(), explicit)
    kept.stored = StoredRelation(kept.spark, kept.relation)
    kept.stored.insert(explicit)
    kept.base, kept.bulk, kept.near = None, None, Near()
    if explicit.size > kept.limits.touched:
        kept.bulk = Bulk(Rows(kept.spark, kept.relation), explicit, explicit)
    else:
        for row in cells_of(explicit, kept):
            kept.near.touch(row).marks = int(Mark.EXPLICIT | Mark.ASSERTED | Mark.ADDED)
    kept.aside = aside


def cells_of(rows: Rows, kept: KeptRelation) -> list[Row]:
    """Few rows, on the driver."""
    frame = rows.read()
    if frame is None:
        return []
    return rows_of(frame.toArrow() if rows.given is None else rows.given, kept.types)


def renewed(kept: KeptRelation, *, filled: bool) -> None:
    """Bring back what was set aside, with marks for what differs.

    `filled`: it was derived by tasks that materialise, and the tuples have no numbers but a rank.
    """
    aside, stored, content = kept.aside, kept.stored, kept.content
    if aside is None or stored is None:
        raise InternalError(f"{kept.relation.name} is not being renewed")
    now = kept.near
    kept.base, kept.near, kept.bulk = aside.base, aside.near, aside.bulk
    kept.aside = kept.stored = kept.content = None
    size = content[1] if content is not None else stored.size() if filled else len(now.entries)
    most = max(size, kept.held, 0 if kept.base is None else kept.base.size)
    small = kept.bulk is None and most + len(kept.near.saved) <= kept.limits.touched
    if small:
        if content is not None:
            states = _states(kept, content[0])
        elif filled:
            states = {row: State(0, 1) for row in cells_of(stored.rows(), kept)}
        else:
            states = _after(now)
        _compare(kept, states)
        return
    rows = stored.rows()
    if content is None and not filled:
        content = _numbered(kept, now)
    if content is not None:
        parts = () if content[0] is None else (content[0].select(*kept.names),)
        rows = Rows(kept.spark, kept.relation, parts, (content[1],) if parts else ())
    numbered = None if content is None else content[0]
    kept.bulk = Bulk(aside.rows, rows, aside.explicit, numbered, first=1)


def _after(now: Near) -> dict[Row, State]:
    return {row: entry.state for row, entry in now.entries.items() if entry.within(AFTER)}


def _numbered(kept: KeptRelation, now: Near) -> tuple[DataFrame | None, int]:
    """Near tuples that go to where the large relations are."""
    entries = [now.entries[row] for row in _after(now)]
    return (kept.numbered(entries), len(entries)) if entries else (None, 0)


def _states(kept: KeptRelation, frame: DataFrame | None) -> dict[Row, State]:
    if frame is None:
        return {}
    marked = frame.withColumns({MARKS: F.lit(0).cast("bigint")})
    query = (marked.select(*kept.names, *NUMBERS), (*kept.types, *NUMBER_TYPES))
    return dict(states_of(fetch(kept.spark, [query], kept.limits.touched)[0], kept.relation))


def _compare(kept: KeptRelation, states: dict[Row, State]) -> None:
    """Mark what is lost and gained, and write down the numbers of now."""
    load_all(kept, kept.limits.touched)
    near = kept.near
    for row, entry in list(near.entries.items()):
        state = states.get(row, NOTHING)
        marks = holding(entry.marks & (FACTS | Mark.HELD), row in states)
        if entry.state != (new := state._replace(marks=marks)):
            near.touch(row).state = new
    for row, state in states.items():
        if row not in near.entries:
            near.touch(row).state = state._replace(marks=int(Mark.ADDED))
