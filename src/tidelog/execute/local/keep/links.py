"""Taking single rows out of sets and indexes, and putting them back in their place.

Tables with linear probing have no gaps in a run of full slots: when a slot becomes empty, those
behind it that would no longer be found move up.
"""

from __future__ import annotations

from tidelog.execute.local.index import (
    before,
    bucket,
    class_of,
    find_many,
    find_one,
    free_bucket,
    place_key,
    room_for_one_more,
    scale,
    slot_of_row,
    take_bucket,
    write_entry,
)
from tidelog.execute.local.keep.marks import holds_after
from tidelog.execute.local.layout import (
    BLOCK_BITS,
    ENTRY_WORDS,
    INDEX_COUNT,
    INDEX_SIZE,
    INDEX_SLOTS,
    INDEXES,
    KEY_COLUMNS,
    KEY_COUNT,
    KEYS,
    LAST_SHIFT,
    MASK,
    POOL,
    ROWS,
    SCRATCH,
    SLOT_WORDS,
    SLOTS,
    USED,
    WORDS,
)
from tidelog.execute.local.memory import (
    copy,
    kernel,
    load16,
    load32,
    load64,
    set_word,
    store32,
    store64,
    word,
)
from tidelog.execute.local.tupleset import (
    EMPTY,
    FULL,
    LOW,
    add_many,
    grow,
    key_word,
    place_many,
    place_one,
    same_words,
    scramble,
)

LONG = 64  # entries: fewer are always moved
# Of one entry in a pass over its bucket, in entries moved up: a pass looks up the marks of each row, which
# lie anywhere, where a move reads on. Moves pay for passes, so that those which find little to take out look
# at a quarter as many entries as were moved, at most.
PASS_COST = 4


@kernel
def set_home(relation: int, slot: int) -> int:
    """Where a slot of the set belongs."""
    words = word(relation, WORDS)
    bits = word(relation, BLOCK_BITS)
    shift = word(relation, LAST_SHIFT)
    key = word(slot, words - 1)
    if words == 1:
        return place_one(key, bits, shift) & word(relation, MASK)
    return place_many(slot, key, words, bits, shift) & word(relation, MASK)


@kernel
def leave_set(relation: int, row: int) -> None:
    """Take the row at an address out of the set that has it."""
    words = word(relation, WORDS)
    bits = word(relation, BLOCK_BITS)
    shift = word(relation, LAST_SHIFT)
    slots = word(relation, SLOTS)
    mask = word(relation, MASK)
    last = word(row, words - 1)
    key = key_word(last, bits, shift)
    stride = 8 * (words + 1 if bits else words)
    i = place_many(row, key, words, bits, shift) & mask
    if words == 1:
        i = place_one(key, bits, shift) & mask
    while True:
        slot = slots + stride * i
        found = word(slot, words - 1)
        if found == EMPTY:
            return
        if found == key and same_words(slot, row, words - 1):
            break
        i = (i + 1) & mask
    if bits:
        store64(slot + 8 * words, load64(slot + 8 * words) & ~(1 << ((last >> shift) & 63)))
        return
    j = i
    while True:
        j = (j + 1) & mask
        other = slots + stride * j
        if word(other, words - 1) == EMPTY:
            break
        home = set_home(relation, other)
        if (j - home) & mask >= (j - i) & mask:  # its home is not behind the gap
            copy(slots + stride * i, other, stride)
            i = j
    set_word(slots + stride * i, words - 1, EMPTY)
    set_word(relation, USED, word(relation, USED) - 1)


@kernel
def join_set(relation: int, row: int) -> bool:
    """Put the row at an address into the set. False: no memory."""
    while add_many(relation, row) == FULL:
        if not grow(relation):
            return False
    return True


@kernel
def key_of_row(index: int, row: int, key: int) -> int:
    """The slot of a row's key, or the empty slot where it would be; `key` is scratch memory."""
    key_count = word(index, KEY_COUNT)
    key_columns = word(index, KEY_COLUMNS)
    if key_count == 1:
        return find_one(index, load32(row + 4 * load64(key_columns)))
    words = word(index, SLOT_WORDS) - 2
    set_word(key, words - 1, 0)
    for k in range(key_count):
        store32(key + 4 * k, load32(row + 4 * word(key_columns, k)))
    return find_many(index, key, words)


@kernel
def slot_home(index: int, slot: int) -> int:
    """Where a slot of an index belongs."""
    size = word(index, INDEX_SIZE)
    words = word(index, SLOT_WORDS) - 2
    if words == 0:
        return place_key((load64(slot) >> 32) & LOW, size)
    mixed = 0
    for w in range(words):
        mixed = scramble(mixed ^ load64(slot + 16 + 8 * w))
    return scale(mixed, size)


