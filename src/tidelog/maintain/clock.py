"""The clock of `auto`: how long an update has taken, what it will take, and when it is given up.

Time is what the thread of the update has had of a processor, without what it took to make indexes that
recomputing has left behind. What recomputing takes is told by a stopwatch: threads may share that work. Where
work is done elsewhere, as on Spark, time is what goes by.

A phase that takes up its changes in portions (`gradual` in `plan.maintenance`) tells what it will take.
Each portion is as large as all before it together. If the last one has made them twice as dear, changes
do not share their work, and each portion to come doubles it again; if it has added little, so will the
next ones. A portion that is under way is taken to be done, but for the last one, which is like the one before
it. What takes longer than foreseen will go on for as long as it has taken too long. Rederivation, which looks
at what has been deleted, tells how far it is in the same way.

To give an update up costs all of recomputing, and what has been spent is spent: so what counts is the time
that is left. But forecasts are forecasts, and the longer an update has taken, the less is left to it.
"""

from __future__ import annotations

from math import log2
from time import perf_counter, process_time, thread_time

from tidelog.maintain.past import Allowance
from tidelog.plan.executor import Progress, Watch
from tidelog.plan.maintenance import Abandoned, Keeper

USUAL_FACTOR = 2.0  # twice as many changes take so many times as long, if nothing is shared
STEEPEST = 4.0  # the last half takes so many times as long at most
WEARINESS = 0.5  # of the time that has been spent, to be added to the time that is left


class Stopwatch:
    """The seconds that a step takes: those that go by or, if these are fewer, those that this process works.

    A machine that does something else meanwhile does not make the step look dear.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._elsewhere = keeper.patience > 0
        self._started, self._busy = perf_counter(), process_time()

    def seconds(self) -> float:
        """The seconds so far."""
        went_by, worked = perf_counter() - self._started, process_time() - self._busy
        return went_by if self._elsewhere else min(went_by, worked)


class Clock:
    """A watch that ends an update when it has no more time, or is foreseen to need too much."""

    def __init__(self, keeper: Keeper, watch: Watch, allowance: Allowance) -> None:
        self._keeper, self._watch, self._allowance = keeper, watch, allowance
        self._now = perf_counter if keeper.patience else thread_time
        self._started = self._now() - keeper.preparing
        self._share = 1.0  # of the changes of this phase that have been taken up
        self._seen = self._phase = 0.0  # seconds when it last looked, and when this phase began
        self._half = 0.0  # seconds that the portions of this phase took before the one that is under way
        self._factor = USUAL_FACTOR  # how much dearer the last of these has made them

    def spent(self) -> float:
        """The seconds that the update has taken."""
        return self._now() - self._keeper.preparing - self._started

    def left(self) -> float:
        """The seconds that the phase under way still needs, as it looked when last seen."""
        in_phase, portions = self._seen - self._phase, -log2(self._share)
        if not portions:
            early = self._factor * self._half - in_phase
            return early if early > 0 else -early  # what is late will be as late again
        return in_phase * float(min(self._now_factor(in_phase), USUAL_FACTOR) ** portions - 1)

    def _now_factor(self, in_phase: float) -> float:
        """How much dearer the portion under way has made those before it, if it is done now."""
        return min(in_phase / self._half, STEEPEST) if self._half else USUAL_FACTOR

    def foreseen(self) -> float:
        """The seconds that the phases so far should take when they are done, as it looked when last seen."""
        return self._seen + self.left()

    def __call__(self, progress: Progress) -> None:
        """Look at the time. Raises Abandoned when it is up."""
        self._watch(progress)
        spent = self.spent()
        if progress.share < self._share and self._allowance.most:
            self._phase, self._half, self._factor = self._seen, 0.0, USUAL_FACTOR
        elif progress.share > self._share:
            in_phase = spent - self._phase
            self._half, self._factor = in_phase, self._now_factor(in_phase)
        self._share, self._seen = progress.share, spent
        if (
            spent - self._phase > self._allowance.least
            and self.left() + WEARINESS * spent > self._allowance.most
        ):
            raise Abandoned
