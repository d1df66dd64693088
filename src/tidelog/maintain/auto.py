"""Auto: chooses, for each recursive stratum and each commit, between `ranked` and recomputing.

    Auto(stratum, changes)
    1  if the policy is not to choose, do as it says
    2  l and g are the numbers of tuples lost and gained below the stratum, and of its own explicit facts
    3  f is the time that recomputing took the last time, and more if there are more tuples now; after
       the first evaluation, three quarters of what that took and what comparing its tuples will take
    4  x is the time that the update should take, with what ending the commit takes after it, 0.4 us for a
       tuple of the stratum that is lost: what a lost tuple below and what a gained one have cost of
       late, in updates of about as many changes, times l and g. If there were none, but as many gains or
       losses alone were recomputed for: of gains four times f for the share of the stratum that came or went
       then, of losses 1 us for each such tuple; else what other sizes tell
    5  recompute if l + g is more than half of what there is; with many changes, whose costs even out, also if
       x is more than f (and than 10 ms) or, if only other sizes tell, and not only by updates that were given
       up, than three times f. If few changes are expected to take more than a third of f, they are given a
       twenty-fifth of f
    6  else run `ranked`, but no longer than 7% of f, and 2 ms less for a single change, but 4% at least; or
       twice x, if that is more, up to two fifths of f. As long as no update of few changes has come to an
       end, the second may take a sixth of f, those after it a twenty-fifth, and one in eight of them two
       fifths. Any update may take 2 ms, one of several changes 10 ms, if that is not more than a fifth of f.
       Many changes are taken up in portions, which tell what is left to be done (`clock.py`): if that is more
       than f, it is not enough. A twelfth of f goes by before that counts; a fifth, where the size is known;
       or twice x, if an update of it came to an end
    7  if that is not enough, drop what it did and recompute

Recomputing that changes little leaves the indexes of updates where they are. Where they are lost, they are
made again at once after few changes, for the next commit will be an update, if that and all that was spent in
vain come to 15% of f at most; else by the next update: that time is not counted as the update's, but few
changes are given so much less. So one that is far dearer than those before it costs about a tenth more than
recomputing, a fifth with indexes. With many changes, half of that time is taken from f while indexes
are missing, and all of it is added to f while recomputing would lose them, as it did the last time.
An update runs in one thread, and its time is what that has had of a processor: a machine that does something
else meanwhile is no reason to give it up, nor to find recomputing dear (`clock.py`).
What is remembered of costs, and how, is in `past.py`.

Where rounds cost, not tuples, as on Spark (`Keeper.patience`), x is what updates of that size have taken, and
an update may take as long as recomputing, or as patience lasts; one that is given up costs as much again.

Both algorithms keep ranks and take turns at no cost. What was chosen, and why, is in `Auto.choice`
and from there in the commit's report.
"""

from __future__ import annotations

from collections.abc import Collection

from tidelog.maintain.clock import Clock, Stopwatch
from tidelog.maintain.past import (
    DEARER,
    DECISIVE,
    FAR,
    INDEXED,
    LEAST_SECONDS,
    MANY,
    SPEED,
    Allowance,
    Past,
    mean,
    size,
)
from tidelog.maintain.protocol import Choice, Misled, StratumChange, considered, cost, in_vain
from tidelog.maintain.ranked import Ranked
from tidelog.maintain.seminaive import Recompute
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Abandoned, Keeper, PhaseReport
from tidelog.program.model import Stratum

POLICIES = ("auto", "incremental", "full")

TELLING = 0.01  # of recomputing: an update that was expected to take less, and does, teaches nothing
MUCH = 0.5  # of all below: so many changes, and recomputing is taken at once
FORGIVING_ROUNDS = 0.92  # where rounds cost: each time that recomputing is taken, an update seems cheaper
ENDING = 0.4e-6  # seconds for a tuple that is lost, when the commit ends: recomputing just drops them all
FRESH = 0.75  # of a first evaluation: what it will take when it need not ask for memory
SLOW = 20e-6  # seconds for a rule instance: a first evaluation that took longer was compiling kernels


