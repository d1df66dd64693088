"""Marks and numbers of rows, the map from tuples to rows, and what a commit has touched.

Rows that the commit under way takes away stay linked until it is final, so that the old
answers can still be read; rows that it adds are appended. At the end, rows that do not hold are
taken out of set, map and indexes; a rollback does this to the appended ones instead and
restores the others.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import (
    ALL_MARKS,
    AT_BEGIN,
    CANDIDATES,
    DEAD,
    DRIVEN,
    LIST_CAPACITY,
    LIST_COUNT,
    LISTED,
    MAP,
    MAP_MASK,
    MAP_UPTO,
    MAP_USED,
    MARKS,
    NOW,
    NUMBERS,
    OLD_MARKS,
    OLD_NUMBERS,
    OLD_TRACES,
    PENDING,
    QUEUE,
    ROOM,
    TOUCHED,
    TOUCHED_ROWS,
    TRACES,
)
from tidelog.execute.local.keep.links import join_set, link, unlink
from tidelog.execute.local.keep.traces import copy_trace, free_trace
from tidelog.execute.local.layout import (
    CAPACITY,
    COUNT,
    DELTA_HI,
    DELTA_LO,
    INDEX_COUNT,
    INDEXES,
    LEDGER,
    ROWS,
    UPTO,
    WORDS,
)
from tidelog.execute.local.memory import (
    Words,
    allocate_zeroed,
    copy,
    kernel,
    load8,
    load16,
    load32,
    load64,
    reallocate,
    release,
    set_word,
    store16,
    store32,
    store64,
    word,
)
from tidelog.execute.local.rounds import MAX_ROWS, extend_indexes
from tidelog.execute.local.tupleset import scramble
from tidelog.plan.parts import Mark

EXPLICIT, HELD, DELETED, ADDED = (int(m) for m in (Mark.EXPLICIT, Mark.HELD, Mark.DELETED, Mark.ADDED))
RETRACTED, ASSERTED = int(Mark.RETRACTED), int(Mark.ASSERTED)
ON_ASSERTION = EXPLICIT | RETRACTED | ASSERTED

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
def make_room(relation: int, ledger: int) -> bool:
    """Let the ledger's arrays have an element for each row there is room for. False: no memory."""
    room = word(relation, CAPACITY)
    if room <= word(ledger, ROOM):
        return True
    for which, size in (
        (MARKS, 2), (OLD_MARKS, 2), (NUMBERS, 8), (OLD_NUMBERS, 8),
        (TRACES, 4), (OLD_TRACES, 4), (DRIVEN, 4), (PENDING, 4),
    ):  # fmt: skip
        if word(ledger, which) or size == 2:
            array = reallocate(word(ledger, which), size * room)
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
def touch(ledger: int, row: int) -> bool:
    """Remember a row as it is before it changes. False: no memory."""
    marks = load16(word(ledger, MARKS) + 2 * row)
    if marks & TOUCHED:
        return True
    store16(word(ledger, OLD_MARKS) + 2 * row, marks)
    if word(ledger, NUMBERS):
        store64(word(ledger, OLD_NUMBERS) + 8 * row, load64(word(ledger, NUMBERS) + 8 * row))
    if word(ledger, TRACES):
        trace = load32(word(ledger, TRACES) + 4 * row)
        store32(word(ledger, OLD_TRACES) + 4 * row, trace)
        if trace:
            trace = copy_trace(ledger, trace)
            if trace == 0:
                return False
            store32(word(ledger, TRACES) + 4 * row, trace)
    store16(word(ledger, MARKS) + 2 * row, marks | TOUCHED)
    return push(ledger, TOUCHED_ROWS, row)


# --- the map from tuples to rows ------------------------------------------------


@kernel
def hash_row(row: int, words: int) -> int:
    mixed = 0
    for w in range(words):
        mixed = scramble(mixed ^ word(row, w))
    return mixed


@kernel
def map_put(relation: int, ledger: int, number: int) -> None:
    words = word(relation, WORDS)
    mask = word(ledger, MAP_MASK)
    slots = word(ledger, MAP)
    i = hash_row(word(relation, ROWS) + 8 * words * number, words) & mask
    while load32(slots + 4 * i):
        i = (i + 1) & mask
    store32(slots + 4 * i, number + 1)
    set_word(ledger, MAP_USED, word(ledger, MAP_USED) + 1)


@kernel
def map_resize(relation: int, ledger: int, size: int) -> bool:
    """Move the map to a table of another size. False: no memory."""
    old = word(ledger, MAP)
    old_size = word(ledger, MAP_MASK) + 1 if old else 0
    slots = allocate_zeroed(4 * size)
    if slots == 0:
        return False
    set_word(ledger, MAP, slots)
    set_word(ledger, MAP_MASK, size - 1)
    set_word(ledger, MAP_USED, 0)
    for i in range(old_size):
        number = load32(old + 4 * i)
        if number:
            map_put(relation, ledger, number - 1)
    release(old)
    return True


