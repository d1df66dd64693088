"""Marks and numbers of rows, and what a commit has touched.

Rows that the commit under way takes away stay linked until it is final, so that the old
answers can still be read; rows that it adds are appended. At the end, rows that do not hold are
taken out of set, map and indexes; a rollback does this to the appended ones instead and
restores the others.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import (
    ALL_MARKS,
    DRIVEN,
    FORMER,
    LIST_CAPACITY,
    LIST_COUNT,
    MAP_MASK,
    MAP_UPTO,
    MAP_USED,
    MARKS,
    NUMBERS,
    OLD_MARKS,
    OLD_NUMBERS,
    OLD_TRACES,
    PENDING,
    ROOM,
    TOUCHED,
    TOUCHED_ROWS,
    TRACES,
)
from tidelog.execute.local.keep.links import join_set
from tidelog.execute.local.keep.rowmap import find_row, map_put, map_resize
from tidelog.execute.local.keep.traces import copy_trace
from tidelog.execute.local.layout import (
    CAPACITY,
    COUNT,
    DELTA_HI,
    DELTA_LO,
    LEDGER,
    ROWS,
    WORDS,
)
from tidelog.execute.local.memory import (
    copy,
    kernel,
    load8,
    load16,
    load32,
    load64,
    prefetch,
    reallocate,
    reallocate_sparse,
    set_word,
    store16,
    store32,
    store64,
    word,
)
from tidelog.execute.local.rounds import MAX_ROWS

AHEAD = 8  # how far along a list rows are brought into the cache
NO_ROOM, NO_NUMBERS = -2, -3  # what `append_row` gives when it cannot


@kernel
def room_to_push(ledger: int, which: int) -> bool:
    """Have room for one more in one of the ledger's lists. False: no memory."""
    at = ledger + 8 * which
    count = word(at, LIST_COUNT)
    if count == word(at, LIST_CAPACITY):
        capacity = max(64, 2 * count)
        rows = reallocate(load64(at), 8 * capacity)
        if rows == 0:
            return False
        store64(at, rows)
        set_word(at, LIST_CAPACITY, capacity)
    return True


@kernel
def push(ledger: int, which: int, row: int) -> bool:
    """Append to one of the ledger's lists. False: no memory."""
    if not room_to_push(ledger, which):
        return False
    at = ledger + 8 * which
    count = word(at, LIST_COUNT)
    store64(load64(at) + 8 * count, row)
    set_word(at, LIST_COUNT, count + 1)
    return True


@kernel
def prefetch_row(relation: int, which: int, position: int) -> None:
    """Have a row of one of the ledger's lists on its way into the cache, and its marks."""
    ledger = word(relation, LEDGER)
    at = ledger + 8 * which
    if 0 <= position < word(at, LIST_COUNT):
        row = word(load64(at), position)
        prefetch(word(relation, ROWS) + 8 * word(relation, WORDS) * row)
        prefetch(word(ledger, MARKS) + 2 * row)


@kernel
def make_room(relation: int, ledger: int) -> bool:
    """Let the ledger's arrays have an element for each row there is room for. False: no memory."""
    room = word(relation, CAPACITY)
    if room <= word(ledger, ROOM):
        return True
    for which, size, sparse in (
        (MARKS, 2, 0), (NUMBERS, 8, 0), (TRACES, 4, 0),
        (DRIVEN, 4, 1), (PENDING, 4, 1), (FORMER, 8, 1),
    ):  # fmt: skip
        if word(ledger, which) or size == 2:
            old = word(ledger, which)
            array = reallocate_sparse(old, size * room) if sparse else reallocate(old, size * room)
            if array == 0:
                return False
            set_word(ledger, which, array)
    set_word(ledger, ROOM, room)
    return True


@kernel
def marks_of(ledger: int, row: int) -> int:
    return load16(word(ledger, MARKS) + 2 * row) & ALL_MARKS


@kernel
def set_marks(ledger: int, row: int, marks: int) -> None:
    """Replace the marks of a touched row."""
    store16(word(ledger, MARKS) + 2 * row, marks | TOUCHED)


