"""Sweep and Redeem, set at a time: the tuples of a round are reached and judged together.

A round is one Spark job for the instances, one for what the bases say of their heads, and one for
the guard. Tuples that the guard of a round keeps by others that fall in the same round are
reached again by these, and looked at once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.execute.spark.keep.entries import Entry, Row
from tidelog.execute.spark.keep.proof import Checking
from tidelog.execute.spark.keep.work import Drivers, Work
from tidelog.plan.maintenance import Proof, Reading, Redeem, Supported, Sweep
from tidelog.plan.parts import QUEUED, WAITING, Mark

Tuples = dict[str, dict[Entry, None]]  # by relation


def sweep(task: Sweep, work: Work) -> None:
    """Spread along rules, from a start, until nothing more is reached."""
    _Spreading(task, work).go()


class _Spreading:
    """A sweep that is under way."""

    def __init__(self, task: Sweep, work: Work) -> None:
        self.task, self.work = task, work
        self.detail = "deletion" if task.guard is not None else ""
        self.queue: Tuples = {}

    def go(self) -> None:
        """All rounds."""
        task, work = self.task, self.work
        for name in task.relations:  # step 1
            for entry in work.relations[name].touched(task.start | QUEUED):
                # What was redeemed is queued already, and has its rank.
                self._enqueue(name, entry, entry.first if entry.within(QUEUED) else 1)
        self._spread(task.seeds, None)  # step 2
        while self.queue:  # step 3
            current = self._judged()
            self._spread(task.forms, {name: list(entries) for name, entries in current.items()})  # step 4
            for name, entries in current.items():  # step 5
                for entry in entries:
                    work.touch(name, entry.row).marks &= ~Mark.CURRENT
                    entry.marks |= task.settle
            work.report.new += sum(map(len, current.values()))
            work.round()

    def _enqueue(self, name: str, entry: Entry, rank: int) -> None:
        self.work.touch(name, entry.row).marks |= Mark.QUEUED
        if self.task.ranks:
            entry.first = rank
        self.queue.setdefault(name, {})[entry] = None

    def _spread(self, readings: Sequence[Reading], drivers: Drivers | None) -> None:
        """Reach the heads of instances."""
        work, reach = self.work, self.task.reach
        ranks: dict[str, dict[Row, int]] = {}
        for found in work.found(readings, self.task.relations, drivers, detail=self.detail):
            of_relation = ranks.setdefault(found.reading.rule.head.relation, {})
            rank = 1 + (found.highest or 0)
            of_relation[found.row] = min(rank, of_relation.get(found.row, rank))
        work.load(ranks)
        for name, rows in ranks.items():
            near = work.relations[name].near
            for row, rank in rows.items():
                head = near.entries.get(row) or near.touch(row)
                if head.within(reach) and not head.within(WAITING):
                    self._enqueue(name, head, rank)

    def _judged(self) -> Tuples:
        """What was queued, without what the guard keeps: it is CURRENT now."""
        queue, self.queue = self.queue, {}
        for name, entries in queue.items():
            for entry in entries:
                self.work.touch(name, entry.row).marks &= ~Mark.QUEUED
        kept = self._kept(queue)
        current: Tuples = {}
        for name, entries in queue.items():
            for entry in entries:
                if entry not in kept:
                    self.work.touch(name, entry.row).marks |= Mark.CURRENT
                    current.setdefault(name, {})[entry] = None
        return current

    def _kept(self, queue: Tuples) -> set[Entry]:
        match self.task.guard:
            case Supported() as guard:
                return supported(queue, guard, self.task.relations, self.work)
            case Proof() as guard:
                return Checking(guard, self.task.relations, self.work).check(queue)
            case _:
                return set()


def supported(queue: Tuples, guard: Supported, own: Sequence[str], work: Work) -> set[Entry]:
    """The tuples that are explicit or follow from lower ranks; what follows from none at all is CHECKED."""
    kept = {entry for entries in queue.values() for entry in entries if entry.marks & Mark.EXPLICIT}
    asked = {name: [e for e in entries if e not in kept] for name, entries in queue.items()}
    following: set[Entry] = set()
    for found in work.found(guard.forms, own, asked, backward=True, detail="backward"):
        entry = work.relations[found.reading.rule.head.relation].near.entries[found.row]
        following.add(entry)
        if found.highest is None or found.highest < entry.first:
            kept.add(entry)
    for name, entries in asked.items():
        for entry in entries:
            if entry not in following:
                work.touch(name, entry.row).marks |= Mark.CHECKED
    return kept


def redeem(task: Redeem, work: Work) -> None:
    """Queue the candidates that still follow in one step."""
    ranks: dict[str, dict[Entry, int]] = {}
    asked: dict[str, list[Entry]] = {}
    for name in task.relations:
        for entry in work.relations[name].touched(task.candidates):
            if entry.within(task.known):
                ranks.setdefault(name, {})[entry] = 1
            else:
                asked.setdefault(name, []).append(entry)
    for found in work.found(task.forms, task.relations, asked, backward=True):
        name = found.reading.rule.head.relation
        entry, rank = work.relations[name].near.entries[found.row], 1 + (found.highest or 0)
        of_relation = ranks.setdefault(name, {})
        of_relation[entry] = min(rank, of_relation.get(entry, rank))
    for name, entries in ranks.items():
        for entry, rank in entries.items():
            work.touch(name, entry.row).marks |= Mark.QUEUED
            if task.ranks:
                entry.first = rank
    work.report.new = sum(map(len, ranks.values()))
    work.round()
