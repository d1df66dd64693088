"""Tuples that Spark has, and how those of this process come there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tidelog.program.model import Relation, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.execute.spark.state import Rows


@runtime_checkable
class InSpark(Protocol):
    """Tuples of a relation that Spark has (`execute.spark.state.Rows`)."""

    def table(self) -> pa.Table:
        """All of them, on the driver."""

    def first(self, count: int) -> pa.Table:
        """A few of them, on the driver."""

    def frame(self) -> DataFrame:
        """A DataFrame."""

    def has(self, row: Sequence[Value]) -> bool:
        """Whether a row is among them."""


def taken_there(spark: SparkSession, relation: Relation, table: pa.Table) -> Rows:
    """Tuples of this process, without repetitions, in Spark."""
    from tidelog.execute.spark.state import Rows
    from tidelog.execute.spark.types import column_types, to_cells

    if not table.num_rows:
        return Rows(spark, relation)
    cells = to_cells(table, column_types(relation))
    return Rows(spark, relation, (spark.createDataFrame(cells),), (cells.num_rows,), cells)
