"""What maintenance algorithms have in common: one stratum, one commit at a time.

An algorithm brings the tuples of a stratum up to date with what has changed below it,
with its own explicit facts, and with its rules. It works through a `Keeper` and leaves
the contracts of `plan.maintenance` fulfilled. Between commits it may keep numbers with
the tuples of recursive strata (`state`); algorithms with the same kind of numbers can take
turns, and a change of kind means starting the stratum anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Keeper, PhaseReport
from tidelog.program.model import Rule, Stratum


@dataclass(frozen=True)
class StratumChange:
    """A stratum as it is after the commit, and how its rules have changed.

    `added` rules are among the stratum's, `removed` ones are not.
    """

    stratum: Stratum
    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()

    @property
    def own(self) -> frozenset[str]:
        """The stratum's relations."""
        return frozenset(self.stratum.relations)

    @property
    def kept(self) -> tuple[Rule, ...]:
        """The rules that were there before and still are."""
        added = {rule.id for rule in self.added}
        return tuple(rule for rule in (*self.stratum.base, *self.stratum.recursive) if rule.id not in added)


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
        """Bring the stratum up to date. Raises Abandoned past `budget` rule instances."""
