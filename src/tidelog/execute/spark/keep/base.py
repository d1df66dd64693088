"""What a relation held when its changes were last written into it: one DataFrame.

Beside the cells it has the columns `marks` (HELD, and EXPLICIT or not), `first`, `times` and
`trace`. Where they are the same for all rows they are constants, which cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.entries import Entry, Row, State, arrays_of, rows_of
from tidelog.execute.spark.state import Rows
from tidelog.execute.spark.types import column_names, column_types, key, without
from tidelog.plan.parts import Mark
from tidelog.program.model import Relation
from tidelog.program.types import S64, STRING, Type

if TYPE_CHECKING:
    import pyarrow as pa

MARKS, FIRST, TIMES, TRACE = "marks", "first", "times", "trace"
NUMBERS = (MARKS, FIRST, TIMES, TRACE)
NUMBER_TYPES = (S64, S64, S64, STRING)  # a trace is text: `1:2,3:1`
HELD, GIVEN = int(Mark.HELD), int(Mark.HELD | Mark.EXPLICIT)


@dataclass(frozen=True, eq=False)
class Base:
    """The rows, their number, and how many are explicit; the cells alone where all rows are alike."""

    frame: DataFrame
    size: int
    given: int
    rows: Rows | None = None


def plain(rows: Rows, marks: int, first: int) -> Base | None:
    """A base whose rows all have the same marks and numbers; None if there are no rows."""
    frame = rows.read()
    if frame is None or not rows.size:
        return None
    given = rows.size if marks == GIVEN else 0
    return Base(frame.select(*frame.columns, *constants(marks, first)), rows.size, given, rows)


def constants(marks: int, first: int = 0, times: int = 0) -> list[Column]:
    """The same marks and numbers for every row."""
    values = {MARKS: marks, FIRST: first, TIMES: times}
    return [F.lit(n).cast("bigint").alias(name) for name, n in values.items()] + [F.lit("").alias(TRACE)]


# --- rows of the driver as DataFrames ------------------------------------------------------------


def table_of(
    rows: Sequence[Row], types: Sequence[Type], more: Mapping[str, pa.Array] | None = None
) -> pa.Table:
    """Rows as a table of cells, with more columns."""
    import pyarrow as pa

    named = dict(zip(column_names(types), arrays_of(rows, types), strict=True))
    return pa.table({**named, **(more or {})})


def frame_of(spark: SparkSession, entries: Sequence[Entry], types: Sequence[Type]) -> DataFrame:
    """Entries with their marks and numbers."""
    return spark.createDataFrame(numbered_table(entries, types))


def numbered_table(entries: Sequence[Entry], types: Sequence[Type]) -> pa.Table:
    """Entries with their marks and numbers, on the driver."""
    import pyarrow as pa

    more = {
        MARKS: pa.array([entry.marks for entry in entries], pa.int64()),
        FIRST: pa.array([entry.first for entry in entries], pa.int64()),
        TIMES: pa.array([entry.count for entry in entries], pa.int64()),
        TRACE: pa.array([written(entry.trace) for entry in entries], pa.string()),
    }
    return table_of([entry.row for entry in entries], types, more)


def hidden(frame: DataFrame, rows: DataFrame, types: Sequence[Type]) -> DataFrame:
    """A DataFrame without some rows of the driver."""
    return without(frame, F.broadcast(rows), types)


def only(frame: DataFrame, rows: DataFrame, names: Sequence[str], types: Sequence[Type]) -> DataFrame:
    """The rows of a DataFrame that agree with one of a few others in columns of these names and types."""
    renamed = rows.select(*[F.col(name).alias(f"o_{name}") for name in names])
    condition = F.lit(True)
    for name, type in zip(names, types, strict=True):
        condition = condition & (key(F.col(name), type) == key(F.col(f"o_{name}"), type))
    return frame.join(F.broadcast(renamed), condition, "left_semi")


def states_of(table: pa.Table, relation: Relation) -> list[tuple[Row, State]]:
    """The rows of a table of cells, marks and numbers."""
    types = column_types(relation)
    rows = rows_of(table, types)
    marks, first, times, trace = (table.column(len(types) + i).to_pylist() for i in range(4))
    return [
        (row, State(m, f, n, read_trace(t)))
        for row, m, f, n, t in zip(rows, marks, first, times, trace, strict=True)
    ]


def written(trace: Sequence[tuple[int, int]]) -> str:
    """A trace as it lies in a column."""
    return ",".join(f"{iteration}:{count}" for iteration, count in trace)


def read_trace(text: str) -> tuple[tuple[int, int], ...]:
    """A trace from a column."""
    if not text:
        return ()
    pairs = (pair.split(":") for pair in text.split(","))
    return tuple((int(iteration), int(count)) for iteration, count in pairs)