class Auto:
    """Chooses between `ranked` and recomputing; the `policy` can take the choice away.

    "incremental" never recomputes, "full" always does.
    """

    name = "auto"
    state = "ranks"

    def __init__(self, policy: str = "auto") -> None:
        if policy not in POLICIES:
            raise ValueError(f"policy is {policy!r}, and should be one of {', '.join(POLICIES)}")
        self.policy = policy
        self.choice = Choice(0, self.name, "")
        self._past: dict[tuple[str, ...], Past] = {}
        self._ranked, self._recompute = Ranked(), Recompute()

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Semi-naive; the time it takes is remembered."""
        stopwatch = Stopwatch(keeper)
        reports = self._recompute.start(stratum, keeper, watch)
        took = stopwatch.seconds()
        if not keeper.patience:
            took = FRESH * min(took, LEAST_SECONDS + SLOW * considered(reports))
        past = self._took(stratum, took)
        past.compared, past.missing = bool(keeper.patience), True
        return reports

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 1 to 7. A budget from outside leaves no choice but to update within it."""
        stratum = change.stratum
        if self.policy == "full":  # step 1
            return self._full(stratum, keeper, watch, "by policy")
        if self.policy == "incremental" or budget is not None:
            self._choose(stratum, self._ranked.name, "by policy" if budget is None else "within a budget")
            return self._ranked.update(change, keeper, watch, budget)
        (lost, gained), much = _changes(change, keeper)  # step 2
        past = self._past.get(stratum.relations)
        if past is None:  # another algorithm started it: a guess, until it is recomputed
            past = self._past[stratum.relations] = Past(_tuples(stratum, keeper) / SPEED)
        full = past.whole(_tuples(stratum, keeper))  # step 3
        changes = _count(lost + gained, "change")
        if much is not None:
            reports = self._full(stratum, keeper, watch, f"{changes}, of {_count(much, 'tuple')}")
            self._afterwards(change, keeper, past, lost, gained, 0.0)
            return reports
        if keeper.patience:
            return self._patiently(change, keeper, watch, past, lost + gained)
        expected = past.expected(lost, gained)  # step 4
        allowed = past.allowed(full, expected, lost, gained)
        if allowed is None:  # step 5
            past.hope(lost, gained)
            reports = self._full(stratum, keeper, watch, f"{changes}: {_compared(expected, full)}")
            self._afterwards(change, keeper, past, lost, gained, 0.0)
            return reports
        prepared, clock = keeper.preparing, Clock(keeper, watch, allowed)
        try:  # step 6
            reports = self._ranked.update(change, keeper, clock, None)
        except Misled:
            raise
        except Abandoned as given_up:  # step 7
            took = clock.spent()
            done = cost(given_up.reports)
            if past.missing:
                past.made_ready(keeper.preparing - prepared)
            reports = self._instead(stratum, keeper, watch, changes, given_up, took, full)
            past.give_up(lost, gained, done, took, clock.foreseen(), decisive=took >= DECISIVE * full)
            self._afterwards(change, keeper, past, lost, gained, took + keeper.preparing - prepared)
            return reports
        took = clock.spent()
        if expected is None or max(took, expected) > TELLING * full:
            gone, _ = _moved(stratum, keeper)
            past.learn(lost, gained, cost(reports), took + ENDING * gone)
        if past.missing:
            past.made_ready(keeper.preparing - prepared)
        self._choose(stratum, self._ranked.name, f"{changes}, {_compared(expected, full)}")
        return reports

    def _patiently(
        self, change: StratumChange, keeper: Keeper, watch: Watch, past: Past, number: int
    ) -> list[PhaseReport]:
        """Steps 4 to 7, where rounds cost."""
        stratum, changes, at = change.stratum, _count(number, "change"), size(number)
        expected = past.seconds.get(at)
        if expected is not None and expected > FAR * past.full:
            past.seconds[at] = FORGIVING_ROUNDS * expected
            return self._full(stratum, keeper, watch, f"{changes}: {_compared(expected, past.full)}")
        clock = Clock(keeper, watch, Allowance(max(keeper.patience, past.full)))
        try:
            reports = self._ranked.update(change, keeper, clock, None)
        except Misled:
            raise
        except Abandoned as given_up:
            took, full = clock.spent(), past.full
            reports = self._instead(stratum, keeper, watch, changes, given_up, took, full)
            past.seconds[at] = DEARER * max(took, FAR * past.full)  # not to be borne the next time
            return reports
        took = clock.spent()
        past.seconds[at] = took if expected is None else mean(expected, took, 3)
        self._choose(stratum, self._ranked.name, f"{changes}, {_compared(expected, past.full)}")
        return reports

    def _instead(
        self,
        stratum: Stratum,
        keeper: Keeper,
        watch: Watch,
        changes: str,
        given_up: Abandoned,
        took: float,
        full: float,
    ) -> list[PhaseReport]:
        """Drop what an update did, and recompute."""
        keeper.undo(stratum.relations)
        why = f"{changes}: an update was abandoned after {_ms(took)}, {_ms(full)} for recomputing"
        return [in_vain(given_up, seconds=took), *self._full(stratum, keeper, watch, why)]

    def _afterwards(
        self, change: StratumChange, keeper: Keeper, past: Past, lost: int, gained: int, spent: float
    ) -> None:
        """After recomputing: guess what updates of many changes take; for few, make their indexes."""
        if keeper.patience:
            return
        if lost + gained >= MANY:
            if not lost or not gained:
                gone, come = _moved(change.stratum, keeper)
                past.guess(lost + gained, gone + come, _tuples(change.stratum, keeper) + come)
        elif past.missing and past.leaves_time(spent):
            self.prepare(change, keeper)

    def prepare(self, change: StratumChange, keeper: Keeper) -> None:
        """Make the indexes of updates; the time it takes is remembered."""
        stopwatch = Stopwatch(keeper)
        self._ranked.prepare(change, keeper)
        took, past = stopwatch.seconds(), self._past.get(change.stratum.relations)
        if past is not None:
            if not past.after:  # the first time, when tasks are compiled too
                took = min(took, _tuples(change.stratum, keeper) / INDEXED)
            past.made_ready(took)

    def starting(self, stratum: Stratum) -> float | None:
        """The seconds that recomputing takes."""
        past = self._past.get(stratum.relations)
        return None if past is None else past.full

    def keep(self, strata: Collection[tuple[str, ...]]) -> None:
        """Forget all strata but those of these relations."""
        self._past = {relations: past for relations, past in self._past.items() if relations in strata}

    def expect(self, stratum: Stratum, cost: float) -> None:
        """Recomputing took so many seconds, in another process."""
        self._took(stratum, cost)

    def _full(self, stratum: Stratum, keeper: Keeper, watch: Watch, why: str) -> list[PhaseReport]:
        self._choose(stratum, self._recompute.name, why)
        stopwatch = Stopwatch(keeper)
        keeper.renew(stratum.relations)
        reports = self._recompute.start(stratum, keeper, watch)
        ready = keeper.renewed(stratum.relations)
        past = self._took(stratum, stopwatch.seconds())
        past.losing, past.missing = not ready, past.missing or not ready
        return reports

    def _took(self, stratum: Stratum, seconds: float) -> Past:
        past = self._past.setdefault(stratum.relations, Past(seconds))
        past.full, past.tuples, past.compared = seconds, None, True
        return past

    def _choose(self, stratum: Stratum, algorithm: str, why: str) -> None:
        self.choice = Choice(stratum.index, algorithm, why)


