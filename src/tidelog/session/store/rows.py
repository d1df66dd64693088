"""Sets of rows, in Arrow and in Spark, and the Parquet files that hold them.

Both write files that the other one reads: columns by their position, under the names that the
relation has, or as c0, c1, ... where these differ in case alone, which Spark does not tell apart. A
relation without columns has the hidden one of `program.arrow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from tidelog.execute.spark.delta import FrameDelta
from tidelog.io.plain import table_of_values
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation
from tidelog.session.frames.held import InSpark
from tidelog.session.store.errors import StoreError, damaged, said
from tidelog.session.store.files import Files
from tidelog.session.store.manifest import Level, Part

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.execute.spark.state import Rows
    from tidelog.plan.maintenance import Delta

T = TypeVar("T")


class Sets(Protocol[T]):
    """What can be done with sets of rows of one relation."""

    def read(self, part: Part) -> T:
        """The rows of a file."""

    def write(self, rows: T, path: str) -> Part | None:
        """Write rows to a file; None, and no file, if there are none."""

    def minus(self, rows: T, others: T) -> T:
        """The rows that are not among others."""

    def plus(self, rows: T, others: T) -> T:
        """The rows and the others, which have none in common."""

    def given(self, rows: object) -> T:
        """Rows of any kind, each once."""


@dataclass(frozen=True)
class Moves(Generic[T]):
    """The rows that go, then those that come; None where there are none."""

    gone: T | None
    come: T | None


def field_names(relation: Relation) -> list[str]:
    """What the columns of a relation are called in files."""
    names = [field.name for field in arrow_schema(relation)]
    same = len({name.casefold() for name in names}) < len(names)
    return [f"c{i}" for i in range(len(names))] if same else names


class ArrowSets:
    """Rows in this process, as tables in the layout of `program.arrow`."""

    def __init__(self, files: Files, relation: Relation) -> None:
        self._files, self._relation = files, relation
        self._schema = arrow_schema(relation)

    def read(self, part: Part) -> pa.Table:
        """The rows of a file. Raises StoreError if they are not what was written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        opened = self._files.opened(part.path)
        where, system = opened if isinstance(opened, tuple) else (opened, None)
        try:
            table = pq.read_table(where, filesystem=system, partitioning=None)
            if table.num_rows != part.rows:
                raise damaged(part.path, f"it has {table.num_rows:,} rows, and should have {part.rows:,}")
            columns = [c.cast(f.type) for c, f in zip(table.columns, self._schema, strict=True)]
        except StoreError:
            raise
        except FileNotFoundError:
            raise damaged(part.path, "the file is not there") from None
        except (OSError, ValueError, NotImplementedError) as error:  # what Arrow raises are such
            raise damaged(part.path, said(error)) from error
        return pa.table(columns, schema=self._schema)

    def write(self, rows: pa.Table, path: str) -> Part | None:
        """Write rows to one file."""
        import pyarrow.parquet as pq

        if not rows.num_rows:
            return None
        named = rows.rename_columns(field_names(self._relation))
        self._files.write(path, lambda file: pq.write_table(named, file, compression="zstd"))
        return Part(path, rows.num_rows)

    def minus(self, rows: pa.Table, others: pa.Table) -> pa.Table:
        """The rows that are not among others; NaN is one value, 0.0 and -0.0 are two."""
        import pyarrow as pa

        if not rows.num_rows or not others.num_rows:
            return rows
        mine = self._compared(rows)
        place = pa.array(range(rows.num_rows), pa.int64())
        left = mine.append_column("row", place).join(
            self._compared(others), keys=mine.column_names, join_type="left anti"
        )
        return rows if left.num_rows == rows.num_rows else rows.take(left.column("row").sort())

    def plus(self, rows: pa.Table, others: pa.Table) -> pa.Table:
        """The rows and the others."""
        import pyarrow as pa

        return pa.concat_tables([rows, others])

    def given(self, rows: object) -> pa.Table:
        """Rows of Python, a table, or rows in Spark, which are fetched."""
        if isinstance(rows, list | tuple):
            rows = table_of_values(rows, self._relation.columns)
        elif isinstance(rows, InSpark):
            rows = rows.table()
        return self._unique(cast("pa.Table", rows))

    def _unique(self, rows: pa.Table) -> pa.Table:
        import pyarrow as pa

        keyed = self._compared(rows)
        numbered = keyed.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
        first = numbered.group_by(keyed.column_names).aggregate([("row", "min")]).column("row_min")
        return rows if len(first) == rows.num_rows else rows.take(first.sort())

    def table(self, rows: pa.Table | None) -> pa.Table:
        """The rows, if there are any."""
        return self._schema.empty_table() if rows is None else rows

    def _compared(self, rows: pa.Table) -> pa.Table:
        """What tells rows apart: floats as their bits."""
        import pyarrow as pa

        columns = [_bits(c) if pa.types.is_floating(c.type) else c for c in rows.columns]
        return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column).combine_chunks()
    return plain.view(pa.int32() if column.type == pa.float32() else pa.int64())


