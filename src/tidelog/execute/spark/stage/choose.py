"""Which way a fixpoint runs, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.execute.spark.settings import Settings, Way
from tidelog.plan.placement import pivot
from tidelog.program.model import Rule

# The part of a relation's rows that have the same value in a column, as far as that is much.
Most = Callable[[str, int], float]


def even(_relation: str, _column: int) -> float:
    """Not much."""
    return 0.0


@dataclass(frozen=True)
class Choice:
    """A way, the reason for it, and the pivot columns where there are some."""

    way: Way
    why: str
    pivots: Mapping[str, int] | None = None


def choose(
    rules: Sequence[Rule], own: Sequence[str], sizes: Mapping[str, int], settings: Settings, most: Most = even
) -> Choice:
    """The way for a fixpoint over relations of these sizes; `own` are those that it derives."""
    pivots = pivot(rules, own)
    below = sum(size for name, size in sizes.items() if name not in own)
    rows = sum(sizes.values())
    if settings.way is not None:
        if settings.way is Way.pivot and pivots is None:
            return Choice(Way.barrier, "as set, but no column is handed on by the recursion")
        return Choice(settings.way, "as set", pivots)
    if settings.tasks == 1:
        return Choice(Way.single, "Spark runs one task at a time")
    if rows <= settings.small:
        return Choice(Way.single, f"{rows:,} rows fit one task")
    if pivots is not None and below <= settings.whole:
        columns = ", ".join(f"{name}.{column}" for name, column in pivots.items())
        part = max(most(name, column) for name, column in pivots.items())
        if part < min(1 / 2, 2 / settings.tasks):
            return Choice(Way.pivot, f"{columns} is handed on by the recursion", pivots)
        return Choice(Way.barrier, f"{part:.0%} of the rows have the same value in {columns}")
    return Choice(Way.barrier, f"{rows:,} rows for {settings.tasks} tasks")
