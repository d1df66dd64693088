"""The rows of groups, found and replaced: the kernels behind `groups`."""

from __future__ import annotations

from tidelog.execute.local.index import bucket, find_many, find_one
from tidelog.execute.local.keep.ledger import NO_ROOM, find_or_append, is_in, marks_of, set_marks, touch
from tidelog.execute.local.keep.marks import ADDED, DELETED, EXPLICIT, HELD
from tidelog.execute.local.layout import ENTRY_WORDS, KEY_COUNT, LEDGER, SLOT_WORDS, WORDS
from tidelog.execute.local.memory import Words, kernel, load32, load64, word
from tidelog.execute.local.rounds import extend_indexes
from tidelog.execute.local.tupleset import LOW


@kernel
def list_rows(relation: int, index: int, keys: int, count: int, part: int, rows: Words) -> int:
    """Write the rows of a part that have one of the packed keys; how many there are, room or not."""
    ledger = word(relation, LEDGER)
    words = word(index, SLOT_WORDS) - 2
    single = word(index, KEY_COUNT) == 1
    stride = 8 * word(index, ENTRY_WORDS)
    found = 0
    for i in range(count):
        key = keys + 8 * max(1, words) * i
        slot = find_one(index, load32(key)) if single else find_many(index, key, words)
        entries = load64(slot) & LOW
        if entries == 0:
            continue
        place = bucket(index, slot, entries)
        for _ in range(entries):
            row = load32(place)
            place += stride
            if is_in(part, marks_of(ledger, row)):
                if found < len(rows):
                    rows[found] = row
                found += 1
    return found


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
