"""Letting an instance count: now, or as an event of a later iteration; see `steps`."""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.cursor import advance, make_head
from tidelog.execute.local.keep.events import (
    CANDIDATE,
    E_DRIVE,
    E_NUMBER,
    E_OWN,
    E_RUNS,
    E_SLOT,
    INSTANCE,
    new_event,
)
from tidelog.execute.local.keep.heads import failure
from tidelog.execute.local.keep.layout import (
    BODY,
    C_FORM,
    C_POSSIBLE,
    C_ROWS,
    CANDIDATES,
    DONE,
    DRIVEN,
    F_HEAD,
    F_NUMBER,
    F_OWN,
    F_SLOT,
    F_STEP_COUNT,
    F_STEPS,
    LISTED,
    MARKS,
    MISS,
    MISSING,
    NO_MEMORY,
    NONE,
    OVER_BUDGET,
    PENDING,
    R_BUDGET,
    R_CONSIDERED,
    R_COUNTS,
    R_K,
    R_KEEP,
    R_POOL,
    R_WORK,
    SLOT,
    SOURCE,
    STEP_WORDS,
)
from tidelog.execute.local.keep.ledger import find_or_append, push, touch
from tidelog.execute.local.keep.rowmap import find_row
from tidelog.execute.local.keep.timing import NEW_RUN, OLD_RUN, new_first, old_first
from tidelog.execute.local.keep.traces import add_to_trace
from tidelog.execute.local.layout import LEDGER
from tidelog.execute.local.memory import (
    kernel,
    load16,
    load32,
    set_word,
    store16,
    store32,
    word,
)

NO_ITERATION = 1 << 60


@kernel
def iteration_of(code: int, cursor: int, run_of: int) -> int:
    """The iteration of a run that the current instance belongs to."""
    form = word(cursor, C_FORM)
    step = word(code, form + F_STEPS)
    rows = word(cursor, C_ROWS)
    latest = 0
    for level in range(word(code, form + F_STEP_COUNT)):
        if word(code, step + BODY):
            ledger = word(word(code, step + SOURCE), LEDGER)
            row = word(rows, level)
            first = old_first(ledger, row) if run_of == OLD_RUN else new_first(ledger, row)
            latest = max(latest, first)
        step += STEP_WORDS
    return latest + 1


@kernel
def driven_in(ledger: int, row: int) -> int:
    return load32(word(ledger, DRIVEN) + 4 * row)


@kernel
def drives(code: int, cursor: int, k: int) -> bool:
    """Whether the driver of the current instance is the first of those that drive it in this iteration."""
    form = word(cursor, C_FORM)
    mine = word(code, form + F_SLOT)
    step = word(code, form + F_STEPS)
    rows = word(cursor, C_ROWS)
    for level in range(word(code, form + F_STEP_COUNT)):
        ledger = word(word(code, step + SOURCE), LEDGER) if word(code, step + BODY) else 0
        if ledger and word(code, step + SLOT) < mine and driven_in(ledger, word(rows, level)) == k:
            return False
        step += STEP_WORDS
    return True


@kernel
def consider(run: int, number: int) -> bool:
    """Count an instance. False: the budget is spent."""
    counts = word(run, R_COUNTS)
    set_word(counts, number, word(counts, number) + 1)
    set_word(run, R_CONSIDERED, word(run, R_CONSIDERED) + 1)
    return word(run, R_WORK) <= word(run, R_BUDGET)


@kernel
def change_count(run: int, relation: int, row: int, change: int) -> bool:
    """Change a tuple's count in the current iteration. False: no memory."""
    ledger = word(relation, LEDGER)
    if not touch(ledger, row):
        return False
    if word(run, R_KEEP):
        if add_to_trace(ledger, row, word(run, R_K), change) < 0:
            return False
    else:
        place = word(ledger, PENDING) + 4 * row
        store32(place, load32(place) + change)
    return list_candidate(ledger, row)


