"""Derive, Fixpoint and Group: relations filled from what holds (see `plan.executor`).

What holds is AFTER: outside of a commit that is everything stored. Tuples take a rank
as they come, the round after which they are there: an update may want to know later which
tuples were there before which.
"""

from __future__ import annotations

from tidelog.execute.substitution.groups import group
from tidelog.execute.substitution.infer import Question, Read, infer
from tidelog.execute.substitution.relation import Entry, Row
from tidelog.execute.substitution.work import Work
from tidelog.plan.executor import Derive, Fixpoint, Group, RuleForm, Version
from tidelog.plan.parts import AFTER
from tidelog.program.model import Positive


def derive(task: Derive, work: Work) -> None:
    """Evaluate each form once."""
    for relation, rows in _round(task.forms, 0, work).items():
        fresh = work.relations[relation].add(rows)
        for entry in fresh:
            entry.first = 1
        work.report.new += len(fresh)
    work.round()


def fixpoint(task: Fixpoint, work: Work) -> None:
    """Rounds until one derives nothing; what a round derives is seen from the next one on."""
    own = [work.relations[name] for name in task.relations]
    for relation in own:
        relation.delta = {entry: None for entry in relation.entries.values() if entry.within(AFTER)}
        for entry in relation.delta:
            entry.round = 0
            if entry.first != 1:
                entry.touch().first = 1
    number = 0
    while any(relation.delta for relation in own):
        number += 1
        derived = _round(task.forms, number, work)
        for relation in own:
            relation.delta = relation.add(derived.get(relation.name, {}), number)
            for entry in relation.delta:
                entry.first = number + 1
            work.report.new += len(relation.delta)
        work.round()


def aggregate(task: Group, work: Work) -> None:
    """Compute an aggregate."""
    head = work.relations[task.rule.head]
    work.report.new = len(head.add(group(task.rule, work.relations[task.rule.source], head)))
    work.round()


def _round(forms: tuple[RuleForm, ...], number: int, work: Work) -> dict[str, dict[Row, None]]:
    """The head rows of all instances of the forms, by relation."""

    def accept(entry: Entry, read: Read) -> bool:
        if not entry.within(AFTER):
            return False
        return read is Version.ALL or (entry.round == number - 1) is (read is Version.DELTA)

    derived: dict[str, dict[Row, None]] = {}
    for form in forms:
        rows = derived.setdefault(form.rule.head.relation, {})
        driver = next((i for i, read in enumerate(form.reads) if read is Version.DELTA), None)
        drivers = {}
        if driver is not None:
            literal = form.rule.body[driver]
            assert isinstance(literal, Positive)
            drivers = work.relations[literal.atom.relation].delta
        work.report.instances.setdefault(form.rule.id, 0)
        for instance in infer(form.rule, form.reads, driver, work.relations)(Question(accept, drivers)):
            work.consider(instance)
            rows[instance.head] = None
    return derived
