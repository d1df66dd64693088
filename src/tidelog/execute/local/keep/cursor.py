"""A cursor over the instances of a reading: each call of `advance` finds the next one.

The steps of a reading are taken in order, as in `local.join`: a step goes through its matches,
and for each of them the next step begins. All that a cursor needs to go on is in memory, so it
can stop anywhere: between instances, while tuples are marked; or in the middle, when the
value of an expression is not known yet (MISS): Python computes it, puts it into the
expression's table, and the cursor looks again.

What a step's tuple must be is said by a part (a table over marks); tuples of the task's own
relations can also be asked to have a `first` below a limit. In a fixpoint in step (C_MODE)
it is said by the runs that have the tuple instead; see `timing`.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.index import bucket
from tidelog.execute.local.join import find_slot, gather, holds
from tidelog.execute.local.keep.layout import (
    ABSENT,
    ALL_MARKS,
    BODY,
    C_FORM,
    C_LEVEL,
    C_LIMIT,
    C_MODE,
    C_POSSIBLE,
    C_PRUNED,
    C_REGISTERS,
    C_ROWS,
    C_SCRATCH,
    C_STACK,
    C_WIDE,
    C_WORK,
    CALL,
    CHECK_COUNT,
    CHECKS,
    F_CONSTANT_COUNT,
    F_CONSTANTS,
    F_HEAD,
    F_HEAD_REGISTERS,
    F_OTHER,
    F_REGRET,
    F_RESERVE,
    F_RUNS,
    F_STEP_COUNT,
    F_STEPS,
    FOUND,
    GIVEN,
    INDEX,
    KEY_CELLS,
    KEYS,
    KIND,
    LOAD_COUNT,
    LOADS,
    LOOKUP,
    MARKS,
    MISS,
    NONE,
    NUMBERS,
    PART,
    PROBE,
    S_BUCKET,
    S_END,
    S_LEFT,
    S_NEXT,
    S_STRIDE,
    SCAN,
    SOURCE,
    STACK_WORDS,
    STEP_WORDS,
    TAKEN,
    TAKEN_FROM,
    TEST_COUNT,
    TESTS,
)
from tidelog.execute.local.keep.ledger import marks_of
from tidelog.execute.local.keep.marks import HELD
from tidelog.execute.local.keep.rowmap import find_row
from tidelog.execute.local.keep.timing import (
    NEW_RUN,
    OLD_RUN,
    matches_in_step,
    narrow,
    passes_in_step,
)
from tidelog.execute.local.layout import ARITY, CHECK_WORDS, COUNT, ENTRY_WORDS, LEDGER, ROWS, WORDS
from tidelog.execute.local.memory import (
    inlined,
    kernel,
    load8,
    load16,
    load32,
    load64,
    set_word,
    store64,
    word,
)
from tidelog.execute.local.tupleset import LOW

FEW = 4  # matches: it is not worth looking for an order with fewer
UNKNOWN = (1 << 32) - 1  # the row of a step for which there is none


@kernel
def first_of(ledger: int, row: int) -> int:
    return (load64(word(ledger, NUMBERS) + 8 * row) >> 32) & LOW


@kernel
def suits(code: int, step: int, cursor: int, level: int, row: int) -> bool:
    """Whether a row is in the step's part, and its first below the limit."""
    ledger = word(word(code, step + SOURCE), LEDGER)
    marks = load16(word(ledger, MARKS) + 2 * row) & ALL_MARKS
    if load8(word(code, step + PART) + marks) == 0:
        return False
    if word(cursor, C_MODE):
        return matches_in_step(code, step, cursor, level, ledger, row)
    limit = word(cursor, C_LIMIT)
    if limit and word(code, step + BODY) and first_of(ledger, row) + 1 >= limit:
        set_word(cursor, C_PRUNED, 1)
        return False
    return True


@kernel
def take(code: int, step: int, cursor: int, level: int, row: int) -> bool:
    """Load a row into the registers; False if it is not one for this step."""
    if not suits(code, step, cursor, level, row):
        return False
    relation = word(code, step + SOURCE)
    base = word(relation, ROWS) + 8 * word(relation, WORDS) * row
    registers = word(cursor, C_REGISTERS)
    at = word(code, step + LOADS)
    for _ in range(word(code, step + LOAD_COUNT)):
        set_word(registers, word(code, at + 1), load32(base + word(code, at)))
        at += 2
    at = word(code, step + TESTS)
    for _ in range(word(code, step + TEST_COUNT)):
        if load32(base + word(code, at)) != word(registers, word(code, at + 1)):
            return False
        at += 2
    set_word(word(cursor, C_ROWS), level, row)
    return passes(code, step, cursor)


