"""What the planner asks about stored relations: sizes, and matches per key."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidelog.execute.local import layout as at
from tidelog.execute.local.relation import StoredRelation
from tidelog.plan.executor import Version

SAMPLE = 512


class StoredStatistics:
    """Statistics of the relations as they are now."""

    def __init__(self, relations: Mapping[str, StoredRelation]) -> None:
        self._relations = relations
        self._known: dict[tuple[str, tuple[int, ...]], float] = {}

    def size(self, relation: str, version: Version) -> int:
        """The number of rows of a version."""
        stored = self._relations[relation]
        low, high = int(stored.record[at.DELTA_LO]), int(stored.record[at.DELTA_HI])
        return {Version.ALL: high, Version.OLD: low, Version.DELTA: high - low}[version]

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """Rows per distinct value of some columns: exact with an index, else from a sample."""
        if (relation, columns) not in self._known:
            self._known[relation, columns] = self._fanout(self._relations[relation], columns)
        return self._known[relation, columns]

    def _fanout(self, stored: StoredRelation, columns: tuple[int, ...]) -> float:
        rows = len(stored)
        if rows == 0:
            return 0.0
        index = stored.indexes.get(columns)
        if index is not None and index.keys:
            return rows / index.keys
        return rows / _distinct(stored, columns)


def _distinct(stored: StoredRelation, columns: tuple[int, ...]) -> float:
    """An estimate of the distinct values of some columns, from evenly spaced rows.

    Values seen once in the sample stand for sqrt(rows / sample) values each, those
    seen more often for one (the guaranteed-error estimator).
    """
    rows = len(stored)
    sample = stored.cells[:: max(1, rows // SAMPLE)][:, list(columns)]
    _, seen = np.unique(sample, axis=0, return_counts=True)
    once = int((seen == 1).sum())
    return max(1.0, float(np.sqrt(rows / len(sample))) * once + (len(seen) - once))
