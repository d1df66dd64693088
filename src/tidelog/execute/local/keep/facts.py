"""Facts that users assert and retract."""

from __future__ import annotations

from tidelog.execute.local.keep.ledger import NO_ROOM, find_or_append, marks_of, set_marks, touch
from tidelog.execute.local.keep.marks import ADDED, ASSERTED, DELETED, EXPLICIT, HELD, RETRACTED
from tidelog.execute.local.keep.rowmap import find_row
from tidelog.execute.local.layout import LEDGER, WORDS
from tidelog.execute.local.memory import kernel, word
from tidelog.execute.local.rounds import extend_indexes


@kernel
def assert_packed(relation: int, packed: int, count: int, derived: bool) -> int:
    """Make packed rows explicit; how many were not. Negative: see `append_row`."""
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    new = 0
    for i in range(count):
        number = find_or_append(relation, packed + 8 * words * i)
        if number < 0:
            return number
        marks = marks_of(ledger, number)
        if marks & EXPLICIT:
            continue
        if not touch(ledger, number):
            return NO_ROOM
        new += 1
        if marks & RETRACTED:
            marks = (marks & ~RETRACTED) | EXPLICIT
        else:
            marks |= EXPLICIT | ASSERTED
        if not derived:
            marks = marks & ~DELETED if marks & HELD else marks | ADDED
        set_marks(ledger, number, marks)
    return new if extend_indexes(relation) else NO_ROOM


@kernel
def retract_packed(relation: int, packed: int, count: int, derived: bool) -> int:
    """Make packed rows no longer explicit; how many were."""
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    gone = 0
    for i in range(count):
        number = find_row(relation, packed + 8 * words * i)
        if number < 0:
            continue
        marks = marks_of(ledger, number)
        if not marks & EXPLICIT:
            continue
        if not touch(ledger, number):
            return NO_ROOM
        gone += 1
        marks &= ~EXPLICIT
        marks = marks & ~ASSERTED if marks & ASSERTED else marks | RETRACTED
        if not derived:
            marks = marks | DELETED if marks & HELD else marks & ~ADDED
        set_marks(ledger, number, marks)
    return gone