@kernel
def extend_map(relation: int) -> bool:
    """Bring all rows that are alive into the map. False: no memory."""
    ledger = word(relation, LEDGER)
    count = word(relation, COUNT)
    upto = word(ledger, MAP_UPTO)
    if word(ledger, MAP) and upto == count:
        return True
    size = word(ledger, MAP_MASK) + 1 if word(ledger, MAP) else 16
    while size < 2 * (word(ledger, MAP_USED) + count - upto + 1):
        size *= 2
    if (word(ledger, MAP) == 0 or size > word(ledger, MAP_MASK) + 1) and not map_resize(
        relation, ledger, size
    ):
        return False
    for number in range(upto, count):
        if load16(word(ledger, MARKS) + 2 * number) & ALL_MARKS:
            map_put(relation, ledger, number)
    set_word(ledger, MAP_UPTO, count)
    return True


@kernel
def find_row(relation: int, row: int) -> int:
    """The number of the tuple at an address; -1: it is not stored."""
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    mask = word(ledger, MAP_MASK)
    slots = word(ledger, MAP)
    rows = word(relation, ROWS)
    i = hash_row(row, words) & mask
    while True:
        number = load32(slots + 4 * i)
        if number == 0:
            return -1
        stored = rows + 8 * words * (number - 1)
        same = True
        for w in range(words):
            if word(stored, w) != word(row, w):
                same = False
                break
        if same:
            return number - 1
        i = (i + 1) & mask


@kernel
def leave_map(relation: int, ledger: int, number: int) -> None:
    words = word(relation, WORDS)
    mask = word(ledger, MAP_MASK)
    slots = word(ledger, MAP)
    rows = word(relation, ROWS)
    i = hash_row(rows + 8 * words * number, words) & mask
    while load32(slots + 4 * i) != number + 1:
        if load32(slots + 4 * i) == 0:
            return
        i = (i + 1) & mask
    j = i
    while True:
        j = (j + 1) & mask
        other = load32(slots + 4 * j)
        if other == 0:
            break
        home = hash_row(rows + 8 * words * (other - 1), words) & mask
        if (j - home) & mask >= (j - i) & mask:
            store32(slots + 4 * i, other)
            i = j
    store32(slots + 4 * i, 0)
    set_word(ledger, MAP_USED, word(ledger, MAP_USED) - 1)


# --- rows -------------------------------------------------------------------------


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
    if not room_to_push(ledger, TOUCHED_ROWS):
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


# --- the facts that users give -------------------------------------------------------


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


@kernel
def replace_rows(relation: int, old: Words, packed: int, count: int) -> int:
    """Delete rows, and add packed ones, of which some may be the same; 0, or see `append_row`."""
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    for i in range(len(old)):
        if not touch(ledger, old[i]):
            return NO_ROOM
        marks = marks_of(ledger, old[i])
        if not marks & EXPLICIT:
            set_marks(ledger, old[i], marks | DELETED)
    for i in range(count):
        number = find_or_append(relation, packed + 8 * words * i)
        if number < 0:
            return number
        if not touch(ledger, number):
            return NO_ROOM
        marks = marks_of(ledger, number)
        set_marks(ledger, number, marks & ~DELETED if marks & HELD else marks | ADDED)
    return 0 if extend_indexes(relation) else NO_ROOM


# --- the end of a commit ----------------------------------------------------------------


@kernel
def holds_after(marks: int) -> bool:
    return (marks & (HELD | DELETED)) == HELD or (marks & ADDED) != 0


@kernel
def count_changes(ledger: int) -> tuple[int, int]:
    """How many touched rows are lost, and how many gained."""
    rows = word(ledger, TOUCHED_ROWS)
    lost, gained = 0, 0
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        marks = marks_of(ledger, word(rows, i))
        after = holds_after(marks)
        if marks & HELD:
            lost += 0 if after else 1
        else:
            gained += 1 if after else 0
    return lost, gained


@kernel
def list_changes(ledger: int, lost: Words, gained: Words) -> None:
    """Write the numbers of lost and of gained rows."""
    rows = word(ledger, TOUCHED_ROWS)
    a, b = 0, 0
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        row = word(rows, i)
        marks = marks_of(ledger, row)
        after = holds_after(marks)
        if marks & HELD and not after:
            lost[a] = row
            a += 1
        elif after and not marks & HELD:
            gained[b] = row
            b += 1


@kernel
def forget_lists(ledger: int) -> None:
    for which in (TOUCHED_ROWS, QUEUE, NOW):
        set_word(ledger, which + LIST_COUNT, 0)


@kernel
def clear_scratch(ledger: int) -> None:
    """Empty what a fixpoint in step works with."""
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        row = word(word(ledger, TOUCHED_ROWS), i)
        store32(word(ledger, DRIVEN) + 4 * row, 0)
        store32(word(ledger, PENDING) + 4 * row, 0)
        place = word(ledger, MARKS) + 2 * row
        store16(place, load16(place) & ~LISTED)
    for which in (QUEUE, NOW, CANDIDATES):
        set_word(ledger, which + LIST_COUNT, 0)


