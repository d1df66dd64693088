"""The relations of a database as DataFrames, with their versions.

A relation is a list of parts, disjoint DataFrames without repetitions whose lineage
has been cut. New tuples come as a new part, so that in a fixpoint OLD and DELTA are
the parts before and after a boundary. When there are too many parts they become one.

Rows handed over by the driver stay there as an Arrow table as long as the relation
holds nothing else: loading facts then costs no Spark job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.types import (
    column_types,
    distinct,
    from_cells,
    to_cells,
    unique_rows,
    without,
)
from tidelog.plan.executor import Version
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation

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
    done = counted.localCheckpoint(eager=True)
    return done, rows_counted(observation, done)


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

    def insert(self, rows: pa.Table) -> int:
        """Add rows; the number that were new."""
        import pyarrow as pa

        if rows.num_rows == 0:
            return 0
        cells = to_cells(rows, self.types)
        before = self.size()
        if before and self._given is None:
            fresh = self.fresh(self._frame(unique_rows(cells)))
            if fresh is not None:
                self.add(*fresh)
            return self.size() - before
        whole = unique_rows(cells if self._given is None else pa.concat_tables([self._given, cells]))
        self._given = whole if whole.num_rows <= KEPT_ON_DRIVER else None
        self._parts, self._sizes, self._boundary = [self._frame(whole)], [whole.num_rows], 0
        return self.size() - before

    def table(self) -> pa.Table:
        """All tuples."""
        if self._given is not None:
            return from_cells(self._given, self.relation)
        frame = self.read()
        if frame is None:
            return arrow_schema(self.relation).empty_table()
        return from_cells(frame.toArrow(), self.relation)

    def _frame(self, cells: pa.Table) -> DataFrame:
        return self._spark.createDataFrame(cells)

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
            whole, size = cut(reduce(DataFrame.unionAll, self._parts).coalesce(self._width()))
            self._parts, self._sizes, self._boundary = [whole], [size], 1
        if fresh is not None:
            self.add(*fresh)

    def _width(self) -> int:
        """How many partitions Spark shuffles into."""
        return int(self._spark.conf.get("spark.sql.shuffle.partitions") or 200)


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
