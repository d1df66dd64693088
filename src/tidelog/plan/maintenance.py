"""The seam, for maintenance: what an algorithm can ask of an executor within a commit.

An executor that keeps answers current (a `Keeper`) holds tuples with marks (see
`parts`). A commit is: `begin`; facts asserted and retracted; tasks, stratum after
stratum; then `commit` or `rollback`. Whole fixpoints are one task, so that the local
executor runs them in a kernel call and Spark in a job.

Two contracts hold at the end of each stratum's work:
- its tuples are in `BEFORE` (the answers before the commit) and `AFTER` (now) as they
  should be; DELETED together with ADDED means that nothing changed;
- QUEUED, CURRENT and PROVING are on no tuple.

A tuple that is not stored has no marks; a tuple may also be stored with no marks, which
is the same. *Changed* or *touched* tuples are those whose marks or numbers differ from
what they were at `begin`; executors find them without looking at others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from tidelog.plan.executor import Executor, TaskReport, Watch, unwatched
from tidelog.plan.executor import Task as Materialising
from tidelog.plan.parts import EVERYTHING, Mark, Part
from tidelog.program.model import AggregateRule, Rule, Value

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Value, ...]


@dataclass(frozen=True)
class Reading:
    """A rule, and the part that each body literal reads.

    A positive literal matches the tuples of its part; a negative one holds if no tuple of
    its part matches. Entries of `parts` for other literals are None. `driver`, always a
    positive literal, is where evaluation starts: it matches the *touched* tuples of its part
    only. Without a driver any order will do and every tuple counts.

    Readings are made by `plan.readings`, which turns a negative literal that drives into
    a positive one (`negated`), and puts the head before the body for backward chaining.
    """

    rule: Rule
    parts: tuple[Part | None, ...]
    driver: int | None = None
    negated: bool = False


# --- sets of tuples, in any order ---------------------------------------------


@dataclass(frozen=True)
class Supported:
    """A guard: keeps a tuple that is explicit or has an instance of `forms` from lower ranks.

    `forms` are backward (the head drives). Tuples of the sweep's own relations that an
    instance matches must have a rank lower than the head's. Where each tuple that is not explicit has
    such an instance to begin with, as after rounds that gave ranks, the loss of another one need not be
    looked at: steps 2 and 4 of the sweep may pass over heads of instances that are not from lower
    ranks. An executor that finds no instance of
    any rank for a tuple may mark it CHECKED: none will turn up in the rest of the sweep.

    Tuples that may have an instance which was not there before the commit are in `fresh`.
    """

    forms: tuple[Reading, ...]
    fresh: Part = EVERYTHING


@dataclass(frozen=True)
class Proof:
    """A guard: backward chaining with saturation (Check and Saturate of FBF).

    `base` and `recursive` are backward, `forward` is driven by PROVING tuples. A branch
    deeper than `depth` steps is given up (None: never; 0: always).

    Check(F), unless F is CHECKED already:
      0 if the branch is to be given up, F becomes BLOCKED, and that is all
      1 F becomes CHECKED; if it is DELAYED or EXPLICIT or has an instance of `base`,
        saturate from F
      2 otherwise, for each instance of `recursive`: Check each tuple of the sweep's own relations
        that it matches; if one of them is then BLOCKED and not PROVED, F becomes BLOCKED;
        stop as soon as F is PROVED
    Saturate(F): F becomes PROVED; then, for each instance of `forward` driven by a newly PROVED
    tuple, its head becomes PROVED in turn if it is CHECKED, and DELAYED if it is not.
    The guard keeps what is PROVED.
    """

    base: tuple[Reading, ...]
    recursive: tuple[Reading, ...]
    forward: tuple[Reading, ...]
    depth: int | None = None


Guard = Supported | Proof


class Instances(Enum):
    """What the instances that a sweep considers have in common."""

    MIXED = 0  # counts of their heads are not known any more
    GAINED = 1  # each adds one
    LOST = 2  # each takes one
    FORMER_LOST = 3  # each that was there before takes one, others nothing


@dataclass(frozen=True)
class Sweep:
    """Spread along rules, from a start, until nothing more is reached.

      1 touched tuples of `relations` in `start` become QUEUED
      2 the head of each instance of `seeds` is reached: if it is in `reach` and not waiting
        already, it becomes QUEUED (a head that is not stored is stored first)
      3 repeat: every QUEUED tuple loses that mark and, unless the guard keeps it, becomes CURRENT;
        if there is none, the sweep is over
      4 the head of each instance of `forms` is reached likewise; they are driven by CURRENT
      5 CURRENT tuples lose that mark and gain `settle`

    With `ranks`, a tuple that becomes QUEUED in step 2 or 4 takes as its rank one more than
    the highest rank of the tuples of `relations` that the instance matches (1 if there is
    none), and those of step 1 take rank 1.

    `instances` says what is known of the instances of steps 2 and 4: they are all that have been
    GAINED, or all that have been LOST, or MIXED. FORMER_LOST: those that were there before the commit are
    all that have been lost of these, and those of step 2 were all there. An executor may keep count of the
    instances that derive a tuple, starting with tuples that come up in a sweep; the guard of a sweep
    over lost instances need not look for support for a tuple that has none left and is not `fresh`.

    The changes of a sweep that is `gradual`, in steps 1 and 2, may be taken up a portion at a time: an
    executor may go on to the end with one before it takes up the next, and tell with its progress which share
    it has taken up. For that, `start` must be without what is settled, and `seeds` must not depend on it:
    then no instance is considered twice, whatever the portions.
    """

    relations: tuple[str, ...]
    start: Part
    seeds: tuple[Reading, ...]
    forms: tuple[Reading, ...]
    reach: Part
    settle: Mark
    guard: Guard | None = None
    ranks: bool = False
    instances: Instances = Instances.MIXED
    gradual: bool = False
    phase: str = ""  # the name of this step in reports


@dataclass(frozen=True)
class Redeem:
    """One-step rederivation: touched tuples of `relations` in `candidates` that still follow.

    A candidate in `known`, or with an instance of `forms` (backward), becomes QUEUED. One
    instance is enough, and no more are considered. `ranks` as in a sweep. The report's `new` is how many.
    """

    relations: tuple[str, ...]
    candidates: Part
    known: Part
    forms: tuple[Reading, ...]
    ranks: bool = False
    phase: str = ""


# --- numbers of derivations -----------------------------------------------------


@dataclass(frozen=True)
class Tally:
    """Keep one count for each tuple: how many rule instances derive it.

    Every instance of `lost` takes one from its head's count, every one of `gained` adds one.
    Then a touched tuple holds if it is explicit or has a count, and is marked so (AFTER).
    """

    relations: tuple[str, ...]
    lost: tuple[Reading, ...]
    gained: tuple[Reading, ...]
    phase: str = ""


@dataclass(frozen=True)
class Steps:
    """Go through the iterations of the old run and of the new one together.

    A tuple is derived by so many instances in each iteration: explicit facts count as one
    instance in iteration 1; an instance of a `base` rule belongs to iteration 1; one of a
    `recursive` rule to the iteration after the latest in which one of its tuples (of
    `relations`) was first derived. A tuple is there from the first iteration in which it
    has an instance.

    `keep` is "trace": the count of every iteration is kept; or "first": the first iteration and
    the count in it. The task brings numbers and marks from the old run to the new one. An
    instance that is in iteration k of the old run but not of the new one takes one
    from its head's count in k, and the other way round it adds one; no other instance is considered,
    except that with "first" a tuple that lost its first iteration is looked up again
    (*re-discovery*), which counts as considering the instances found.

    `removed` rules are in the old run only, `added` ones in the new run only; `base` and
    `recursive` rules, which do not include them, are in both.
    """

    relations: tuple[str, ...]
    base: tuple[Rule, ...]
    recursive: tuple[Rule, ...]
    removed: tuple[Rule, ...] = ()
    added: tuple[Rule, ...] = ()
    keep: str = "trace"
    phase: str = ""


@dataclass(frozen=True)
class Regroup:
    """Bring an aggregate up to date: only groups with lost or gained rows are looked at."""

    rule: AggregateRule
    phase: str = ""


Maintaining = Sweep | Redeem | Tally | Steps | Regroup


@dataclass
class PhaseReport(TaskReport):
    """What a maintenance task did; `touched` are the tuples whose marks or numbers it changed.

    `considered` has every instance as (rule id, head, matched tuples...) when the executor
    was asked to remember them (`Keeper.remember`), else it stays empty. Matched are the tuples of
    the rule's positive literals, in the order of its body, however the instance was found; `kinds`
    has the name that `details` gives to each of them, or "".
    `details` splits the number of instances: "backward", "forward" and "deletion" for a sweep with
    a guard; "deletion", "insertion" and "rediscovery" for steps. Aggregates count "groups".
    """

    phase: str = ""
    touched: int = 0
    work: int = 0  # tuples looked at, also in vain; 0 where the executor does not count them
    undecided: int | None = (
        None  # tuples that a guarded sweep let fall and did not mark CHECKED; None: not known
    )
    details: dict[str, int] = field(default_factory=dict)
    considered: list[tuple[object, ...]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


class Abandoned(Exception):
    """A task has cost more than it was given; what it did stands half done.

    `reports` are of what was done nevertheless, by this task and those before it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[PhaseReport] = []


