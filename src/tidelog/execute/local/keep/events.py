"""What a fixpoint in step has to look at in a later iteration: instances, candidates, tuples.

Events of an iteration are a list in a pool of words. An event is

    next, kind, drive, slot, head's relation, head's row, runs, number of the reading,
    and for each own tuple of the instance its ledger and its row

where `drive` is the iteration in which the event was made and `slot` the place of the tuple
that drove it then. A candidate and a tuple that parts or meets again have a relation and a row only.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import (
    R_BUCKET_ROOM,
    R_BUCKETS,
    R_LAST,
    R_POOL,
    R_POOL_ROOM,
    R_POOL_USED,
)
from tidelog.execute.local.memory import kernel, reallocate, set_word, word

E_NEXT, E_KIND, E_DRIVE, E_SLOT, E_RELATION, E_ROW, E_RUNS, E_NUMBER, E_OWN = range(9)
INSTANCE, CANDIDATE, TUPLE = 0, 1, 2


@kernel
def new_event(run: int, iteration: int, kind: int, relation: int, row: int, words: int) -> int:
    """An event of an iteration, with room for `words` more words: its place; 0 without memory."""
    if iteration >= word(run, R_BUCKET_ROOM):
        old = word(run, R_BUCKET_ROOM)
        room = max(64, 2 * iteration)
        buckets = reallocate(word(run, R_BUCKETS), 8 * room)
        if buckets == 0:
            return 0
        for i in range(old, room):
            set_word(buckets, i, 0)
        set_word(run, R_BUCKETS, buckets)
        set_word(run, R_BUCKET_ROOM, room)
    used = max(1, word(run, R_POOL_USED))
    need = used + E_OWN + words
    if need > word(run, R_POOL_ROOM):
        room = max(1024, need + need // 2)
        pool = reallocate(word(run, R_POOL), 8 * room)
        if pool == 0:
            return 0
        set_word(run, R_POOL, pool)
        set_word(run, R_POOL_ROOM, room)
    set_word(run, R_POOL_USED, need)
    event = word(run, R_POOL) + 8 * used
    buckets = word(run, R_BUCKETS)
    set_word(event, E_NEXT, word(buckets, iteration))
    set_word(event, E_KIND, kind)
    set_word(event, E_RELATION, relation)
    set_word(event, E_ROW, row)
    set_word(buckets, iteration, used)
    set_word(run, R_LAST, max(word(run, R_LAST), iteration))
    return used


@kernel
def events_of(run: int, iteration: int) -> int:
    """The first event of an iteration; 0: there is none."""
    if iteration >= word(run, R_BUCKET_ROOM):
        return 0
    return word(word(run, R_BUCKETS), iteration)


@kernel
def next_event(run: int, event: int) -> int:
    return word(word(run, R_POOL) + 8 * event, E_NEXT)
