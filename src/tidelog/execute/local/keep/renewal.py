"""Rows that were derived by plain tasks: giving them marks and ranks, comparing them with the old ones.

Where nearly all rows are the old ones, these stay where they are, with their indexes, and take over the new
numbers (`find_again`, `mark_moved`); else the new rows replace them (`compare`).
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.filling import build, extend_index
from tidelog.execute.local.keep.heads import KNOWN
from tidelog.execute.local.keep.layout import (
    ALL_MARKS,
    HIDING,
    MARKS,
    NUMBERS,
    TOUCHED,
)
from tidelog.execute.local.keep.ledger import AHEAD, NO_ROOM, append_row, marks_of, remember, set_marks, touch
from tidelog.execute.local.keep.marks import ADDED, DELETED, EXPLICIT, HELD, holds_after
from tidelog.execute.local.keep.rowmap import find_row, prefetch_found, prefetch_slot, stands_at
from tidelog.execute.local.layout import COUNT, LEDGER, REPEATS, ROWS, WORDS
from tidelog.execute.local.memory import (
    Words,
    kernel,
    load16,
    load64,
    reallocate,
    release,
    set_word,
    store8,
    store16,
    store64,
    word,
)
from tidelog.execute.local.repeats import came_once

ASTRAY = 4 * AHEAD  # how long rows are brought into the cache after one that was not where it was expected


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
def find_next(relation: int, number: int, rows: int, left: int, astray: int) -> int:
    """Find the first of `left` tuples at an address: its row's number, or -1.

    Tuples that are derived again mostly come in the order in which they came before, so the row of this
    `number` is looked at first. Where the last `astray` tuples were elsewhere, so will the next ones be.
    """
    words = word(relation, WORDS)
    if astray and left > 2 * AHEAD:
        prefetch_slot(relation, rows + 8 * words * 2 * AHEAD)
        prefetch_found(relation, rows + 8 * words * AHEAD)
    return number if stands_at(relation, number, rows) else find_row(relation, rows)


@kernel
def compare(relation: int, rows: int, count: int, old_marks: int) -> int:
    """Mark a renewed relation's rows against the `count` old ones at an address.

    Rows that hold and were held before are no longer gained; held ones that are missing are lost.
    The number of lost ones, or a negative number without memory.
    """
    ledger = word(relation, LEDGER)
    stride = 8 * word(relation, WORDS)
    derived = word(relation, COUNT)
    lost, expected, astray = 0, 0, 0
    for old in range(count):
        if not load16(old_marks + 2 * old) & HELD:
            continue
        place = rows + stride * old
        row = find_next(relation, expected, place, count - old, astray)
        astray = max(0, astray - 1) if row == expected else ASTRAY
        if row >= 0:
            expected = row + 1
        if row >= 0 and marks_of(ledger, row) & ADDED:
            marks = load16(word(ledger, MARKS) + 2 * row)
            store16(word(ledger, MARKS) + 2 * row, (marks & ~ADDED) | HELD)
            continue
        if row < 0:
            row = append_row(relation, place)
            if row < 0:
                return row
        set_marks(ledger, row, HELD | DELETED)
        lost += 1
    for row in range(derived):
        if marks_of(ledger, row) & ADDED and not remember_new(ledger, row):
            return NO_ROOM
    return lost


@kernel
def find_again(old: int, new: int, numbers: int, others: Words) -> int:
    """Look the rows of a relation up among its old ones; write their numbers to an address, at those places.

    Rows that are not among them are listed in `others`. Their number, or -1 if they and the old rows that
    are lost are more than there is room for, or if some row has no number.
    """
    was, now = word(old, LEDGER), word(new, LEDGER)
    stride, rows, derived = 8 * word(new, WORDS), word(new, ROWS), word(new, COUNT)
    gained, lost, expected, astray = 0, 0, 0, 0
    for row in range(word(old, COUNT)):
        set_word(numbers, row, 0)
    for row in range(derived):
        number = load64(word(now, NUMBERS) + 8 * row)
        place = find_next(old, expected, rows + stride * row, derived - row, astray)
        astray = max(0, astray - 1) if place == expected else ASTRAY
        if number == 0 or (place < 0 and gained == len(others)):
            return -1
        if place < 0:
            others[gained] = row
            gained += 1
        else:
            set_word(numbers, place, number)
            expected = place + 1
    for row in range(word(old, COUNT)):
        if word(numbers, row) == 0 and marks_of(was, row) & HELD:
            lost += 1
    return gained if gained + lost <= len(others) else -1


@kernel
def mark_moved(relation: int, numbers: int, rows: int, row_numbers: Words) -> int:
    """Mark the rows of a relation by the numbers that they will have, and append rows at an address; 0: done.

    What has no number is lost, what was not held before is gained. A negative number: no memory.
    """
    ledger = word(relation, LEDGER)
    for row in range(word(relation, COUNT)):
        marks = marks_of(ledger, row)
        if (marks & HELD != 0) == (word(numbers, row) != 0):
            continue
        if not touch(ledger, row):
            return NO_ROOM
        set_marks(ledger, row, marks | (ADDED if word(numbers, row) else DELETED))
    for i in range(len(row_numbers)):
        row = append_row(relation, rows + 8 * word(relation, WORDS) * i)
        if row < 0:
            return row
        set_marks(ledger, row, ADDED)
        store64(word(ledger, NUMBERS) + 8 * row, row_numbers[i])
    return 0


@kernel
def remember_new(ledger: int, row: int) -> bool:
    marks = load16(word(ledger, MARKS) + 2 * row)
    if marks & TOUCHED:
        return True
    if not remember(ledger, row, 0, 0, 0):
        return False
    store16(word(ledger, MARKS) + 2 * row, marks | TOUCHED)
    return True


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