@kernel
def make_final(relation: int) -> None:
    """What holds now is what is held; rows that do not hold are linked nowhere."""
    ledger = word(relation, LEDGER)
    rows = word(ledger, TOUCHED_ROWS)
    last = word(ledger, TOUCHED_ROWS + LIST_COUNT) - 1
    for i in range(last + 1):
        row = word(rows, last - i)  # the newest first: it stands at the end of its buckets
        marks = marks_of(ledger, row)
        if word(ledger, TRACES) and row < word(ledger, AT_BEGIN):
            free_trace(ledger, load32(word(ledger, OLD_TRACES) + 4 * row))
        if holds_after(marks):
            store16(word(ledger, MARKS) + 2 * row, HELD | (marks & EXPLICIT))
            continue
        unlink(relation, row)
        if word(ledger, MAP):
            leave_map(relation, ledger, row)
        if word(ledger, TRACES):
            free_trace(ledger, load32(word(ledger, TRACES) + 4 * row))
            store32(word(ledger, TRACES) + 4 * row, 0)
        store16(word(ledger, MARKS) + 2 * row, 0)
        set_word(ledger, DEAD, word(ledger, DEAD) + 1)
    forget_lists(ledger)


@kernel
def restore_row(ledger: int, row: int, marks: int) -> None:
    """Numbers and trace of a touched row as they were; marks as given."""
    if word(ledger, NUMBERS):
        store64(word(ledger, NUMBERS) + 8 * row, load64(word(ledger, OLD_NUMBERS) + 8 * row))
    if word(ledger, TRACES):
        free_trace(ledger, load32(word(ledger, TRACES) + 4 * row))
        store32(word(ledger, TRACES) + 4 * row, load32(word(ledger, OLD_TRACES) + 4 * row))
    store16(word(ledger, MARKS) + 2 * row, marks)


@kernel
def take_back(relation: int) -> bool:
    """Everything as it was when the commit began. False: no memory."""
    ledger = word(relation, LEDGER)
    if not extend_indexes(relation):
        return False
    begin = word(ledger, AT_BEGIN)
    rows = word(ledger, TOUCHED_ROWS)
    last = word(ledger, TOUCHED_ROWS + LIST_COUNT) - 1
    for i in range(last + 1):
        row = word(rows, last - i)  # the newest first: it stands at the end of its buckets
        if row < begin:
            restore_row(ledger, row, load16(word(ledger, OLD_MARKS) + 2 * row))
            continue
        unlink(relation, row)
        if word(ledger, MAP):
            leave_map(relation, ledger, row)
        if word(ledger, TRACES):
            free_trace(ledger, load32(word(ledger, TRACES) + 4 * row))
    for field in (COUNT, DELTA_LO, DELTA_HI):
        set_word(relation, field, begin)
    set_word(ledger, MAP_UPTO, min(begin, word(ledger, MAP_UPTO)))
    indexes = word(relation, INDEXES)
    for i in range(word(relation, INDEX_COUNT)):
        set_word(word(indexes, i), UPTO, begin)
    forget_lists(ledger)
    return True


@kernel
def take_back_tasks(relation: int) -> bool:
    """Undo what tasks did; what users asserted and retracted stays. False: no memory."""
    ledger = word(relation, LEDGER)
    if not extend_indexes(relation):
        return False
    begin = word(ledger, AT_BEGIN)
    rows = word(ledger, TOUCHED_ROWS)
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        row = word(rows, i)
        said = marks_of(ledger, row) & ON_ASSERTION
        if row >= begin:
            set_marks(ledger, row, said)
            if word(ledger, NUMBERS):
                store64(word(ledger, NUMBERS) + 8 * row, 0)
            if word(ledger, TRACES):
                free_trace(ledger, load32(word(ledger, TRACES) + 4 * row))
                store32(word(ledger, TRACES) + 4 * row, 0)
            continue
        marks = load16(word(ledger, OLD_MARKS) + 2 * row) & ~EXPLICIT
        restore_row(ledger, row, marks | said | TOUCHED)
        if word(ledger, TRACES):
            store32(
                word(ledger, TRACES) + 4 * row, copy_trace(ledger, load32(word(ledger, OLD_TRACES) + 4 * row))
            )
    set_word(ledger, QUEUE + LIST_COUNT, 0)
    set_word(ledger, NOW + LIST_COUNT, 0)
    return True


@kernel
def hide_lost(relation: int) -> None:
    """Take rows that do not hold now out of set and indexes, so that plain tasks read what holds now."""
    ledger = word(relation, LEDGER)
    rows = word(ledger, TOUCHED_ROWS)
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        row = word(rows, i)
        if not holds_after(marks_of(ledger, row)):
            unlink(relation, row)


@kernel
def show_lost(relation: int) -> bool:
    """The reverse of `hide_lost`. False: no memory."""
    ledger = word(relation, LEDGER)
    rows = word(ledger, TOUCHED_ROWS)
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        row = word(rows, i)
        if not holds_after(marks_of(ledger, row)) and not link(relation, row):
            return False
    return True


@kernel
def is_in(part: int, marks: int) -> bool:
    """Whether a tuple with these marks belongs to a part, given the address of its table."""
    return load8(part + marks) != 0