@kernel
def drop_slot(index: int, slot: int) -> None:
    """Empty a slot whose key has no entries left."""
    slots = word(index, INDEX_SLOTS)
    size = word(index, INDEX_SIZE)
    stride = 8 * word(index, SLOT_WORDS)
    i = (slot - slots) // stride
    j = i
    while True:
        j = j + 1 if j + 1 < size else 0
        other = slots + stride * j
        if load64(other) == 0:
            break
        gap = j - i if j > i else j - i + size
        away = j - slot_home(index, other)
        if away < 0:
            away += size
        if away >= gap:
            copy(slots + stride * i, other, stride)
            i = j
    for w in range(word(index, SLOT_WORDS)):
        set_word(slots + stride * i, w, 0)
    set_word(index, KEYS, word(index, KEYS) - 1)


@kernel
def leave_index(index: int, row: int, number: int, key: int, marks: int, moved: int) -> int:
    """Take a row out of an index. How many entries have moved up so far, in the place of others.

    Where marks are given and more have moved than several times what is in this bucket, all whose rows do not
    hold leave it, at the expense of the moves: so many rows of a long bucket cost a few passes over it.
    """
    slot = key_of_row(index, row, key)
    count = load64(slot) & LOW
    if count == 0:
        return moved
    words = word(index, ENTRY_WORDS)
    entries = bucket(index, slot, count)
    position = before(entries, count, 8 * words, number)
    if position == count or load32(entries + 8 * words * position) != number:
        return moved
    together = marks != 0 and count > LONG and moved > PASS_COST * count
    left = 0 if together else position
    for entry in range(left if together else position + 1, count):
        if together and not holds_after(load16(marks + 2 * load32(entries + 8 * words * entry))):
            continue
        for w in range(words):
            set_word(entries, words * left + w, word(entries, words * entry + w))
        left += 1
    shrink(index, slot, count, left)
    return moved - PASS_COST * count if together else moved + count - 1 - position


@kernel
def shrink(index: int, slot: int, count: int, left: int) -> None:
    """Let a bucket that had `count` entries have the first of them."""
    words = word(index, ENTRY_WORDS)
    inline = count == 1 and words == 1
    place = load64(slot + 8)
    if left == 0:
        if not inline:
            free_bucket(index, class_of(count), place)
        drop_slot(index, slot)
        return
    store64(slot, load64(slot) - (count - left))
    # A bucket holds the next power of two: it may be too large now.
    if class_of(left) == class_of(count):
        return
    pool = word(index, POOL)
    if left == 1 and words == 1:
        store64(slot + 8, load64(pool + 8 * place))
        free_bucket(index, class_of(count), place)
        return
    smaller = take_bucket(index, class_of(left))
    if smaller < 0:
        return  # without memory it stays where it is
    pool = word(index, POOL)
    copy(pool + 8 * words * smaller, pool + 8 * words * place, 8 * words * left)
    free_bucket(index, class_of(count), place)
    store64(slot + 8, smaller)


@kernel
def join_index(index: int, row: int, number: int, key: int) -> bool:
    """Put a row into an index, in the order of rows. False: no memory."""
    slot = slot_of_row(index, row, key)
    if slot == 0:
        return False
    count = load64(slot) & LOW
    if room_for_one_more(index, slot, count) == 0:
        return False
    store64(slot, load64(slot) + 1)
    entry_words = word(index, ENTRY_WORDS)
    entries = bucket(index, slot, count + 1)
    position = before(entries, count, 8 * entry_words, number)
    w = entry_words * (count + 1) - 1
    while w >= entry_words * (position + 1):
        set_word(entries, w, word(entries, w - entry_words))
        w -= 1
    write_entry(index, entries + 8 * entry_words * position, number, row)
    return True


@kernel
def unlink(relation: int, number: int) -> None:
    """Take a row out of the set and of all indexes; it stays among the rows."""
    row = word(relation, ROWS) + 8 * word(relation, WORDS) * number
    leave_set(relation, row)
    indexes = word(relation, INDEXES)
    for i in range(word(relation, INDEX_COUNT)):
        index = word(indexes, i)
        leave_index(index, row, number, word(index, SCRATCH), 0, 0)


@kernel
def link(relation: int, number: int) -> bool:
    """Put a row back into the set and all indexes. False: no memory."""
    row = word(relation, ROWS) + 8 * word(relation, WORDS) * number
    if not join_set(relation, row):
        return False
    indexes = word(relation, INDEXES)
    for i in range(word(relation, INDEX_COUNT)):
        index = word(indexes, i)
        if not join_index(index, row, number, word(index, SCRATCH)):
            return False
    return True
