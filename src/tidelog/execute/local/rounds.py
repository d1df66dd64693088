"""Fixpoints: rounds of rule forms, a lone worker's in one kernel call, or shared by several.

In a round every form runs over its driver's rows. What is new goes to the set at once
(so that it is derived once) and to an output buffer; rows and indexes see it only
when the round is over, as the next round's DELTA.
"""

from __future__ import annotations

from tidelog.execute.local.filling import extend_index
from tidelog.execute.local.insert import COMPLETE, NO_MEMORY, PAUSED
from tidelog.execute.local.join import end_row, first_row, run_form
from tidelog.execute.local.layout import (
    BLOCK_BITS,
    CAPACITY,
    COUNT,
    DELTA_HI,
    DELTA_LO,
    INDEX_COUNT,
    INDEXES,
    KIND,
    OUT_COUNT,
    OUT_ROWS,
    OUT_WORDS,
    OUTPUTS,
    ROUND_CAPACITY,
    ROUND_COUNT,
    ROUND_ENDS,
    ROWS,
    RUN_CONSIDERED,
    RUN_CURSOR,
    RUN_END,
    RUN_FIRST,
    RUN_FORM,
    RUN_HEAVY,
    RUN_NEW,
    RUN_ROUND,
    RUN_ROW,
    RUN_TASK,
    SOURCE,
    STEPS,
    UNIT,
    VERSION,
    WORDS,
)
from tidelog.execute.local.memory import (
    Words,
    copy,
    fetch_add,
    kernel,
    load64,
    reallocate,
    release,
    set_word,
    word,
)
from tidelog.execute.local.repeats import fit_filter
from tidelog.execute.local.tupleset import FIRST_SLOTS, MAX_LOAD_TENTHS, begin_table

# How `run_rounds` ends.
FINISHED, INTERRUPTED, LARGE, GROWN, OUT_OF_MEMORY, TOO_MANY_ROWS = 0, 1, 2, 3, 4, 5

# What `absorb` gives when it cannot.
NO_ROOM, NO_NUMBERS = -1, -2

MAX_ROWS = (1 << 32) - 1
# Driver rows between two looks at the budget: few where each derives much.
FEW_ROWS, MANY_ROWS = 1, 4096
ENOUGH = 1 << 16  # rule instances between two looks


@kernel
def driver_range(code: int, form: int) -> tuple[int, int]:
    """The rows that a form's driver goes through."""
    step = word(code, form + STEPS)
    if word(code, step + KIND) == UNIT:
        return 0, 1
    relation = word(code, step + SOURCE)
    version = word(code, step + VERSION)
    return first_row(relation, version), end_row(relation, version)


