"""Steps from nothing, where there is more than the driver is to hold: a loop of DataFrames.

In each iteration the heads of its instances are counted in Spark; what is new drives the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import FIRST, TIMES, TRACE
from tidelog.execute.spark.keep.query import Literal, query
from tidelog.execute.spark.keep.relation import KeptRelation
from tidelog.execute.spark.keep.work import Work
from tidelog.execute.spark.state import cut
from tidelog.execute.spark.types import key, without
from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import AFTER
from tidelog.plan.readings import driven, whole
from tidelog.program.model import Negative, Positive

PARTS = 8  # before the tuples of several iterations become one DataFrame
ITERATION, COUNT = "iteration", "n"


def first_run(task: Steps, work: Work) -> None:
    """All iterations of a run; the relations are being renewed."""
    runs = {name: _Run(work.relations[name]) for name in task.relations}
    own = frozenset(task.relations)
    rules = [rule for rule in (*task.recursive, *task.added) if _reads(rule.body, own)]
    base = [rule for rule in (*task.base, *task.added) if rule not in rules]
    first = [whole(rule, AFTER, AFTER) for rule in base]
    later = [form for rule in rules for form in driven(rule, own, *[AFTER] * 5)]
    iteration = 0
    while iteration == 0 or any(run.newest is not None for run in runs.values()):
        iteration += 1
        heads: dict[str, list[DataFrame]] = {name: [] for name in runs}
        if iteration == 1:
            for name, run in runs.items():
                given = run.kept.explicit().read()
                if given is not None:
                    heads[name].append(given)
        for reading in first if iteration == 1 else later:
            sources = _sources(reading, runs, work)
            if sources is not None:
                frame = query(work.spark, reading, sources, work.head(reading), work.guards)
                if frame is not None:
                    heads[reading.rule.head.relation].append(frame)
        derived = {name: runs[name].counted(frames, iteration) for name, frames in heads.items()}
        for name, run in runs.items():
            work.report.new += run.advance(derived[name], iteration)
        work.round()
    for run in runs.values():
        run.kept.content = run.content(task.keep)


def _reads(body: tuple[object, ...], own: frozenset[str]) -> bool:
    return any(isinstance(literal, Positive) and literal.atom.relation in own for literal in body)


def _sources(reading: Reading, runs: Mapping[str, _Run], work: Work) -> dict[int, Literal | None] | None:
    """Own atoms before the driver read what is older, those behind it everything: each instance once."""
    found: dict[int, Literal | None] = {}
    for i, literal in enumerate(reading.rule.body):
        if not isinstance(literal, Positive | Negative):
            continue
        name = literal.atom.relation
        kept = work.relations[name]
        frame: DataFrame | None
        if name not in runs:
            frame, size = kept.read(AFTER), kept.expected()
        else:
            run = runs[name]
            driver = reading.driver if reading.driver is not None else -1
            frame = run.newest if i == driver else run.older() if i < driver else run.all()
            size = run.size
        if frame is None and isinstance(literal, Positive):
            return None
        found[i] = None if frame is None else Literal(frame.select(*kept.names), size)
    return found


class _Run:
    """A relation in the run: its tuples by iteration."""

    def __init__(self, kept: KeptRelation) -> None:
        self.kept = kept
        self.newest: DataFrame | None = None
        self.size = 0
        self._older: list[DataFrame] = []
        self._counts: list[DataFrame] = []  # for each iteration, what it derived and how often

    def older(self) -> DataFrame | None:
        """The tuples of all iterations but the last."""
        return reduce(DataFrame.unionAll, self._older) if self._older else None

    def all(self) -> DataFrame | None:
        """The tuples so far."""
        frames = self._older if self.newest is None else [*self._older, self.newest]
        return reduce(DataFrame.unionAll, frames) if frames else None

    def counted(self, heads: list[DataFrame], iteration: int) -> DataFrame | None:
        """How many instances of this iteration derive each tuple."""
        if not heads:
            return None
        names = self.kept.names
        keys = [key(F.col(n), t).alias(f"k_{n}") for n, t in zip(names, self.kept.types, strict=True)]
        counted = (
            reduce(DataFrame.unionAll, heads)
            .groupBy(*keys)
            .agg(*[F.first(name).alias(name) for name in names], F.count(F.lit(1)).alias(COUNT))
        )
        frame, size = cut(counted.select(*names, COUNT, F.lit(iteration).cast("bigint").alias(ITERATION)))
        return frame if size else None

    def advance(self, derived: DataFrame | None, iteration: int) -> int:
        """The next iteration: what of it is new, and how many tuples these are."""
        held = self.all()
        if self.newest is not None:
            self._older.append(self.newest)
            self.newest = None
        if len(self._older) > PARTS:
            self._older = [cut(reduce(DataFrame.unionAll, self._older))[0]]
        if derived is None:
            return 0
        self._counts.append(derived)
        if len(self._counts) > PARTS:
            self._counts = [cut(reduce(DataFrame.unionAll, self._counts))[0]]
        fresh = derived.select(*self.kept.names)
        if held is not None:
            fresh = without(fresh, held, self.kept.types)
        frame, size = cut(fresh)
        self.size += size
        self.newest = frame if size else None
        return size

    def content(self, keep: str) -> tuple[DataFrame | None, int]:
        """Every tuple with its numbers."""
        if not self._counts:
            return None, 0
        names = self.kept.names
        keys = [key(F.col(n), t).alias(f"k_{n}") for n, t in zip(names, self.kept.types, strict=True)]
        pairs = F.array_sort(F.collect_list(F.struct(ITERATION, COUNT)))
        grouped = (
            reduce(DataFrame.unionAll, self._counts)
            .groupBy(*keys)
            .agg(*[F.first(name).alias(name) for name in names], pairs.alias("pairs"))
        )
        first = F.col("pairs")[0]
        if keep == "trace":
            texts = F.transform(
                "pairs",
                lambda pair: F.concat_ws(":", pair[ITERATION].cast("string"), pair[COUNT].cast("string")),
            )
            numbers = [F.lit(0).cast("bigint"), F.array_join(texts, ",")]
        else:
            numbers = [first[COUNT], F.lit("")]
        chosen = [first[ITERATION].alias(FIRST), numbers[0].alias(TIMES), numbers[1].alias(TRACE)]
        return cut(grouped.select(*names, *chosen))
