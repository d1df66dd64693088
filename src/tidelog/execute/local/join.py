"""The rule interpreter: join, project and insert in one pass.

A rule form is a short list of steps (see `layout`). The first, the *driver*, goes
through rows of a relation; each further step probes an index with what is bound so
far, or goes through another relation. When the last step has a match, the head's row
is made from the registers and inserted if new. Nothing is stored in between.

    for each driver row:                      tc.delta(x, y)
        for each match of the next step:          edge(y, z)
            insert the head                           tc(x, z)

The innermost loop is where the time goes. In the common case, where one cell of the
last match goes to the head and nothing is left to check, a tight loop does only that.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.index import before, bucket, find_many, find_one, find_two
from tidelog.execute.local.insert import (
    COMPLETE,
    MUST_GROW,
    insert,
    tight_one_word,
    tight_two_words,
)
from tidelog.execute.local.keep.layout import MARKS
from tidelog.execute.local.layout import (
    ARITY,
    CHECK_CELLS,
    CHECK_COUNT,
    CHECK_KIND,
    CHECK_LEFT,
    CHECK_RIGHT,
    CHECK_TARGET,
    CHECK_WORDS,
    CHECKS,
    CONSTANT_COUNT,
    CONSTANTS,
    COUNT_ONLY,
    DELTA,
    DELTA_HI,
    DELTA_LO,
    DIFFERENT,
    ENTRY_WORDS,
    EXISTS,
    FROM_ROW,
    HEAD,
    HEAD_REGISTERS,
    INDEX,
    KEY_COUNT,
    KIND,
    LEDGER,
    LESS,
    LOAD_COUNT,
    LOADS,
    MASK,
    MEMBER,
    MOVES,
    NOT_EXISTS,
    NOT_MEMBER,
    OLD,
    ONE_WORD,
    OUT_WORDS,
    OUTPUTS,
    ROWS,
    RUN_ALONE,
    RUN_WIDE,
    SAME,
    SCAN,
    SLOT_WORDS,
    SOURCE,
    STEP_COUNT,
    STEP_KEYS,
    STEP_WORDS,
    STEPS,
    TEST_COUNT,
    TESTS,
    TIGHT,
    TWO_WORDS,
    UNIT,
    USED,
    VERSION,
    WORDS,
)
from tidelog.execute.local.memory import (
    kernel,
    load16,
    load32,
    load64,
    load_shared,
    set_word,
    store32,
    store64,
    word,
)
from tidelog.execute.local.repeats import repeated
from tidelog.execute.local.tupleset import (
    LOW,
    MAX_LOAD_TENTHS,
    contains_many,
)
from tidelog.plan.parts import Mark

HELD, DELETED, ADDED = int(Mark.HELD), int(Mark.DELETED), int(Mark.ADDED)

# Scratch memory: a key, then the row being made.
KEY_BYTES = 1024
SCRATCH_BYTES = 2 * KEY_BYTES
MAX_ARITY = KEY_BYTES // 4


@kernel
def integer(cell: int, wide: int) -> int:
    """The 64-bit integer that a cell stands for (see `codes`)."""
    if cell >> 31:
        return load64(wide + 8 * (cell & 0x7FFFFFFF))
    return (cell << 33) >> 33


@kernel
def gather(code: int, registers: int, count: int, regs: int, target: int) -> None:
    """Put the cells of a list of registers one behind the other at an address."""
    store64(target + 8 * ((count - 1) >> 1), 0)  # an odd last cell leaves the upper half zero
    for k in range(count):
        store32(target + 4 * k, word(regs, word(code, registers + k)))


@kernel
def find_slot(code: int, index: int, registers: int, regs: int, scratch: int) -> int:
    count = word(index, KEY_COUNT)
    if count == 1:
        return find_one(index, word(regs, word(code, registers)))
    if count == 2:
        low = word(regs, word(code, registers))
        return find_two(index, low | (word(regs, word(code, registers + 1)) << 32))
    gather(code, registers, count, regs, scratch)
    return find_many(index, scratch, word(index, SLOT_WORDS) - 2)


@kernel
def holds(code: int, check: int, regs: int, scratch: int, wide: int) -> bool:
    """Whether a check passes for what the registers hold."""
    kind: int = word(code, check + CHECK_KIND)
    if kind <= NOT_MEMBER:
        relation: int = word(code, check + CHECK_TARGET)
        gather(code, word(code, check + CHECK_CELLS), max(1, word(relation, ARITY)), regs, scratch)
        return kind == MEMBER if contains_many(relation, scratch) else kind == NOT_MEMBER
    if kind <= NOT_EXISTS:
        index: int = word(code, check + CHECK_TARGET)
        slot = find_slot(code, index, word(code, check + CHECK_CELLS), regs, scratch)
        return kind == EXISTS if load64(slot) else kind == NOT_EXISTS
    left: int = word(regs, word(code, check + CHECK_LEFT))
    right: int = word(regs, word(code, check + CHECK_RIGHT))
    if kind == SAME:
        return left == right
    if kind == DIFFERENT:
        return left != right
    if kind == LESS:
        return integer(left, wide) < integer(right, wide)
    return integer(left, wide) <= integer(right, wide)


@kernel
def holds_now(relation: int, place: int) -> bool:
    """Whether the row at an address is one of the answers as they are now (see `keep.ledger`)."""
    row = (place - word(relation, ROWS)) // (8 * word(relation, WORDS))
    marks = load16(load64(word(relation, LEDGER) + 8 * MARKS) + 2 * row)
    return (marks & (HELD | DELETED)) == HELD or (marks & ADDED) != 0


@kernel
def take(code: int, step: int, place: int, regs: int, scratch: int, wide: int) -> bool:
    """Load a match into the registers; False if a test or a check fails."""
    base = place
    if word(code, step + KIND) == SCAN:
        relation = word(code, step + SOURCE)
        if word(relation, LEDGER) and not holds_now(relation, place):
            return False
    if word(code, step + FROM_ROW):
        relation = word(code, step + SOURCE)
        base = word(relation, ROWS) + 8 * word(relation, WORDS) * load32(place)
    at = word(code, step + LOADS)
    for _ in range(word(code, step + LOAD_COUNT)):
        set_word(regs, word(code, at + 1), load32(base + word(code, at)))
        at += 2
    at = word(code, step + TESTS)
    for _ in range(word(code, step + TEST_COUNT)):
        if load32(base + word(code, at)) != word(regs, word(code, at + 1)):
            return False
        at += 2
    at = word(code, step + CHECKS)
    for _ in range(word(code, step + CHECK_COUNT)):
        if not holds(code, at, regs, scratch, wide):
            return False
        at += CHECK_WORDS
    return True


@kernel
def first_row(relation: int, version: int) -> int:
    return word(relation, DELTA_LO) if version == DELTA else 0


@kernel
def end_row(relation: int, version: int) -> int:
    return load64(relation + 8 * (DELTA_LO if version == OLD else DELTA_HI))


@kernel
def open_step(code: int, step: int, regs: int, scratch: int, stack: int, level: int) -> None:
    """Find the matches of a step: stack gets their address, number and distance."""
    version = word(code, step + VERSION)
    relation = word(code, step + SOURCE)
    if word(code, step + KIND) == SCAN:
        stride = 8 * word(relation, WORDS)
        low = first_row(relation, version)
        set_word(stack, 3 * level, word(relation, ROWS) + stride * low)
        set_word(stack, 3 * level + 1, end_row(relation, version) - low)
        set_word(stack, 3 * level + 2, stride)
        return
    index = word(code, step + INDEX)
    slot = find_slot(code, index, word(code, step + STEP_KEYS), regs, scratch)
    count = load64(slot) & LOW
    stride = 8 * word(index, ENTRY_WORDS)
    entries = slot
    if count:
        entries = bucket(index, slot, count)
        if version == OLD:
            count = before(entries, count, stride, word(relation, DELTA_LO))
        elif version == DELTA:
            skipped = before(entries, count, stride, word(relation, DELTA_LO))
            entries += stride * skipped
            count -= skipped
    set_word(stack, 3 * level, entries)
    set_word(stack, 3 * level + 1, count)
    set_word(stack, 3 * level + 2, stride)


@kernel
def run_form(
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
) -> tuple[int, int]:
    """Run a rule form over its driver's rows [low, high).

    Gives back how it ended and the row to go on with. `word(counts, number)` grows by the
    rule instances considered, exactly once for each, also when a row has to be redone.
    """
    wide = word(run, RUN_WIDE)
    alone = word(run, RUN_ALONE) != 0
    at = word(code, form + CONSTANTS)
    for _ in range(word(code, form + CONSTANT_COUNT)):
        set_word(regs, word(code, at), word(code, at + 1))
        at += 2
    head = word(code, form + HEAD)
    words = word(head, WORDS)
    cells = max(1, word(head, ARITY))
    head_registers = word(code, form + HEAD_REGISTERS)
    out = word(head, OUTPUTS) + 8 * OUT_WORDS * worker
    steps = word(code, form + STEPS)
    last = word(code, form + STEP_COUNT) - 1
    tight = word(code, steps + STEP_WORDS * last + TIGHT)
    driver = word(code, steps + SOURCE)
    place = 0
    stride = 0
    if word(code, steps + KIND) != UNIT:
        stride = 8 * word(driver, WORDS)
        place = word(driver, ROWS) + stride * low
    row = scratch + KEY_BYTES
    considered = word(counts, number)
    for current in range(low, high):
        if not alone and load_shared(head + 8 * USED) * 10 > MAX_LOAD_TENTHS * (word(head, MASK) + 1):
            set_word(counts, number, considered)
            return MUST_GROW, current
        at_start = considered
        matched = take(code, steps, place, regs, scratch, wide)
        place += stride
        if not matched:
            continue
        state = COMPLETE
        if last == 0:
            considered += 1
            gather(code, head_registers, cells, regs, row)
            state = insert(head, out, row, words, alone)
        level = 1
        if last > 0:
            open_step(code, steps + STEP_WORDS, regs, scratch, stack, 1)
        else:
            level = 0
        while level > 0:
            step = steps + STEP_WORDS * level
            match = word(stack, 3 * level)
            count = word(stack, 3 * level + 1)
            distance = word(stack, 3 * level + 2)
            if level < last:
                if count == 0:
                    level -= 1
                    continue
                set_word(stack, 3 * level, match + distance)
                set_word(stack, 3 * level + 1, count - 1)
                if take(code, step, match, regs, scratch, wide):
                    level += 1
                    open_step(code, step + STEP_WORDS, regs, scratch, stack, level)
                continue
            level -= 1
            if count == 0:
                continue
            if tight == ONE_WORD:
                considered += count
                gather(code, head_registers, cells, regs, row)
                move = word(code, step + MOVES)
                state = tight_one_word(
                    head, out, row, match + word(code, move), count, distance, word(code, move + 2), alone
                )
            elif tight == TWO_WORDS:
                considered += count
                gather(code, head_registers, cells, regs, row)
                state = tight_two_words(code, step, head, out, row, match, count, distance, alone)
            elif tight == COUNT_ONLY:
                considered += count
                gather(code, head_registers, cells, regs, row)
                state = insert(head, out, row, words, alone)
                if count > 1:
                    repeated(head, row)
            else:
                for _ in range(count):
                    if take(code, step, match, regs, scratch, wide):
                        considered += 1
                        gather(code, head_registers, cells, regs, row)
                        state = insert(head, out, row, words, alone)
                        if state != COMPLETE:
                            break
                    match += distance
            if state != COMPLETE:
                break
        if state != COMPLETE:
            set_word(counts, number, at_start)
            return state, current
    set_word(counts, number, considered)
    return COMPLETE, high
