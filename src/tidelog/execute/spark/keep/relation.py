"""A relation that is kept current: a large DataFrame, and on the driver what differs from it.

The *base* is what was held some commits ago. *Near* are the tuples that came up since, with marks
and numbers as they are now; they hide the base's rows. So a part of the relation is a query: the rows
of the base, without the hidden ones, and those of the driver. Committing writes nothing; when
there are many of them, near tuples are written into a new base, which reads the old one once.

A relation of few tuples has no base: all of it is near. One of which a commit changes more than the
driver is to hold is `bulk` until the commit is over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import (
    FIRST,
    GIVEN,
    HELD,
    MARKS,
    NUMBER_TYPES,
    Base,
    frame_of,
    hidden,
    only,
    states_of,
    table_of,
)
from tidelog.execute.spark.keep.bulk import Bulk
from tidelog.execute.spark.keep.entries import Entry, Near, Row
from tidelog.execute.spark.keep.fetch import Outgrown, Query, fetch
from tidelog.execute.spark.state import Rows, cut
from tidelog.execute.spark.types import column_names, column_types
from tidelog.plan.parts import AFTER, GAINED, LOST, E, I, Mark, Part
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.state import StoredRelation

LOG = logging.getLogger("tidelog")


@dataclass(frozen=True)
class Limits:
    """What is held on the driver."""

    touched: int = 50_000  # tuples of a relation that one commit changes
    local: int = 10_000  # tuples of a relation that is not in Spark at all
    overlay: int = 10_000  # near tuples before they are written into the base


@dataclass
class Aside:
    """What a relation was before it was renewed."""

    base: Base | None
    near: Near
    bulk: Bulk | None
    rows: Rows
    explicit: Rows


class KeptRelation:
    """The tuples of one relation, their marks and numbers."""

    def __init__(self, spark: SparkSession, relation: Relation, limits: Limits) -> None:
        self.spark, self.relation, self.limits = spark, relation, limits
        self.types = column_types(relation)
        self.names = column_names(self.types)
        self.base: Base | None = None
        self.near = Near()
        self.bulk: Bulk | None = None
        self.facts_bulk: Bulk | None = None  # as it was before any task
        self.derived = False
        self.held = 0  # tuples in the answers as of the last commit
        self.aside: Aside | None = None  # while the relation is renewed
        self.stored: StoredRelation | None = None  # what tasks that materialise fill then
        self.content: tuple[DataFrame | None, int] | None = (
            None  # or what was found with numbers, if it is large
        )
        self._next: Base | None = None  # of a commit that is prepared
        self._cache: dict[tuple[int, bool], tuple[int, DataFrame | None]] = {}

    # --- reading ---------------------------------------------------------------------------------

    def read(self, part: Part, numbers: bool = False) -> DataFrame | None:
        """The cells of the tuples of a part; with `numbers`, also their ranks or first iterations."""
        if self.bulk is not None:
            if numbers:
                raise Outgrown
            return self.bulk.read(part)
        known = self._cache.get((part.table, numbers))
        if known is None or known[0] != self.near.version:
            known = self._cache[part.table, numbers] = (self.near.version, self._view(part, numbers))
        return known[1]

    def _view(self, part: Part, numbers: bool) -> DataFrame | None:
        chosen = [*self.names, FIRST] if numbers else self.names
        hide, add = self.overlay(part, numbers)
        frames = []
        base = self._of_base(part)
        if base is not None:
            frames.append((hidden(base, self.frame(hide), self.types) if hide else base).select(*chosen))
        if add:
            frames.append(self.numbered(add).select(*chosen) if numbers else self.frame(add))
        return reduce(DataFrame.unionAll, frames) if frames else None

    def _of_base(self, part: Part) -> DataFrame | None:
        """The rows of the base that are in a part, hidden or not."""
        plain, given = Mark(HELD) in part, Mark(GIVEN) in part
        if self.base is None or not (plain or given):
            return None
        if plain and given:
            return self.base.frame
        if self.base.given == (0 if given else self.base.size):
            return None
        return self.base.frame.filter(F.col(MARKS) == F.lit(GIVEN if given else HELD))

    def overlay(self, part: Part, numbers: bool = False) -> tuple[list[Entry], list[Entry]]:
        """The near tuples that hide rows of the base when a part is read, and those to be added."""
        hide, add = [], []
        table = part.table
        for entry in self.near.entries.values():
            within, base = table >> entry.marks & 1, entry.base
            if base is None:
                if within:
                    add.append(entry)
                continue
            was = table >> base.marks & 1
            if (was and within and numbers and base.first != entry.first) or was != within:
                if was:
                    hide.append(entry)
                if within:
                    add.append(entry)
        return hide, add

    def frame(self, entries: Sequence[Entry]) -> DataFrame:
        """The cells of near tuples."""
        return self.spark.createDataFrame(table_of([entry.row for entry in entries], self.types))

    def numbered(self, entries: Sequence[Entry]) -> DataFrame:
        """Near tuples with their marks and numbers."""
        return frame_of(self.spark, entries, self.types)

    def expected(self) -> int:
        """About how many tuples there are."""
        if self.bulk is not None:
            return max(self.bulk.before.size, self.bulk.now.size)
        return (0 if self.base is None else self.base.size) + len(self.near.entries)

    def touched(self, part: Part) -> list[Entry]:
        """The tuples of a part that this commit has changed; raises Outgrown where they are not near."""
        if self.bulk is not None:
            raise Outgrown
        return self.near.touched(part)

    def driving(self, part: Part) -> tuple[DataFrame, int] | None:
        """The touched tuples of a part, for a literal that drives, and their number."""
        if self.bulk is not None:
            rows = self.bulk.touched(part)
            frame = rows.read()
            return None if frame is None or not rows.size else (frame, rows.size)
        entries = self.near.touched(part)
        return (frame_of(self.spark, entries, self.types), len(entries)) if entries else None

    # --- tuples as they were and are ---------------------------------------------------------------

    def part_rows(self, part: Part) -> Rows:
        """The tuples of a part, which does not change any more."""
        hide, add = self.overlay(part)
        base, kept, local = self._of_base(part), self.base, self.local_rows(add)
        if base is None or kept is None:
            return local
        size = (
            kept.size if base is kept.frame else kept.given if Mark(GIVEN) in part else kept.size - kept.given
        )
        if not hide and not add and kept.rows is not None and size == kept.size:
            return kept.rows
        cells = base.select(*self.names)
        if hide:
            cells = hidden(cells, self.frame(hide), self.types)
        return Rows(self.spark, self.relation, (cells, *local.parts), (size - len(hide), *local.sizes))

    def local_rows(self, entries: Sequence[Entry]) -> Rows:
        """Near tuples, as they are now."""
        if not entries:
            return Rows(self.spark, self.relation)
        cells = table_of([entry.row for entry in entries], self.types)
        return Rows(self.spark, self.relation, (self.spark.createDataFrame(cells),), (len(entries),), cells)

    def rows(self) -> Rows:
        """The answers as of the last commit."""
        if self.aside is not None:
            return self.aside.rows
        return self.bulk.before if self.bulk is not None else self.part_rows(I)

    def now(self) -> Rows:
        """The answers as they are so far in this commit."""
        return self.bulk.now if self.bulk is not None else self.part_rows(AFTER)

    def explicit(self) -> Rows:
        """The explicit tuples, as they are now."""
        if self.aside is not None:
            return self.aside.explicit
        return self.bulk.explicit if self.bulk is not None else self.part_rows(E)

    def changed(self) -> tuple[int, int]:
        """The numbers of tuples lost and gained so far."""
        if self.bulk is not None:
            return self.bulk.lost.size, self.bulk.gained.size
        if not self.near.saved:
            return 0, 0
        return len(self.near.touched(LOST)), len(self.near.touched(GAINED))

    def changes(self) -> tuple[Rows, Rows]:
        """The tuples lost and gained so far."""
        if self.bulk is not None:
            return self.bulk.lost, self.bulk.gained
        return self.local_rows(self.near.touched(LOST)), self.local_rows(self.near.touched(GAINED))

    # --- commits ---------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Do the part of a commit that may fail, while there is a way back."""
        if self.bulk is not None:
            self.changed()
            self._next = self.bulk.base()

    def commit(self) -> None:
        """What is AFTER is held; `prepare` comes before."""
        lost, gained = self.changed()
        self.held += gained - lost
        if self.bulk is not None:
            self.base, self.near = self._next, Near()
        else:
            self.near.commit()
            few = self.limits.local if self.base is None else self.limits.overlay
            if len(self.near.entries) > few:
                try:
                    self._fold()
                except Exception:  # the commit stands without it, and the next one will try again
                    LOG.warning("%s could not be written anew", self.relation.name, exc_info=True)
        self._end()

    def _fold(self) -> None:
        """Write near tuples into a new base."""
        whole, given = self.folded()
        frame, size = (None, 0) if whole is None else cut(whole)
        self.base = None if frame is None or not size else Base(frame, size, given)
        self.near = Near()

    def folded(self) -> tuple[DataFrame | None, int]:
        """Base and near tuples as one DataFrame, and how many are explicit; between commits."""
        kept = [entry for entry in self.near.entries.values() if entry.marks]
        frames = [frame_of(self.spark, kept, self.types)] if kept else []
        given = sum(entry.marks == GIVEN for entry in kept)
        if self.base is not None:
            based = [entry for entry in self.near.entries.values() if entry.base is not None]
            frames.append(
                hidden(self.base.frame, self.frame(based), self.types) if based else self.base.frame
            )
            given += self.base.given - sum(entry.base.marks == GIVEN for entry in based if entry.base)
        return (reduce(DataFrame.unionAll, frames) if frames else None), given

    def rollback(self) -> None:
        """Everything as it was at `begin`."""
        if self.aside is not None:
            self.base, self.near = self.aside.base, self.aside.near
        self.near.rollback()
        self._end()

    def _end(self) -> None:
        self.bulk = self.facts_bulk = self.aside = self.stored = self.content = self._next = None
        self._cache = {}

    def undo(self) -> None:
        """Take back what tasks did."""
        if self.aside is not None:
            self.base, self.near = self.aside.base, self.aside.near
            self.aside = self.stored = self.content = None
        self.bulk = self.facts_bulk
        self.near.undo(self.derived)
        self._cache = {}


