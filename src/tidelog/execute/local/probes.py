"""Looking up many keys at once: the kernels behind `columns`."""

from __future__ import annotations

from tidelog.execute.local.index import before, bucket, find_many, find_one
from tidelog.execute.local.insert import COMPLETE, insert
from tidelog.execute.local.layout import (
    DELTA,
    DELTA_LO,
    ENTRY_WORDS,
    KEY_COUNT,
    OLD,
    RELATION,
    SLOT_WORDS,
    WORDS,
)
from tidelog.execute.local.memory import Bools, Words, kernel, load32, load64, word
from tidelog.execute.local.tupleset import LOW, contains_many


@kernel
def find_matches(index: int, keys: int, version: int, places: Words, counts: Words) -> None:
    """For each key (packed, two cells a word): where its entries of a version are, and how many."""
    words = word(index, SLOT_WORDS) - 2
    single = word(index, KEY_COUNT) == 1
    boundary = load64(word(index, RELATION) + 8 * DELTA_LO)
    stride = 8 * word(index, ENTRY_WORDS)
    key_bytes = 8 * max(1, words)
    for i in range(len(counts)):
        key = keys + key_bytes * i
        slot = find_one(index, load32(key)) if single else find_many(index, key, words)
        count = load64(slot) & LOW
        place = slot
        if count:
            place = bucket(index, slot, count)
            if version == OLD:
                count = before(place, count, stride, boundary)
            elif version == DELTA:
                skipped = before(place, count, stride, boundary)
                place += stride * skipped
                count -= skipped
        places[i] = place
        counts[i] = count


@kernel
def list_matches(index: int, places: Words, counts: Words, left: Words, rows: Words) -> None:
    """Write, for each match, the number of its key and the number of its row."""
    stride = 8 * word(index, ENTRY_WORDS)
    at = 0
    for i in range(len(counts)):
        place = places[i]
        for _ in range(counts[i]):
            left[at] = i
            rows[at] = load32(place)
            place += stride
            at += 1


@kernel
def find_members(relation: int, packed: int, found: Bools) -> None:
    """For each packed row, whether it is in the set."""
    row_bytes = 8 * word(relation, WORDS)
    for i in range(len(found)):
        found[i] = contains_many(relation, packed + row_bytes * i)


@kernel
def insert_into(relation: int, packed: int, count: int, out: int) -> bool:
    """Insert packed rows, the new ones into an output buffer. False: no memory."""
    words = word(relation, WORDS)
    state = COMPLETE
    for i in range(count):
        state = insert(relation, out, packed + 8 * words * i, words, True)
        if state != COMPLETE:
            break
    return state == COMPLETE
