"""What a commit changed: the tuples taken from each relation and added to it, each at most once.

    changes["path"].inserted      # [(1, 4), (2, 4)]
    changes["path"].deleted       # []
    list(changes)                 # the names of the relations that have changed

A change set stays as it is whatever happens to the database. Tuples are decoded when they are
first looked at; changes of a database on Spark are there until then, and are DataFrames to those who ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, cast

from tidelog.execute.spark.delta import FrameDelta
from tidelog.io.errors import data_error
from tidelog.io.nested import Outward, outward_rows, outward_table
from tidelog.program.model import Relation
from tidelog.session.errors import UnknownRelationError
from tidelog.session.frames.changes import change_feed
from tidelog.session.frames.given import no_frames
from tidelog.session.report import html_table, shown_row

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.plan.maintenance import Delta

MOST_SHOWN = 20
FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


def check_feed(relation: Relation) -> None:
    """Raise DataError where a column of a relation has the name of one of a change feed."""
    taken = [c.name for c in relation.columns if c.name.casefold() in FEED_COLUMNS]
    if taken:
        raise data_error(
            "TL0504",
            f"the changes of {relation.name} are no table: there would be two columns {taken[0]}",
            hint="rename the column; .inserted and .deleted have the tuples",
        )


class Changes:
    """The changes of one relation. Iterating gives (tuple, -1) for what went, (tuple, 1) for what came."""

    def __init__(
        self,
        relation: Relation,
        delta: Delta | None,
        counts: tuple[int, int],
        version: int,
        time: datetime,
        spark: SparkSession | None = None,
    ) -> None:
        self.relation = relation
        self._spark = spark
        self.version = version
        self._delta = delta
        self._counts = counts
        self._time = time

    @cached_property
    def deleted(self) -> list[Outward]:
        """The tuples that are gone, in order."""
        return self._rows(0)

    @cached_property
    def inserted(self) -> list[Outward]:
        """The tuples that are new, in order."""
        return self._rows(1)

    def _rows(self, side: int) -> list[Outward]:
        return list(outward_rows(self._table(side), self.relation.columns)) if self._counts[side] else []

    def _table(self, side: int) -> pa.Table:
        from tidelog.io.arrays import schema_of
        from tidelog.io.sort import sorted_table

        if self._delta is None or not self._counts[side]:
            return schema_of(self.relation.columns).empty_table()
        return sorted_table(self._delta.inserted if side else self._delta.deleted, self.relation.columns)

    def __iter__(self) -> Iterator[tuple[Outward, int]]:
        for row in self.deleted:
            yield row, -1
        for row in self.inserted:
            yield row, 1

    def __len__(self) -> int:
        return sum(self._counts)

    def to_arrow(self) -> pa.Table:
        """A table: the relation's columns, then `_change_type`, `_commit_version`, `_commit_timestamp`."""
        import pyarrow as pa

        check_feed(self.relation)
        parts = []
        for side, kind in enumerate(("delete", "insert")):
            table = outward_table(self._table(side), self.relation)
            count = table.num_rows
            if not self.relation.columns:
                table = table.select([])
            for name, value, type in (
                ("_change_type", kind, pa.string()),
                ("_commit_version", self.version, pa.int64()),
                ("_commit_timestamp", self._time, pa.timestamp("us", tz="UTC")),
            ):
                table = table.append_column(name, pa.repeat(pa.scalar(value, type), count))
            parts.append(table)
        return pa.concat_tables(parts)

    def to_spark(self) -> DataFrame:
        """A Spark DataFrame with the columns of `to_arrow`, where the database was given a Spark session."""
        if self._spark is None:
            raise no_frames(
                f"the changes of {self.relation.name} are not in a Spark session of yours",
                "Database(program, spark=session) keeps them there; "
                "session.createDataFrame(changes.to_arrow()) brings them there",
            )
        check_feed(self.relation)
        return change_feed(self._spark, self.relation, self._delta, self.version, self._time)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Changes):
            return NotImplemented
        return (self.relation.name, self.deleted, self.inserted) == (
            other.relation.name,
            other.deleted,
            other.inserted,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        deleted, inserted = self._counts
        heading = f"{self.relation.name}: {deleted:,} deleted, {inserted:,} inserted"
        lines = [f"{'+' if sign > 0 else '-'} {'  '.join(cells)}" for sign, cells in self._shown()]
        more = [f"... {len(self) - MOST_SHOWN:,} more"] if len(self) > MOST_SHOWN else []
        return "\n".join([heading, *lines, *more])

    def _repr_html_(self) -> str:
        deleted, inserted = self._counts
        caption = f"{self.relation.name}: {deleted:,} deleted, {inserted:,} inserted"
        if len(self) > MOST_SHOWN:
            caption += f", the first {MOST_SHOWN} shown"
        heading = ["", *(f"{column.name}: {column.type}" for column in self.relation.columns)]
        return html_table(heading, [("+" if s > 0 else "-", *cells) for s, cells in self._shown()], caption)

    def _shown(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        delta = self._delta
        if not isinstance(delta, FrameDelta) or not self.relation.columns:
            return ((sign, shown_row(row)) for row, sign in islice(self, MOST_SHOWN))
        few = (
            (sign, shown_row(row))
            for sign, rows in ((-1, delta.gone), (1, delta.come))
            for row in outward_rows(rows.first(MOST_SHOWN), self.relation.columns)
        )
        return islice(few, MOST_SHOWN)


class ChangeSet(Mapping[str, Changes]):
    """The changes of a commit by relation: a mapping of the relations that have changed.

    A relation that has not changed gives empty changes all the same. `version` is the number of the commit.
    """

    def __init__(
        self,
        relations: Mapping[str, Relation],
        changed: Mapping[str, tuple[Relation, Delta, tuple[int, int]]],
        version: int,
        spark: object | None = None,
        time: datetime | None = None,
    ) -> None:
        """`spark` is the session that the database was given, if it was; `time` is the commit's."""
        self._spark = cast("SparkSession | None", spark)
        self.version = version
        self.time = time or datetime.now(UTC)
        self._relations = relations
        self._changed = changed
        self._made: dict[str, Changes] = {}

    def __getitem__(self, relation: str) -> Changes:
        made = self._made.get(relation)
        if made is None:
            if relation in self._changed:
                made = Changes(*self._changed[relation], self.version, self.time, self._spark)
            elif relation in self._relations:
                made = Changes(self._relations[relation], None, (0, 0), self.version, self.time, self._spark)
            else:
                raise UnknownRelationError(relation, self._relations)
            self._made[relation] = made
        return made

    def __contains__(self, relation: object) -> bool:
        return relation in self._changed

    def __iter__(self) -> Iterator[str]:
        return iter(self._changed)

    def among(self, relations: Collection[str]) -> list[str]:
        """Those of some relations that have changed; no others are compared, if that is to be done yet."""
        names = getattr(self._changed, "names", self._changed)
        return [name for name in names if name in relations and name in self._changed]

    def __len__(self) -> int:
        return len(self._changed)

    def to_arrow(self) -> dict[str, pa.Table]:
        """A table for each relation that has changed (see `Changes.to_arrow`)."""
        return {name: self[name].to_arrow() for name in self}

    def to_spark(self, relation: str) -> DataFrame:
        """The changes of a relation as a Spark DataFrame (see `Changes.to_spark`)."""
        return self[relation].to_spark()

    def __repr__(self) -> str:
        return "\n".join(repr(self[name]) for name in self) or "no changes"

    def _repr_html_(self) -> str:
        return "".join(self[name]._repr_html_() for name in self) or "<p>no changes</p>"
