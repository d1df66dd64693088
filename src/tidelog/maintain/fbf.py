"""FBF: forward, backward, forward. Delete only what backward chaining cannot prove.

From: B. Motik, Y. Nenov, R. Piro, I. Horrocks, *Maintenance of Datalog
Materialisations Revisited*, Artificial Intelligence 269 (2019), Algorithm 5.

    FBF(E, Π, λ, I, E⁻, E⁺)                                                            (lines 59 to 66)
    1  nothing is deleted yet (D) and nothing added (A)
    2  for each stratum s, in order
    3      nothing is blocked (B), checked (C), proved (P) or delayed (Y)
    4      DeleteUnproved
    5      add what is deleted and proved to A
    6      R is what is deleted and not proved, and is explicit or delayed or follows in one step: by an
           instance that has its atoms in I - (D - A) and none of its negated ones in I | A
    7      Insert, as in DRed

    DeleteUnproved                                                                     (lines 67 to 76)
    8  N is E⁻ of this stratum, and what rules derived from I with an atom that is gone by now
    9  repeat
    10     for each F of N that is not in D: Check(F), and put it into Δ unless it is proved
    11     if Δ is empty, that is all
    12     N is what recursive rules derive from I - (D - A), with no negated atom in I | A
           and with at least one atom in Δ
    13     add Δ to D

    Check(F), unless F is checked                                                      (lines 77 to 85)
    14 if the branch is to be given up, F is blocked, and that is all
    15 unless Saturate(F), for each instance of a recursive rule that derives F, with atoms in
       I - ((D | Δ) - (A | B)) and negated atoms not in I | A
    16     for each atom G of it in this stratum: Check(G); if G is then blocked and not proved, so is F
    17     if F is proved by now, that is all

    Saturate(F)                                                                        (lines 86 to 95)
    18 F is checked
    19 if F is neither delayed nor explicit, and no instance of a nonrecursive rule derives it
       (with atoms as in step 6): no
    20 N is F
    21 repeat
    22     Δ is what in N is checked and not proved; what is not checked becomes delayed
    23     if Δ is empty: yes
    24     add Δ to P
    25     N is what recursive rules derive from P in this stratum and from I - (D - A) in those
           below, with no negated atom in I | A and with at least one atom in Δ

Deletion considers instances that held before, each once; saturation, rederivation and insertion
together consider instances that hold now, each once; backward chaining considers instances of
recursive rules that held before, each once (Theorem 25).

| paper           | here                                                                      |
|-----------------|---------------------------------------------------------------------------|
| I, D, A, E⁻, E⁺ | as in `dred.py`                                                           |
| B, C, P, Y      | tuples marked BLOCKED, CHECKED, PROVED, DELAYED                           |
| Δ_D             | CURRENT                                                                   |
| Δ_P             | PROVING                                                                   |
| AbortBranch     | the branch is deeper than `depth`; None: never (B/F), 0: always (DRed)    |
| Check, Saturate | the guard `Proof` of the sweep                                            |
| R               | QUEUED between `Redeem` and the next `Sweep`                              |

Departures:
- The loop of step 9, with all that Check and Saturate do, is one `Sweep` with the guard `Proof`;
  the executor runs it. It checks the tuples of a round one after the other, as the paper does, so
  it considers no more instances.
- Step 5 is a sweep without rules: the tuples take the mark, and their consequences are not drawn
  again.
- If no branch is ever given up, nothing is blocked, and steps 5 and 6 are left out (Theorem 25
  (e)).
- In the paper steps 5 and 6 are about what is blocked. But a branch that ends at a tuple which is still being
  checked does not wait for it: if that is blocked later, what was left behind is not, although it was given
  up for the same reason. It is deleted, and may be proved afterwards, or follow from what comes back
  (`tests/maintain/test_once_wrong.py`). Here all that is deleted is looked at.
- In the own stratum A is empty until step 5; steps 12 and 15 leave it out there. In step 7 it has what step 5
  has put there, where DRed reads I - D.
- E stands for the explicit facts after the commit (E - E⁻ in the paper), so a newly explicit fact
  that held before is proved at once.
- Rule changes as in `dred.py`. Proofs use the rules that were there before: what follows by an
  added rule is found by Insert.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.maintain.dred import RETRACTED, broken, falling, insert
from tidelog.maintain.protocol import Phases, StratumChange, Work
from tidelog.maintain.seminaive import fill
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Keeper, PhaseReport, Proof, Reading, Redeem, Sweep
from tidelog.plan.parts import AFTER, BEFORE, CURRENT, KEPT, A, D, E, I, Mark, Part, having
from tidelog.plan.readings import backward, driven
from tidelog.program.model import Rule, Stratum

B = having(Mark.BLOCKED)
P = having(Mark.PROVED)
Y = having(Mark.DELAYED)
PROVING = having(Mark.PROVING)


class FBF:
    """Forward, backward, forward; branches of proofs deeper than `depth` are given up."""

    state = ""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth
        self.name = "fbf" if depth is None else f"fbf({depth})"

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Semi-naive."""
        return fill(stratum, keeper, watch)

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 4 to 7."""
        tasks = change.once(self.name, lambda: self._tasks(change))
        return Phases(keeper, watch, budget).run(*tasks)

    def _tasks(self, change: StratumChange) -> tuple[Work, ...]:
        if self.depth is None:
            return (delete_unproved(change, None), insert(change, ranks=False))  # steps 4 and 7
        return (
            delete_unproved(change, self.depth),  # step 4
            _restore(change),  # step 5
            _rederive(change),  # step 6
            insert(change, ranks=False, own=I - (D - A)),  # step 7
        )


def delete_unproved(change: StratumChange, depth: int | None) -> Sweep:
    """Steps 8 to 25."""
    return Sweep(
        relations=change.stratum.relations,
        start=RETRACTED & I,  # step 8
        seeds=broken(change),
        forms=falling(change),  # step 12
        reach=I - D - P,  # step 10
        settle=Mark.DELETED,  # step 13
        guard=Proof(
            base=_deriving(change, change.kept_base, I - D),  # step 19
            recursive=_deriving(change, change.kept_recursive, I - ((D | CURRENT) - B)),  # step 15
            forward=tuple(  # step 25
                reading
                for rule in change.kept_recursive
                for reading in driven(
                    rule,
                    change.own,
                    PROVING,
                    P - PROVING,
                    P | PROVING,
                    positive=KEPT,
                    negative=BEFORE | AFTER,
                )
            ),
            depth=depth,
        ),
        phase="delete unproved",
    )


def _deriving(change: StratumChange, rules: Iterable[Rule], own_part: Part) -> tuple[Reading, ...]:
    """The instances that derive a tuple of I and have survived in the strata below."""
    return tuple(
        backward(rule, I, change.own, own_part, positive=KEPT, negative=BEFORE | AFTER) for rule in rules
    )


def _restore(change: StratumChange) -> Sweep:
    return Sweep(change.stratum.relations, D & P, (), (), Part(0), settle=Mark.ADDED, phase="restore")


def _rederive(change: StratumChange) -> Redeem:
    candidates = D - P
    return Redeem(
        relations=change.stratum.relations,
        candidates=candidates,
        known=E | Y,
        forms=tuple(
            backward(rule, candidates, change.own, I - (D - A), positive=KEPT, negative=BEFORE | AFTER)
            for rule in change.kept
        ),
        phase="rederive",
    )