@kernel
def passes(code: int, step: int, cursor: int) -> bool:
    """Whether the comparisons of a step hold."""
    at = word(code, step + CHECKS)
    for _ in range(word(code, step + CHECK_COUNT)):
        if not holds(code, at, word(cursor, C_REGISTERS), word(cursor, C_SCRATCH), word(cursor, C_WIDE)):
            return False
        at += CHECK_WORDS
    return True


@kernel
def open_step(code: int, step: int, cursor: int, level: int) -> None:
    """Find the matches of a step: where they begin, how many there are, how far apart.

    What was a match the last time is a good guess where one is enough: of all that a lost tuple
    derived, most have another derivation by way of the same tuple.
    """
    kind = word(code, step + KIND)
    at = word(cursor, C_STACK) + 8 * STACK_WORDS * level
    if kind == SCAN:
        set_word(at, S_NEXT, 0)
        set_word(at, S_LEFT, load64(word(code, step + SOURCE) + 8 * COUNT))
    elif kind == PROBE:
        index = word(code, step + INDEX)
        slot = find_slot(
            code, index, word(code, step + KEYS), word(cursor, C_REGISTERS), word(cursor, C_SCRATCH)
        )
        count = load64(slot) & LOW
        first = bucket(index, slot, count) if count else 0
        stride = 8 * word(index, ENTRY_WORDS)
        end = first + stride * count
        taken = word(code, step + TAKEN)
        again = first == word(code, step + TAKEN_FROM) and taken < end
        set_word(at, S_NEXT, taken if again else first)
        set_word(at, S_LEFT, count)
        set_word(at, S_STRIDE, stride)
        set_word(at, S_BUCKET, first)
        set_word(at, S_END, end)
    else:
        set_word(at, S_LEFT, 1)


@inlined
def work(cursor: int, tuples: int) -> None:
    """Count tuples looked at."""
    counter = word(cursor, C_WORK)
    store64(counter, load64(counter) + tuples)


@kernel
def next_match(code: int, step: int, cursor: int, level: int) -> int:
    """Go to the next match of a step: FOUND, NONE, or MISS."""
    kind = word(code, step + KIND)
    at = word(cursor, C_STACK) + 8 * STACK_WORDS * level
    left = word(at, S_LEFT)
    if kind == PROBE:
        place = word(at, S_NEXT)
        stride = word(at, S_STRIDE)
        end = word(at, S_END)
        before = left
        while left:
            here = place
            place += stride
            if place == end:
                place = word(at, S_BUCKET)
            left -= 1
            if take(code, step, cursor, level, load32(here)):
                set_word(code, step + TAKEN_FROM, word(at, S_BUCKET))
                set_word(code, step + TAKEN, here)
                set_word(at, S_NEXT, place)
                set_word(at, S_LEFT, left)
                work(cursor, before - left)
                return FOUND
        set_word(at, S_LEFT, 0)
        work(cursor, before)
        return NONE
    if kind == SCAN:
        row = word(at, S_NEXT)
        before = row
        while row < left:
            row += 1
            if take(code, step, cursor, level, row - 1):
                set_word(at, S_NEXT, row)
                work(cursor, row - before)
                return FOUND
        set_word(at, S_NEXT, row)
        work(cursor, row - before)
        return NONE
    if left == 0:
        return NONE
    work(cursor, 1)
    if kind == CALL:
        index = word(code, step + INDEX)
        registers = word(cursor, C_REGISTERS)
        slot = find_slot(code, index, word(code, step + KEYS), registers, word(cursor, C_SCRATCH))
        if load64(slot) & LOW == 0:
            return MISS
        set_word(at, S_LEFT, 0)
        relation = word(code, step + SOURCE)
        row = load32(bucket(index, slot, load64(slot) & LOW))
        base = word(relation, ROWS) + 8 * word(relation, WORDS) * row
        load = word(code, step + LOADS)
        set_word(registers, word(code, load + 1), load32(base + word(code, load)))
        if word(cursor, C_MODE):
            narrow(cursor, level, OLD_RUN | NEW_RUN)
        return FOUND if passes(code, step, cursor) else NONE
    set_word(at, S_LEFT, 0)
    if kind == GIVEN:
        return FOUND if take(code, step, cursor, level, word(word(cursor, C_ROWS), level)) else NONE
    if kind in (LOOKUP, ABSENT):
        relation = word(code, step + SOURCE)
        scratch = word(cursor, C_SCRATCH)
        gather(
            code, word(code, step + KEYS), word(code, step + KEY_CELLS), word(cursor, C_REGISTERS), scratch
        )
        row = find_row(relation, scratch)
        if kind == LOOKUP:
            return FOUND if row >= 0 and take(code, step, cursor, level, row) else NONE
        ledger = word(relation, LEDGER)
        set_word(word(cursor, C_ROWS), level, UNKNOWN if row < 0 else row)
        if row >= 0 and load8(word(code, step + PART) + marks_of(ledger, row)):
            return NONE
        if word(cursor, C_MODE) and not passes_in_step(cursor, level, ledger, row):
            return NONE
    elif word(cursor, C_MODE):
        narrow(cursor, level, OLD_RUN | NEW_RUN)
    return FOUND if passes(code, step, cursor) else NONE


