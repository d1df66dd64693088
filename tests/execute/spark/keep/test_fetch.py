"""Several queries as one job, and what is too much for the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.fetch import LEAST_SHARE, Outgrown, fetch
from tidelog.program.types import S64, STRING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_queries_of_different_columns(spark: SparkSession) -> None:
    numbers = spark.range(3).select(F.col("id").alias("a"), (F.col("id") * 2).alias("b"))
    texts = spark.range(2).select(F.col("id").cast("string").alias("x"), F.col("id").alias("y"))
    none = spark.range(0).select(F.col("id").alias("a"))
    first, second, third = fetch(spark, [(numbers, [S64, S64]), (texts, [STRING, S64]), (none, [S64])], 100)
    assert sorted(zip(*first.to_pydict().values(), strict=True)) == [(0, 0), (1, 2), (2, 4)]
    assert sorted(zip(*second.to_pydict().values(), strict=True)) == [("0", 0), ("1", 1)]
    assert third.num_rows == 0


def test_too_many_rows(spark: SparkSession) -> None:
    one = spark.range(0, 2 * LEAST_SHARE, numPartitions=1).select(F.col("id").alias("a"))
    with pytest.raises(Outgrown):
        fetch(spark, [(one, [S64])], 2 * LEAST_SHARE - 1)


def test_many_rows_of_one_partition_are_not_too_many(spark: SparkSession) -> None:
    one = spark.range(0, 2 * LEAST_SHARE, numPartitions=1).select(F.col("id").alias("a"))
    [table] = fetch(spark, [(one, [S64])], 2 * LEAST_SHARE)
    assert sorted(table.column(0).to_pylist()) == list(range(2 * LEAST_SHARE))
