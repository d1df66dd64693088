"""The set of a relation's rows: insert-if-new and membership in one cache miss.

The table is open-addressed with linear probing. A slot holds either

- a *block*: the row with the last cell's low six bits cut off, and a word with one
  bit for each of the 64 rows that share it; or
- a *row*, alone (where rows have few neighbours a block would be half empty).

Which of the two is decided each time the table grows, from how full the blocks are.
Answers of recursive rules tend to be dense (most nodes reach most nodes), and then a
million pairs fit in a quarter of a megabyte: the inner loop of a closure finds
nearly all its duplicates in the second-level cache.

Neighbouring blocks go to neighbouring slots, one cache line at a time.

All insertions are atomic, so that several workers may share a table: an empty slot
is claimed by exchanging the *last* word of its key (which can be neither EMPTY nor
CLAIMED for a real row), a bit is set by fetch-or. Duplicates, the common case, take
plain loads only.

The probe loop stands here three times (rows of one word, of two, of any number), because
the innermost loop of nearly every program is one of the first two: with the row in
registers they are twice as fast as the general one.
"""

# ruff: noqa: D103, SIM108, SIM110  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.layout import (
    BLOCK_BITS,
    LAST_SHIFT,
    LIMIT,
    MASK,
    SLOTS,
    USED,
    WORDS,
)
from tidelog.execute.local.memory import (
    exchange_if,
    fetch_add,
    fetch_or,
    inlined,
    kernel,
    load64,
    load_shared,
    reallocate,
    release,
    set_word,
    store64,
    store_shared,
    word,
)

EMPTY = -1
CLAIMED = -2
PRESENT, ADDED, FULL = 0, 1, 2
LOW = 0xFFFFFFFF
MIX = -7046029254386353131  # 2^64 / golden ratio, odd
FIRST_SLOTS, FIRST_BITS = 16, 6  # of the table of a new relation: a few empty blocks
MAX_LOAD_TENTHS = 7
HARD_LOAD_TENTHS = 9
FEW_NEIGHBOURS = 1.5
SAMPLE = 256  # slots


@inlined
def key_word(row: int, bits: int, shift: int) -> int:
    """The last word of a row with the low `bits` of its last cell cut off."""
    cell = ((row >> shift) & LOW) >> bits
    if shift == 0:
        return cell
    return (row & LOW) | (cell << 32)


@inlined
def place(mixed: int, last: int, bits: int) -> int:
    """The slot of a key: `last` is its last cell, `mixed` a hash of all the rest."""
    near = 3 if bits else 7  # slots in a cache line, minus one
    return (mixed & ~near) | (last & near)


@inlined
def scramble(value: int) -> int:
    mixed = value * MIX
    return mixed ^ ((mixed >> 32) & LOW)


@inlined
def place_one(key: int, bits: int, shift: int) -> int:
    """The slot of a one-word key."""
    last = (key >> shift) & LOW
    near = 3 if bits else 7
    return place(scramble(key ^ ((last & near) << shift)), last, bits)


@inlined
def place_many(row: int, key: int, words: int, bits: int, shift: int) -> int:
    """The slot of a key of several words: those at `row`, the last replaced by `key`."""
    last = (key >> shift) & LOW
    near = 3 if bits else 7
    mixed = scramble(key ^ ((last & near) << shift))
    for i in range(words - 1):
        mixed = scramble(mixed ^ word(row, i))
    return place(mixed, last, bits)


@inlined
def contains_one(slots: int, mask: int, bits: int, shift: int, row: int) -> bool:
    """Whether a one-word row is in the set."""
    key = key_word(row, bits, shift)
    i = place_one(key, bits, shift) & mask
    while True:
        slot = slots + (i << 4 if bits else i << 3)
        found = load64(slot)
        if found == key:
            return bits == 0 or (load64(slot + 8) >> ((row >> shift) & 63)) & 1 == 1
        if found == EMPTY:
            return False
        i = (i + 1) & mask


@inlined
def add_one(relation: int, slots: int, mask: int, bits: int, shift: int, row: int) -> int:
    """Insert a one-word row: PRESENT, ADDED, or FULL when the table must grow first."""
    key = key_word(row, bits, shift)
    i = place_one(key, bits, shift) & mask
    bit = 1 << ((row >> shift) & 63)
    while True:
        slot = slots + (i << 4 if bits else i << 3)
        found = load64(slot)
        if found == key:
            if bits == 0 or load64(slot + 8) & bit:
                return PRESENT
            if fetch_or(slot + 8, bit) & bit:
                return PRESENT
            return ADDED
        if found == EMPTY:
            if word(relation, USED) >= word(relation, LIMIT):
                return FULL
            found = exchange_if(slot, EMPTY, key)
            if found == EMPTY:
                fetch_add(relation + 8 * USED, 1)
                if bits and fetch_or(slot + 8, bit) & bit:
                    return PRESENT  # another worker found the block and set the bit in between
                return ADDED
            continue  # another worker was faster: look at the slot again
        i = (i + 1) & mask


