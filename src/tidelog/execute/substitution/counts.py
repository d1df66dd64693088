"""Tally: one count for each tuple (see `plan.maintenance`)."""

from __future__ import annotations

from tidelog.execute.substitution.work import Work, restored
from tidelog.plan.maintenance import Tally
from tidelog.plan.parts import AFTER, EVERYTHING, Mark
from tidelog.syntax.errors import InternalError


def tally(task: Tally, work: Work) -> None:
    """Take away what is lost, add what is gained; then a tuple holds if it is explicit or has a count."""
    for readings, change in ((task.lost, -1), (task.gained, 1)):
        for reading in readings:
            head_relation = work.relations[reading.rule.head.relation]
            for instance in work.found(reading, "deletion" if change < 0 else "insertion"):
                head_relation.touch(instance.head).count += change
    for entry in work.touched(task.relations, EVERYTHING):
        if entry.count < 0:
            raise InternalError(f"{entry.relation.name}{restored(entry.row)} has lost more than it had")
        before = entry.within(AFTER)
        entry.hold(entry.count > 0 or bool(entry.marks & Mark.EXPLICIT))
        work.report.new += not before and entry.within(AFTER)
    work.round()