@kernel
def absorb(relation: int, workers: int) -> int:
    """Append the workers' new rows to a relation: they become its DELTA.

    The number of new rows; NO_ROOM without memory, NO_NUMBERS past the largest number of a row.
    """
    out = word(relation, OUTPUTS)
    new = 0
    for w in range(workers):
        new += load64(out + 8 * (OUT_WORDS * w + OUT_COUNT))
    count = word(relation, COUNT)
    words = word(relation, WORDS)
    if count + new > MAX_ROWS:
        return NO_NUMBERS
    if count + new > word(relation, CAPACITY):
        capacity = count + new + max(64, (count + new) // 2)
        rows = reallocate(word(relation, ROWS), 8 * words * capacity)
        if rows == 0:
            return NO_ROOM
        set_word(relation, ROWS, rows)
        set_word(relation, CAPACITY, capacity)
    target = word(relation, ROWS) + 8 * words * count
    for w in range(workers):
        place = out + 8 * OUT_WORDS * w
        size = 8 * words * word(place, OUT_COUNT)
        if size:
            copy(target, word(place, OUT_ROWS), size)
            set_word(place, OUT_COUNT, 0)
        target += size
    fit_filter(relation, count + new)
    set_word(relation, COUNT, count + new)
    set_word(relation, DELTA_LO, word(relation, DELTA_HI))
    set_word(relation, DELTA_HI, count + new)
    return new


@kernel
def begin_anew(relation: int, rows: int, slots: int) -> bool:
    """Let a relation that has no rows and no table have room for so many. False: no memory."""
    size = FIRST_SLOTS
    while size * MAX_LOAD_TENTHS < 10 * slots:
        size *= 2
    block = reallocate(0, 8 * word(relation, WORDS) * max(1, rows))
    if block == 0:
        return False
    if not begin_table(relation, size, word(relation, BLOCK_BITS)):
        release(block)
        return False
    set_word(relation, ROWS, block)
    set_word(relation, CAPACITY, max(1, rows))
    return True


@kernel
def extend_indexes(relation: int) -> bool:
    """Bring all indexes of a relation up to date. False: no memory."""
    indexes = word(relation, INDEXES)
    for i in range(word(relation, INDEX_COUNT)):
        if not extend_index(word(indexes, i), word(relation, COUNT)):
            return False
    return True


@kernel
def end_round(relation: int) -> bool:
    """Remember how many rows there are at the end of a round. False: no memory."""
    count = word(relation, ROUND_COUNT)
    if count == word(relation, ROUND_CAPACITY):
        capacity = max(16, 2 * count)
        ends = reallocate(word(relation, ROUND_ENDS), 8 * capacity)
        if ends == 0:
            return False
        set_word(relation, ROUND_ENDS, ends)
        set_word(relation, ROUND_CAPACITY, capacity)
    set_word(word(relation, ROUND_ENDS), count, word(relation, COUNT))
    set_word(relation, ROUND_COUNT, count + 1)
    return True


@kernel
def absorb_all(relations: Words, workers: int, run: int) -> int:
    """End a round: the number of new rows, or a negative number (see `absorb`)."""
    total = 0
    for i in range(len(relations)):
        new = absorb(relations[i], workers)
        if new < 0 or not end_round(relations[i]):
            return min(new, NO_ROOM)
        total += new
    set_word(run, RUN_ROUND, word(run, RUN_ROUND) + 1)
    set_word(run, RUN_NEW, word(run, RUN_NEW) + total)
    set_word(run, RUN_FORM, 0)
    set_word(run, RUN_ROW, -1)
    return total


@kernel
def run_part(
    code: int,
    form: int,
    regs: int,
    stack: int,
    scratch: int,
    low: int,
    high: int,
    worker: int,
    run: int,
    counts: int,
    number: int,
    budget: int,
) -> tuple[int, int]:
    """Run a form over rows [low, high), but not much further than `budget` rule instances or rows."""
    rows = 64
    while low < high and budget > 0:
        before = word(counts, number)
        upto = min(high, low + rows)
        state, reached = run_form(code, form, regs, stack, scratch, low, upto, worker, run, counts, number)
        if state != COMPLETE:
            return state, reached
        done = word(counts, number) - before
        budget -= done + upto - low
        rows = max(FEW_ROWS, rows // 4) if done > ENOUGH else min(MANY_ROWS, rows * 2)
        low = upto
    return COMPLETE if low >= high else PAUSED, low


@kernel
def considered(counts: int, forms: int) -> int:
    """The rule instances that a worker has considered, of all forms together."""
    total = 0
    for form in range(forms):
        total += word(counts, form)
    return total


@kernel
def run_rounds(
    code: int,
    forms: Words,
    relations: Words,
    limits: Words,
    regs: int,
    stack: int,
    scratch: int,
    run: int,
    counts: int,
    budget: int,
    large: int,
) -> int:
    """Run rounds with one worker until one derives nothing.

    Stops early, to be called again: after about `budget` rule instances (INTERRUPTED), when the
    next round is worth sharing (LARGE: this one considered `large` rule instances or more),
    or when a relation has outgrown its limit, so that other join orders may be better (GROWN).
    """
    # Not a literal 0, for which the kernels would be compiled once more.
    first = word(run, RUN_FIRST)
    while True:
        form = word(run, RUN_FORM)
        while form < len(forms):
            low, high = driver_range(code, forms[form])
            row = word(run, RUN_ROW)
            if row >= 0:
                low = row
            while low < high:
                before = word(counts, form)
                state, low = run_part(
                    code, forms[form], regs, stack, scratch, low, high, first, run, counts, form, budget
                )
                if state == NO_MEMORY:
                    return OUT_OF_MEMORY
                budget -= 1 + word(counts, form) - before
                if low < high:
                    set_word(run, RUN_FORM, form)
                    set_word(run, RUN_ROW, low)
                    return INTERRUPTED
            form += 1
            set_word(run, RUN_ROW, -1)
        new = absorb_all(relations, first + 1, run)
        if new < 0:
            return OUT_OF_MEMORY if new == NO_ROOM else TOO_MANY_ROWS
        if new == 0:
            return FINISHED
        outgrown = False
        for i in range(len(relations)):
            if not extend_indexes(relations[i]):
                return OUT_OF_MEMORY
            outgrown = outgrown or load64(relations[i] + 8 * COUNT) > limits[i]
        total = considered(counts, len(forms))
        heavy = total - word(run, RUN_CONSIDERED) >= large
        set_word(run, RUN_CONSIDERED, total)
        set_word(run, RUN_HEAVY, 1 if heavy else 0)
        if outgrown:
            return GROWN
        if heavy:
            return LARGE
        if budget <= 0:
            return INTERRUPTED


@kernel
def share_form(
    code: int,
    form: int,
    regs: int,
    stack: int,
    scratch: int,
    low: int,
    high: int,
    worker: int,
    run: int,
    counts: int,
    number: int,
    chunk: int,
    budget: int,
) -> tuple[int, int, int]:
    """One worker's part of a form: works off [low, high), then takes chunks from the common cursor.

    Gives back how it ended and what is left of its chunk: MUST_GROW when the head's table
    is full, PAUSED when it has considered about `budget` rule instances.
    """
    while True:
        if low < high:
            before = word(counts, number)
            state, low = run_part(
                code, form, regs, stack, scratch, low, high, worker, run, counts, number, budget
            )
            if state != COMPLETE:
                return state, low, high
            budget -= chunk + word(counts, number) - before
            if budget <= 0:
                return PAUSED, low, high
        end = word(run, RUN_END)
        low = fetch_add(run + 8 * RUN_CURSOR, chunk)
        if low >= end:
            return COMPLETE, 0, 0
        high = min(end, low + chunk)


@kernel
def share_indexes(relations: Words, run: int) -> bool:
    """One worker's part of bringing the relations' indexes up to date."""
    while True:
        task = fetch_add(run + 8 * RUN_TASK, 1)
        for i in range(len(relations)):
            count = load64(relations[i] + 8 * INDEX_COUNT)
            if task < count:
                index = load64(load64(relations[i] + 8 * INDEXES) + 8 * task)
                if not extend_index(index, load64(relations[i] + 8 * COUNT)):
                    return False
                task = -1
                break
            task -= count
        if task >= 0:
            return True
