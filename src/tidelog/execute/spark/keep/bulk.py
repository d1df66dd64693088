"""A relation of which a commit changes more than the driver is to hold.

Its tuples before and after are `Rows`; what tells them apart is found by comparing, when it is
first asked for. There are no marks: a tuple is kept, lost or gained, which is all that other
strata ask.
"""

from __future__ import annotations

from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import (
    FIRST,
    GIVEN,
    HELD,
    MARKS,
    TIMES,
    TRACE,
    Base,
    plain,
)
from tidelog.execute.spark.state import Rows, cut
from tidelog.execute.spark.types import column_types, key, without
from tidelog.plan.parts import Mark, Part

KEPT_MARKS, LOST_MARKS, GAINED_MARKS = Mark.HELD, Mark.HELD | Mark.DELETED, Mark.ADDED


class Bulk:
    """A relation before and after.

    `content` has the rows after with their numbers, where numbers are kept; else all have rank `first`.
    """

    def __init__(
        self, before: Rows, now: Rows, explicit: Rows, content: DataFrame | None = None, first: int = 0
    ) -> None:
        self.before, self.now, self.explicit = before, now, explicit
        self.content, self.first = content, first

    @cached_property
    def lost(self) -> Rows:
        """The rows that are there no more."""
        return self.before.minus(self.now) if self.before.size else Rows(self.now.spark, self.now.relation)

    @cached_property
    def gained(self) -> Rows:
        """The new rows."""
        return self.now.minus(self.before) if self.now.size else self.now

    def read(self, part: Part) -> DataFrame | None:
        """The tuples of a part."""
        kept, lost, gained = (marks in part for marks in (KEPT_MARKS, LOST_MARKS, GAINED_MARKS))
        if not kept:
            return _together([r for r, wanted in ((self.lost, lost), (self.gained, gained)) if wanted])
        if lost:
            return _together([self.before, self.gained] if gained else [self.before])
        if gained:
            return self.now.read()
        now, new = self.now.read(), self.gained.read()
        return now if now is None or new is None else without(now, new, column_types(self.now.relation))

    def touched(self, part: Part) -> Rows:
        """The tuples of a part that have changed."""
        wanted = [
            r for r, m in ((self.lost, LOST_MARKS), (self.gained, GAINED_MARKS)) if m in part and r.size
        ]
        parts = tuple(frame for rows in wanted for frame in rows.parts)
        return Rows(self.now.spark, self.now.relation, parts, tuple(n for rows in wanted for n in rows.sizes))

    def base(self) -> Base | None:
        """What is held once the commit is done."""
        now, explicit = self.now, self.explicit
        if self.content is None and explicit.size in (0, now.size):
            return plain(now, GIVEN if explicit.size else HELD, self.first)
        frame = now.read()
        if frame is None:
            return None
        types, names = column_types(now.relation), frame.columns
        if self.content is None:
            numbers = [F.lit(self.first).cast("bigint").alias(FIRST), F.lit(0).cast("bigint").alias(TIMES)]
            content = frame.select(*names, *numbers, F.lit("").alias(TRACE))
        else:
            content = self.content
        columns = [FIRST, TIMES, TRACE]
        given = explicit.read()
        if given is None or explicit.size == now.size:
            marks = F.lit(GIVEN if explicit.size else HELD).cast("bigint").alias(MARKS)
            return Base(content.select(*names, marks, *columns), now.size, explicit.size)
        renamed = given.select(*[F.col(name).alias(f"o_{name}") for name in names])
        same = reduce(
            lambda a, b: a & b,
            [key(F.col(n), t) == key(F.col(f"o_{n}"), t) for n, t in zip(names, types, strict=True)],
        )
        joined = content.join(renamed.withColumn("o_given", F.lit(1)), same, "left_outer")
        marks = F.when(F.col("o_given").isNotNull(), F.lit(GIVEN)).otherwise(F.lit(HELD))
        frame, size = cut(joined.select(*names, marks.cast("bigint").alias(MARKS), *columns))
        return Base(frame, size, explicit.size)


def _together(rows: list[Rows]) -> DataFrame | None:
    frames = [frame for one in rows if (frame := one.read()) is not None]
    return reduce(DataFrame.unionAll, frames) if frames else None