@kernel
def same_words(a: int, b: int, words: int) -> bool:
    for i in range(words):
        if word(a, i) != word(b, i):
            return False
    return True


@inlined
def add_two(relation: int, slots: int, mask: int, bits: int, shift: int, first: int, last: int) -> int:
    """Insert a two-word row: PRESENT, ADDED, or FULL when the table must grow first."""
    key = key_word(last, bits, shift)
    near = 3 if bits else 7
    cell = (key >> shift) & LOW
    i = place(scramble(scramble(key ^ ((cell & near) << shift)) ^ first), cell, bits) & mask
    bit = 1 << ((last >> shift) & 63)
    stride = 24 if bits else 16
    while True:
        slot = slots + stride * i
        found = load_shared(slot + 8)
        if found == key and load64(slot) == first:
            if bits == 0 or load64(slot + 16) & bit:
                return PRESENT
            if fetch_or(slot + 16, bit) & bit:
                return PRESENT
            return ADDED
        if found == EMPTY:
            if word(relation, USED) >= word(relation, LIMIT):
                return FULL
            if exchange_if(slot + 8, EMPTY, CLAIMED) == EMPTY:
                fetch_add(relation + 8 * USED, 1)
                store64(slot, first)
                if bits:
                    store64(slot + 16, bit)
                store_shared(slot + 8, key)
                return ADDED
            continue
        if found != CLAIMED:  # another worker is about to say what is in the slot: look again
            i = (i + 1) & mask


@kernel
def contains_many(relation: int, row: int) -> bool:
    """Whether the row at an address is in the set."""
    words = word(relation, WORDS)
    bits = word(relation, BLOCK_BITS)
    shift = word(relation, LAST_SHIFT)
    slots = word(relation, SLOTS)
    mask = word(relation, MASK)
    last = word(row, words - 1)
    if words == 1:
        return contains_one(slots, mask, bits, shift, last)
    key = key_word(last, bits, shift)
    stride = 8 * (words + 1 if bits else words)
    i = place_many(row, key, words, bits, shift) & mask
    while True:
        slot = slots + i * stride
        found = load_shared(slot + 8 * (words - 1))
        if found == key and same_words(slot, row, words - 1):
            return bits == 0 or (load64(slot + 8 * words) >> ((last >> shift) & 63)) & 1 == 1
        if found == EMPTY:
            return False
        i = (i + 1) & mask


@kernel
def add_many(relation: int, row: int) -> int:
    """Insert the row at an address: PRESENT, ADDED, or FULL when the table must grow first."""
    words = word(relation, WORDS)
    bits = word(relation, BLOCK_BITS)
    shift = word(relation, LAST_SHIFT)
    slots = word(relation, SLOTS)
    mask = word(relation, MASK)
    last = word(row, words - 1)
    if words == 1:
        return add_one(relation, slots, mask, bits, shift, last)
    key = key_word(last, bits, shift)
    bit = 1 << ((last >> shift) & 63)
    stride = 8 * (words + 1 if bits else words)
    i = place_many(row, key, words, bits, shift) & mask
    while True:
        slot = slots + i * stride
        found = load_shared(slot + 8 * (words - 1))
        if found == CLAIMED:
            continue
        if found == key and same_words(slot, row, words - 1):
            if bits == 0 or load64(slot + 8 * words) & bit:
                return PRESENT
            if fetch_or(slot + 8 * words, bit) & bit:
                return PRESENT
            return ADDED
        if found == EMPTY:
            if word(relation, USED) >= word(relation, LIMIT):
                return FULL
            if exchange_if(slot + 8 * (words - 1), EMPTY, CLAIMED) == EMPTY:
                fetch_add(relation + 8 * USED, 1)
                for w in range(words - 1):
                    set_word(slot, w, word(row, w))
                if bits:
                    store64(slot + 8 * words, bit)
                store_shared(slot + 8 * (words - 1), key)
                return ADDED
            continue
        i = (i + 1) & mask


@kernel
def fresh_table(size: int, words: int, bits: int) -> int:
    """A table of empty slots; 0 when there is no memory."""
    stride = words + 1 if bits else words
    slots = reallocate(0, 8 * size * stride)
    if slots == 0:
        return 0
    for i in range(size):
        slot = slots + 8 * i * stride
        for w in range(words):
            set_word(slot, w, EMPTY)
        if bits:
            store64(slot + 8 * words, 0)
    return slots


