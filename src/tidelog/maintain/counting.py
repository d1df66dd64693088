"""Counting: how many rule instances derive a tuple, in each iteration.

From: B. Motik, Y. Nenov, R. Piro, I. Horrocks, *Maintenance of Datalog
Materialisations Revisited*, Artificial Intelligence 269 (2019), Algorithms 2 and 3.

The trace of a semi-naive run has, for each stratum s and iteration i, the multiset Nˢᵢ of the
facts that iteration derived, with the number of instances. A commit goes through the old run and
the new one side by side and brings the trace from one to the other. Where a count falls to
nothing in every iteration, the fact is gone; facts that only derive each other are never counted
in the iteration in which they would first be needed.

    MaintenanceCounting(E, Π, λ, N, E⁻, E⁺)
    1   the old and the new facts so far, Iₒ and Iₙ, are empty
    2   for each stratum s, in order
    3       iteration i is 1; Nₒ is N₁
    4       from N₁, take E⁻ and the instances of nonrecursive rules that Iₒ has and Iₙ has not
    5       to N₁, add E⁺ and the instances of nonrecursive rules that Iₙ has and Iₒ has not
    6       repeat
    7           Δₒ is what the old Nᵢ brings that is not in Iₒ, Δₙ what the new Nᵢ brings that is not in Iₙ
    8           if both are empty, the stratum is finished
    9           add Δₒ to Iₒ and Δₙ to Iₙ
    10          if Δₒ = Δₙ and Iₒ = Iₙ, the runs are alike from here on: the stratum is finished
    11          next i
    12          from Nᵢ, take the instances of recursive rules that the old iteration has
                (all atoms in Iₒ, one at least in Δₒ) and the new one has not
    13          to Nᵢ, add those that the new one has and the old one has not

An instance is taken at most once and added at most once. If a stratum is not recursive, only
steps 3 to 5 remain, with one count for each fact, and no instance is considered that holds both
before and after: that is optimal (Proposition 27). `Counts` is this case; it serves the
nonrecursive strata of every other algorithm.

| paper                   | here                                                              |
|-------------------------|-------------------------------------------------------------------|
| N, Nˢᵢ                  | the trace that the executor keeps with each tuple (`Steps`, keep "trace") |
| E⁻, E⁺                  | tuples marked RETRACTED, ASSERTED                                 |
| Iₒ, Iₙ, Δₒ, Δₙ          | comparisons with a tuple's first old and first new iteration       |
| Iₒₙ, Iₙₒ of other strata | LOST, GAINED                                                      |
| Πˢₙᵣ[Iₒ ⁝ Iₒₙ, Iₙₒ]     | `lost_readings`                                                   |
| Πˢₙᵣ[Iₙ ⁝ Iₙₒ, Iₒₙ]     | `gained_readings`                                                 |

Departures:
- Steps 3 to 13 are one task, `Steps`, run by the executor.
- Iₒ and Iₙ are never built. The paper found that building them dominates small updates. The first
  old and the first new iteration are with each tuple, and "in Iₒ before iteration i" is a
  comparison.
- A rule change is a fact change: all instances of a removed rule are taken (those of the old
  run), all of an added one are added.
- `Counts` does not count that a fact is explicit; the mark EXPLICIT says it.
"""

from __future__ import annotations

from tidelog.maintain.protocol import Phases, StratumChange
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Keeper, PhaseReport, Steps, Tally
from tidelog.plan.parts import AFTER, BEFORE
from tidelog.plan.readings import gained_readings, lost_readings, whole
from tidelog.program.model import Stratum


class Counting:
    """One count for each tuple and iteration."""

    name = "counting"
    state = "trace"

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """The trace of a run (Algorithm 2): there is no old one."""
        return Phases(keeper, watch, anew=True).run(from_nothing(stratum, self.state, "trace"))

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 3 to 13."""
        tasks = change.once(self.name, lambda: (steps(change, self.state, "steps"),))
        return Phases(keeper, watch, budget).run(*tasks)


def steps(change: StratumChange, keep: str, phase: str) -> Steps:
    """The old run of a stratum and the new one, side by side."""
    return Steps(
        relations=change.stratum.relations,
        base=change.kept_base,
        recursive=change.kept_recursive,
        removed=change.removed,
        added=change.added,
        keep=keep,
        phase=phase,
    )


def from_nothing(stratum: Stratum, keep: str, phase: str) -> Steps:
    """The new run alone, for a stratum that is being renewed."""
    return Steps(stratum.relations, stratum.base, stratum.recursive, keep=keep, phase=phase)


class Counts:
    """One count for each tuple, for strata that are not recursive."""

    name = "counts"
    state = "counts"

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Every instance counts."""
        gained = tuple(whole(rule, AFTER, AFTER) for rule in stratum.base)
        return Phases(keeper, watch).run(Tally(stratum.relations, (), gained, phase="count"))

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 4 and 5; the explicit facts of step 4 and 5 are in their marks."""
        tasks = change.once(self.name, lambda: (_tally(change),))
        return Phases(keeper, watch, budget).run(*tasks)


def _tally(change: StratumChange) -> Tally:
    lost = [reading for rule in change.kept_base for reading in lost_readings(rule)]  # step 4
    lost += [whole(rule, BEFORE, BEFORE) for rule in change.removed]
    gained = [reading for rule in change.kept_base for reading in gained_readings(rule)]  # step 5
    gained += [whole(rule, AFTER, AFTER) for rule in change.added]
    return Tally(change.stratum.relations, tuple(lost), tuple(gained), phase="count")
