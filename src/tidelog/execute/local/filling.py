"""Filling indexes: an empty one in passes, so that no bucket ever moves; others row by row.

    Build
    1  count the rows of each key
    2  let the table fit the keys
    3  give each key its bucket
    4  write the entries, in the order of rows

Most indexes have keys of one column. For these the loops of steps 1 and 4, which look at every row, keep
what they need at hand and look up the key in place.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.index import (
    class_of,
    enlarge_slots,
    place_key,
    resize_slots,
    room_for_one_more,
    slot_of_row,
    take_bucket,
    write_entry,
)
from tidelog.execute.local.layout import (
    CARRIED_COLUMNS,
    CARRIED_COUNT,
    ENTRY_WORDS,
    FREE,
    INDEX_SIZE,
    INDEX_SLOTS,
    INDEX_WORDS,
    KEY_COLUMNS,
    KEY_COUNT,
    KEYS,
    POOL,
    POOL_USED,
    RELATION,
    ROWS,
    SLOT_WORDS,
    UPTO,
    WORDS,
)
from tidelog.execute.local.memory import (
    inlined,
    kernel,
    load8,
    load32,
    load64,
    reallocate,
    release,
    set_word,
    store64,
    word,
)
from tidelog.execute.local.tupleset import LOW, MAX_LOAD_TENTHS

WORTH_BUILDING = 256  # rows


@kernel
def extend_index(index: int, upto: int) -> bool:
    """Bring rows up to number `upto` into the index. False: there is no memory."""
    if word(index, UPTO) == upto:
        return True
    if word(index, UPTO) == 0 and upto >= WORTH_BUILDING:
        return build(index, upto, 0)
    key = reallocate(0, 8 * word(index, SLOT_WORDS))
    if key == 0:
        return False
    done = append(index, upto, key)
    release(key)
    set_word(index, UPTO, done)
    return bool(done == upto)


@kernel
def append(index: int, upto: int, key: int) -> int:
    """Add rows one by one, from the first that is not in the index. Where it ends: earlier without memory."""
    relation = word(index, RELATION)
    row_bytes = 8 * word(relation, WORDS)
    rows = word(relation, ROWS)
    for number in range(word(index, UPTO), upto):
        row = rows + row_bytes * number
        slot = slot_of_row(index, row, key)
        if slot == 0:
            return number
        entry = room_for_one_more(index, slot, load64(slot) & LOW)
        if entry == 0:
            return number
        store64(slot, load64(slot) + 1)
        write_entry(index, entry, number, row)
    return upto


@kernel
def build(index: int, upto: int, omitted: int) -> bool:
    """Fill an empty index. False: no memory.

    `omitted` is the address of a byte for each row, not 0 for those to leave out; or 0: none is left out.
    """
    key = reallocate(0, 8 * word(index, SLOT_WORDS))
    if key == 0:
        return False
    one = word(index, KEY_COUNT) == 1
    done = count_one(index, upto, omitted) if one else count_many(index, upto, omitted, key)  # step 1
    # Step 2, with room for one more: looking up rows again must not resize it.
    fitting = 4 * ((word(index, KEYS) + 1) * 10 // (4 * MAX_LOAD_TENTHS) + 1)
    done = done and resize_slots(index, fitting) and give_buckets(index)
    if done:
        if one:  # step 4
            write_one(index, upto, omitted)
        else:
            write_many(index, upto, omitted, key)
        end_buckets(index)
        set_word(index, UPTO, upto)
    else:
        forget_entries(index)
    release(key)
    return done


@kernel
def forget_entries(index: int) -> None:
    """Have nothing in an index that was empty, where there is no memory to fill it."""
    slots = word(index, INDEX_SLOTS)
    for w in range(word(index, INDEX_SIZE) * word(index, SLOT_WORDS)):
        set_word(slots, w, 0)
    for field in range(FREE, INDEX_WORDS):
        set_word(index, field, 0)
    set_word(index, KEYS, 0)
    set_word(index, POOL_USED, 0)


@inlined
def is_omitted(omitted: int, number: int) -> bool:
    return omitted != 0 and load8(omitted + number) != 0


@kernel
def count_one(index: int, upto: int, omitted: int) -> bool:
    """Step 1, for keys of one column."""
    relation = word(index, RELATION)
    row_bytes = 8 * word(relation, WORDS)
    cells = word(relation, ROWS) + 4 * load64(word(index, KEY_COLUMNS))
    slots, size, keys = word(index, INDEX_SLOTS), word(index, INDEX_SIZE), word(index, KEYS)
    for number in range(upto):
        if is_omitted(omitted, number):
            continue
        if 10 * keys >= MAX_LOAD_TENTHS * size:
            if not enlarge_slots(index):
                return False
            slots, size = word(index, INDEX_SLOTS), word(index, INDEX_SIZE)
        key = load32(cells + row_bytes * number)
        i = place_key(key, size)
        while True:
            meta = load64(slots + 16 * i)
            if meta == 0:
                store64(slots + 16 * i, (key << 32) | 1)
                keys += 1
                break
            if (meta >> 32) & LOW == key:
                store64(slots + 16 * i, meta + 1)
                break
            i += 1
            if i == size:
                i = 0
    set_word(index, KEYS, keys)
    return True


@kernel
def count_many(index: int, upto: int, omitted: int, key: int) -> bool:
    """Step 1, for longer keys."""
    relation = word(index, RELATION)
    row_bytes = 8 * word(relation, WORDS)
    rows = word(relation, ROWS)
    for number in range(upto):
        if is_omitted(omitted, number):
            continue
        slot = slot_of_row(index, rows + row_bytes * number, key)
        if slot == 0:
            return False
        store64(slot, load64(slot) + 1)
    return True


@inlined
def has_bucket(count: int, entry_bytes: int) -> bool:
    return count > 1 or (count == 1 and entry_bytes > 8)


@kernel
def give_buckets(index: int) -> bool:
    """Step 3: the place of a key's bucket is in the upper half of a word, whose lower half counts entries."""
    slot_bytes, entry_bytes = 8 * word(index, SLOT_WORDS), 8 * word(index, ENTRY_WORDS)
    slots = word(index, INDEX_SLOTS)
    for i in range(word(index, INDEX_SIZE)):
        slot = slots + slot_bytes * i
        count = load64(slot) & LOW
        if has_bucket(count, entry_bytes):
            position = take_bucket(index, class_of(count))
            if position < 0:
                return False
            store64(slot + 8, position << 32)
    return True


