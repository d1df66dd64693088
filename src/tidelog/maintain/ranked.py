"""Ranked: delete and rederive, but keep what stands on lower ground.

Our own. It is DRed (`dred.py`) with a number for each tuple, its *rank*, that decides at a glance
most of what FBF finds out by backward chaining.

Semi-naive evaluation derives a tuple in some round, from tuples of earlier rounds. That round is
the tuple's first rank. An instance whose tuples of this stratum all have lower ranks than its head
is a *support* of the head. As ranks fall along supports, nothing can stand on itself: a tuple stays
while it has one, and only the loss of a support gives reason to look. DRed, which knows no ranks,
must delete the tuple and all that depends on it to be sure.

    Ranked(E, Π, λ, I, E⁻, E⁺)
    1  for each stratum s, in order: Delete, Rederive, Insert

    Delete
    2  N is E⁻ of this stratum, and what has lost a support: an instance from I with an atom that is
       gone by now
    3  repeat
    4      for each F of N that is not in D: put it into Δ, unless it is *supported*: it is explicit, or
           has a support whose atoms of strata below are there after the commit, and whose atoms of
           this stratum are in I - D - Δ
    5      if Δ is empty, that is all
    6      N is what loses a support by Δ: one with at least one atom in Δ, the others of this stratum in
           I - D, and those of strata below there after the commit
    7      add Δ to D

    Rederive
    8  R is what in D follows in one step, as in DRed; its rank becomes one more than the highest rank
       of the instance's tuples

    Insert
    9  as in DRed; a new tuple takes one more than the highest rank of the instance that first derives it

**Why it is right.** What is kept up from commit to commit is:

    (*) each tuple that is not explicit has a support.

By induction on ranks, (*) says that every tuple follows. Let K be what is left of I after Delete, and
take F in K that is not explicit.
- F was reached by Delete, and found to have a support the last time it was. Had one of the tuples
  of that support been deleted later, step 6 would have reached F once more.
- F was never reached. It had a support before the commit, by (*), and a change below, a removed
  rule or a deleted tuple of this stratum that ended it would have reached F.
So (*) holds for K. Rederive and Insert give a tuple a rank above those of the instance that brings it,
which is then its support. That everything which follows is found is DRed's own argument: what is
deleted and has an instance left is in R, or is derived by Insert.

(*) holds for the ranks of a semi-naive run. It does not matter how it came about. So:
- insertion never moves a rank: additions cost only the instances that are new, as in DRed;
- rules may come and go: a new one only adds supports, and a removed one reaches what it supported;
- a stratum may fall apart; but when strata grow together, (*) may fail for the union, as the
  ranks of the upper one did not count those of the lower: then the stratum is started anew
  (`update.py`).

An executor that cannot tell rounds apart may give all tuples the same rank if it reaches F by the
loss of *any* instance (`plan.maintenance.Supported`). Then supports are instances of rules that are not
recursive, and a tuple without one falls and is rederived, as in DRed.

Tuples of N that are still to be looked at count in step 4 as being there. If they fall in the
same round, step 6 reaches F again; if the order is lucky, they do not.

| symbol          | here                                                              |
|-----------------|-------------------------------------------------------------------|
| I, D, E⁻, Δ, N, R | as in `dred.py`                                                  |
| rank            | `Standing.first`, kept by the executor                            |
| supported       | the guard `Supported` of the sweep                                |

Departures from DRed, on top of the guard:
- Steps 4 and 6 read strata below as they are after the commit, and also the added rules, where
  DRed reads only what is both before and after. So a new fact or a new rule can hold up what an
  old one held. Step 6 has to consider every instance that may be a support.
- Within one `Sweep` an instance is considered at most once by step 6; the guard's instances come
  on top, and the first one that supports a tuple ends the search for it.
- Delete and Insert take up many changes in portions, one after the other (`Sweep.gradual`). (*) does not
  depend on when a change is taken up, and whoever waits learns from the first portions what the others will
  take. A tuple may be looked at once for each portion that takes a support from it.
- A tuple for which the guard finds no instance at all, of whatever rank, is CHECKED and need not be
  looked for again in rederivation.
- Delete considers each instance that is lost once, and Insert each one that is gained. So of a tuple
  that Insert has brought, the executor knows how many instances derive it, and the guard need not
  look for one where none is left: what came by commits goes as cheaply as with counting. So does what
  was there from the start and came by one instance, as far as the executor has noted that. If something
  is also gained below, Delete reads instances too that were never counted (it reads what is there
  after the commit): these are told apart. A tuple that has lost all it had may be held up by something
  new; unless much more is gained than lost, those that may be are marked beforehand (`foresee`), and the
  guard looks for support for these alone. With an added rule it cannot tell old instances from new
  ones, and the numbers of the tuples it reaches are forgotten.
"""

from __future__ import annotations

