"""Several queries as one Spark job, with their rows on the driver, if they are few.

The queries of a round differ in their columns. They are put together by how values lie: the first
column of long integers of one query and that of another are one column. Each row has the number of
its query.

A row also has its place within its partition, and no partition gives more than its share of rows:
so nothing large ever comes to the driver, without a shuffle for a limit. If a partition had more, the
rows are computed once more, and counted where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.cells import representation
from tidelog.execute.spark.state import cut, width
from tidelog.execute.spark.types import spark_type
from tidelog.plan.maintenance import Abandoned
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

QUERY, PLACE = "query", "place"
LEAST_SHARE = 1_000
_ROW = (1 << 33) - 1  # the bits of Spark's increasing ids that count within a partition


class Outgrown(Abandoned):
    """There are more rows than the driver is to hold."""


Query = tuple[DataFrame, Sequence[Type]]


def fetch(spark: SparkSession, queries: Sequence[Query], most: int) -> list[pa.Table]:
    """The rows of each query, whose columns are of these types. Raises Outgrown if they are too many."""
    if not queries:
        return []
    slots = [_slots(types) for _, types in queries]
    every = dict.fromkeys(slot for used in slots for slot in used)
    kinds: dict[str, Type] = {
        slot: type
        for used, (_, types) in zip(slots, queries, strict=True)
        for slot, type in zip(used, types, strict=True)
    }
    frames = []
    for number, ((frame, _), used) in enumerate(zip(queries, slots, strict=True)):
        columns = [
            F.col(slot) if slot in used else F.lit(None).cast(spark_type(kinds[slot])).alias(slot)
            for slot in every
        ]
        # Named anew, as to ask for the names would be a call to Spark.
        frames.append(frame.toDF(*used).select(F.lit(number).alias(QUERY), *columns))
    table = _bounded(spark, reduce(DataFrame.unionAll, frames), most)
    return _split(table, slots)


def _slots(types: Sequence[Type]) -> list[str]:
    """The columns of a query: how its values lie, and the how manieth of these each is."""
    seen: Counter[str] = Counter()
    found = []
    for type in types:
        kind = representation(type)
        found.append(f"{kind}_{seen[kind]}")
        seen[kind] += 1
    return found


def _bounded(spark: SparkSession, frame: DataFrame, most: int) -> pa.Table:
    share = max(LEAST_SHARE, most // width(spark))
    placed = frame.withColumn(PLACE, F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW)))
    table = placed.filter(F.col(PLACE) <= F.lit(share)).toArrow()
    places = table.column(PLACE).to_numpy()
    if len(places) and places.max() >= share:
        whole, size = cut(frame)
        if size > most:
            raise Outgrown
        table = whole.toArrow()
    if table.num_rows > most:
        raise Outgrown
    return table


def _split(table: pa.Table, slots: Sequence[Sequence[str]]) -> list[pa.Table]:
    """The rows of each query."""
    if len(slots) == 1:
        return [table.select(slots[0])]
    numbers = table.column(QUERY).to_numpy()
    return [table.filter(_mask(numbers, i)).select(used) for i, used in enumerate(slots)]


def _mask(numbers: Any, query: int) -> pa.Array:
    import pyarrow as pa

    return pa.array(numbers == query)
