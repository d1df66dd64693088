"""Semi-naive materialisation.

From: B. Motik, Y. Nenov, R. Piro, I. Horrocks, *Maintenance of Datalog
Materialisations Revisited*, Artificial Intelligence 269 (2019), Algorithm 1.

    SemiNaive(E, Π, λ)
    1  start from nothing: I is empty
    2  for each stratum s, in order
    3      N is the explicit facts of s, and what its nonrecursive rules derive from I
    4      repeat
    5          Δ is what N brings that is not in I
    6          if Δ is empty, the stratum is finished
    7          add Δ to I
    8          N is what its recursive rules derive from I with at least one atom in Δ

Line 8 considers each instance of a recursive rule once, in the round after the
newest of the facts it matches was derived; line 3 considers each instance of a
nonrecursive rule once. No rule instance is considered twice (*nonrepetition*).

| paper               | here                                                       |
|---------------------|------------------------------------------------------------|
| E                   | what the relations hold before `materialise`                |
| Π, λ                | `strata`: the rules, by stratum                             |
| I                   | what the executor holds                                     |
| Π^s_nr, Π^s_r       | `stratum.base`, `stratum.recursive`                         |
| Out^s               | `stratum.relations`                                         |
| Π^s_r[I ⁝ Δ]        | `delta_forms`: an atom at DELTA, those before at OLD, after at ALL |
| Δ, N                | within the executor: DELTA, and the tuples of the current round |

Departures:
- The loop of steps 4 to 8 is one `Fixpoint`, run by the executor: a Spark job or a
  call into the kernels for each round would cost more than the round.
- Explicit facts are in their relations from the start (E ∪ I instead of I). Nothing
  of a stratum is read before its turn, so step 3 has only the rules to apply; the
  first Δ is everything the stratum's relations then hold.
- Strata are made of relations, not of atoms: λ maps both atoms of a relation alike.
- Aggregates, which the paper does not have, are strata of their own.

`materialise` does this for a whole program. `Recompute` is the maintenance algorithm that it
amounts to: a stratum that something has changed for is derived again (steps 3 to 8), and what
is lost and gained is found by comparing. As a round of the loop is a rank, recomputing
leaves ranks behind, and can take turns with `ranked`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidelog.maintain.protocol import Phases, StratumChange, renewal
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Derive, Executor, Fixpoint, Group, Progress, Task, TaskReport, Watch
from tidelog.plan.maintenance import Keeper, PhaseReport
from tidelog.program.model import Stratum

StratumWatch = Callable[[Stratum, Progress], None]


def unwatched(stratum: Stratum, progress: Progress) -> None:
    """Look at nothing."""


@dataclass(frozen=True)
class StratumReport:
    """What materialising one stratum did."""

    stratum: int
    relations: tuple[str, ...]
    report: TaskReport


def materialise(
    strata: Sequence[Stratum], executor: Executor, watch: StratumWatch = unwatched
) -> list[StratumReport]:
    """Derive everything that follows from what the executor's relations hold.

    The relations exist and hold the explicit facts (step 1); derived relations hold
    nothing else. `watch` is told of progress within each stratum.
    """
    return [_stratum(stratum, executor, watch) for stratum in strata]  # step 2


def _stratum(stratum: Stratum, executor: Executor, watch: StratumWatch) -> StratumReport:
    total = TaskReport()

    def watch_task(progress: Progress) -> None:
        watch(stratum, Progress(total.rounds + progress.round, total.new + progress.tuples))

    for task in tasks(stratum):
        total = _sum(total, executor.run(task, watch_task))
    return StratumReport(stratum.index, stratum.relations, total)


def tasks(stratum: Stratum, ranks: bool = False) -> tuple[Task, ...]:
    """What an executor is asked to run for a stratum, in order."""
    found: list[Task] = []
    if stratum.aggregate is not None:
        found.append(Group(stratum.aggregate))
    if stratum.base:
        found.append(Derive(tuple(whole_form(rule) for rule in stratum.base), ranks))  # step 3
    if stratum.recursive:
        own = frozenset(stratum.relations)
        forms = tuple(form for rule in stratum.recursive for form in delta_forms(rule, own))
        found.append(Fixpoint(stratum.relations, forms, ranks))  # steps 4 to 8
    return tuple(found)


def _sum(left: TaskReport, right: TaskReport) -> TaskReport:
    """Two tasks of a stratum as one; each rule runs in one of them only."""
    return TaskReport(
        rounds=left.rounds + right.rounds,
        new=left.new + right.new,
        instances=left.instances | right.instances,
        seconds=left.seconds + right.seconds,
        way=right.way or left.way,
    )


class Recompute:
    """Derives a changed stratum again."""

    name = "recompute"
    state = "ranks"

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Steps 3 to 8."""
        return fill(stratum, keeper, watch, ranks=True)

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """The same. What recomputing costs is what everything else is measured by: no budget."""
        return renewal(self, change.stratum, keeper, watch)


def fill(stratum: Stratum, keeper: Keeper, watch: Watch, ranks: bool = False) -> list[PhaseReport]:
    """Derive the tuples of a renewed stratum."""
    phases = Phases(keeper, watch)
    for task in tasks(stratum, ranks):
        phases.run(task, phase=type(task).__name__.lower())
    return phases.reports
