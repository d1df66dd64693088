"""Answers kept current on Spark: what tells them from others is that they stay there."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from weakref import WeakValueDictionary

from tidelog.execute import open_executor
from tidelog.execute.spark.delta import FrameDelta
from tidelog.program.model import Relation
from tidelog.session.frames.changes import FrameComparison
from tidelog.session.frames.held import InSpark
from tidelog.session.maintained import Maintained
from tidelog.session.report import Watch

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.keep.keeper import SparkKeeper
    from tidelog.maintain.protocol import Algorithm
    from tidelog.plan.maintenance import Delta, Keeper

PLACE = "on Spark"


class OnSpark(Maintained):
    """A keeper on Spark: the caller's session, or one of our own."""

    def __init__(self, spark: object | None, algorithm: str | Algorithm, watch: Watch | None) -> None:
        self._tables = cast("SparkKeeper", open_executor("spark", spark=spark, keep=True))
        super().__init__(cast("Keeper", self._tables), algorithm, watch, place=PLACE)
        self._unfetched: WeakValueDictionary[int, FrameDelta | FrameComparison] = WeakValueDictionary()

    def _facts(self, name: str) -> pa.Table:
        return cast("pa.Table", self._tables.explicit(name))

    def _delta(self, name: str) -> Delta:
        delta = self._tables.delta(name)
        self.fetch_later(delta)
        return cast("Delta", delta)

    def fetch_later(self, changes: FrameDelta | FrameComparison) -> None:
        """Changes that have to be on the driver before the session goes, if it goes with this."""
        if not self._tables.lasting:
            self._unfetched[id(changes)] = changes

    def rows(self, relation: Relation) -> InSpark | None:
        """The tuples of a relation, in Spark; None where they would not outlast this, or there are none."""
        if not self._tables.lasting or relation.name not in self._stored or self._closed:
            return None
        return self._tables.rows(relation.name)

    def held(self, relation: Relation) -> pa.Table | InSpark:
        """The tuples of a relation, in Spark if they can stay there."""
        return self.rows(relation) or self.table(relation)

    def close(self) -> None:
        """Give back what the engine holds."""
        if not self._closed:
            for changes in list(self._unfetched.values()):
                changes.fetch()
        super().close()
