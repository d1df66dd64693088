"""The map from tuples to the numbers of their rows: a table with linear probing."""

# ruff: noqa: D103, SIM110  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import (
    ALL_MARKS,
    MAP,
    MAP_MASK,
    MAP_UPTO,
    MAP_USED,
    MARKS,
)
from tidelog.execute.local.layout import (
    COUNT,
    LEDGER,
    ROWS,
    WORDS,
)
from tidelog.execute.local.memory import (
    allocate_zeroed,
    kernel,
    load16,
    load32,
    prefetch,
    release,
    set_word,
    store32,
    word,
)
from tidelog.execute.local.tupleset import scramble


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
def extend_map(relation: int, spare: int) -> bool:
    """Bring all rows that are alive into the map, and room for so many. False: no memory."""
    ledger = word(relation, LEDGER)
    count = word(relation, COUNT)
    upto = word(ledger, MAP_UPTO)
    if word(ledger, MAP) and upto == count:
        return True
    size = word(ledger, MAP_MASK) + 1 if word(ledger, MAP) else 16
    while size < 2 * max(spare, word(ledger, MAP_USED) + count - upto + 1):
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
def stands_at(relation: int, number: int, row: int) -> bool:
    """Whether the tuple at an address is stored with this number, and has not been taken out."""
    if number >= word(relation, COUNT) or load16(word(word(relation, LEDGER), MARKS) + 2 * number) == 0:
        return False
    words = word(relation, WORDS)
    stored = word(relation, ROWS) + 8 * words * number
    for w in range(words):
        if word(stored, w) != word(row, w):
            return False
    return True


@kernel
def prefetch_slot(relation: int, row: int) -> None:
    """Have the place in the map of the tuple at an address on its way into the cache."""
    ledger = word(relation, LEDGER)
    hashed = hash_row(row, word(relation, WORDS))
    prefetch(word(ledger, MAP) + 4 * (hashed & word(ledger, MAP_MASK)))


@kernel
def prefetch_found(relation: int, row: int) -> None:
    """The same for the row that the map has in this place, and its marks."""
    ledger = word(relation, LEDGER)
    words = word(relation, WORDS)
    number = load32(word(ledger, MAP) + 4 * (hash_row(row, words) & word(ledger, MAP_MASK)))
    if number:
        prefetch(word(relation, ROWS) + 8 * words * (number - 1))
        prefetch(word(ledger, MARKS) + 2 * (number - 1))


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