def load(relations: Mapping[str, KeptRelation], wanted: Mapping[str, Iterable[Row]]) -> None:
    """Bring what the bases say of some rows to the driver: one Spark job at most."""
    missing: list[tuple[KeptRelation, list[Row]]] = []
    for name, rows in wanted.items():
        kept = relations[name]
        if kept.bulk is not None:
            raise Outgrown
        unknown = [row for row in dict.fromkeys(rows) if row not in kept.near.entries]
        if len(unknown) + len(kept.near.saved) > kept.limits.touched:
            raise Outgrown
        if unknown and kept.base is not None:
            missing.append((kept, unknown))
    queries: list[Query] = []
    for kept, unknown in missing:
        assert kept.base is not None
        keys = kept.spark.createDataFrame(table_of(unknown, kept.types))
        queries.append((only(kept.base.frame, keys, kept.names, kept.types), (*kept.types, *NUMBER_TYPES)))
    if not queries:
        return
    spark, most = missing[0][0].spark, sum(len(unknown) for _, unknown in missing)
    for (kept, _), table in zip(missing, fetch(spark, queries, most), strict=True):
        remember(kept, table)


def load_all(kept: KeptRelation, limit: int) -> None:
    """Bring the whole of a small relation to the driver."""
    if kept.base is not None:
        if kept.base.size > limit:
            raise Outgrown
        query = (kept.base.frame, (*kept.types, *NUMBER_TYPES))
        remember(kept, fetch(kept.spark, [query], limit)[0])


def remember(kept: KeptRelation, table: pa.Table) -> None:
    """Rows of the base as entries, unless there are newer ones."""
    for row, state in states_of(table, kept.relation):
        if row not in kept.near.entries:
            kept.near.entries[row] = Entry(row, state)
