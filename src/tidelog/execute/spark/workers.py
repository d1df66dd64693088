"""Calling Python from Spark, a batch of rows at a time, as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from tidelog.execute.spark.types import spark_type
from tidelog.program.types import Type


def in_workers(
    compute: Callable[[Sequence[pa.Array]], pa.Array], columns: Sequence[Column], type: Type
) -> Column:
    """The column that `compute` makes of other columns; it runs in Spark's Python workers."""

    def batch(*values: pa.Array) -> pa.Array:
        return compute(values)

    # PySpark's own types ask for a third argument, which at run time it asks to leave out.
    function: Callable[..., Column] = arrow_udf(batch, spark_type(type))  # type: ignore[call-overload]
    return function(*columns)
