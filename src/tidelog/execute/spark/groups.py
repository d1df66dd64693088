"""Aggregates, with results that do not depend on the order of rows.

Integers are added exactly and checked once; floats are added as if exactly and
rounded once. Floats are ordered -inf < ... < -0.0 < 0.0 < ... < inf < NaN; Spark has NaN
there too but takes the two zeros as one, so which of them a group has is asked besides.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from tidelog.execute.spark.cells import representation
from tidelog.execute.spark.failures import Guard, Guards
from tidelog.execute.spark.sums import aggregate_lists, mean_of_sums
from tidelog.execute.spark.types import key, spark_type
from tidelog.execute.spark.workers import in_workers
from tidelog.program.model import AggregateRule, Aggregation, Relation, Value, Var
from tidelog.program.types import Type

WIDE = DecimalType(38, 0)  # holds the sum of 10^18 integers of 64 bits
COUNTED = ("long", "decimal")


def group(
    rule: AggregateRule, source: Relation, head: Relation, frame: DataFrame, guards: Guards
) -> DataFrame:
    """The head rows of an aggregate over a relation that has rows."""
    keys = [source.columns[i] for i in rule.keys]
    result = head.columns[-1].type
    grouped = frame.groupBy(*[key(F.col(f"c{i}"), source.columns[i].type) for i in rule.keys])
    kept = [F.first(f"c{i}").alias(f"k{n}") for n, i in enumerate(rule.keys)]
    value_type = None if rule.value is None else source.columns[rule.value].type
    parts = _parts(rule, value_type)
    rows = grouped.agg(*kept, *[part.alias(f"part{n}") for n, part in enumerate(parts)])
    columns = [F.col(f"k{n}").alias(f"c{n}") for n in range(len(keys))]
    value = _finish(rule, value_type, result, [F.col(f"part{n}") for n in range(len(parts))])
    rows = rows.select(*columns, value.cast(spark_type(result)).alias(f"c{len(keys)}"))
    guard = Guard(rule, tuple(Var(k.name, k.type) for k in keys), _overflow)
    return guards.guard(rows, F.col(f"c{len(keys)}"), guard, [F.col(f"c{n}") for n in range(len(keys))])


def _overflow(values: object) -> str:
    return "integer overflow"


def _parts(rule: AggregateRule, type: Type | None) -> list[Column]:
    """What Spark computes for each group."""
    if type is None or rule.value is None:
        return [F.count(F.lit(1))]
    column = F.col(f"c{rule.value}")
    match rule.op:
        case Aggregation.COUNT:
            return [F.count(F.lit(1))]
        case Aggregation.MIN if type.kind == "float":
            return [F.min(column), F.bool_or(key(column, type) == F.lit("-0.0"))]
        case Aggregation.MAX if type.kind == "float":
            return [F.max(column), ~F.bool_or(key(column, type) == F.lit("0.0"))]
        case Aggregation.MIN if representation(type) != "digits":
            return [F.min(column)]
        case Aggregation.MAX if representation(type) != "digits":
            return [F.max(column)]
        case Aggregation.SUM if representation(type) in COUNTED:
            return [F.sum(column.cast(WIDE))]
        case Aggregation.MEAN if representation(type) in COUNTED:
            return [F.sum(column.cast(WIDE)), F.count(F.lit(1))]
        case _:
            return [F.collect_list(column)]


def _finish(rule: AggregateRule, type: Type | None, result: Type, parts: list[Column]) -> Column:
    """The result from what Spark computed; null where it does not fit its type."""
    if type is None or rule.op is Aggregation.COUNT:
        return parts[0]
    if rule.op in (Aggregation.MIN, Aggregation.MAX) and type.kind == "float":
        extreme, negative = parts
        # Not literals: Spark's optimiser takes 0.0 and -0.0 as one, and the condition as superfluous.
        zero = F.when(negative, -F.abs(extreme)).otherwise(F.abs(extreme))
        return F.when(extreme == F.lit(0), zero).otherwise(extreme)
    if rule.op in (Aggregation.MIN, Aggregation.MAX) and representation(type) != "digits":
        return parts[0]
    if rule.op is Aggregation.SUM and representation(type) in COUNTED and result.kind == "int":
        low, high = (F.lit(str(bound)).cast(WIDE) for bound in _within(result))
        return F.when((parts[0] >= low) & (parts[0] <= high), parts[0])
    if rule.op is Aggregation.SUM and representation(type) in COUNTED:
        return parts[0]
    if rule.op is Aggregation.MEAN and representation(type) in COUNTED:
        return in_workers(partial(mean_of_sums, result), parts, result)
    return in_workers(partial(aggregate_lists, rule.op, type, result), parts, result)


def _within(result: Type) -> tuple[Value, Value]:
    """The bounds of a type, as far as a wide decimal can tell."""
    low, high = result.bounds()
    return max(low, -(10**37)), min(high, 10**37)
