"""What maintenance algorithms have in common: one stratum, one commit at a time.

An algorithm brings the tuples of a stratum up to date with what has changed below it,
with its own explicit facts, and with its rules. It works through a `Keeper` and leaves
the contracts of `plan.maintenance` fulfilled. Between commits it may keep numbers with
the tuples of recursive strata (`state`); algorithms with the same kind of numbers can take
turns, and a change of kind means starting the stratum anew (`update.py` has the details).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from tidelog.plan.executor import Task as Materialising
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Abandoned, Keeper, Maintaining, PhaseReport, Redeem, Steps, Sweep
from tidelog.program.model import Negative, Positive, Relation, Rule, Stratum
from tidelog.program.strata import body_relations
from tidelog.syntax.errors import EvaluationError

Work = Maintaining | Materialising


@dataclass(frozen=True)
class StratumChange:
    """A stratum as it is after the commit, and how its rules have changed.

    `added` rules are among the stratum's, `removed` ones are not. While a stratum's rules
    stay the same it is given to algorithms as the same object again and again, so that
    tasks need to be made only once.
    """

    stratum: Stratum
    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()
    _made: dict[object, tuple[Work, ...]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def own(self) -> frozenset[str]:
        """The stratum's relations."""
        return frozenset(self.stratum.relations)

    @cached_property
    def below(self) -> frozenset[str]:
        """The relations of other strata that its rules read."""
        rules = (*self.stratum.base, *self.stratum.recursive)
        return frozenset(relation for rule in rules for relation in body_relations(rule)) - self.own

    @cached_property
    def kept_below(self) -> frozenset[tuple[str, bool]]:
        """The relations of other strata that the rules of `kept` read; False: negated."""
        return frozenset(
            (literal.atom.relation, isinstance(literal, Positive))
            for rule in self.kept
            for literal in rule.body
            if isinstance(literal, Positive | Negative) and literal.atom.relation not in self.own
        )

    @property
    def kept(self) -> tuple[Rule, ...]:
        """The rules that were there before and still are."""
        return (*self.kept_base, *self.kept_recursive)

    @property
    def kept_base(self) -> tuple[Rule, ...]:
        """Those of `kept` that read no relation of the stratum."""
        return tuple(rule for rule in self.stratum.base if rule not in self.added)

    @property
    def kept_recursive(self) -> tuple[Rule, ...]:
        """Those of `kept` that do."""
        return tuple(rule for rule in self.stratum.recursive if rule not in self.added)

    def once(self, key: object, make: Callable[[], tuple[Work, ...]]) -> tuple[Work, ...]:
        """Tasks for this change, made when they are first asked for."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


class Algorithm(Protocol):
    """A way to keep a stratum current."""

    name: str
    state: str  # the numbers kept: "" (none), "ranks", "counts", "first", "trace", ...

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Derive the stratum's tuples from nothing, with the numbers that `update` needs.

        Called between `Keeper.renew` and `Keeper.renewed`.
        """

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Bring the stratum up to date. Raises Abandoned past `budget` (see `Keeper.keep_going`)."""


class Forgetting(Protocol):
    """An algorithm that keeps relations of its own for a stratum."""

    def owned(self, stratum: Stratum) -> Mapping[str, Relation]:
        """These relations; `stratum` is as it was when it was last brought up to date."""

    def forget(self, stratum: Stratum, keeper: Keeper) -> None:
        """Give them up."""


class Weighing(Protocol):
    """An algorithm that goes by what starting a stratum has cost, in whatever it counts."""

    def starting(self, stratum: Stratum) -> float | None:
        """What it has cost; None: that is not known."""

    def expect(self, stratum: Stratum, cost: float) -> None:
        """It would cost so much, as `starting` has said before."""


@dataclass(frozen=True)
class Choice:
    """What was done for a stratum in a commit, and why."""

    stratum: int
    algorithm: str
    why: str


class Misled(Abandoned):
    """An expression has failed on values that need not be together, neither before the commit nor after it.

    Tasks of an update join what is gone with what is new, to find out what holds up what. Whether the commit
    fails is known when the stratum is started anew.
    """


@contextmanager
def misleading() -> Iterator[None]:
    """Run a task of an update of a recursive stratum. Raises Misled where an expression fails."""
    try:
        yield
    except EvaluationError as error:
        raise Misled from error


class Phases:
    """Runs tasks one after the other within one budget, and keeps their reports.

    `anew`: they start a stratum, and look at nothing but what is there after the commit.
    """

    def __init__(
        self, keeper: Keeper, watch: Watch, budget: int | None = None, *, anew: bool = False
    ) -> None:
        self.keeper, self.watch, self.budget, self.anew = keeper, watch, budget, anew
        self.reports: list[PhaseReport] = []

    def run(self, *tasks: Work, phase: str = "") -> list[PhaseReport]:
        """Run tasks; `phase` names those that have no name. The reports of all tasks so far."""
        for task in tasks:
            left = None if self.budget is None else self.budget - cost(self.reports)
            try:
                if left is not None and left < 0:
                    raise Abandoned
                exact = self.anew or not isinstance(task, Sweep | Redeem | Steps)
                with nullcontext() if exact else misleading():
                    report = self.keeper.keep_going(task, self.watch, left)
            except Abandoned as given_up:
                given_up.reports[:0] = self.reports
                raise
            report.phase = report.phase or getattr(task, "phase", "") or phase
            self.reports.append(report)
        return self.reports


def considered(reports: list[PhaseReport]) -> int:
    """The rule instances considered in some phases together."""
    return sum(sum(report.instances.values()) for report in reports)


def cost(reports: list[PhaseReport]) -> int:
    """What phases cost: tuples looked at, or rule instances where these are not counted."""
    return sum(report.work or sum(report.instances.values()) for report in reports)


def in_vain(given_up: Abandoned, phase: str = "abandoned", seconds: float = 0.0) -> PhaseReport:
    """All that an update has done in vain, as one phase."""
    instances: Counter[int] = Counter()
    for report in given_up.reports:
        instances.update(report.instances)
    seconds = seconds or sum(report.seconds for report in given_up.reports)
    work = sum(report.work for report in given_up.reports)
    return PhaseReport(instances=dict(instances), seconds=seconds, phase=phase, work=work)


def renewal(algorithm: Algorithm, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
    """Start a stratum anew, whatever it holds."""
    keeper.renew(stratum.relations)
    reports = algorithm.start(stratum, keeper, watch)
    keeper.renewed(stratum.relations)
    return reports
