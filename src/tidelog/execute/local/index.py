"""Hash indexes: for a key, the rows that have it, side by side.

The table has one slot for each key: its number of entries, and where they are. The
entries of a key stand together in a bucket of 2^k places in the pool; a full bucket
moves to one twice as large, and its old place is kept for the next bucket of that
size. A key with a single one-word entry keeps it in the slot itself.

An entry is the number of the row, then the cells that the key does not have, so a
join needs no look at the row. Rows wider than that carry the number alone. Entries are
in the order of rows, so the OLD rows of a key are a prefix of its bucket.

A slot of a one-column key is two words: (key << 32 | entries) and (bucket or entry).
Longer keys stand behind these two words.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.layout import (
    CARRIED_COLUMNS,
    CARRIED_COUNT,
    ENTRY_WORDS,
    EXPECTED_ENTRIES,
    EXPECTED_SLOTS,
    FREE,
    INDEX_SIZE,
    INDEX_SLOTS,
    KEY_COLUMNS,
    KEY_COUNT,
    KEYS,
    POOL,
    POOL_CAPACITY,
    POOL_USED,
    SLOT_WORDS,
)
from tidelog.execute.local.memory import (
    allocate_zeroed,
    copy,
    inlined,
    kernel,
    load32,
    load64,
    reallocate,
    release,
    set_word,
    store32,
    store64,
    word,
)
from tidelog.execute.local.tupleset import LOW, MAX_LOAD_TENTHS, scramble

NEAR = 3  # slots that share a cache line, minus one


@inlined
def scale(mixed: int, size: int) -> int:
    """A number below `size` from a hash, for sizes that are no power of two."""
    return ((mixed & LOW) * size) >> 32


@inlined
def place_key(key: int, size: int) -> int:
    return 4 * scale(scramble(key >> 2), size >> 2) + (key & NEAR)


@kernel
def find_one(index: int, key: int) -> int:
    """The slot of a one-column key, or the empty slot where it would be."""
    slots = word(index, INDEX_SLOTS)
    size = word(index, INDEX_SIZE)
    i = place_key(key, size)
    while True:
        slot = slots + 16 * i
        meta = load64(slot)
        if meta == 0 or (meta >> 32) & LOW == key:
            return slot
        i += 1
        if i == size:
            i = 0


@kernel
def find_two(index: int, key: int) -> int:
    """The slot of a two-column key, packed into a word, or the empty slot where it would be."""
    slots = word(index, INDEX_SLOTS)
    size = word(index, INDEX_SIZE)
    i = scale(scramble(key), size)
    while True:
        slot = slots + 24 * i
        if load64(slot + 16) == key or load64(slot) == 0:
            return slot
        i += 1
        if i == size:
            i = 0


@kernel
def find_many(index: int, key: int, words: int) -> int:
    """The slot of the key of `words` words at an address, or the empty slot where it would be."""
    slots = word(index, INDEX_SLOTS)
    size = word(index, INDEX_SIZE)
    mixed = 0
    for w in range(words):
        mixed = scramble(mixed ^ word(key, w))
    i = scale(mixed, size)
    stride = 8 * (2 + words)
    while True:
        slot = slots + stride * i
        if load64(slot) == 0:
            return slot
        same = True
        for w in range(words):
            if load64(slot + 16 + 8 * w) != word(key, w):
                same = False
                break
        if same:
            return slot
        i += 1
        if i == size:
            i = 0


@kernel
def bucket(index: int, slot: int, entries: int) -> int:
    """The address of a slot's entries."""
    entry_words = word(index, ENTRY_WORDS)
    if entries == 1 and entry_words == 1:
        return slot + 8
    return word(index, POOL) + 8 * entry_words * load64(slot + 8)


