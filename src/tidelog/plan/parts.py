"""Parts of a relation: which tuples an atom reads while answers are being brought up to date.

During a commit the old answers, the new ones and everything an algorithm wants to
remember lie in one place: each stored tuple carries *marks*. A `Part` is the set of
tuples whose marks are of certain kinds, written with the set operations of the papers:

    I - (D - A)          what was held and has not been deleted for good
    (I - D) | A          what holds now

Executors see a part as a table over the 2^13 combinations of marks, a bit for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from functools import cache


class Mark(IntFlag):
    """What is known of a tuple. The first two outlive a commit, the others do not."""

    EXPLICIT = 1  # asserted by the user
    HELD = 2  # in the answers as they were before the commit (I)
    DELETED = 4  # D
    ADDED = 8  # A
    RETRACTED = 16  # no longer explicit (E⁻)
    ASSERTED = 32  # newly explicit (E⁺)
    QUEUED = 64  # reached by a sweep, its consequences not drawn yet
    CURRENT = 128  # its consequences are being drawn (Δ)
    CHECKED = 256  # C of FBF; of `ranked`, what no instance derives
    PROVED = 512  # P of FBF; of `ranked`, what something new may hold up
    PROVING = 1024  # the newest of P
    BLOCKED = 2048  # B of FBF
    DELAYED = 4096  # Y of FBF


COMBINATIONS = 1 << len(Mark)
LASTING = Mark.EXPLICIT | Mark.HELD


@dataclass(frozen=True)
class Part:
    """The tuples whose marks are a combination that `table` has a bit for."""

    table: int

    def __or__(self, other: Part) -> Part:
        return Part(self.table | other.table)

    def __and__(self, other: Part) -> Part:
        return Part(self.table & other.table)

    def __sub__(self, other: Part) -> Part:
        return Part(self.table & ~other.table)

    def __invert__(self) -> Part:
        return Part(((1 << COMBINATIONS) - 1) & ~self.table)

    def __contains__(self, marks: Mark) -> bool:
        return bool(self.table >> marks & 1)

    def __repr__(self) -> str:
        return f"<Part of {self.table.bit_count()} combinations>"


@cache
def having(mark: Mark) -> Part:
    """The tuples that have a mark, or one of several."""
    table = 0
    for one in (one for one in Mark if one & mark):
        # Among the combinations, as many without the mark and as many with it take turns.
        turn = ((1 << one) - 1) << one
        table |= turn * (((1 << COMBINATIONS) - 1) // ((1 << 2 * one) - 1))
    return Part(table)


NOTHING = Part(0)
EVERYTHING = ~NOTHING

# The papers' sets.
I = having(Mark.HELD)  # noqa: E741
D = having(Mark.DELETED)
A = having(Mark.ADDED)
E = having(Mark.EXPLICIT)
CURRENT = having(Mark.CURRENT)
QUEUED = having(Mark.QUEUED)
WAITING = QUEUED | CURRENT

# What relations of other strata show: the answers before and after, and what tells them apart.
BEFORE = I
AFTER = (I - D) | A
LOST = BEFORE - AFTER
GAINED = AFTER - BEFORE
KEPT = BEFORE & AFTER