@kernel
def use_table(relation: int, slots: int, size: int, bits: int, used: int) -> None:
    """Let the relation have this table."""
    set_word(relation, SLOTS, slots)
    set_word(relation, MASK, size - 1)
    set_word(relation, BLOCK_BITS, bits)
    set_word(relation, USED, used)
    set_word(relation, LIMIT, size * MAX_LOAD_TENTHS // 10)


@kernel
def begin_table(relation: int, size: int, bits: int) -> bool:
    """Let the relation have a table of empty slots; what it had is somebody else's. False: no memory."""
    slots = fresh_table(size, word(relation, WORDS), bits)
    if slots == 0:
        return False
    use_table(relation, slots, size, bits, 0)
    return True


@kernel
def bits_set(bits: int) -> int:
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56) & 0xFF


@kernel
def rows_in(relation: int) -> int:
    """The number of rows in the set, those of the current round included."""
    used = word(relation, USED)
    if word(relation, BLOCK_BITS) == 0:
        return used
    words = word(relation, WORDS)
    slots = word(relation, SLOTS)
    rows = 0
    for i in range(word(relation, MASK) + 1):
        rows += bits_set(load64(slots + 8 * (words + 1) * i + 8 * words))
    return rows


@kernel
def neighbours(relation: int, rows_now: int) -> float:
    """How many rows of the set share a block, on average (from a sample where slots are rows)."""
    if word(relation, BLOCK_BITS):
        return rows_now / max(word(relation, USED), 1)
    words = word(relation, WORDS)
    shift = word(relation, LAST_SHIFT)
    slots = word(relation, SLOTS)
    size = word(relation, MASK) + 1
    probe = reallocate(0, 8 * words)
    if probe == 0:
        return 1.0
    found = 0
    sampled = 0
    for i in range(0, size, max(1, size // SAMPLE)):
        slot = slots + 8 * words * i
        last = word(slot, words - 1)
        if last == EMPTY:
            continue
        sampled += 1
        for w in range(words - 1):
            set_word(probe, w, word(slot, w))
        base = last & ~(63 << shift)
        for b in range(64):
            set_word(probe, words - 1, base | (b << shift))
            if contains_many(relation, probe):
                found += 1
    release(probe)
    return found / max(1, sampled)


@kernel
def move_slot(relation: int, slot: int, words: int, bits: int, shift: int) -> None:
    """Put a slot of the old table, whole, into the new one of the same kind."""
    slots = word(relation, SLOTS)
    mask = word(relation, MASK)
    stride = words + 1 if bits else words
    key = word(slot, words - 1)
    if words == 1:
        i = place_one(key, bits, shift) & mask
    else:
        i = place_many(slot, key, words, bits, shift) & mask
    while load64(slots + 8 * stride * i + 8 * (words - 1)) != EMPTY:
        i = (i + 1) & mask
    for w in range(stride):
        store64(slots + 8 * stride * i + 8 * w, word(slot, w))


@kernel
def move_rows(relation: int, slot: int, row: int, words: int, shift: int, old_bits: int) -> int:
    """Put the rows of a slot of the old table into the new one, one by one."""
    key = word(slot, words - 1)
    for w in range(words - 1):
        set_word(row, w, word(slot, w))
    if old_bits == 0:
        set_word(row, words - 1, key)
        return add_many(relation, row)
    cell = ((key >> shift) & LOW) << 6
    rest = key & LOW if shift else 0
    members = load64(slot + 8 * words)
    for b in range(64):
        if (members >> b) & 1:
            set_word(row, words - 1, rest | ((cell | b) << shift))
            if add_many(relation, row) == FULL:
                return FULL
    return ADDED


@kernel
def grow(relation: int) -> bool:
    """Make the table larger, choosing blocks or rows anew. False: there is no memory."""
    words = word(relation, WORDS)
    shift = word(relation, LAST_SHIFT)
    old_bits = word(relation, BLOCK_BITS)
    old_slots = word(relation, SLOTS)
    old_size = word(relation, MASK) + 1
    old_used = word(relation, USED)
    old_stride = 8 * (words + 1 if old_bits else words)
    rows = rows_in(relation)
    dense = neighbours(relation, rows)
    bits = 6 if rows < 1024 or dense > FEW_NEIGHBOURS else 0
    size = old_size * 2
    if bits != old_bits:
        want = rows if bits == 0 else int(rows / dense) + 1
        size = 16
        while size * MAX_LOAD_TENTHS < 10 * (want + want // 4):
            size *= 2
    row = reallocate(0, 8 * words)
    if row == 0:
        return False
    while True:
        if not begin_table(relation, size, bits):
            use_table(relation, old_slots, old_size, old_bits, old_used)
            release(row)
            return False
        fits = True
        for i in range(old_size):
            slot = old_slots + i * old_stride
            if word(slot, words - 1) == EMPTY:
                continue
            if bits == old_bits:
                move_slot(relation, slot, words, bits, shift)
            elif move_rows(relation, slot, row, words, shift, old_bits) == FULL:
                fits = False
                break
        if fits:
            break
        release(word(relation, SLOTS))  # the sample promised fuller blocks than there are
        size *= 2
    if bits == old_bits:
        set_word(relation, USED, old_used)
    release(row)
    release(old_slots)
    return True