def _tuples(stratum: Stratum, keeper: Keeper) -> int:
    return sum(keeper.size(relation) for relation in stratum.relations)


def _moved(stratum: Stratum, keeper: Keeper) -> tuple[int, int]:
    """How many of a stratum's tuples this commit has taken away so far, and how many it has added."""
    lost, gained = zip(*(keeper.changed(relation) for relation in stratum.relations), strict=True)
    return sum(lost), sum(gained)


def _changes(change: StratumChange, keeper: Keeper) -> tuple[tuple[int, int], int | None]:
    """How many tuples below a stratum, and facts of its own, are lost and gained.

    Where that is much, also the number of all such tuples.
    """
    own, below = change.stratum.relations, change.below
    told = [(keeper.told.retracted.get(name, 0), keeper.told.asserted.get(name, 0)) for name in own]
    changed = [keeper.changed(name) for name in below]
    lost = gained = 0
    much = None
    for counts, relations in ((changed, below), (told, own)):
        changes = 0
        for gone, come in counts:
            lost, gained, changes = lost + gone, gained + come, changes + gone + come
        if changes and changes > MUCH * (tuples := sum(map(keeper.size, relations))):
            much = tuples
    return (lost, gained), much


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _compared(expected: float | None, full: float) -> str:
    if expected is None:
        return f"{_ms(full)} for recomputing"
    return f"{1000 * expected:,.1f} ms expected, {1000 * full:,.1f} ms for recomputing"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"
