"""What has changed, in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from threading import RLock
from typing import TYPE_CHECKING, cast

from tidelog.execute.spark.delta import FrameDelta
from tidelog.program.model import Relation
from tidelog.session.frames.held import taken_there

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.execute.spark.state import Rows
    from tidelog.plan.maintenance import Delta


Entry = tuple[Relation, "Delta", tuple[int, int]]


class FrameComparison(Mapping[str, Entry]):
    """What tells two states apart: of each relation compared in Spark, when somebody first asks for it.

    Until then it holds on to both states. The old one may be brought to Spark only then, by a function.
    """

    def __init__(self, old: Mapping[str, Rows | Callable[[], Rows]], new: Mapping[str, Rows]) -> None:
        self._pairs = {name: (old.get(name), new.get(name)) for name in {**old, **new}}
        self.names = list(self._pairs)  # all that may have changed
        self._found: dict[str, Entry] = {}
        self._lock = RLock()

    def settle(self) -> None:
        """Be asked for nothing more of the engines: the states are here."""

    def fetch(self) -> None:
        """Have all of it on the driver, before the session goes."""
        for name in self:
            cast("FrameDelta", self[name][1]).fetch()

    def __getitem__(self, name: str) -> Entry:
        with self._lock:
            if name in self._pairs:
                self._compare(name)
            return self._found[name]

    def _compare(self, name: str) -> None:
        from tidelog.execute.spark.state import Rows

        old, new = self._pairs[name]
        if callable(old):
            old = old()
        some = new or old
        assert some is not None
        empty = Rows(some.spark, some.relation)
        before, after = old or empty, new or empty
        delta = FrameDelta(before.minus(after), after.minus(before))
        counts = (delta.gone.size, delta.come.size)
        if counts != (0, 0):
            self._found[name] = (some.relation, cast("Delta", delta), counts)
        del self._pairs[name]

    def __contains__(self, name: object) -> bool:
        with self._lock:
            if name in self._pairs:
                self._compare(str(name))
            return name in self._found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def change_feed(
    spark: SparkSession, relation: Relation, delta: Delta | FrameDelta | None, version: int, time: datetime
) -> DataFrame:
    """The changes of a relation as a DataFrame, with the columns of a change feed."""
    from tidelog.execute.spark.schema import change_frame
    from tidelog.execute.spark.state import Rows

    micros = round(time.timestamp() * 1_000_000)
    if isinstance(delta, FrameDelta):
        sides = (delta.gone, delta.come)
    elif delta is not None:
        sides = (taken_there(spark, relation, delta.deleted), taken_there(spark, relation, delta.inserted))
    else:
        sides = (Rows(spark, relation),) * 2
    gone, come = (
        change_frame(side.frame(), kind, version, micros)
        for side, kind in zip(sides, ("delete", "insert"), strict=True)
    )
    return gone.unionAll(come)