@kernel
def before(entries: int, count: int, stride: int, row: int) -> int:
    """How many of a bucket's entries are of rows before `row`."""
    if count == 0 or load32(entries + stride * (count - 1)) < row:
        return count
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        if load32(entries + stride * middle) < row:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def take_bucket(index: int, size_class: int) -> int:
    """A free bucket of 2^size_class entries: its place in the pool, or -1 without memory."""
    head = load64(index + 8 * (FREE + size_class))
    entry_bytes = 8 * word(index, ENTRY_WORDS)
    if head:
        pool = word(index, POOL)
        store64(index + 8 * (FREE + size_class), load64(pool + entry_bytes * (head - 1)))
        return head - 1
    used = word(index, POOL_USED)
    need = used + (1 << size_class)
    if need > word(index, POOL_CAPACITY):
        capacity = max(need + need // 2, 64, word(index, EXPECTED_ENTRIES))
        pool = reallocate(word(index, POOL), entry_bytes * capacity)
        if pool == 0:
            return -1
        set_word(index, POOL, pool)
        set_word(index, POOL_CAPACITY, capacity)
    set_word(index, POOL_USED, need)
    return used


@kernel
def free_bucket(index: int, size_class: int, position: int) -> None:
    pool = word(index, POOL)
    entry_bytes = 8 * word(index, ENTRY_WORDS)
    store64(pool + entry_bytes * position, load64(index + 8 * (FREE + size_class)))
    store64(index + 8 * (FREE + size_class), position + 1)


@kernel
def class_of(entries: int) -> int:
    """log2 of a power of two."""
    k = 0
    while (1 << k) < entries:
        k += 1
    return k


@kernel
def room_for_one_more(index: int, slot: int, entries: int) -> int:
    """The address for one more entry behind a key's `entries`; 0 without memory."""
    entry_bytes = 8 * word(index, ENTRY_WORDS)
    if entries == 0 and entry_bytes == 8:
        return slot + 8
    if entries & (entries - 1):  # not a power of two: there is room
        return word(index, POOL) + entry_bytes * (load64(slot + 8) + entries)
    old_class = class_of(entries)
    inline = entries == 1 and entry_bytes == 8
    position = take_bucket(index, 0 if entries == 0 else old_class + 1)
    if position < 0:
        return 0
    target = word(index, POOL) + entry_bytes * position
    if entries:
        copy(target, bucket(index, slot, entries), entry_bytes * entries)
        if not inline:
            free_bucket(index, old_class, load64(slot + 8))
    store64(slot + 8, position)
    return target + entry_bytes * entries


@kernel
def resize_slots(index: int, size: int) -> bool:
    """Move the slots to a table of another size. False: no memory."""
    old = word(index, INDEX_SLOTS)
    old_size = word(index, INDEX_SIZE)
    slot_words = word(index, SLOT_WORDS)
    slots = allocate_zeroed(8 * slot_words * size)
    if slots == 0:
        return False
    set_word(index, INDEX_SLOTS, slots)
    set_word(index, INDEX_SIZE, size)
    for i in range(old_size):
        slot = old + 8 * slot_words * i
        if load64(slot) == 0:
            continue
        if slot_words == 2:
            target = find_one(index, (load64(slot) >> 32) & LOW)
        else:
            target = find_many(index, slot + 16, slot_words - 2)
        copy(target, slot, 8 * slot_words)
    release(old)
    return True


@kernel
def enlarge_slots(index: int) -> bool:
    """Have more slots. False: no memory."""
    return resize_slots(index, max(2 * word(index, INDEX_SIZE), word(index, EXPECTED_SLOTS)))


@kernel
def slot_of_row(index: int, row: int, key: int) -> int:
    """The slot of a row's key, taken into use if it is new; 0 without memory. `key` is scratch memory."""
    size = word(index, INDEX_SIZE)
    keys = word(index, KEYS)
    if 10 * keys >= MAX_LOAD_TENTHS * size and not enlarge_slots(index):
        return 0
    key_count = word(index, KEY_COUNT)
    key_columns = word(index, KEY_COLUMNS)
    words = word(index, SLOT_WORDS) - 2
    meta = 0
    if key_count == 1:
        cell = load32(row + 4 * load64(key_columns))
        slot = find_one(index, cell)
        meta = cell << 32
    else:
        set_word(key, words - 1, 0)
        for k in range(key_count):
            store32(key + 4 * k, load32(row + 4 * word(key_columns, k)))
        slot = find_many(index, key, words)
    if load64(slot) & LOW == 0:
        set_word(index, KEYS, keys + 1)
        store64(slot, meta)
        for w in range(words):
            store64(slot + 16 + 8 * w, word(key, w))
    return slot


@kernel
def write_entry(index: int, entry: int, number: int, row: int) -> None:
    carried_columns = word(index, CARRIED_COLUMNS)
    store32(entry, number)
    for c in range(word(index, CARRIED_COUNT)):
        store32(entry + 4 + 4 * c, load32(row + 4 * word(carried_columns, c)))
