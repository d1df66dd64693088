"""A commit that stops when its answers have become too many for the place where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tidelog.maintain.seminaive import StratumWatch, unwatched
from tidelog.plan.executor import Progress
from tidelog.program.model import Stratum


class Outgrown(Exception):
    """There are more tuples than there may be; what the commit has done stands half done."""


class Bound:
    """Watches over the number of tuples in all; tells another watcher first.

    What a task tells of is never more than its stratum has before the commit, or will have after it. So
    a commit is only stopped if it does lead to more tuples than the limit.
    """

    def __init__(
        self,
        limit: int,
        names: Collection[str],
        after: Callable[[str], int],
        watch: StratumWatch = unwatched,
    ) -> None:
        """`after` tells how many tuples a relation has by now; there are to be `limit` of all at most."""
        self._limit, self._names, self._after = limit, names, after
        self._watch = watch
        self._room = limit
        self._stratum: int | None = None
        self._round = self._here = 0

    def check(self) -> None:
        """Count. Raises Outgrown."""
        found = sum(map(self._after, self._names))
        self._room = self._limit - found
        if self._room < 0:
            raise Outgrown

    def __call__(self, stratum: Stratum, progress: Progress) -> None:
        """A moment of a task. Raises Outgrown."""
        self._watch(stratum, progress)
        if stratum.index != self._stratum or progress.round <= self._round:  # another task has begun
            self._room, self._stratum = self._room - self._here, stratum.index
        self._here, self._round = progress.tuples, progress.round
        if progress.tuples > self._room:  # perhaps: the tasks before may have told of the same tuples
            others = sum(self._after(name) for name in self._names if name not in stratum.relations)
            if others + progress.tuples > self._limit:
                raise Outgrown
