"""Sweep and Redeem: sets of tuples that spread along rules, in any order (see `plan.maintenance`)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Set

from tidelog.execute.substitution.infer import Instance, Read
from tidelog.execute.substitution.relation import Entry
from tidelog.execute.substitution.work import HEAD, Work, by_marks, by_relation
from tidelog.plan.maintenance import Proof, Reading, Redeem, Supported, Sweep
from tidelog.plan.parts import QUEUED, WAITING, Mark


def sweep(task: Sweep, work: Work) -> None:
    """Spread along rules, from a start, until nothing more is reached."""
    own = frozenset(task.relations)
    own_work = "deletion" if task.guard is not None else ""  # guards keep tuples from being deleted
    checking = Checking(task.guard, own, work) if isinstance(task.guard, Proof) else None

    def kept(entry: Entry) -> bool:
        if checking is not None:
            return checking.check(entry)
        return isinstance(task.guard, Supported) and supported(entry, task.guard, own, work)

    queue: dict[Entry, None] = {}

    def enqueue(entry: Entry, rank: int) -> None:
        entry.touch().marks |= Mark.QUEUED
        queue[entry] = None
        if task.ranks:
            entry.first = rank

    def spread(readings: Iterable[Reading], drivers: Iterable[Entry] | None) -> None:
        """Reach the heads of instances."""
        sorted_drivers = None if drivers is None else by_relation(drivers)
        for reading in readings:
            head_relation = work.relations[reading.rule.head.relation]
            for instance in work.found(reading, own_work, sorted_drivers):
                head = head_relation.touch(instance.head)
                if head.within(task.reach) and not head.within(WAITING):
                    enqueue(head, rank_above(instance, own))

    for entry in work.touched(task.relations, task.start | QUEUED):  # step 1
        if entry.within(QUEUED):  # it was redeemed, and has its rank
            queue[entry] = None
        else:
            enqueue(entry, 1)
    spread(task.seeds, None)  # step 2
    while queue:  # step 3
        current = []
        for entry in list(queue):
            entry.touch().marks &= ~Mark.QUEUED
            if not kept(entry):
                entry.marks |= Mark.CURRENT
                current.append(entry)
        queue.clear()
        spread(task.forms, current)  # step 4
        for entry in current:  # step 5
            entry.marks = entry.marks & ~Mark.CURRENT | task.settle
        work.report.new += len(current)
        work.round()


def redeem(task: Redeem, work: Work) -> None:
    """Queue the candidates that still follow in one step."""
    own = frozenset(task.relations)
    ranks: dict[Entry, int] = {}
    for entry in work.touched(task.relations, task.candidates):
        if entry.within(task.known):
            ranks[entry] = 1
        elif (instance := work.one(task.forms, entry)) is not None:
            ranks[entry] = rank_above(instance, own, HEAD)
    for entry, rank in ranks.items():  # only now, so that none follows from another
        entry.touch().marks |= Mark.QUEUED
        if task.ranks:
            entry.first = rank
    work.report.new = len(ranks)
    work.round()


def rank_above(instance: Instance, own: Set[str], without: int | None = None) -> int:
    """One more than the highest rank of the own tuples that an instance matches."""
    return 1 + max((e.first for e in own_tuples(instance, own, without)), default=0)


def own_tuples(instance: Instance, own: Set[str], without: int | None = None) -> list[Entry]:
    """The tuples of some relations that an instance matches, but not at position `without`."""
    return [e for i, e in sorted(instance.matched.items()) if i != without and e.relation.name in own]


def supported(entry: Entry, guard: Supported, own: Set[str], work: Work) -> bool:
    """Whether a tuple is explicit or follows from tuples of lower rank."""

    def lower(other: Entry, read: Read) -> bool:
        return by_marks(other, read) and (
            other is entry or other.relation.name not in own or other.first < entry.first
        )

    # An instance that derives a tuple from itself has it twice: as the head, and as a body tuple.
    def proper(instance: Instance) -> bool:
        return entry not in own_tuples(instance, own, HEAD)

    if entry.marks & Mark.EXPLICIT:
        return True
    for reading in guard.forms:
        for instance in work.instances(reading, by_relation([entry]), lower):
            if proper(instance):
                work.consider(instance, "backward", HEAD)
                return True
    return False


class Checking:
    """Check and Saturate of FBF, a tuple at a time and depth first."""

    def __init__(self, guard: Proof, own: Set[str], work: Work) -> None:
        self._guard = guard
        self._own = own
        self._work = work

    def check(self, root: Entry) -> bool:
        """Check a tuple; whether it is proved. The stack is ours: branches may be thousands of steps deep."""
        stack = [self._check(root, 0)]
        while stack:
            premise = next(stack[-1], None)
            if premise is None:
                stack.pop()
            else:
                stack.append(self._check(premise, len(stack)))
        return bool(root.marks & Mark.PROVED)

    def _check(self, entry: Entry, depth: int) -> Generator[Entry]:
        """Check a tuple, as a generator of the tuples to be checked before it goes on."""
        if entry.marks & Mark.CHECKED:
            return
        if self._guard.depth is not None and depth >= self._guard.depth:  # step 0
            entry.touch().marks |= Mark.BLOCKED
            return
        entry.touch().marks |= Mark.CHECKED  # step 1
        if entry.marks & (Mark.DELAYED | Mark.EXPLICIT) or self._work.one(
            self._guard.base, entry, "backward"
        ):
            self._saturate(entry)
            return
        for reading in self._guard.recursive:  # step 2
            for instance in self._work.instances(reading, by_relation([entry])):
                self._work.consider(instance, "backward", HEAD)
                for premise in own_tuples(instance, self._own, HEAD):
                    yield premise
                    if premise.marks & Mark.BLOCKED and not premise.marks & Mark.PROVED:
                        entry.marks |= Mark.BLOCKED
                    if entry.marks & Mark.PROVED:
                        return

    def _saturate(self, entry: Entry) -> None:
        """Prove a tuple, and all checked ones that follow from it and others that are proved."""
        proving = {entry: None}
        while proving:
            for proved in proving:
                proved.touch().marks |= Mark.PROVED | Mark.PROVING
            drivers = by_relation(proving)
            heads = {
                self._work.relations[instance.rule.head.relation].touch(instance.head): None
                for reading in self._guard.forward
                for instance in self._work.found(reading, "forward", drivers)
            }
            for proved in proving:
                proved.marks &= ~Mark.PROVING
            proving = {}
            for head in heads:
                if not head.marks & Mark.CHECKED:
                    head.marks |= Mark.DELAYED
                elif not head.marks & Mark.PROVED:
                    proving[head] = None
