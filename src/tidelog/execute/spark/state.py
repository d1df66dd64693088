"""The relations of a database as DataFrames, with their versions.

A relation is a list of parts, disjoint DataFrames without repetitions whose lineage
has been cut. New tuples come as a new part, so that in a fixpoint OLD and DELTA are
the parts before and after a boundary. When there are too many parts they become one.

Rows handed over by the driver stay there as an Arrow table as long as the relation
holds nothing else: loading facts then costs no Spark job.

`Rows` are the tuples of a relation at one moment. They are what facts, answers and changes
are kept as, and need no executor. Spark gives back what a DataFrame without lineage holds when
nobody refers to it any more; there is nothing else to release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.checkpoint import checkpointed
from tidelog.execute.spark.here import readable, way_to_read
from tidelog.execute.spark.schema import ADDED, last_changes, outward_frame
from tidelog.execute.spark.types import (
    column_names,
    column_types,
    distinct,
    from_cells,
    key,
    literal,
    to_cells,
    unique_rows,
    without,
)
from tidelog.plan.executor import Version
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation, Value

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = 4
KEPT_ON_DRIVER = 1_000_000


def count_rows(frame: DataFrame) -> tuple[DataFrame, Observation]:
    """A DataFrame that counts its rows as they pass, and where the count will be."""
    observation = Observation()
    return frame.observe(observation, F.count(F.lit(1)).alias("rows")), observation


def rows_counted(observation: Observation, frame: DataFrame) -> int:
    """The number of rows that passed, once they have; `frame` is what they were rows of.

    Adaptive execution leaves out of a plan what it finds to be empty, and with it the
    counts there; over Spark Connect, a checkpoint brings no counts at all (PySpark 4.3).
    Then the rows are counted anew.
    """
    try:
        rows = observation.get.get("rows")
    except Exception:  # how PySpark tells that there is none: a failed assertion in Java
        rows = None
    return frame.count() if rows is None else int(rows)


def cut(frame: DataFrame) -> tuple[DataFrame, int]:
    """The DataFrame computed, without its lineage, and its number of rows: one Spark job."""
    counted, observation = count_rows(frame)
    done = checkpointed(counted)
    return done, rows_counted(observation, done)


def width(spark: SparkSession) -> int:
    """How many partitions Spark shuffles into."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)


@dataclass(frozen=True, eq=False)
class Rows:
    """The tuples of a relation at one moment: disjoint DataFrames of cells, and their sizes.

    `given` is all of it, where the driver has it.
    """

    spark: SparkSession
    relation: Relation
    parts: tuple[DataFrame, ...] = ()
    sizes: tuple[int, ...] = ()
    given: pa.Table | None = None

    @property
    def size(self) -> int:
        """The number of tuples."""
        return sum(self.sizes)

    def read(self) -> DataFrame | None:
        """All tuples, as cells; None if there are none."""
        return reduce(DataFrame.unionAll, self.parts) if self.parts else None

    def frame(self) -> DataFrame:
        """All tuples, with the names and types that users know."""
        return outward_frame(self.spark, self.relation, self.read())

    def table(self) -> pa.Table:
        """All tuples, on the driver."""
        return _fetched(self.relation, self.given, self.parts)

    def first(self, count: int) -> pa.Table:
        """A few tuples, the first in Spark's order, on the driver."""
        frame = self.read()
        few = [] if frame is None else [frame.sort(*frame.columns).limit(count)]
        return _fetched(self.relation, None, few)

    def has(self, row: Sequence[Value]) -> bool:
        """Whether a row, given as cells, is among the tuples."""
        frame = self.read()
        if frame is None:
            return False
        for i, (value, type) in enumerate(zip(row, column_types(self.relation), strict=True)):
            frame = frame.filter(key(F.col(f"c{i}"), type) == key(literal(value, type), type))
        return not frame.isEmpty()

    def plus(self, candidates: DataFrame) -> Rows:
        """These tuples and the candidates, which may repeat themselves and what is there."""
        types = column_types(self.relation)
        rows, held = distinct(candidates, types), self.read()
        frame, size = cut(rows if held is None else without(rows, held, types))
        if not size:
            return self
        parts, sizes = (*self.parts, frame), (*self.sizes, size)
        if len(parts) > PARTS:
            whole, total = cut(reduce(DataFrame.unionAll, parts).coalesce(width(self.spark)))
            parts, sizes = (whole,), (total,)
        return Rows(self.spark, self.relation, parts, sizes)

    def minus(self, other: Rows) -> Rows:
        """The tuples that others are not. Parts of both are known to be the same without a look."""
        both = {id(part) for part in self.parts} & {id(part) for part in other.parts}
        mine = [(p, n) for p, n in zip(self.parts, self.sizes, strict=True) if id(p) not in both]
        theirs = [part for part in other.parts if id(part) not in both]
        if mine and theirs:
            before, types = reduce(DataFrame.unionAll, [p for p, _ in mine]), column_types(self.relation)
            frame, size = cut(without(before, reduce(DataFrame.unionAll, theirs), types))
            if size < sum(n for _, n in mine):
                mine = [(frame, size)] if size else []
        if len(mine) == len(self.parts) and all(p is q for (p, _), q in zip(mine, self.parts, strict=True)):
            return self
        return Rows(self.spark, self.relation, tuple(p for p, _ in mine), tuple(n for _, n in mine))