from tidelog.maintain.dred import RETRACTED, broken, insert, rederive
from tidelog.maintain.protocol import Phases, StratumChange, Work
from tidelog.maintain.seminaive import fill
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Instances, Keeper, PhaseReport, Reading, Supported, Sweep
from tidelog.plan.parts import AFTER, CURRENT, EVERYTHING, NOTHING, D, I, Mark, Part, having
from tidelog.plan.readings import backward, driven, gained_readings
from tidelog.program.model import Stratum

CHECKED = having(Mark.CHECKED)
FORESEEN = having(Mark.PROVED)
MUCH_MORE = 4  # times as many changes gained as lost: what they may hold up is then not foreseen


class Ranked:
    """Delete and rederive, guarded by ranks."""

    name = "ranked"
    state = "ranks"

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Semi-naive; a tuple's rank is the round that first derived it."""
        return fill(stratum, keeper, watch, ranks=True)

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Step 1, for one stratum."""
        phases, relations = Phases(keeper, watch, budget), change.stratum.relations
        retracted = any(keeper.told.retracted[name] for name in relations)
        asserted = any(keeper.told.asserted[name] for name in relations)
        ended, begun = _ended_and_begun(change, keeper)
        rederiving, inserting = self._others(change)
        returning = 0
        if ended or change.removed or retracted:
            deleted = phases.run(*self._deleting(change, keeper, ended, begun))[-1]
            if deleted.undecided != 0 and any(keeper.changed(name)[0] for name in relations):
                returning = phases.run(rederiving)[-1].new
        if returning or begun or change.added or asserted:
            phases.run(inserting)
        return phases.reports

    def prepare(self, change: StratumChange, keeper: Keeper) -> None:
        """Make the indexes of commits that only take away, or only add."""
        keeper.prepare((*self._deletion(change, Instances.LOST, NOTHING), *self._others(change)))

    def _others(self, change: StratumChange) -> tuple[Work, ...]:
        return change.once(
            self.name, lambda: (rederive(change, True, D - CHECKED), insert(change, ranks=True, gradual=True))
        )

    def _deleting(self, change: StratumChange, keeper: Keeper, ended: int, begun: int) -> tuple[Work, ...]:
        """The tasks of Delete; what is new below decides what the guard has to look at."""
        if change.added:
            return self._deletion(change, Instances.MIXED, EVERYTHING)
        if not begun:
            return self._deletion(change, Instances.LOST, NOTHING)
        if keeper.patience or begun > MUCH_MORE * ended:
            return self._deletion(change, Instances.FORMER_LOST, EVERYTHING)
        return self._deletion(change, Instances.FORMER_LOST, FORESEEN)

    def _deletion(self, change: StratumChange, instances: Instances, fresh: Part) -> tuple[Work, ...]:
        return change.once(
            (self.name, instances, fresh),
            lambda: (
                *((foresee(change),) if fresh is FORESEEN else ()),
                delete(change, instances, fresh),
            ),
        )


def foresee(change: StratumChange) -> Sweep:
    """Mark what may be held up by something new."""
    return Sweep(
        relations=change.stratum.relations,
        start=NOTHING,
        seeds=tuple(
            reading for rule in change.kept for reading in gained_readings(rule, change.own, own_part=I)
        ),
        forms=(),
        reach=I - FORESEEN,
        settle=Mark.PROVED,
        phase="foresee",
    )


def delete(change: StratumChange, instances: Instances, fresh: Part) -> Sweep:
    """What has lost an instance and is not held up by lower ranks."""
    return Sweep(
        relations=change.stratum.relations,
        start=(RETRACTED & I) - D,  # step 2
        seeds=broken(change),
        forms=_falling(change),  # step 6
        reach=I - D,
        settle=Mark.DELETED,  # step 7
        guard=Supported(_supporting(change), fresh),  # step 4
        instances=instances,
        gradual=True,
        phase="delete",
    )


def _ended_and_begun(change: StratumChange, keeper: Keeper) -> tuple[int, int]:
    """The number of changes below by which instances may have ended, and by which there may be new ones."""
    changed = [(keeper.changed(relation), positive) for relation, positive in change.kept_below]
    ended = sum(lost if positive else gained for (lost, gained), positive in changed)
    begun = sum(gained if positive else lost for (lost, gained), positive in changed)
    return ended, begun


def _falling(change: StratumChange) -> tuple[Reading, ...]:
    return tuple(
        reading
        for rule in change.stratum.recursive
        for reading in driven(
            rule, change.own, CURRENT, I - D - CURRENT, I - D, positive=AFTER, negative=AFTER
        )
    )


def _supporting(change: StratumChange) -> tuple[Reading, ...]:
    rules = (*change.stratum.base, *change.stratum.recursive)
    return tuple(
        backward(rule, I, change.own, I - D - CURRENT, positive=AFTER, negative=AFTER) for rule in rules
    )
