"""Keys that very many rows have when a fixpoint begins, from a sample of the rows.

A key is heavy if half a task's even part of the rows have it, and not few. That is an estimate, and
good enough: which keys are held to be heavy changes who has which rows, not the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tidelog.execute.spark.stage import feed
from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.state import StoredRelation
from tidelog.plan.placement import Key
from tidelog.program.arrow import is_text
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE = 20_000  # rows of a relation
LARGE = 200_000  # rows from which on a relation is looked at: that takes a Spark job
MANY = 10_000  # rows that a heavy key has at least
SEED = 1


class Sampled:
    """Finds heavy keys of relations; nothing is looked at before somebody asks."""

    def __init__(self, stored: Mapping[str, StoredRelation], tasks: int) -> None:
        self._stored, self._tasks = stored, tasks

    def __call__(self, relation: str, columns: tuple[int, ...]) -> Mapping[Key, float]:
        """The keys in some columns that are heavy, and how many rows have them."""
        stored = self._stored.get(relation)
        if stored is None or not _is_large(stored):
            return {}
        sample = self._samples.get(relation)
        if sample is None:
            return {}
        rows = stored.size()
        return heavy_keys(stored.relation, sample, columns, rows, max(MANY, rows / (2 * self._tasks)))

    def most(self, relation: str, column: int) -> float:
        """The part of a relation's rows that have the same value in a column, as far as that is much."""
        found = self(relation, (column,))
        return max(found.values(), default=0.0) / max(1, self._stored[relation].size())

    @cached_property
    def _samples(self) -> dict[str, pa.Table]:
        """Some rows of each large relation: one Spark job."""
        import pyarrow as pa

        large = {name: stored for name, stored in self._stored.items() if _is_large(stored)}
        layout = Layout([stored.relation for stored in large.values()])
        parts = []
        for stored in large.values():
            frame = stored.read()
            if frame is not None:
                part = frame.sample(min(1.0, SAMPLE / stored.size()), SEED)
                parts.append(feed.common(layout, stored.relation, part))
        found: dict[str, list[pa.Table]] = {}
        for batch in feed.together(parts).toArrow().to_batches():
            for name, table in layout.tables(batch):
                found.setdefault(name, []).append(table)
        return {name: pa.concat_tables(tables) for name, tables in found.items()}


def _is_large(stored: StoredRelation) -> bool:
    return stored.size() >= LARGE


def heavy_keys(
    relation: Relation, sample: pa.Table, columns: Sequence[int], rows: int, many: float
) -> dict[Key, float]:
    """The keys that so many of a relation's rows have, going by a sample of them."""
    import pyarrow.compute as pc

    names = [f"k{i}" for i in range(len(columns))]
    keys = sample.select(list(columns)).rename_columns(names)
    counted = keys.group_by(names).aggregate([([], "count_all")])
    each = rows / max(1, sample.num_rows)
    counted = counted.filter(pc.greater_equal(pc.multiply(counted["count_all"], each), many))
    values = [
        [int(v) for v in column.to_pylist()] if is_text(relation.columns[i].type) else column.to_pylist()
        for i, column in zip(columns, (counted[name] for name in names), strict=True)
    ]
    counts = [count * each for count in counted["count_all"].to_pylist()]
    return dict(zip(zip(*values, strict=True), counts, strict=True))