class SparkSets:
    """Rows in Spark, as DataFrames of cells."""

    def __init__(self, files: Files, relation: Relation, spark: SparkSession) -> None:
        self._files, self._relation, self._spark = files, relation, spark

    def read(self, part: Part) -> DataFrame:
        """The rows of a file; Spark reads them when they are asked for."""
        from tidelog.execute.spark.parquet import read_cells

        names = field_names(self._relation)
        return read_cells(self._spark, self._relation, names, f"{self._files.spark}/{part.path}")

    def write(self, rows: DataFrame, path: str) -> Part | None:
        """Write rows to a directory of files."""
        from tidelog.execute.spark.parquet import write_cells
        from tidelog.execute.spark.state import count_rows, rows_counted

        counted, observation = count_rows(rows)
        place = f"{self._files.spark}/{path}"
        write_cells(counted, self._relation, field_names(self._relation), place)
        written = Part(path, rows_counted(observation, self.read(Part(path, 0))))
        if not written.rows:
            self._files.remove(path)
            return None
        return written

    def minus(self, rows: DataFrame, others: DataFrame) -> DataFrame:
        """The rows that are not among others."""
        from tidelog.execute.spark.parquet import cells_without

        return cells_without(rows, others, self._relation)

    def plus(self, rows: DataFrame, others: DataFrame) -> DataFrame:
        """The rows and the others."""
        return rows.unionAll(others)

    def given(self, rows: object) -> DataFrame:
        """Rows in Spark, or of this process."""
        from tidelog.execute.spark.parquet import distinct_cells
        from tidelog.execute.spark.state import Rows, rows_of

        if isinstance(rows, list | tuple):
            rows = table_of_values(rows, self._relation.columns)
        if not isinstance(rows, Rows):
            rows = rows_of(self._spark, self._relation, cast("pa.Table", rows))
        return distinct_cells(self._spark, rows.read(), self._relation)

    def rows(self, frame: DataFrame | None, size: int) -> Rows:
        """So many rows, as answers have them."""
        from tidelog.execute.spark.state import Rows

        if frame is None or not size:
            return Rows(self._spark, self._relation)
        return Rows(self._spark, self._relation, (frame,), (size,))


# --- changes that have been written ------------------------------------------------


class RecordedDelta:
    """What a level has, read when somebody asks for it."""

    def __init__(self, sets: ArrowSets, level: Level) -> None:
        self._sets, self._level = sets, level

    @cached_property
    def deleted(self) -> pa.Table:
        """The rows that went."""
        return self._rows(self._level.deleted)

    @cached_property
    def inserted(self) -> pa.Table:
        """The rows that came."""
        return self._rows(self._level.inserted)

    def _rows(self, part: Part | None) -> pa.Table:
        return self._sets.table(None if part is None else self._sets.read(part))


def recorded(files: Files, relation: Relation, level: Level, spark: SparkSession | None) -> Delta:
    """The changes of a level, in Spark if there is a session."""
    if spark is None:
        return cast("Delta", RecordedDelta(ArrowSets(files, relation), level))
    sets = SparkSets(files, relation, spark)
    sides = [
        (None, 0) if part is None else (sets.read(part), part.rows)
        for part in (level.deleted, level.inserted)
    ]
    return cast("Delta", FrameDelta(*(sets.rows(frame, size) for frame, size in sides)))