@kernel
def end_buckets(index: int) -> None:
    """All entries are written: a slot has the place of the bucket alone."""
    slot_bytes, entry_bytes = 8 * word(index, SLOT_WORDS), 8 * word(index, ENTRY_WORDS)
    slots = word(index, INDEX_SLOTS)
    for i in range(word(index, INDEX_SIZE)):
        slot = slots + slot_bytes * i
        if has_bucket(load64(slot) & LOW, entry_bytes):
            store64(slot + 8, (load64(slot + 8) >> 32) & LOW)


@inlined
def next_entry(slot: int, pool: int, entry_bytes: int) -> int:
    """Where the next entry of a slot is to be written."""
    if not has_bucket(load64(slot) & LOW, entry_bytes):
        return slot + 8
    place = load64(slot + 8)
    store64(slot + 8, place + 1)
    return pool + entry_bytes * (((place >> 32) & LOW) + (place & LOW))


@kernel
def write_one(index: int, upto: int, omitted: int) -> None:
    """Step 4, for keys of one column."""
    relation = word(index, RELATION)
    row_bytes = 8 * word(relation, WORDS)
    rows = word(relation, ROWS)
    key_at = 4 * load64(word(index, KEY_COLUMNS))
    slots, size = word(index, INDEX_SLOTS), word(index, INDEX_SIZE)
    pool, entry_bytes = word(index, POOL), 8 * word(index, ENTRY_WORDS)
    pair = word(index, CARRIED_COUNT) == 1  # an entry is a word: the number of the row and a cell
    cell_at = 4 * load64(word(index, CARRIED_COLUMNS)) if pair else 0
    for number in range(upto):
        if is_omitted(omitted, number):
            continue
        row = rows + row_bytes * number
        key = load32(row + key_at)
        i = place_key(key, size)
        while (load64(slots + 16 * i) >> 32) & LOW != key or load64(slots + 16 * i) == 0:
            i += 1
            if i == size:
                i = 0
        entry = next_entry(slots + 16 * i, pool, entry_bytes)
        if pair:
            store64(entry, number | (load32(row + cell_at) << 32))
        else:
            write_entry(index, entry, number, row)


@kernel
def write_many(index: int, upto: int, omitted: int, key: int) -> None:
    """Step 4, for longer keys."""
    relation = word(index, RELATION)
    row_bytes = 8 * word(relation, WORDS)
    rows = word(relation, ROWS)
    pool, entry_bytes = word(index, POOL), 8 * word(index, ENTRY_WORDS)
    for number in range(upto):
        if is_omitted(omitted, number):
            continue
        row = rows + row_bytes * number
        slot = slot_of_row(index, row, key)
        write_entry(index, next_entry(slot, pool, entry_bytes), number, row)
