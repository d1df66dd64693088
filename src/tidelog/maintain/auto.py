"""Auto: chooses, for each recursive stratum and each commit, between `ranked` and recomputing.

    Auto(stratum, changes)
    1  if the policy is not to choose, do as it says
    2  c is the number of tuples that have changed below the stratum
    3  if c is more than a part of all that is below, recompute
    4  x is what the update should cost: c times what a change has cost of late
    5  f is what recomputing costs: what it did the last time
    6  if x is more than f, recompute
    7  run `ranked`, and let it cost the greatest of: a share of f, twice x, a few thousand
    8  if it costs more, drop what it did and recompute

Costs are rule instances, so that what is chosen does not depend on the clock. An instance of an
update counts for more than one of recomputing (`DEARER`), as it is found by probing, not by
streaming. What is chosen, and why, is in `Auto.choice` and from there in the commit's report.

Both algorithms keep ranks, so they can take turns at no cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.maintain.protocol import Choice, StratumChange, considered, renewal
from tidelog.maintain.ranked import Ranked
from tidelog.maintain.seminaive import Recompute
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Abandoned, Keeper, PhaseReport
from tidelog.program.model import Stratum
from tidelog.program.strata import body_relations

POLICIES = ("auto", "incremental", "full")

SHARE = 0.2  # of recomputing: what an update may cost in any case
LEAST = 5_000  # instances that an update may consider in any case
DEARER = 2.0  # what an instance costs in an update, against recomputing
MUCH = 0.5  # of all below: so many changes, and recomputing is taken at once
RECENT = 0.3  # the weight of the newest update in what a change has cost of late


@dataclass
class Past:
    """What is remembered of a stratum: instances of the last recomputing, and instances per change."""

    full: int
    rate: float | None = None


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
        """Semi-naive; what it costs is remembered."""
        reports = self._recompute.start(stratum, keeper, watch)
        past = self._past.setdefault(stratum.relations, Past(0))
        past.full = considered(reports)
        return reports

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 1 to 8. A budget from outside leaves no choice but to update within it."""
        stratum = change.stratum
        if self.policy == "full":  # step 1
            return self._full(stratum, keeper, watch, "by policy")
        if self.policy == "incremental" or budget is not None:
            self._choose(stratum, self._ranked.name, "by policy" if budget is None else "within a budget")
            return self._ranked.update(change, keeper, watch, budget)
        changes, below = _changes(change, keeper)  # step 2
        past = self._past.get(stratum.relations)
        if past is None:  # another algorithm started it: each tuple has an instance at least
            past = self._past[stratum.relations] = Past(sum(keeper.size(r) for r in stratum.relations))
        if changes > MUCH * below:  # step 3
            return self._full(stratum, keeper, watch, f"{changes:,} changes in {below:,} tuples below")
        expected = None if past.rate is None else changes * past.rate  # step 4
        if expected is not None and expected > past.full:  # steps 5 and 6
            past.rate = (1 - RECENT) * (past.rate or 0.0)  # so that it is tried again some time
            why = f"an update would cost about {expected:,.0f}, recomputing {past.full:,}"
            return self._full(stratum, keeper, watch, why)
        allowed = int(max(SHARE * past.full, 2 * (expected or 0), LEAST) / DEARER)  # step 7
        try:
            reports = self._ranked.update(change, keeper, watch, allowed)
        except Abandoned:  # step 8
            self._learn(past, changes, allowed)
            keeper.undo(stratum.relations)
            why = f"an update was abandoned after {allowed:,} rule instances, recomputing cost {past.full:,}"
            return [PhaseReport(phase="abandoned"), *self._full(stratum, keeper, watch, why)]
        self._learn(past, changes, considered(reports))
        why = f"{changes:,} changes below" + ("" if expected is None else f", about {expected:,.0f} expected")
        self._choose(stratum, self._ranked.name, f"{why}, recomputing cost {past.full:,}")
        return reports

    def _full(self, stratum: Stratum, keeper: Keeper, watch: Watch, why: str) -> list[PhaseReport]:
        self._choose(stratum, self._recompute.name, why)
        return renewal(self, stratum, keeper, watch)

    def _choose(self, stratum: Stratum, algorithm: str, why: str) -> None:
        self.choice = Choice(stratum.index, algorithm, why)

    def _learn(self, past: Past, changes: int, instances: int) -> None:
        rate = DEARER * instances / max(1, changes)
        past.rate = rate if past.rate is None else (1 - RECENT) * past.rate + RECENT * rate


def _changes(change: StratumChange, keeper: Keeper) -> tuple[int, int]:
    """How many tuples have changed below a stratum, and how many there are."""
    rules = (*change.stratum.base, *change.stratum.recursive)
    below = {relation for rule in rules for relation in body_relations(rule)} - change.own
    return sum(sum(keeper.changed(r)) for r in below), sum(keeper.size(r) for r in below)
