"""Relations in Parquet files, written and read by Spark; the same files that Arrow writes and reads.

A column has the type that Spark gives to what Arrow writes for it: unsigned integers are the next longer
type, `u64` is `decimal(20,0)`. Columns are found by their position.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from tidelog.execute.spark.cells import representation
from tidelog.execute.spark.place import literally
from tidelog.execute.spark.state import count_rows, rows_counted
from tidelog.execute.spark.types import column_names, column_types, distinct, spark_type, without
from tidelog.program.model import Relation
from tidelog.program.types import Type

_INTEGERS: tuple[tuple[int, DataType], ...] = (
    (8, ByteType()),
    (16, ShortType()),
    (32, IntegerType()),
    (64, LongType()),
)


def write_cells(cells: DataFrame, relation: Relation, names: Sequence[str], path: str) -> None:
    """Write a relation's cells as Parquet files into a directory, in place of what is there."""
    fields = _schema(relation, names).fields
    chosen = [F.col(f"c{i}").cast(field.dataType) for i, field in enumerate(fields)]
    cells.select(*chosen).toDF(*names).write.mode("overwrite").parquet(path)


def read_cells(spark: SparkSession, relation: Relation, names: Sequence[str], path: str) -> DataFrame:
    """The cells of a relation, from Parquet files."""
    types = column_types(relation)
    read = spark.read.schema(_schema(relation, names)).parquet(literally(path)).toDF(*column_names(types))
    return read.select(*(F.col(f"c{i}").cast(spark_type(t)).alias(f"c{i}") for i, t in enumerate(types)))


def write_state(state: DataFrame, path: str) -> int:
    """Write a keeper's state, as it is, into a directory of Parquet files; the number of rows."""
    counted, observation = count_rows(state)
    counted.write.mode("overwrite").parquet(path)
    return rows_counted(observation, state)


def read_state(spark: SparkSession, path: str) -> DataFrame:
    """A keeper's state, as it was written."""
    return spark.read.parquet(literally(path))


def cells_without(cells: DataFrame, others: DataFrame, relation: Relation) -> DataFrame:
    """The rows that are not among others."""
    return without(cells, others, column_types(relation))


def distinct_cells(spark: SparkSession, cells: DataFrame | None, relation: Relation) -> DataFrame:
    """The rows without repetitions; of none, a DataFrame without rows."""
    types = column_types(relation)
    if cells is not None:
        return distinct(cells, types)
    names = column_names(types)
    fields = [StructField(name, spark_type(type)) for name, type in zip(names, types, strict=True)]
    return spark.createDataFrame([], StructType(fields))


def _schema(relation: Relation, names: Sequence[str]) -> StructType:
    types = column_types(relation)
    return StructType([StructField(n, _file_type(t)) for n, t in zip(names, types, strict=True)])


def _file_type(type: Type) -> DataType:
    if representation(type) != "long":
        return spark_type(type)
    width = next(bits for bits, _ in _INTEGERS if type.bits <= bits)
    wide = (theirs for bits, theirs in _INTEGERS if width < bits or (type.signed and width == bits))
    return next(wide, DecimalType(20, 0))
