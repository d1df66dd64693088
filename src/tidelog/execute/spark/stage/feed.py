"""From the DataFrames of relations to what a stage's tasks are fed with, and back from what they yield."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.stage.layout import SAID, SPARK_TYPES, Layout
from tidelog.execute.spark.stage.output import Found
from tidelog.execute.spark.stage.work import Work
from tidelog.execute.spark.types import column_names, column_types, key, spark_type
from tidelog.program.model import Relation

TARGET = "target"


def common(layout: Layout, relation: Relation, frame: DataFrame, target: Column | None = None) -> DataFrame:
    """The rows of a relation in common columns; with a target, the task that each row goes to."""
    place = {name: f"c{i}" for i, name in enumerate(layout.columns[relation.name])}
    columns = [F.lit(layout.numbers[relation.name]).cast("int").alias("relation")]
    for name in layout.names:
        type = SPARK_TYPES[name[0]]
        value = F.col(place[name]) if name in place else F.lit(None)
        columns.append(value.cast(type).alias(name))
    columns.append(F.lit(None).cast("string").alias("said"))
    if target is not None:
        columns.append(target.alias(TARGET))
    return frame.select(*columns)


def in_tasks(rows: DataFrame, work: Work, ddl: str, *, barrier: bool = False) -> DataFrame:
    """What tasks make of the rows they are given; `ddl` are the columns that they yield."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pandas that we do not use
        return rows.mapInArrow(work, ddl, barrier=barrier)


def together(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows as one DataFrame."""
    return reduce(DataFrame.unionAll, frames)


def owner_of(relation: Relation, columns: Sequence[int], tasks: int) -> Column:
    """The number of the task that a row goes to: a hash of some columns."""
    types = column_types(relation)
    keys = [key(F.col(f"c{i}"), types[i]) for i in columns]
    return F.pmod(F.xxhash64(*keys), F.lit(tasks)).cast("int")


def everyone(tasks: int) -> Column:
    """All tasks: the row goes to each of them."""
    return F.explode(F.array(*[F.lit(task) for task in range(tasks)]))


def rows_of(layout: Layout, relation: Relation, answers: DataFrame) -> DataFrame:
    """The rows of a relation among what tasks yielded, as its DataFrames have them."""
    types = column_types(relation)
    rows = answers.filter(F.col("relation") == F.lit(layout.numbers[relation.name]))
    return rows.select(
        *[
            F.col(common_name).cast(spark_type(type)).alias(name)
            for common_name, name, type in zip(
                layout.columns[relation.name], column_names(types), types, strict=True
            )
        ]
    )


def said(answers: DataFrame) -> list[dict[str, Any]]:
    """What tasks said that gave their tuples to Spark."""
    rows = answers.filter(F.col("relation") == F.lit(SAID)).select("said").collect()
    return [json.loads(row[0]) for row in rows]


def found(answers: DataFrame) -> Found:
    """What tasks told that have left their tuples in files."""
    all = Found()
    for told, rows in answers.collect():
        all.add(told, rows)
    return all