@kernel
def list_candidate(ledger: int, row: int) -> bool:
    """Have a touched tuple looked at when the iteration ends, once. False: no memory."""
    place = word(ledger, MARKS) + 2 * row
    marks = load16(place)
    if marks & LISTED:
        return True
    store16(place, marks | LISTED)
    return push(ledger, CANDIDATES, row)


@kernel
def wait_for(run: int, relation: int, row: int, iteration: int) -> bool:
    """A tuple has an instance in the same iteration of both runs. False: no memory.

    Where only first iterations are kept, nothing tells so if it has lost an earlier one: it was searched for
    when some of the instance's own tuples had gone, and these are back. So it is searched for again.
    """
    ledger = word(relation, LEDGER)
    first = new_first(ledger, row)
    if old_first(ledger, row) >= iteration or (first and first <= iteration):
        return True
    if iteration == word(run, R_K):
        return list_candidate(ledger, row)
    return new_event(run, iteration, CANDIDATE, relation, row, 0) != 0


@kernel
def plan_instance(code: int, cursor: int, run: int, iteration: int, drive: int, runs: int, row: int) -> bool:
    """Make the current instance an event of a later iteration. False: no memory."""
    form = word(cursor, C_FORM)
    own = word(code, form + F_OWN)
    place = new_event(run, iteration, INSTANCE, word(code, form + F_HEAD), row, 2 * own)
    if place == 0:
        return False
    event = word(run, R_POOL) + 8 * place
    set_word(event, E_DRIVE, drive)
    set_word(event, E_SLOT, word(code, form + F_SLOT))
    set_word(event, E_RUNS, runs)
    set_word(event, E_NUMBER, (word(code, form + F_NUMBER) << 8) | own)
    step = word(code, form + F_STEPS)
    for level in range(word(code, form + F_STEP_COUNT)):
        if word(code, step + BODY):
            slot = E_OWN + 2 * word(code, step + SLOT)
            set_word(event, slot, word(word(code, step + SOURCE), LEDGER))
            set_word(event, slot + 1, word(word(cursor, C_ROWS), level))
        step += STEP_WORDS
    return True


@kernel
def look_at(code: int, cursor: int, run: int, drive: int) -> int:
    """Let the current instance count now or later; DONE or a failure."""
    form = word(cursor, C_FORM)
    possible = word(word(cursor, C_POSSIBLE), word(code, form + F_STEP_COUNT))
    k = word(run, R_K)
    old, new = NO_ITERATION, NO_ITERATION
    if possible & OLD_RUN:
        old = iteration_of(code, cursor, OLD_RUN)
    if possible & NEW_RUN:
        new = iteration_of(code, cursor, NEW_RUN)
    if drive and not drives(code, cursor, drive):
        return DONE
    relation = word(code, form + F_HEAD)
    if old == new:
        if word(run, R_KEEP) or new == NO_ITERATION or new < k:
            return DONE
        row = find_row(relation, make_head(code, cursor))
        return DONE if row < 0 or wait_for(run, relation, row, new) else NO_MEMORY
    row = -1
    within = True
    if (old != NO_ITERATION and old >= k) or (new != NO_ITERATION and new >= k):
        row = find_or_append(relation, make_head(code, cursor))
        if row < 0:
            return failure(row)
    if old == k or new == k:
        within = consider(run, word(code, form + F_NUMBER))
        if not change_count(run, relation, row, -1 if old == k else 1):
            return NO_MEMORY
    if old != NO_ITERATION and old > k and not plan_instance(code, cursor, run, old, drive, possible, row):
        return NO_MEMORY
    if new != NO_ITERATION and new > k and not plan_instance(code, cursor, run, new, drive, possible, row):
        return NO_MEMORY
    return DONE if within else OVER_BUDGET


@kernel
def look_at_all(code: int, cursor: int, run: int, drive: int) -> int:
    """Go through the instances that are left of a driver."""
    while True:
        state = advance(code, cursor)
        if state == NONE:
            return DONE
        if state == MISS:
            return MISSING
        result = look_at(code, cursor, run, drive)
        if result != DONE:
            return result