def computed(spark: SparkSession, relation: Relation, frame: DataFrame) -> Rows:
    """A DataFrame of cells, computed here and now and never again. It may have repetitions."""
    done, size = cut(frame)
    return Rows(spark, relation, (done,), (size,)) if size else Rows(spark, relation)


def split_changes(changes: Rows) -> tuple[Rows, Rows]:
    """Computed changes as the rows that come and those that go; of each fact the last change counts."""
    spark, relation = changes.spark, changes.relation
    frame = changes.read()
    if frame is None:
        return changes, changes
    types = column_types(relation)
    last = checkpointed(last_changes(frame, types))
    come, gone = (last.filter(c).select(*column_names(types)) for c in (F.col(ADDED), ~F.col(ADDED)))
    sizes = come.count(), gone.count()
    return Rows(spark, relation, (come,), sizes[:1]), Rows(spark, relation, (gone,), sizes[1:])


def rows_of(spark: SparkSession, relation: Relation, table: pa.Table) -> Rows:
    """Rows that the driver has, without repetitions."""
    if not table.num_rows:
        return Rows(spark, relation)
    cells = unique_rows(to_cells(table, column_types(relation)))
    kept = cells if cells.num_rows <= KEPT_ON_DRIVER else None
    return Rows(spark, relation, (frame_of(spark, cells),), (cells.num_rows,), kept)


def frame_of(spark: SparkSession, cells: pa.Table) -> DataFrame:
    """Rows that the driver has, as a DataFrame; it keeps them as long, if they are not many."""
    frame = spark.createDataFrame(cells)
    return readable(frame, lambda: cells) if cells.num_rows <= KEPT_ON_DRIVER else frame


def _fetched(relation: Relation, given: pa.Table | None, parts: Sequence[DataFrame]) -> pa.Table:
    """Rows on the driver: those that can be read here, and the others from Spark."""
    import pyarrow as pa

    if given is not None:
        return from_cells(given, relation)
    tables = [read() for part in parts if (read := way_to_read(part)) is not None]
    others = [part for part in parts if way_to_read(part) is None]
    if others:
        tables.append(reduce(DataFrame.unionAll, others).toArrow())
    none = arrow_schema(relation).empty_table()
    return pa.concat_tables([from_cells(table, relation) for table in tables]) if tables else none


