"""Rows that were derived by plain tasks: giving them marks and ranks, comparing them with the old ones."""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.filling import build, extend_index
from tidelog.execute.local.keep.ending import holds_after
from tidelog.execute.local.keep.heads import KNOWN
from tidelog.execute.local.keep.layout import (
    ALL_MARKS,
    HIDING,
    MARKS,
    NUMBERS,
    OLD_MARKS,
    TOUCHED,
    TOUCHED_ROWS,
)
from tidelog.execute.local.keep.ledger import (
    ADDED,
    AHEAD,
    DELETED,
    EXPLICIT,
    HELD,
    NO_ROOM,
    append_row,
    marks_of,
    push,
    set_marks,
    touch,
)
from tidelog.execute.local.keep.rowmap import find_row, prefetch_found, prefetch_slot
from tidelog.execute.local.layout import COUNT, LEDGER, REPEATS, ROWS, WORDS
from tidelog.execute.local.memory import (
    Words,
    kernel,
    load16,
    load64,
    reallocate,
    release,
    store8,
    store16,
    store64,
    word,
)
from tidelog.execute.local.repeats import came_once


@kernel
def fill_marks(relation: int, explicit: int) -> None:
    """All rows are held, the first of them also explicit."""
    marks = load64(word(relation, LEDGER) + 8 * MARKS)
    for row in range(word(relation, COUNT)):
        store16(marks + 2 * row, HELD | EXPLICIT if row < explicit else HELD)


@kernel
def fill_new(relation: int, explicit: int) -> None:
    """All rows are gained, the first of them also explicit."""
    marks = load64(word(relation, LEDGER) + 8 * MARKS)
    for row in range(word(relation, COUNT)):
        store16(marks + 2 * row, ADDED | EXPLICIT if row < explicit else ADDED)


@kernel
def is_linked(ledger: int, row: int) -> bool:
    """Whether a row is in the set and the indexes.

    Rows without marks are not, unless this commit has touched them; nor are those hidden as lost.
    """
    marks = load16(word(ledger, MARKS) + 2 * row)
    if word(ledger, HIDING):
        return bool(holds_after(marks & ALL_MARKS))
    return marks & (ALL_MARKS | TOUCHED) != 0


@kernel
def fill_index(relation: int, index: int) -> bool:
    """Fill an empty index with the rows that are linked. False: no memory."""
    ledger = word(relation, LEDGER)
    count = word(relation, COUNT)
    dead = 0
    if ledger:
        for row in range(count):
            if not is_linked(ledger, row):
                dead += 1
    if dead == 0:
        return extend_index(index, count)
    omitted = reallocate(0, count)
    if omitted == 0:
        return False
    for row in range(count):
        store8(omitted + row, 0 if is_linked(ledger, row) else 1)
    done = build(index, count, omitted)
    release(omitted)
    return done


@kernel
def set_ranks(relation: int, noted: int, before: int, ends: Words) -> None:
    """Rank 1 for the rows there were before a fixpoint, r + 1 for those of its round r.

    Where a filter tells which of the rows from `noted` on came by one instance, that is their count.
    """
    numbers = load64(word(relation, LEDGER) + 8 * NUMBERS)
    filtered = word(relation, REPEATS) != 0
    rows = word(relation, ROWS)
    stride = 8 * word(relation, WORDS)
    for row in range(before):
        once = filtered and row >= noted and came_once(relation, rows + stride * row)
        store64(numbers + 8 * row, (1 << 32) | (KNOWN | 1 if once else 0))
    low = before
    for r in range(len(ends)):
        for row in range(low, ends[r]):
            once = filtered and came_once(relation, rows + stride * row)
            store64(numbers + 8 * row, ((r + 2) << 32) | (KNOWN | 1 if once else 0))
        low = max(low, ends[r])


@kernel
def compare(relation: int, rows: int, count: int, old_marks: int) -> int:
    """Mark a renewed relation's rows against the `count` old ones at an address.

    Rows that hold and were held before are no longer gained; held ones that are missing are lost.
    The number of lost ones, or a negative number without memory.
    """
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    derived = word(relation, COUNT)
    lost = 0
    for old in range(count):
        if old + 2 * AHEAD < count:
            prefetch_slot(relation, rows + 8 * words * (old + 2 * AHEAD))
            prefetch_found(relation, rows + 8 * words * (old + AHEAD))
        if not load16(old_marks + 2 * old) & HELD:
            continue
        row = find_row(relation, rows + 8 * words * old)
        if row >= 0 and marks_of(ledger, row) & ADDED:
            marks = load16(word(ledger, MARKS) + 2 * row)
            store16(word(ledger, MARKS) + 2 * row, (marks & ~ADDED) | HELD)
            continue
        if row < 0:
            row = append_row(relation, rows + 8 * words * old)
            if row < 0:
                return row
        set_marks(ledger, row, HELD | DELETED)
        lost += 1
    for row in range(derived):
        if marks_of(ledger, row) & ADDED and not remember_new(ledger, row):
            return NO_ROOM
    return lost


@kernel
def remember_new(ledger: int, row: int) -> bool:
    marks = load16(word(ledger, MARKS) + 2 * row)
    if marks & TOUCHED:
        return True
    store16(word(ledger, OLD_MARKS) + 2 * row, 0)
    store16(word(ledger, MARKS) + 2 * row, marks | TOUCHED)
    return push(ledger, TOUCHED_ROWS, row)


@kernel
def touch_all(relation: int, marks: int) -> bool:
    """Give every row these marks, as a commit that begins with an empty relation does. False: no memory."""
    ledger = word(relation, LEDGER)
    for row in range(word(relation, COUNT)):
        store16(word(ledger, MARKS) + 2 * row, 0)
        if not touch(ledger, row):
            return False
        set_marks(ledger, row, marks)
    return True