@kernel
def room_to_touch(ledger: int) -> bool:
    """Have room for what is to be remembered of one more row. False: no memory."""
    before = word(ledger, TOUCHED_ROWS + LIST_CAPACITY)
    if not room_to_push(ledger, TOUCHED_ROWS):
        return False
    capacity = word(ledger, TOUCHED_ROWS + LIST_CAPACITY)
    if capacity == before:
        return True
    for which, old, size in ((MARKS, OLD_MARKS, 2), (NUMBERS, OLD_NUMBERS, 8), (TRACES, OLD_TRACES, 4)):
        if word(ledger, which):
            array = reallocate(word(ledger, old), size * capacity)
            if array == 0:
                set_word(ledger, TOUCHED_ROWS + LIST_CAPACITY, before)
                return False
            set_word(ledger, old, array)
    return True


@kernel
def remember(ledger: int, row: int, marks: int, numbers: int, trace: int) -> bool:
    """List a row as touched, with what was known of it. False: no memory."""
    if not room_to_touch(ledger):
        return False
    at = word(ledger, TOUCHED_ROWS + LIST_COUNT)
    store16(word(ledger, OLD_MARKS) + 2 * at, marks)
    if word(ledger, NUMBERS):
        store64(word(ledger, OLD_NUMBERS) + 8 * at, numbers)
    if word(ledger, FORMER):
        store64(word(ledger, FORMER) + 8 * row, numbers)
    if word(ledger, TRACES):
        store32(word(ledger, OLD_TRACES) + 4 * at, trace)
    return push(ledger, TOUCHED_ROWS, row)


@kernel
def touch(ledger: int, row: int) -> bool:
    """Remember a row as it is before it changes. False: no memory."""
    marks = load16(word(ledger, MARKS) + 2 * row)
    if marks & TOUCHED:
        return True
    numbers = load64(word(ledger, NUMBERS) + 8 * row) if word(ledger, NUMBERS) else 0
    trace = load32(word(ledger, TRACES) + 4 * row) if word(ledger, TRACES) else 0
    if trace:
        copied = copy_trace(ledger, trace)
        if copied == 0:
            return False
        store32(word(ledger, TRACES) + 4 * row, copied)
    if not remember(ledger, row, marks, numbers, trace):
        return False
    store16(word(ledger, MARKS) + 2 * row, marks | TOUCHED)
    return True


@kernel
def append_row(relation: int, row: int) -> int:
    """Store a tuple that is not stored, without marks; its number, or a negative one.

    Indexes see it only after `extend_indexes`, so that buckets do not move under a cursor.
    """
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    number = word(relation, COUNT)
    if number >= MAX_ROWS:
        return NO_NUMBERS
    if number == word(relation, CAPACITY):
        capacity = number + max(64, number // 2)
        rows = reallocate(word(relation, ROWS), 8 * words * capacity)
        if rows == 0:
            return NO_ROOM
        set_word(relation, ROWS, rows)
        set_word(relation, CAPACITY, capacity)
    if number >= word(ledger, ROOM) and not make_room(relation, ledger):
        return NO_ROOM
    if not room_to_touch(ledger):
        return NO_ROOM
    if 2 * (word(ledger, MAP_USED) + 1) > word(ledger, MAP_MASK) and not map_resize(
        relation, ledger, 2 * (word(ledger, MAP_MASK) + 1)
    ):
        return NO_ROOM
    copy(word(relation, ROWS) + 8 * words * number, row, 8 * words)
    store16(word(ledger, MARKS) + 2 * number, 0)
    if word(ledger, NUMBERS):
        store64(word(ledger, NUMBERS) + 8 * number, 0)
    for which in (TRACES, DRIVEN, PENDING):
        if word(ledger, which):
            store32(word(ledger, which) + 4 * number, 0)
    if not join_set(relation, row):
        return NO_ROOM
    map_put(relation, ledger, number)
    set_word(ledger, MAP_UPTO, number + 1)
    set_word(relation, COUNT, number + 1)
    set_word(relation, DELTA_LO, number + 1)
    set_word(relation, DELTA_HI, number + 1)
    return number if touch(ledger, number) else NO_ROOM


@kernel
def find_or_append(relation: int, row: int) -> int:
    number = find_row(relation, row)
    return append_row(relation, row) if number < 0 else number


@kernel
def is_in(part: int, marks: int) -> bool:
    """Whether a tuple with these marks belongs to a part, given the address of its table."""
    return load8(part + marks) != 0
