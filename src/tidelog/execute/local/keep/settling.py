"""The end of an iteration: is it the first of the new run that derives a tuple? Step 5 of `steps`."""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.cursor import advance, start
from tidelog.execute.local.keep.events import (
    CANDIDATE,
    TUPLE,
    new_event,
)
from tidelog.execute.local.keep.instances import NO_ITERATION, consider, iteration_of
from tidelog.execute.local.keep.layout import (
    CANDIDATES,
    DONE,
    F_NUMBER,
    LIST_COUNT,
    LISTED,
    MARKS,
    MISS,
    MISSING_IN_GUARD,
    NO_MEMORY,
    NONE,
    NUMBERS,
    OVER_BUDGET,
    PENDING,
    QUEUE,
    R_FORM,
    R_FOUND,
    R_GUARD_CURSOR,
    R_K,
    R_KEEP,
    R_LATER,
    R_OPEN,
    R_POSITION,
    R_RELATION,
)
from tidelog.execute.local.keep.ledger import push, touch
from tidelog.execute.local.keep.timing import LOW, NEW_RUN, new_first, old_first
from tidelog.execute.local.keep.traces import count_in, next_iteration
from tidelog.execute.local.layout import LEDGER
from tidelog.execute.local.memory import (
    Words,
    kernel,
    load16,
    load32,
    load64,
    set_word,
    store16,
    store32,
    store64,
    word,
)


@kernel
def set_numbers(ledger: int, row: int, first: int, count: int) -> None:
    store64(word(ledger, NUMBERS) + 8 * row, (first << 32) | count)


@kernel
def part_or_meet(run: int, relation: int, row: int) -> bool:
    """A tuple's first iteration has changed: it drives in the next one. False: no memory."""
    return push(word(relation, LEDGER), QUEUE, row)


@kernel
def settle_trace(run: int, relation: int, row: int) -> bool:
    """Step 5, where traces are kept. False: no memory."""
    ledger = word(relation, LEDGER)
    k = word(run, R_K)
    first = new_first(ledger, row)
    if first and first < k:
        return True
    if count_in(ledger, row, k):
        if first == k:
            return True
        if not touch(ledger, row):
            return False
        set_numbers(ledger, row, k, 0)
        if first > k and new_event(run, first + 1, TUPLE, relation, row, 0) == 0:
            return False
        return part_or_meet(run, relation, row)
    if first > k:
        return True
    later = next_iteration(ledger, row, k)
    if later and new_event(run, later, CANDIDATE, relation, row, 0) == 0:
        return False
    if first != k:
        return True
    if not touch(ledger, row):
        return False
    set_numbers(ledger, row, 0, 0)
    return part_or_meet(run, relation, row)


@kernel
def rediscover(code: int, forms: Words, owners: Words, number: int, run: int, row: int) -> int:
    """Count the new run's instances that derive a tuple in k (R_FOUND); the next iteration (R_LATER)."""
    cursor = word(run, R_GUARD_CURSOR)
    k = word(run, R_K)
    while word(run, R_FORM) < len(forms):
        form = word(run, R_FORM)
        if owners[form] == number:
            if not word(run, R_OPEN):
                start(code, forms[form], cursor, row)
                set_word(run, R_OPEN, 1)
            while True:
                state = advance(code, cursor)
                if state == MISS:
                    return MISSING_IN_GUARD
                if state == NONE:
                    break
                iteration = iteration_of(code, cursor, NEW_RUN)
                if iteration == k:
                    set_word(run, R_FOUND, word(run, R_FOUND) + 1)
                    if not consider(run, word(code, forms[form] + F_NUMBER)):
                        return OVER_BUDGET
                elif iteration > k:
                    set_word(run, R_LATER, min(word(run, R_LATER), iteration))
            set_word(run, R_OPEN, 0)
        set_word(run, R_FORM, form + 1)
    set_word(run, R_FORM, 0)
    return DONE


@kernel
def settle_first(
    code: int, forms: Words, owners: Words, number: int, run: int, relation: int, row: int
) -> int:
    """Step 5, where only the first iteration and the count in it are kept."""
    ledger = word(relation, LEDGER)
    k = word(run, R_K)
    first = new_first(ledger, row)
    place = word(ledger, PENDING) + 4 * row
    change = load32(place)
    change = change - (1 << 32) if change >> 31 else change
    if first and first < k:
        store32(place, 0)
        return DONE
    old = old_first(ledger, row)
    if first == k:
        count = (load64(word(ledger, NUMBERS) + 8 * row) & LOW) + change
        if count > 0:
            store32(place, 0)
            if change:
                set_numbers(ledger, row, k, count)
            return DONE
    elif old == 0 or old > k:
        store32(place, 0)
        if change <= 0:
            return DONE
        set_numbers(ledger, row, k, change)
        if first > k and new_event(run, first + 1, TUPLE, relation, row, 0) == 0:
            return NO_MEMORY
        return DONE if part_or_meet(run, relation, row) else NO_MEMORY
    # It was there before, and has lost its first iteration, now or earlier: look for the next.
    if not word(run, R_OPEN) and word(run, R_FORM) == 0:
        set_word(run, R_FOUND, 0)
        set_word(run, R_LATER, NO_ITERATION)
        if not touch(ledger, row):
            return NO_MEMORY
        if first == k:  # it has no derivation in k; what is found now is later
            set_numbers(ledger, row, 0, 0)
    state = rediscover(code, forms, owners, number, run, row)
    if state != DONE:
        return state
    store32(place, 0)
    if first == k or (old == k and first == 0):
        if not part_or_meet(run, relation, row):
            return NO_MEMORY
    elif word(run, R_FOUND):
        set_numbers(ledger, row, k, word(run, R_FOUND))
        return DONE if part_or_meet(run, relation, row) else NO_MEMORY
    later = word(run, R_LATER)
    if later != NO_ITERATION and new_event(run, later, CANDIDATE, relation, row, 0) == 0:
        return NO_MEMORY
    return DONE


@kernel
def settle(relations: Words, code: int, forms: Words, owners: Words, run: int) -> int:
    """Step 5."""
    while word(run, R_RELATION) < len(relations):
        number = word(run, R_RELATION)
        relation = relations[number]
        ledger = word(relation, LEDGER)
        while word(run, R_POSITION) < word(ledger, CANDIDATES + LIST_COUNT):
            row = word(word(ledger, CANDIDATES), word(run, R_POSITION))
            if word(run, R_KEEP):
                if not settle_trace(run, relation, row):
                    return NO_MEMORY
            else:
                state = settle_first(code, forms, owners, number, run, relation, row)
                if state != DONE:
                    return state
            place = word(ledger, MARKS) + 2 * row
            store16(place, load16(place) & ~LISTED)
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(ledger, CANDIDATES + LIST_COUNT, 0)
        set_word(run, R_POSITION, 0)
        set_word(run, R_RELATION, number + 1)
    set_word(run, R_RELATION, 0)
    return DONE