@dataclass(frozen=True)
class Standing:
    """All that an executor knows of a tuple, for tests."""

    marks: Mark
    first: int = 0  # rank, or first iteration; 0: none kept
    count: int = 0
    trace: Mapping[int, int] = field(default_factory=dict)  # iteration -> count


class Delta(Protocol):
    """The tuples that a commit takes from a relation and adds to it; valid for ever once read."""

    deleted: pa.Table
    inserted: pa.Table


@dataclass
class Told:
    """How many facts of each relation a commit has made explicit so far, and how many explicit no more."""

    asserted: Counter[str] = field(default_factory=Counter)
    retracted: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        """A commit begins."""
        self.asserted.clear()
        self.retracted.clear()


class Keeper(Executor, Protocol):
    """An executor that can bring answers up to date.

    Outside of a commit its relations hold the current answers; `size` and `table` give
    these until `commit`, also while one is under way. `preparing` are the seconds spent so far on what
    tasks find ready the next time, such as indexes that renewal has left behind, in the time of the processor
    where updates run in the calling thread. `patience` are the seconds
    that an update may always take, where rounds cost more than tuples; else 0. `told` is what the commit
    under way has been told of explicit facts.
    """

    preparing: float
    patience: float
    told: Told

    def begin(self) -> None:
        """Start a commit."""

    def commit(self) -> None:
        """What is AFTER becomes what is held."""

    def rollback(self) -> None:
        """Everything as it was at `begin`: tuples, numbers, relations made or dropped since."""

    def drop(self, relation: str) -> None:
        """Forget a relation that no rule reads or derives any more."""

    def assert_rows(self, relation: str, rows: Sequence[Row] | pa.Table) -> int:
        """Make rows explicit: EXPLICIT, ASSERTED, and ADDED where not HELD yet and no rule derives into it.

        The number of rows that were not explicit before. A row that was retracted in this commit is
        simply explicit again.
        """

    def retract_rows(self, relation: str, rows: Sequence[Row] | pa.Table) -> int:
        """The reverse of `assert_rows`; the number of rows that were explicit before."""

    def facts(self, relation: str) -> pa.Table:
        """The explicit tuples of a relation, with what the commit under way has asserted and retracted."""

    def derives(self, relations: Sequence[str]) -> None:
        """Say which relations rules derive into; in all others a tuple holds if it is explicit."""

    def keep_going(
        self, task: Maintaining | Materialising, watch: Watch = unwatched, budget: int | None = None
    ) -> PhaseReport:
        """Run a task. Raises Abandoned once it has cost more than `budget`, or has outgrown the keeper.

        The cost is the number of tuples looked at, or of rule instances considered where an executor counts
        only these.
        """

    def prepare(self, tasks: Sequence[Maintaining | Materialising]) -> None:
        """Make what tasks will find ready, such as indexes, now rather than when they are run."""

    def undo(self, relations: Sequence[str]) -> None:
        """Put relations back to where they were before any task of this commit touched them.

        Assertions and retractions stay.
        """

    def renew(self, relations: Sequence[str]) -> None:
        """Set the tuples of relations aside and start them anew from their explicit facts.

        Until `renewed`, tasks that materialise (Derive, Fixpoint, Group) and Tally and Steps from
        nothing may run; all relations read as they are now (AFTER), and nothing else.
        """

    def renewed(self, relations: Sequence[str]) -> bool:
        """End of `renew`: mark what is lost and gained against what was set aside.

        Whether what tasks find ready is still there.
        """

    def changed(self, relation: str) -> tuple[int, int]:
        """The number of tuples lost and gained so far in this commit."""

    def delta(self, relation: str) -> Delta:
        """What this commit takes from a relation and adds to it."""

    def standing(self, relation: str) -> dict[Row, Standing]:
        """All stored tuples with what is known of them, for tests."""

    def remember(self, on: bool) -> None:
        """Whether tasks remember every rule instance they consider, for tests."""
