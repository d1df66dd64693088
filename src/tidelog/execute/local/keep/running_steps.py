"""The task `Steps`, compiled; `steps` has the fixpoint itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local import memory
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep import steps as kernels
from tidelog.execute.local.keep.tasks import Running
from tidelog.execute.local.keep.timing import NEW_RUN, OLD_RUN
from tidelog.execute.local.memory import Words
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import AFTER, BEFORE, GAINED, KEPT, LOST, Part
from tidelog.program.model import Negative, Positive, Rule

if TYPE_CHECKING:
    from tidelog.execute.local.keep.keeper import LocalKeeper

NOTHING = Part(0)
BOTH = OLD_RUN | NEW_RUN


class RunningSteps(Running):
    """A fixpoint in step, over the old answers or from nothing."""

    counts = True

    def __init__(self, keeper: LocalKeeper, task: Steps, from_nothing: bool) -> None:
        super().__init__(keeper, task.relations)
        self.task, self.from_nothing = task, from_nothing
        kept, added = (*task.base, *task.recursive), task.added
        if from_nothing:
            kept, added = (), (*kept, *task.added)
        removed = () if from_nothing else task.removed
        own = frozenset(task.relations)
        seeds: list[int] = []
        for rules, runs in ((removed, OLD_RUN), (added, NEW_RUN)):
            for rule in rules:
                if not (from_nothing and _reads_own(rule, own)):
                    seeds.append(self.code.add(everything(rule), runs=runs)[0])
        for rule in kept:
            for reading, negated in changing(rule, own):
                seeds.append(self.code.add(reading, runs=BOTH, flip=negated)[0])
        self.seeds: Words = np.array(seeds, np.int64)
        places, owners = [], []
        for rules, runs in ((kept, BOTH), (removed, OLD_RUN), (added, NEW_RUN)):
            for rule in rules:
                for reading in driven_by_own(rule, own):
                    place, driver = self.code.add(reading, runs=runs)
                    places.append(place)
                    owners.append(self.names.index(driver or ""))
        self.forms: Words = np.array(places, np.int64)
        self.owners: Words = np.array(owners, np.int64)
        places, owners = [], []
        if task.keep == "first" and not from_nothing:
            for rule in (*kept, *added):
                place, driver = self.code.add(derivations(rule), backward=True, runs=NEW_RUN)
                places.append(place)
                owners.append(self.names.index(driver or ""))
        self.backward: Words = np.array(places, np.int64)
        self.backward_owners: Words = np.array(owners, np.int64)
        self.finish()
        for cursor in self.cursors:
            cursor.record[at.C_MODE] = 1

    def reset(self, budget: int | None) -> None:
        """Be ready to run from the beginning."""
        super().reset(budget)
        for name in self.names:
            ledger = self.keeper.ledger(name)
            if self.task.keep == "trace":
                ledger.keep_traces()
            ledger.keep_scratch()
        self.run[at.R_K : at.R_WORK] = 0
        self.run[at.R_KEEP] = int(self.task.keep == "trace")

    def __call__(self, watch: Watch) -> None:
        """Go through the iterations."""
        try:
            self.drive(
                lambda: int(
                    kernels.steps(
                        self.own, self.place, self.seeds, self.forms, self.owners, self.backward,
                        self.backward_owners, self.from_nothing, self.address,
                    )
                ),
                watch,
            )  # fmt: skip
        finally:
            for field in (at.R_BUCKETS, at.R_POOL):
                memory.free(int(self.run[field]))
                self.run[field] = 0
            for name in self.names:
                self.keeper.ledger(name).clear_scratch()


def everything(rule: Rule) -> Reading:
    """All instances, whichever run has them."""
    return Reading(rule, tuple(NOTHING if isinstance(literal, Negative) else None for literal in rule.body))


def changing(rule: Rule, own: frozenset[str]) -> Iterator[tuple[Reading, bool]]:
    """The readings that a literal of another stratum drives, with whether it is a negated one.

    Literals of other strata before the driver are the same in both runs.
    """
    for driver, literal in enumerate(rule.body):
        if not isinstance(literal, Positive | Negative) or literal.atom.relation in own:
            continue
        body, parts = list(rule.body), list[Part | None]()
        body[driver] = Positive(literal.atom)
        for i, other in enumerate(rule.body):
            match other:
                case _ if i == driver:
                    parts.append(LOST | GAINED)
                case Positive(atom) if atom.relation not in own and i < driver:
                    parts.append(KEPT)
                case Negative():
                    parts.append(BEFORE | AFTER if i < driver else NOTHING)
                case _:
                    parts.append(None)
        yield Reading(replace(rule, body=tuple(body)), tuple(parts), driver), isinstance(literal, Negative)


def driven_by_own(rule: Rule, own: frozenset[str]) -> Sequence[Reading]:
    """The readings that an atom over an own relation drives."""
    whole = everything(rule)
    return [
        replace(whole, driver=i)
        for i, literal in enumerate(rule.body)
        if isinstance(literal, Positive) and literal.atom.relation in own
    ]


def derivations(rule: Rule) -> Reading:
    """The instances with a given head."""
    whole = everything(rule)
    return Reading(replace(rule, body=(Positive(rule.head), *rule.body)), (None, *whole.parts), 0)


def _reads_own(rule: Rule, own: frozenset[str]) -> bool:
    return any(isinstance(lit, Positive) and lit.atom.relation in own for lit in rule.body)