@kernel
def start(code: int, form: int, cursor: int, row: int) -> None:
    """Put a cursor before the first instance of a reading, driven by a row if the reading has a driver.

    Of a reading in several orders the one is taken whose second step has the fewest matches here, or
    just a few. What an order in reserve would have saved is added up.
    """
    if word(code, form + F_OTHER) == 0 and word(code, form + F_RESERVE) == 0:
        begin(code, form, cursor, row)
        return
    best, fewest, last, order = 0, -1, 0, form
    while order:
        last = order
        begin(code, order, cursor, row)
        steps = word(code, order + F_STEPS)
        if next_match(code, steps, cursor, 0) != FOUND:
            set_word(cursor, C_LEVEL, -1)
            return
        open_step(code, steps + STEP_WORDS, cursor, 1)
        matches = word(word(cursor, C_STACK), STACK_WORDS + S_LEFT)
        if fewest < 0 or matches < fewest:
            best, fewest = order, matches
        order = word(code, order + F_OTHER) if fewest > FEW else 0
    expected = word(code, form + F_RESERVE)
    if 0 < expected < fewest:
        set_word(code, form + F_REGRET, word(code, form + F_REGRET) + fewest - expected)
    if best == last:
        set_word(cursor, C_LEVEL, 1)  # its second step is open already
    else:
        begin(code, best, cursor, row)


@kernel
def begin(code: int, form: int, cursor: int, row: int) -> None:
    """Put a cursor before the first instance of a reading in one order."""
    set_word(cursor, C_FORM, form)
    registers = word(cursor, C_REGISTERS)
    at = word(code, form + F_CONSTANTS)
    for _ in range(word(code, form + F_CONSTANT_COUNT)):
        set_word(registers, word(code, at), word(code, at + 1))
        at += 2
    set_word(word(cursor, C_ROWS), 0, row)
    set_word(word(cursor, C_POSSIBLE), 0, word(code, form + F_RUNS))
    open_step(code, word(code, form + F_STEPS), cursor, 0)
    set_word(cursor, C_LEVEL, 0)


@kernel
def advance(code: int, cursor: int) -> int:
    """Go to the next instance: FOUND, NONE at the end, or MISS."""
    form = word(cursor, C_FORM)
    steps = word(code, form + F_STEPS)
    last = word(code, form + F_STEP_COUNT) - 1
    level = word(cursor, C_LEVEL)
    while level >= 0:
        state = next_match(code, steps + STEP_WORDS * level, cursor, level)
        if state == MISS or (state == FOUND and level == last):
            set_word(cursor, C_LEVEL, level)
            return state
        if state == NONE:
            level -= 1
        else:
            level += 1
            open_step(code, steps + STEP_WORDS * level, cursor, level)
    set_word(cursor, C_LEVEL, -1)
    return NONE


@kernel
def make_head(code: int, cursor: int) -> int:
    """Put the head of the current instance into scratch memory; its address."""
    form = word(cursor, C_FORM)
    cells = max(1, load64(word(code, form + F_HEAD) + 8 * ARITY))
    scratch = word(cursor, C_SCRATCH)
    gather(code, word(code, form + F_HEAD_REGISTERS), cells, word(cursor, C_REGISTERS), scratch)
    return scratch


@kernel
def highest_first(code: int, cursor: int) -> int:
    """The highest `first` of the own tuples that the current instance matches; 0 if there are none."""
    form = word(cursor, C_FORM)
    step = word(code, form + F_STEPS)
    rows = word(cursor, C_ROWS)
    highest = 0
    for level in range(word(code, form + F_STEP_COUNT)):
        if word(code, step + BODY):
            highest = max(highest, first_of(word(word(code, step + SOURCE), LEDGER), word(rows, level)))
        step += STEP_WORDS
    return highest


@kernel
def was_there(code: int, cursor: int) -> bool:
    """Whether the current instance was one before the commit, as far as strata below are concerned."""
    form = word(cursor, C_FORM)
    step = word(code, form + F_STEPS)
    rows = word(cursor, C_ROWS)
    for level in range(word(code, form + F_STEP_COUNT)):
        kind = word(code, step + KIND)
        row = word(rows, level)
        if kind <= ABSENT and row != UNKNOWN and not word(code, step + BODY):
            held = marks_of(word(word(code, step + SOURCE), LEDGER), row) & HELD != 0
            if held == (kind == ABSENT):
                return False
        step += STEP_WORDS
    return True
