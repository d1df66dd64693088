"""How values lie in DataFrames, and how tables cross between Arrow and Spark.

| type                                  | Spark column                          |
|---------------------------------------|---------------------------------------|
| bool                                  | boolean                               |
| integers that a signed 64-bit holds   | bigint, whatever the declared width   |
| u64                                   | decimal(20,0): Spark has no unsigned  |
| 128-bit integers, bigint              | string: the decimal text              |
| float, double                         | float, double                         |
| string                                | string                                |
| array, struct                         | string: its JSON                      |

Columns of a relation are called c0, c1, ...: names that users choose may differ in
case alone, which Spark does not tell apart. There are no nulls.

As stored values, floats are equal when they are the same number with the same sign
of zero, or both NaN. Spark takes 0.0 and -0.0 as one in keys, so wherever stored
values are compared (`key`) a float is compared by its text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tidelog.execute.spark.cells import arrow_cell_type, representation
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation, Value
from tidelog.program.types import BOOL, Type

if TYPE_CHECKING:
    import pyarrow as pa

_SPARK_TYPES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "long": LongType(),
    "decimal": DecimalType(20, 0),
    "float": FloatType(),
    "double": DoubleType(),
    "digits": StringType(),
    "string": StringType(),
}


def spark_type(type: Type) -> DataType:
    """The Spark type of a column."""
    return _SPARK_TYPES[representation(type)]


def column_types(relation: Relation) -> tuple[Type, ...]:
    """The types of a relation's columns; one hidden column where it has none."""
    return tuple(column.type for column in relation.columns) or (BOOL,)


def column_names(types: Sequence[Type]) -> list[str]:
    """What the columns of a relation are called in DataFrames."""
    return [f"c{i}" for i in range(len(types))]


def cells_schema(relation: Relation) -> StructType:
    """The schema of a relation's DataFrames."""
    types = column_types(relation)
    return StructType(
        [StructField(n, spark_type(t)) for n, t in zip(column_names(types), types, strict=True)]
    )


def literal(value: Value, type: Type) -> Column:
    """A constant."""
    match representation(type):
        case "boolean":
            return F.lit(bool(value))
        case "float" | "double" if isinstance(value, float) and not math.isfinite(value):
            text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return F.lit(text).cast(spark_type(type))
        case "float" | "double":
            return F.lit(repr(float(value))).cast(spark_type(type))
        case _:
            return F.lit(str(value)).cast(spark_type(type))


def key(column: Column, type: Type) -> Column:
    """What stored values are compared by."""
    return column.cast(StringType()) if type.kind == "float" else column


def distinct(frame: DataFrame, types: Sequence[Type]) -> DataFrame:
    """The rows of a relation's DataFrame without repetitions."""
    names = column_names(types)
    if not any(type.kind == "float" for type in types):
        return frame.distinct()
    keys = {f"k{i}": key(F.col(names[i]), t) for i, t in enumerate(types) if t.kind == "float"}
    compared = [f"k{i}" if type.kind == "float" else names[i] for i, type in enumerate(types)]
    return frame.withColumns(keys).dropDuplicates(compared).select(*names)


def without(frame: DataFrame, other: DataFrame, types: Sequence[Type]) -> DataFrame:
    """The rows of a relation's DataFrame that another one does not have."""
    names = column_names(types)
    renamed = other.select(*[F.col(name).alias(f"o_{name}") for name in names])
    condition = F.lit(True)
    for name, type in zip(names, types, strict=True):
        condition = condition & (key(F.col(name), type) == key(F.col(f"o_{name}"), type))
    return frame.join(renamed, condition, "left_anti")


def to_cells(table: pa.Table, types: Sequence[Type]) -> pa.Table:
    """A table as it crosses the seam, with the types that DataFrames have."""
    import pyarrow as pa

    fields = [pa.field(n, arrow_cell_type(t), False) for n, t in zip(column_names(types), types, strict=True)]
    return table.rename_columns(column_names(types)).cast(pa.schema(fields))


def from_cells(table: pa.Table, relation: Relation) -> pa.Table:
    """A table of a relation's DataFrame, as it crosses the seam."""
    import pyarrow as pa

    schema = arrow_schema(relation)
    columns = [table.column(i).cast(field.type) for i, field in enumerate(schema)]
    return pa.table(columns, schema=schema)


def unique_rows(table: pa.Table) -> pa.Table:
    """The rows of a table of cells without repetitions, on the driver."""
    import pyarrow as pa

    keyed = table
    for i, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            keyed = keyed.set_column(i, field.name, _bits(table.column(i)))
    rows = keyed.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    first = rows.group_by(table.column_names).aggregate([("row", "min")]).column("row_min")
    return table if len(first) == table.num_rows else table.take(first)


def _bits(column: pa.ChunkedArray) -> pa.Array:
    """Floats as their bits, with one NaN."""
    import numpy as np
    import pyarrow as pa

    values = column.to_numpy()
    values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return pa.array(values.view(np.int32 if values.dtype == np.float32 else np.int64))
