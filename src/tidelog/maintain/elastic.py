"""Elastic: the first iteration of a tuple and its count there; and a switch to starting anew.

From: D. Zhao, M. Raghothaman, P. Subotić, B. Scholz, *Towards Elastic Incrementalization
for Datalog*, PPDP 2021, Algorithms 2 and 3.

Counting (`counting.py`) keeps a number for every iteration that derives a tuple. Elastic keeps
the first of them only: two numbers for each tuple. If a count falls to nothing, later iterations
have to be looked through for the tuple (*re-discovery*), which is backward chaining.

    Bootstrap(E)
    1  N₀ is E, each with count 1
    2  for iteration k from 1
    3      Iₖ₋₁ is all of N₀ … Nₖ₋₁
    4      Nₖ is what the rules derive from Iₖ₋₁ with an atom in Nₖ₋₁, with the number of instances;
           without what is in Iₖ₋₁ already
    5      if Nₖ is empty, that is all

    Update((E, N°), (E⁻, E⁺))
    6  N₀ is E without E⁻ and with E⁺; I⁻ is E⁻ and I⁺ is E⁺
    7  for iteration k from 1
    8      Nₖ is N°ₖ, and
    9        taken from it: the instances from I°ₖ₋₁ with an atom in N°ₖ₋₁ and one in I⁻ (deletion)
    10       added to it: the instances from Iₖ₋₁ with an atom in Nₖ₋₁ and one in I⁺ (insertion)
    11       added to it, for tuples of I⁻: the instances from I°ₖ₋₁ ∩ Iₖ₋₁ with an atom in Nₖ₋₁
             (re-discovery)
    12       but nothing that an earlier iteration holds (sparsification)
    13     I⁻ is what the old run has by now and the new one has not, I⁺ the other way round
    14     if Nₖ is empty, and so are N° from k on, and no difference is pending, that is all

    Epoch(E⁻, E⁺)
    15 Update, until it has cost more than a share of the last Bootstrap
    16 then drop what it did, and Bootstrap (the *switch*)

| paper                       | here                                                           |
|-----------------------------|----------------------------------------------------------------|
| N, N°: (first iteration, count) | `Standing.first`, `Standing.count` (`Steps`, keep "first")  |
| E⁻, E⁺                      | tuples marked RETRACTED, ASSERTED                              |
| I°ₖ₋₁, Iₖ₋₁, Nₖ₋₁           | comparisons with a tuple's first old and first new iteration    |
| I₀⁻, I₀⁺ of other strata    | LOST, GAINED                                                   |
| Π#, re-discovery            | within the executor                                            |
| switching parameter         | `share`                                                        |

Departures:
- Step 14: as printed, Update ends with the first iteration of the new run that is empty. The old
  run may hold tuples in later ones that have to go, or to be found again.
- Steps 9 and 10 compare whole instances: one that is in iteration k of both runs is never
  considered, one that moves to another iteration is (an atom that comes earlier or later moves
  it, though it is in neither I⁻ nor I⁺ for long).
- Explicit facts of a derived relation belong to iteration 1, beside what nonrecursive rules
  derive.
- The paper's switch watches the clock. Ours counts tuples looked at (rule instances, where
  an executor does not count these), so that two runs do the same; and it lets every Update look
  at a few thousand, however small the stratum.
- An interrupted Update leaves nothing behind: `Keeper.undo`.
- Rule changes: instances of a removed rule are in the old run only, those of an added one in the
  new run only.
"""

from __future__ import annotations

from tidelog.maintain.counting import from_nothing, steps
from tidelog.maintain.protocol import Choice, Misled, Phases, StratumChange, cost, in_vain, renewal
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Abandoned, Keeper, PhaseReport
from tidelog.program.model import Stratum

SHARE = 0.2  # of the last Bootstrap: what an Update may cost


class Elastic:
    """Bootstrap and Update, with the switch between them.

    `share` is how much an Update may cost, in parts of the last Bootstrap; it may always
    cost `least`. The cost is what `Keeper.keep_going` counts.
    """

    state = "first"

    def __init__(self, share: float = SHARE, least: int = 5_000) -> None:
        self.share, self.least = share, least
        self.name = "elastic" if share == SHARE else f"elastic({share:g})"
        self.bootstraps: dict[tuple[str, ...], int] = {}  # by relations: what it cost
        self.choice = Choice(0, self.name, "")

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Steps 1 to 5; what it costs is remembered."""
        reports = Phases(keeper, watch, anew=True).run(from_nothing(stratum, self.state, "bootstrap"))
        self.bootstraps[stratum.relations] = cost(reports)
        return reports

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 15 and 16. Past `budget`, if that is less than the share, it gives up altogether."""
        stratum = change.stratum
        tasks = change.once(self.state, lambda: (steps(change, self.state, "update"),))
        allowed = self._allowed(stratum)
        if budget is not None and (allowed is None or budget < allowed):
            return Phases(keeper, watch, budget).run(*tasks)
        self.choice = Choice(stratum.index, self.name, "update")
        try:
            return Phases(keeper, watch, allowed).run(*tasks)  # step 15
        except Misled:
            raise
        except Abandoned as given_up:
            why = f"bootstrap: the update was abandoned, having looked at more than {allowed:,} tuples"
            self.choice = Choice(stratum.index, self.name, why)
            keeper.undo(stratum.relations)  # step 16
            return [in_vain(given_up, "update abandoned"), *renewal(self, stratum, keeper, watch)]

    def starting(self, stratum: Stratum) -> float | None:
        """What the last Bootstrap has cost."""
        return self.bootstraps.get(stratum.relations)

    def expect(self, stratum: Stratum, cost: float) -> None:
        """A Bootstrap has cost so much, in another process."""
        self.bootstraps[stratum.relations] = int(cost)

    def _allowed(self, stratum: Stratum) -> int | None:
        """What an Update may cost; None if no Bootstrap is known."""
        last = self.bootstraps.get(stratum.relations)
        return None if last is None else max(self.least, int(self.share * last))