class StoredRelation:
    """The tuples of one relation."""

    def __init__(self, spark: SparkSession, relation: Relation) -> None:
        self.relation = relation
        self.types = column_types(relation)
        self._spark = spark
        self._given: pa.Table | None = None  # the whole relation, while the driver has it
        self._parts: list[DataFrame] = []
        self._sizes: list[int] = []
        self._boundary = 0

    def size(self, version: Version = Version.ALL) -> int:
        """The number of tuples of a version."""
        return sum(self._sizes[self._range(version)])

    def read(self, version: Version = Version.ALL) -> DataFrame | None:
        """The tuples of a version; None if there are none."""
        parts = self._parts[self._range(version)]
        return reduce(DataFrame.unionAll, parts) if parts else None

    def _range(self, version: Version) -> slice:
        match version:
            case Version.ALL:
                return slice(None)
            case Version.OLD:
                return slice(self._boundary)
            case Version.DELTA:
                return slice(self._boundary, None)

    def clear(self) -> None:
        """Forget all tuples."""
        self._given, self._boundary = None, 0
        self._parts, self._sizes = [], []

    # --- between driver and Spark ------------------------------------------------

    def insert(self, rows: pa.Table | Rows) -> int:
        """Add rows; the number that were new."""
        import pyarrow as pa

        if isinstance(rows, Rows):
            return self._take(rows)
        if rows.num_rows == 0:
            return 0
        cells = to_cells(rows, self.types)
        before = self.size()
        if before and self._given is None:
            fresh = self.fresh(frame_of(self._spark, unique_rows(cells)))
            if fresh is not None:
                self.add(*fresh)
            return self.size() - before
        whole = unique_rows(cells if self._given is None else pa.concat_tables([self._given, cells]))
        self._given = whole if whole.num_rows <= KEPT_ON_DRIVER else None
        self._parts, self._sizes, self._boundary = [frame_of(self._spark, whole)], [whole.num_rows], 0
        return self.size() - before

    def _take(self, rows: Rows) -> int:
        """Add tuples that are in Spark already; an empty relation has them as they are."""
        before = self.size()
        frame = rows.read()
        if not before:
            self._given, self._boundary = rows.given, 0
            self._parts, self._sizes = list(rows.parts), list(rows.sizes)
        elif frame is not None:
            fresh = self.fresh(frame)
            if fresh is not None:
                self.add(*fresh)
        return self.size() - before

    def rows(self) -> Rows:
        """All tuples, as they are now."""
        return Rows(self._spark, self.relation, tuple(self._parts), tuple(self._sizes), self._given)

    def table(self) -> pa.Table:
        """All tuples."""
        return _fetched(self.relation, self._given, self._parts)

    # --- what tasks derive ---------------------------------------------------------

    def fresh(self, candidates: DataFrame) -> tuple[DataFrame, int] | None:
        """Those of the candidates that the relation does not hold, each once; None if there are none."""
        rows = distinct(candidates, self.types)
        held = self.read()
        frame, size = cut(rows if held is None else without(rows, held, self.types))
        return (frame, size) if size else None

    def add(self, frame: DataFrame, size: int) -> None:
        """Add tuples that the relation does not hold yet."""
        self._given = None
        self._parts.append(frame)
        self._sizes.append(size)

    def begin(self) -> None:
        """Begin a fixpoint: everything is DELTA."""
        self._boundary = 0

    def advance(self, fresh: tuple[DataFrame, int] | None) -> None:
        """Begin the next round of a fixpoint: `fresh` is the new DELTA."""
        self._boundary = len(self._parts)
        if self._boundary > PARTS:
            whole, size = cut(reduce(DataFrame.unionAll, self._parts).coalesce(width(self._spark)))
            self._parts, self._sizes, self._boundary = [whole], [size], 1
        if fresh is not None:
            self.add(*fresh)


class Sizes:
    """Statistics for the join order, from the sizes of relations: no Spark job."""

    def __init__(self, relations: Mapping[str, StoredRelation]) -> None:
        self._relations = relations

    def size(self, relation: str, version: Version) -> int:
        """The number of tuples."""
        return self._relations[relation].size(version)

    def fanout(self, relation: str, columns: Sequence[int]) -> float:
        """A guess: each column is as selective as the others."""
        stored = self._relations[relation]
        return float(stored.size() ** (1 - len(columns) / len(stored.types)))
