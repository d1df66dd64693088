"""The readings of a fixpoint in step (`plan.maintenance.Steps`): how its two runs find what differs."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from tidelog.plan.maintenance import Reading, Steps
from tidelog.plan.parts import AFTER, BEFORE, Part
from tidelog.plan.readings import backward, driven, gained_readings, lost_readings, reads_own, whole
from tidelog.program.model import Atom, Positive, Rule


@dataclass(frozen=True)
class StepReadings:
    """What the runs read; own tuples are told apart by their iterations, not by parts."""

    lost: tuple[Reading, ...]  # instances that strata below or the rules have ended
    first_gained: tuple[Reading, ...]  # those of iteration 1 that they have brought
    gained: tuple[Reading, ...]  # own tuples that meet something new below
    old_forms: tuple[Reading, ...]  # driven by own tuples, in the old run
    new_forms: tuple[Reading, ...]  # and in the new one
    met_forms: tuple[Reading, ...]  # own tuples that meet others
    backward: tuple[Reading, ...]  # what derived a tuple in the old run


def step_readings(task: Steps, own: Set[str], *, from_nothing: bool) -> StepReadings:
    """The readings of a task; `from_nothing`: there is no old run."""
    removed = [rule for rule in task.removed if reads_own(rule, own)]
    added = [rule for rule in task.added if reads_own(rule, own)]
    base_removed = [rule for rule in task.removed if not reads_own(rule, own)]
    base_added = [rule for rule in task.added if not reads_own(rule, own)]

    def driven_by_own(rules: Iterable[Rule], part: Part) -> list[Reading]:
        return [form for rule in rules for form in driven(rule, own, part, part, part, part, part)]

    lost = [form for rule in (*task.base, *task.recursive) for form in lost_readings(rule, own)]
    lost += [whole(rule, BEFORE, BEFORE) for rule in (*base_removed, *removed)]
    first_gained = [form for rule in task.base for form in gained_readings(rule, own)]
    first_gained += [whole(rule, AFTER, AFTER) for rule in base_added]
    gained = [_positive(form) for rule in task.recursive for form in gained_readings(rule, own)]
    if not from_nothing:  # else there is no tuple of the old run to be met
        gained += [_positive(whole(rule, AFTER, AFTER)) for rule in added]
    new_forms = driven_by_own((*task.recursive, *added), AFTER)
    met = [
        _positive(form)
        for form in new_forms
        if sum(isinstance(lit, Positive) and lit.atom.relation in own for lit in form.rule.body) > 1
    ]
    old_rules = (*task.base, *task.recursive)
    return StepReadings(
        lost=tuple(lost),
        first_gained=tuple(first_gained),
        gained=tuple(gained),
        old_forms=tuple(driven_by_own(task.recursive, BEFORE)),
        new_forms=tuple(new_forms),
        met_forms=tuple(met),
        backward=tuple(backward(rule, AFTER, own, BEFORE, BEFORE, BEFORE) for rule in old_rules),
    )


def _positive(reading: Reading) -> Reading:
    """The positive literals of a reading alone; it has no head to speak of."""
    rule = reading.rule
    kept = [i for i, literal in enumerate(rule.body) if isinstance(literal, Positive)]
    return Reading(
        replace(rule, head=Atom(rule.head.relation, ()), body=tuple(rule.body[i] for i in kept)),
        tuple(reading.parts[i] for i in kept),
        None if reading.driver is None else kept.index(reading.driver),
    )
