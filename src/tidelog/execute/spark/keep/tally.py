"""Tally: one count for each tuple. On the driver, or from nothing also as one query."""

from __future__ import annotations

from collections import Counter
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import FIRST, TIMES, TRACE
from tidelog.execute.spark.keep.entries import Row
from tidelog.execute.spark.keep.query import query
from tidelog.execute.spark.keep.relation import KeptRelation
from tidelog.execute.spark.keep.work import Work
from tidelog.execute.spark.state import cut
from tidelog.execute.spark.types import key
from tidelog.plan.maintenance import Reading, Tally
from tidelog.plan.parts import EVERYTHING, Mark
from tidelog.syntax.errors import InternalError


def tally(task: Tally, work: Work) -> None:
    """Take away what is lost, add what is gained; then a tuple holds if it is explicit or has a count."""
    changes: dict[str, Counter[Row]] = {}
    lost = set(map(id, task.lost))
    for found in work.found(
        (*task.lost, *task.gained), (), detail=lambda one: "deletion" if id(one) in lost else "insertion"
    ):
        sign = -1 if id(found.reading) in lost else 1
        changes.setdefault(found.reading.rule.head.relation, Counter())[found.row] += sign
    work.load(changes)
    for name, counts in changes.items():
        for row, change in counts.items():
            if change:
                work.touch(name, row).count += change
    for name in task.relations:
        near = work.relations[name].near
        for entry in work.relations[name].touched(EVERYTHING):
            if entry.count < 0:
                raise InternalError(f"{name}{entry.row} has lost more than it had")
            work.report.new += near.hold(entry, entry.count > 0 or bool(entry.marks & Mark.EXPLICIT))
    work.round()


def tally_all(task: Tally, work: Work) -> None:
    """The counts of relations that are being renewed and are too large for the driver."""
    for name in task.relations:
        kept = work.relations[name]
        frames = [
            frame
            for reading in task.gained
            if reading.rule.head.relation == name
            if (frame := _heads(reading, work)) is not None
        ]
        kept.content = _counted(kept, frames)
        work.report.new += kept.content[1]
    work.round()


def _heads(reading: Reading, work: Work) -> DataFrame | None:
    sources = work.sources(reading, (), None)
    if sources is None:
        return None
    return query(work.spark, reading, sources, work.head(reading), work.guards)


def _counted(kept: KeptRelation, frames: list[DataFrame]) -> tuple[DataFrame | None, int]:
    """Each row with the number of its instances; explicit ones have no instance."""
    heads = [frame.withColumn("n", F.lit(1)) for frame in frames]
    given = kept.explicit().read()
    if given is not None:
        heads.append(given.withColumn("n", F.lit(0)))
    if not heads:
        return None, 0
    grouped = reduce(DataFrame.unionAll, heads).groupBy(
        *[
            key(F.col(name), type).alias(f"k_{name}")
            for name, type in zip(kept.names, kept.types, strict=True)
        ]
    )
    counted = grouped.agg(
        *[F.first(name).alias(name) for name in kept.names], F.sum("n").cast("bigint").alias(TIMES)
    )
    numbers = [F.lit(0).cast("bigint").alias(FIRST), F.col(TIMES), F.lit("").alias(TRACE)]
    return cut(counted.select(*kept.names, *numbers))
