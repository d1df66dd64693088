"""What a commit has changed, and its end: made final, taken back, or hidden from plain tasks for a while."""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import (
    AT_BEGIN,
    CANDIDATES,
    DEAD,
    DRIVEN,
    FORMER,
    HIDING,
    LIST_COUNT,
    LISTED,
    MAP,
    MAP_UPTO,
    MARKS,
    NOW,
    NUMBERS,
    OLD_MARKS,
    OLD_NUMBERS,
    OLD_TRACES,
    PENDING,
    QUEUE,
    TOUCHED,
    TOUCHED_ROWS,
    TRACES,
)
from tidelog.execute.local.keep.ledger import AHEAD, marks_of, prefetch_row, set_marks
from tidelog.execute.local.keep.links import leave_index, leave_set, link, unlink
from tidelog.execute.local.keep.marks import EXPLICIT, HELD, ON_ASSERTION, holds_after
from tidelog.execute.local.keep.rowmap import leave_map, prefetch_slot
from tidelog.execute.local.keep.traces import copy_trace, free_trace
from tidelog.execute.local.layout import (
    COUNT,
    DELTA_HI,
    DELTA_LO,
    INDEX_COUNT,
    INDEXES,
    LEDGER,
    ROWS,
    SCRATCH,
    UPTO,
    WORDS,
)
from tidelog.execute.local.memory import (
    Words,
    kernel,
    load16,
    load32,
    load64,
    set_word,
    store16,
    store32,
    store64,
    word,
)
from tidelog.execute.local.rounds import extend_indexes


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
def fill_former(ledger: int) -> None:
    """Have the numbers that touched rows had at their places too."""
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        numbers = load64(word(ledger, OLD_NUMBERS) + 8 * i) if word(ledger, NUMBERS) else 0
        store64(word(ledger, FORMER) + 8 * word(word(ledger, TOUCHED_ROWS), i), numbers)


@kernel
def make_final(relation: int) -> None:
    """What holds now is what is held; rows that do not hold are linked nowhere, and have no marks."""
    ledger = word(relation, LEDGER)
    rows = word(ledger, TOUCHED_ROWS)
    last = word(ledger, TOUCHED_ROWS + LIST_COUNT) - 1
    lost = 0
    for i in range(last + 1):
        row = word(rows, last - i)
        prefetch_row(relation, TOUCHED_ROWS, last - i - 2 * AHEAD)
        if i + AHEAD <= last and word(ledger, MAP):
            ahead = word(rows, last - i - AHEAD)
            prefetch_slot(relation, word(relation, ROWS) + 8 * word(relation, WORDS) * ahead)
        marks = marks_of(ledger, row)
        if word(ledger, TRACES) and row < word(ledger, AT_BEGIN):
            free_trace(ledger, load32(word(ledger, OLD_TRACES) + 4 * (last - i)))
        if holds_after(marks):
            store16(word(ledger, MARKS) + 2 * row, HELD | (marks & EXPLICIT))
            continue
        leave_set(relation, word(relation, ROWS) + 8 * word(relation, WORDS) * row)
        if word(ledger, MAP):
            leave_map(relation, ledger, row)
        if word(ledger, TRACES):
            free_trace(ledger, load32(word(ledger, TRACES) + 4 * row))
            store32(word(ledger, TRACES) + 4 * row, 0)
        store16(word(ledger, MARKS) + 2 * row, 0)
        lost += 1
    if lost:
        leave_indexes_together(relation)
    set_word(ledger, DEAD, word(ledger, DEAD) + lost)
    forget_lists(ledger)


@kernel
def leave_indexes_together(relation: int) -> None:
    """Take the touched rows that do not hold out of all indexes."""
    ledger = word(relation, LEDGER)
    marks = word(ledger, MARKS)
    rows = word(ledger, TOUCHED_ROWS)
    last = word(ledger, TOUCHED_ROWS + LIST_COUNT) - 1
    indexes = word(relation, INDEXES)
    for which in range(word(relation, INDEX_COUNT)):
        index = word(indexes, which)
        key = word(index, SCRATCH)
        moved = 0
        for i in range(last + 1):
            number = word(rows, last - i)  # the newest first: it stands at the end of its bucket
            prefetch_row(relation, TOUCHED_ROWS, last - i - 2 * AHEAD)
            if not holds_after(load16(marks + 2 * number)):
                row = word(relation, ROWS) + 8 * word(relation, WORDS) * number
                moved = leave_index(index, row, number, key, marks, moved)


@kernel
def restore_row(ledger: int, at: int, row: int, marks: int) -> None:
    """Numbers and trace of a row as they were, which is at this place among those touched; marks as given."""
    if word(ledger, NUMBERS):
        store64(word(ledger, NUMBERS) + 8 * row, load64(word(ledger, OLD_NUMBERS) + 8 * at))
    if word(ledger, TRACES):
        free_trace(ledger, load32(word(ledger, TRACES) + 4 * row))
        store32(word(ledger, TRACES) + 4 * row, load32(word(ledger, OLD_TRACES) + 4 * at))
    store16(word(ledger, MARKS) + 2 * row, marks)


@kernel
def take_back(relation: int) -> None:
    """Everything as it was when the commit began. It needs no memory: there may be none left.

    Indexes may have new rows or not, as far as they came.
    """
    ledger = word(relation, LEDGER)
    begin = word(ledger, AT_BEGIN)
    rows = word(ledger, TOUCHED_ROWS)
    last = word(ledger, TOUCHED_ROWS + LIST_COUNT) - 1
    for i in range(last + 1):
        row = word(rows, last - i)  # the newest first: it stands at the end of its buckets
        if row < begin:
            restore_row(ledger, last - i, row, load16(word(ledger, OLD_MARKS) + 2 * (last - i)))
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
        index = word(indexes, i)
        set_word(index, UPTO, min(begin, word(index, UPTO)))
    forget_lists(ledger)


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
        marks = load16(word(ledger, OLD_MARKS) + 2 * i) & ~EXPLICIT
        restore_row(ledger, i, row, marks | said | TOUCHED)
        if word(ledger, TRACES):
            store32(
                word(ledger, TRACES) + 4 * row, copy_trace(ledger, load32(word(ledger, OLD_TRACES) + 4 * i))
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
            leave_set(relation, word(relation, ROWS) + 8 * word(relation, WORDS) * row)
    leave_indexes_together(relation)
    set_word(ledger, HIDING, 1)


@kernel
def show_lost(relation: int) -> bool:
    """The reverse of `hide_lost`. False: no memory."""
    ledger = word(relation, LEDGER)
    set_word(ledger, HIDING, 0)
    rows = word(ledger, TOUCHED_ROWS)
    for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
        row = word(rows, i)
        if not holds_after(marks_of(ledger, row)) and not link(relation, row):
            return False
    return True
