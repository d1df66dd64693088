"""Rows that were derived more than once: a filter beside the set of a relation's rows.

Maintenance wants to know of a tuple whether a single instance derives it (see `keep.heads`). To count
instances would take a number for each tuple, found for each duplicate, where the set needs one bit. So
duplicates only leave a trace: a bit, by a hash of the row. A row whose bit is not set came by one instance;
one whose bit is set may have come by several, or shares the bit with another.

The filter grows with the set: it doubles by being written twice, one copy behind the other. Where most rows
were derived more than once it has little to tell, and is given up.
"""

from __future__ import annotations

from tidelog.execute.local.layout import REPEAT_COUNT, REPEAT_MASK, REPEATS, WORDS
from tidelog.execute.local.memory import (
    copy,
    fetch_add,
    fetch_or,
    inlined,
    kernel,
    load64,
    reallocate,
    release,
    set_word,
    store64,
    word,
)
from tidelog.execute.local.tupleset import scramble

BITS_PER_ROW = 16
FIRST_BITS = 1 << 16
MOST = 0.5  # of the rows


@inlined
def leave_trace(relation: int, filter: int, mask: int, mixed: int) -> None:
    """Set the bit of a hash."""
    bit = mixed & mask
    place = filter + 8 * (bit >> 6)
    if (load64(place) >> (bit & 63)) & 1 == 0:
        fetch_or(place, 1 << (bit & 63))
        fetch_add(relation + 8 * REPEAT_COUNT, 1)


@kernel
def mix(row: int, words: int) -> int:
    """A hash of the row at an address."""
    mixed = 0
    for w in range(words):
        mixed = scramble(mixed ^ word(row, w))
    return mixed


@kernel
def repeated(relation: int, row: int) -> None:
    """The row at an address was derived once more, if that is to be known."""
    filter = word(relation, REPEATS)
    if filter:
        leave_trace(relation, filter, word(relation, REPEAT_MASK), mix(row, word(relation, WORDS)))


@kernel
def came_once(relation: int, row: int) -> bool:
    """Whether the row at an address is known to have been derived once."""
    bit = mix(row, word(relation, WORDS)) & word(relation, REPEAT_MASK)
    return (load64(word(relation, REPEATS) + 8 * (bit >> 6)) >> (bit & 63)) & 1 == 0


@kernel
def begin_filter(relation: int) -> None:
    """Have an empty filter; none if there is no memory."""
    filter = reallocate(0, FIRST_BITS >> 3)
    if filter:
        for i in range(FIRST_BITS >> 6):
            store64(filter + 8 * i, 0)
    set_word(relation, REPEATS, filter)
    set_word(relation, REPEAT_MASK, FIRST_BITS - 1)
    set_word(relation, REPEAT_COUNT, 0)


@kernel
def end_filter(relation: int) -> None:
    """Have no filter."""
    release(word(relation, REPEATS))
    set_word(relation, REPEATS, 0)


@kernel
def fit_filter(relation: int, rows: int) -> None:
    """Make the filter large enough for so many rows, or give it up."""
    while word(relation, REPEATS) and BITS_PER_ROW * rows > word(relation, REPEAT_MASK) + 1:
        filter = word(relation, REPEATS)
        bits = word(relation, REPEAT_MASK) + 1
        most = word(relation, REPEAT_COUNT) > MOST * rows
        larger = 0 if most else reallocate(filter, bits >> 2)
        if larger == 0:
            end_filter(relation)
            return
        copy(larger + (bits >> 3), larger, bits >> 3)
        set_word(relation, REPEATS, larger)
        set_word(relation, REPEAT_MASK, 2 * bits - 1)
