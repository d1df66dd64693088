"""The clock of `auto`: how long an update has taken, what it will take, and when it is given up.

Time is what the thread of the update has had of a processor, without what it took to make indexes that
recomputing has left behind; where the work is done elsewhere, as on Spark, it is the time that goes by.

A phase that takes up its changes in portions (`gradual` in `plan.maintenance`) tells what it will take.
Each portion is as large as all before it together. If the last one has made them twice as dear, changes
do not share their work, and each portion to come doubles it again; if it has added little, so will the
next ones. A portion that is under way is taken to be done: so what is foreseen is too little rather than
too much. Of the first one nothing is known, and its changes are taken to share nothing.
"""

from __future__ import annotations

from math import log2
from time import perf_counter, thread_time

from tidelog.maintain.past import Allowance
from tidelog.plan.executor import Progress, Watch
from tidelog.plan.maintenance import Abandoned, Keeper

STEEPEST = 2.0  # twice as many changes take no more than so many times as long


class Clock:
    """A watch that ends an update when it has no more time, or is foreseen to need too much."""

    def __init__(self, keeper: Keeper, watch: Watch, allowance: Allowance) -> None:
        self._keeper, self._watch, self._allowance = keeper, watch, allowance
        self._now = perf_counter if keeper.patience else thread_time
        self._started = self._now() - keeper.preparing
        self._share = 1.0  # of the changes of this phase that have been taken up
        self._seen = self._phase = 0.0  # seconds when it last looked, and when this phase began
        self._half = 0.0  # seconds that the portions of this phase took before the one that is under way

    def spent(self) -> float:
        """The seconds that the update has taken."""
        return self._now() - self._keeper.preparing - self._started

    def foreseen(self) -> float:
        """The seconds that the phases so far should take when they are done, as it looked when last seen."""
        in_phase = self._seen - self._phase
        factor = min(in_phase / self._half, STEEPEST) if self._half else STEEPEST
        return self._phase + in_phase * float(factor ** -log2(self._share))

    def __call__(self, progress: Progress) -> None:
        """Look at the time. Raises Abandoned when it is up."""
        self._watch(progress)
        spent = self.spent()
        if progress.share < self._share:
            self._phase, self._half = self._seen, 0.0
        elif progress.share > self._share:
            self._half = spent - self._phase
        self._share, self._seen = progress.share, spent
        if spent - self._phase > self._allowance.least and self.foreseen() > self._allowance.most:
            raise Abandoned
