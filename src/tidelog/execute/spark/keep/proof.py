"""Check and Saturate of FBF, level by level: the tuples of a level are checked together.

What is reached after so many steps is the next level. Proofs are found by saturation as in the
paper, from all tuples of a level that need no other. Only when all levels are done it is known what
was given up; BLOCKED then goes from the premises of instances to their heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidelog.execute.spark.keep.entries import Entry, Row
from tidelog.execute.spark.keep.instances import Ref
from tidelog.execute.spark.keep.work import Drivers, Work
from tidelog.plan.maintenance import Proof
from tidelog.plan.parts import Mark

Level = dict[str, dict[Entry, None]]  # by relation


class Checking:
    """The checks of one round of a sweep."""

    def __init__(self, guard: Proof, own: Sequence[str], work: Work) -> None:
        self._guard, self._own, self._work = guard, own, work
        self._premises: dict[Ref, dict[Ref, None]] = {}  # of the instances of each head

    def check(self, roots: Mapping[str, Mapping[Entry, None]]) -> set[Entry]:
        """Check tuples; those that are proved."""
        level: Level = {name: dict(entries) for name, entries in roots.items()}
        depth = 0
        while level:
            level = self._check(level, depth)
            depth += 1
        self._block()
        return {e for entries in roots.values() for e in entries if e.marks & Mark.PROVED}

    def _check(self, level: Level, depth: int) -> Level:
        """Check a level; the next one."""
        work = self._work
        fresh = {name: [e for e in entries if not e.marks & Mark.CHECKED] for name, entries in level.items()}
        if self._guard.depth is not None and depth >= self._guard.depth:  # step 0
            self._mark(fresh, Mark.BLOCKED)
            return {}
        self._mark(fresh, Mark.CHECKED)  # step 1
        proved: Level = {}
        open_: dict[str, list[Entry]] = {}
        for name, entries in fresh.items():
            for entry in entries:
                if entry.marks & (Mark.DELAYED | Mark.EXPLICIT):
                    proved.setdefault(name, {})[entry] = None
                else:
                    open_.setdefault(name, []).append(entry)
        for found in work.found(self._guard.base, self._own, open_, backward=True, detail="backward"):
            name = found.reading.rule.head.relation
            proved.setdefault(name, {})[work.relations[name].near.entries[found.row]] = None
        self._saturate(proved)
        unproved = {
            name: [entry for entry in entries if not entry.marks & Mark.PROVED]
            for name, entries in open_.items()
        }
        return self._next(unproved)  # step 2

    def _next(self, heads: Drivers) -> Level:
        """The premises of the instances that derive some tuples."""
        work = self._work
        reached: dict[str, dict[Row, None]] = {}
        for head, premises in work.instances(self._guard.recursive, self._own, heads, "backward"):
            links = self._premises.setdefault(head, {})
            for name, row in premises:
                links[name, row] = None
                reached.setdefault(name, {})[row] = None
        work.load(reached)
        level: Level = {}
        for name, rows in reached.items():
            entries = work.relations[name].near.entries
            for row in rows:
                if not entries[row].marks & Mark.CHECKED:
                    level.setdefault(name, {})[entries[row]] = None
        return level

    def _mark(self, entries: Drivers, mark: Mark) -> None:
        for name, some in entries.items():
            for entry in some:
                self._work.touch(name, entry.row).marks |= mark

    def _saturate(self, proving: Level) -> None:
        """Prove tuples, and all checked ones that follow from them and others that are proved."""
        work = self._work
        while proving:
            drivers = {name: list(entries) for name, entries in proving.items()}
            self._mark(drivers, Mark.PROVED | Mark.PROVING)
            heads: dict[str, dict[Row, None]] = {}
            for found in work.found(self._guard.forward, self._own, drivers, detail="forward"):
                heads.setdefault(found.reading.rule.head.relation, {})[found.row] = None
            for name, entries in drivers.items():
                for entry in entries:
                    work.touch(name, entry.row).marks &= ~Mark.PROVING
            work.load(heads)
            proving = {}
            for name, rows in heads.items():
                for row in rows:
                    head = work.touch(name, row)
                    if not head.marks & Mark.CHECKED:
                        head.marks |= Mark.DELAYED
                    elif not head.marks & Mark.PROVED:
                        proving.setdefault(name, {})[head] = None

    def _block(self) -> None:
        """What was given up blocks what would follow from it, unless that is proved."""
        if self._guard.depth is None:
            return
        heads: dict[Ref, list[Ref]] = {}
        for head, premises in self._premises.items():
            for premise in premises:
                heads.setdefault(premise, []).append(head)
        waiting = [ref for ref in heads if self._blocked(ref)]
        while waiting:
            for head in heads.get(waiting.pop(), ()):
                name, row = head
                entry = self._work.relations[name].near.entries[row]
                if not entry.marks & (Mark.BLOCKED | Mark.PROVED):
                    self._work.touch(name, row).marks |= Mark.BLOCKED
                    waiting.append(head)

    def _blocked(self, ref: Ref) -> bool:
        marks = self._work.relations[ref[0]].near.entries[ref[1]].marks
        return bool(marks & Mark.BLOCKED) and not marks & Mark.PROVED
