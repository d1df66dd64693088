"""DRed: delete all that may be gone, put back what is not, then insert.

From: B. Motik, Y. Nenov, R. Piro, I. Horrocks, *Maintenance of Datalog
Materialisations Revisited*, Artificial Intelligence 269 (2019), Algorithm 4; after A. Gupta, I.
S. Mumick, V. S. Subrahmanian, *Maintaining Views Incrementally*, SIGMOD 1993.

    DRed(E, Π, λ, I, E⁻, E⁺)                                                           (lines 39 to 44)
    1  nothing is deleted yet (D) and nothing added (A)
    2  for each stratum s, in order: Overdelete, Rederive, Insert

    Overdelete                                                                         (lines 45 to 51)
    3  N is E⁻ of this stratum, and what rules derived from I with an atom that is gone by now
       (a positive one in D - A, or a negative one in A - D)
    4  repeat
    5      Δ is what N brings that is not in D; if it is empty, that is all
    6      N is what recursive rules derive from I - (D - A), with no negated atom in I | A
           and with at least one atom in Δ
    7      add Δ to D

    Rederive                                                                                  (line 42)
    8  R is what in D is still explicit, or follows in one step: by an instance that has its atoms
       in I - (D - A) and none of its negated ones in I | A

    Insert                                                                             (lines 52 to 58)
    9  N is R, E⁺ of this stratum, and what rules derive from (I - D) | A with an atom that is
       new (a positive one in A - D, or a negative one in D - A)
    10 repeat
    11     Δ is what N brings that is not in (I - D) | A; if it is empty, that is all
    12     add Δ to A
    13     N is what recursive rules derive from (I - D) | A with at least one atom in Δ

Overdeletion considers instances that held before the commit, each once; rederivation and
insertion together consider instances that hold after it, each once (Theorem 19).

| paper                 | here                                                              |
|-----------------------|-------------------------------------------------------------------|
| E⁻, E⁺                | tuples marked RETRACTED, ASSERTED                                 |
| I, D, A               | `parts.I`, `parts.D`, `parts.A`                                   |
| Δ_D, Δ_A              | CURRENT                                                           |
| N_D, N_A              | QUEUED, but for those known already                               |
| R                     | QUEUED between `Redeem` and the next `Sweep`                      |
| I - (D - A), I ∪ A    | in other strata KEPT, and BEFORE \\| AFTER                         |
| (I - D) ∪ A           | AFTER                                                             |
| Πˢ[I ⁝ D - A, A - D]  | `lost_readings`                                                   |
| Πˢ[… ⁝ A - D, D - A]  | `gained_readings`                                                 |

Departures:
- The loops of steps 4 and 10 are one `Sweep` each, run by the executor.
- In the own stratum A is empty until step 9, so steps 6 and 8 read I - D there.
- Δ joins A only after step 13, not before: CURRENT tuples are read beside (I - D) | A instead.
- Step 8 takes a newly explicit fact as explicit; the paper looks for an instance first and lets
  step 9 add it. This considers fewer instances.
- A rule change is a fact change. All instances that a removed rule had belong to step 3; those
  that an added one has belong to step 9, and if it is recursive to step 13.
- Ranks can be kept (`ranks=True`), see `ranked.py`. Deletion does not need them, and a tuple that
  comes back takes a new one.
"""

from __future__ import annotations

from tidelog.maintain.protocol import Phases, StratumChange
from tidelog.maintain.seminaive import fill
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Instances, Keeper, PhaseReport, Reading, Redeem, Sweep
from tidelog.plan.parts import AFTER, BEFORE, CURRENT, KEPT, D, E, I, Mark, Part, having
from tidelog.plan.readings import backward, driven, gained_readings, lost_readings, whole
from tidelog.program.model import Stratum

RETRACTED = having(Mark.RETRACTED)
ASSERTED = having(Mark.ASSERTED)


class DRed:
    """Delete and rederive. With `ranks` it can take turns with `Ranked` and `Recompute`."""

    name = "dred"

    def __init__(self, ranks: bool = False) -> None:
        self.ranks = ranks
        self.state = "ranks" if ranks else ""

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Semi-naive."""
        return fill(stratum, keeper, watch, self.ranks)

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Step 2, for one stratum."""
        tasks = change.once(
            (self.name, self.ranks),
            lambda: (overdelete(change), rederive(change, self.ranks), insert(change, self.ranks)),
        )
        return Phases(keeper, watch, budget).run(*tasks)


def overdelete(change: StratumChange) -> Sweep:
    """All that depends on something that is gone."""
    return Sweep(
        relations=change.stratum.relations,
        start=RETRACTED & I,  # step 3
        seeds=broken(change),
        forms=falling(change),  # step 6
        reach=I - D,  # step 5
        settle=Mark.DELETED,  # step 7
        phase="overdelete",
    )


def broken(change: StratumChange) -> tuple[Reading, ...]:
    """The instances of step 3: they held, and other strata or the rules have ended them."""
    found = [reading for rule in change.kept for reading in lost_readings(rule, change.own)]
    found += [whole(rule, BEFORE, BEFORE) for rule in change.removed]
    return tuple(found)


def falling(change: StratumChange) -> tuple[Reading, ...]:
    """The instances of step 6: CURRENT tuples take their heads with them."""
    return tuple(
        reading
        for rule in change.kept_recursive
        for reading in driven(
            rule, change.own, CURRENT, I - D - CURRENT, I - D, positive=KEPT, negative=BEFORE | AFTER
        )
    )


def rederive(change: StratumChange, ranks: bool, candidates: Part = D) -> Redeem:
    """What has been deleted and still follows in one step."""
    return Redeem(
        relations=change.stratum.relations,
        candidates=candidates,
        known=E,
        forms=tuple(  # step 8
            backward(rule, candidates, change.own, I - D, positive=KEPT, negative=BEFORE | AFTER)
            for rule in change.kept
        ),
        ranks=ranks,
        phase="rederive",
    )


def insert(change: StratumChange, ranks: bool, *, own: Part = I - D, gradual: bool = False) -> Sweep:
    """What follows from new facts and new rules, and from what is waiting to come back.

    `own` are the tuples of the stratum itself that are there when it begins.
    """
    seeds = [reading for rule in change.kept for reading in gained_readings(rule, change.own, own)]
    seeds += [whole(rule, AFTER, AFTER) for rule in change.added]
    forms = [
        reading
        for rule in change.stratum.recursive
        for reading in driven(
            rule, change.own, CURRENT, AFTER - CURRENT, AFTER | CURRENT, positive=AFTER, negative=AFTER
        )
    ]
    return Sweep(
        relations=change.stratum.relations,
        start=ASSERTED - AFTER,  # step 9
        seeds=tuple(seeds),
        forms=tuple(forms),  # step 13
        reach=~AFTER,  # step 11
        settle=Mark.ADDED,  # step 12
        ranks=ranks,
        instances=Instances.GAINED,
        gradual=gradual,
        phase="insert",
    )
