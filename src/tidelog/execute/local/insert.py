"""Inserting the heads of rules: one at a time, or in the tight loops where the time goes.

A new row goes to the head's set, so that it is derived once, and to the worker's output. When
the set's table is full a lone worker grows it; one of several stops (MUST_GROW) until all have.
"""

from __future__ import annotations

from tidelog.execute.local.layout import (
    BLOCK_BITS,
    COUNT,
    LAST_SHIFT,
    MASK,
    MOVE_COUNT,
    MOVES,
    OUT_CAPACITY,
    OUT_COUNT,
    OUT_ROWS,
    REPEAT_MASK,
    REPEATS,
    SLOTS,
)
from tidelog.execute.local.memory import (
    inlined,
    kernel,
    load32,
    load64,
    reallocate,
    set_word,
    store64,
    word,
)
from tidelog.execute.local.repeats import fit_filter, leave_trace, repeated
from tidelog.execute.local.tupleset import (
    ADDED,
    FULL,
    LOW,
    PRESENT,
    add_many,
    add_one,
    add_two,
    grow,
    scramble,
)

# How an insertion, or a pass over driver rows, ended.
COMPLETE, MUST_GROW, NO_MEMORY, PAUSED = 0, 1, 2, 3


@kernel
def keep(out: int, row: int, words: int) -> bool:
    """Append a new row to a worker's output. False: no memory."""
    count = word(out, OUT_COUNT)
    if count == word(out, OUT_CAPACITY):
        capacity = max(64, count * 2)
        rows = reallocate(word(out, OUT_ROWS), 8 * words * capacity)
        if rows == 0:
            return False
        set_word(out, OUT_ROWS, rows)
        set_word(out, OUT_CAPACITY, capacity)
    target = word(out, OUT_ROWS) + 8 * words * count
    for w in range(words):
        set_word(target, w, word(row, w))
    set_word(out, OUT_COUNT, count + 1)
    return True


@kernel
def enlarge(head: int, out: int) -> bool:
    """Make the set's table larger, for a lone worker, and what is beside it. False: no memory."""
    fit_filter(head, word(head, COUNT) + word(out, OUT_COUNT))
    return grow(head)


@kernel
def insert(head: int, out: int, row: int, words: int, alone: bool) -> int:
    """Insert a head's row if it is new. A lone worker grows the table itself."""
    result = add_many(head, row)
    while result == FULL:
        if not alone:
            return MUST_GROW
        if not enlarge(head, out):
            return NO_MEMORY
        result = add_many(head, row)
    if result == PRESENT:
        repeated(head, row)
    elif not keep(out, row, words):
        return NO_MEMORY
    return COMPLETE


@inlined
def tight_loop(
    head: int,
    out: int,
    row: int,
    place: int,
    count: int,
    stride: int,
    shift: int,
    bits: int,
    last: int,
    done: int,
) -> int:
    """Insert heads of one word from match number `done` on; the number of the match it stopped at.

    `bits` and `last` are constants where it is called, so that the compiler can fold them.
    """
    rest = load64(row) & ~(LOW << shift)
    slots = word(head, SLOTS)
    mask = word(head, MASK)
    repeats = word(head, REPEATS)
    repeat_mask = word(head, REPEAT_MASK)
    place += stride * done
    for number in range(done, count):
        packed = rest | (load32(place) << shift)
        place += stride
        result = add_one(head, slots, mask, bits, last, packed)
        if result != PRESENT:
            store64(row, packed)
            if result == FULL:
                return number
            if not keep(out, row, 1):
                return -1
        elif repeats:
            leave_trace(head, repeats, repeat_mask, scramble(packed))
    return count


@kernel
def tight_one_word(
    head: int, out: int, row: int, place: int, count: int, stride: int, shift: int, alone: bool
) -> int:
    """Insert `count` heads of one word; each match gives the cell at `shift`."""
    done = 0
    while True:
        bits = word(head, BLOCK_BITS)
        last = word(head, LAST_SHIFT)
        if bits == 0:
            done = tight_loop(head, out, row, place, count, stride, shift, 0, last, done)
        elif last == 0:
            done = tight_loop(head, out, row, place, count, stride, shift, 6, 0, done)
        elif shift == 0:
            done = tight_loop(head, out, row, place, count, stride, 0, 6, 32, done)
        else:
            done = tight_loop(head, out, row, place, count, stride, 32, 6, 32, done)
        if done == count:
            return COMPLETE
        if done < 0:
            return NO_MEMORY
        if not alone:
            return MUST_GROW
        if not enlarge(head, out):
            return NO_MEMORY


@kernel
def tight_two_words(
    code: int,
    step: int,
    head: int,
    out: int,
    row: int,
    place: int,
    count: int,
    stride: int,
    alone: bool,
) -> int:
    """Insert `count` heads of two words; each match gives the cells that the step moves."""
    moves = word(code, step + MOVES)
    end = moves + 3 * word(code, step + MOVE_COUNT)
    rest = load64(row)
    more = load64(row + 8)
    for at in range(moves, end, 3):
        if word(code, at + 1) == 0:
            rest &= ~(LOW << word(code, at + 2))
        else:
            more &= ~(LOW << word(code, at + 2))
    slots = word(head, SLOTS)
    mask = word(head, MASK)
    bits = word(head, BLOCK_BITS)
    shift = word(head, LAST_SHIFT)
    repeats = word(head, REPEATS)
    repeat_mask = word(head, REPEAT_MASK)
    for _ in range(count):
        first = rest
        last = more
        for at in range(moves, end, 3):
            cell = load32(place + word(code, at)) << word(code, at + 2)
            if word(code, at + 1) == 0:
                first |= cell
            else:
                last |= cell
        place += stride
        result = add_two(head, slots, mask, bits, shift, first, last)
        if result == PRESENT:
            if repeats:
                leave_trace(head, repeats, repeat_mask, scramble(scramble(first) ^ last))
            continue
        if result == FULL and not alone:
            return MUST_GROW
        store64(row, first)
        store64(row + 8, last)
        if result == ADDED:
            if not keep(out, row, 2):
                return NO_MEMORY
            continue
        state = insert(head, out, row, 2, alone)
        if state != COMPLETE:
            return state
        slots = word(head, SLOTS)
        mask = word(head, MASK)
        bits = word(head, BLOCK_BITS)
        repeats = word(head, REPEATS)
        repeat_mask = word(head, REPEAT_MASK)
    return COMPLETE
