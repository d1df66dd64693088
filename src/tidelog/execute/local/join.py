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

from tidelog.execute.local.index import before, bucket, find_many, find_one
from tidelog.execute.local.layout import (
    ARITY,
    BLOCK_BITS,
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
    LAST_SHIFT,
    LESS,
    LOAD_COUNT,
    LOADS,
    MASK,
    MEMBER,
    MOVE_COUNT,
    MOVES,
    NOT_EXISTS,
    NOT_MEMBER,
    OLD,
    ONE_WORD,
    OUT_CAPACITY,
    OUT_COUNT,
    OUT_ROWS,
    OUT_WORDS,
    OUTPUTS,
    ROWS,
    RUN_ALONE,
    RUN_WIDE,
    SAME,
    SCAN,
    SLOT_WORDS,
    SLOTS,
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
    Words,
    inlined,
    kernel,
    load32,
    load64,
    load_shared,
    reallocate,
    store32,
    store64,
)
from tidelog.execute.local.tupleset import (
    ADDED,
    FULL,
    LOW,
    MAX_LOAD_TENTHS,
    PRESENT,
    add_many,
    add_one,
    add_two,
    contains_many,
    grow,
)

# What a pass over driver rows ended with.
COMPLETE, MUST_GROW, NO_MEMORY = 0, 1, 2

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
def gather(code: Words, registers: int, count: int, regs: Words, target: int) -> None:
    """Put the cells of a list of registers one behind the other at an address."""
    store64(target + 8 * ((count - 1) >> 1), 0)  # an odd last cell leaves the upper half zero
    for k in range(count):
        store32(target + 4 * k, regs[code[registers + k]])


@kernel
def find_slot(code: Words, index: int, registers: int, regs: Words, scratch: int) -> int:
    count = load64(index + 8 * KEY_COUNT)
    if count == 1:
        return find_one(index, regs[code[registers]])
    gather(code, registers, count, regs, scratch)
    return find_many(index, scratch, load64(index + 8 * SLOT_WORDS) - 2)


@kernel
def holds(code: Words, check: int, regs: Words, scratch: int, wide: int) -> bool:
    """Whether a check passes for what the registers hold."""
    kind: int = code[check + CHECK_KIND]
    if kind <= NOT_MEMBER:
        relation: int = code[check + CHECK_TARGET]
        gather(code, code[check + CHECK_CELLS], max(1, load64(relation + 8 * ARITY)), regs, scratch)
        return kind == MEMBER if contains_many(relation, scratch) else kind == NOT_MEMBER
    if kind <= NOT_EXISTS:
        index: int = code[check + CHECK_TARGET]
        slot = find_slot(code, index, code[check + CHECK_CELLS], regs, scratch)
        return kind == EXISTS if load64(slot) else kind == NOT_EXISTS
    left: int = regs[code[check + CHECK_LEFT]]
    right: int = regs[code[check + CHECK_RIGHT]]
    if kind == SAME:
        return left == right
    if kind == DIFFERENT:
        return left != right
    if kind == LESS:
        return integer(left, wide) < integer(right, wide)
    return integer(left, wide) <= integer(right, wide)


@kernel
def take(code: Words, step: int, place: int, regs: Words, scratch: int, wide: int) -> bool:
    """Load a match into the registers; False if a test or a check fails."""
    base = place
    if code[step + FROM_ROW]:
        relation = code[step + SOURCE]
        base = load64(relation + 8 * ROWS) + 8 * load64(relation + 8 * WORDS) * load32(place)
    at = code[step + LOADS]
    for _ in range(code[step + LOAD_COUNT]):
        regs[code[at + 1]] = load32(base + code[at])
        at += 2
    at = code[step + TESTS]
    for _ in range(code[step + TEST_COUNT]):
        if load32(base + code[at]) != regs[code[at + 1]]:
            return False
        at += 2
    at = code[step + CHECKS]
    for _ in range(code[step + CHECK_COUNT]):
        if not holds(code, at, regs, scratch, wide):
            return False
        at += CHECK_WORDS
    return True


@kernel
def first_row(relation: int, version: int) -> int:
    return load64(relation + 8 * DELTA_LO) if version == DELTA else 0


@kernel
def end_row(relation: int, version: int) -> int:
    return load64(relation + 8 * (DELTA_LO if version == OLD else DELTA_HI))


@kernel
def open_step(code: Words, step: int, regs: Words, scratch: int, stack: Words, level: int) -> None:
    """Find the matches of a step: stack gets their address, number and distance."""
    version = code[step + VERSION]
    relation = code[step + SOURCE]
    if code[step + KIND] == SCAN:
        stride = 8 * load64(relation + 8 * WORDS)
        low = first_row(relation, version)
        stack[3 * level] = load64(relation + 8 * ROWS) + stride * low
        stack[3 * level + 1] = end_row(relation, version) - low
        stack[3 * level + 2] = stride
        return
    index = code[step + INDEX]
    slot = find_slot(code, index, code[step + STEP_KEYS], regs, scratch)
    count = load64(slot) & LOW
    stride = 8 * load64(index + 8 * ENTRY_WORDS)
    entries = slot
    if count:
        entries = bucket(index, slot, count)
        if version == OLD:
            count = before(entries, count, stride, load64(relation + 8 * DELTA_LO))
        elif version == DELTA:
            skipped = before(entries, count, stride, load64(relation + 8 * DELTA_LO))
            entries += stride * skipped
            count -= skipped
    stack[3 * level] = entries
    stack[3 * level + 1] = count
    stack[3 * level + 2] = stride


@kernel
def keep(head: int, out: int, row: int, words: int) -> bool:
    """Append a new row to a worker's output. False: no memory."""
    count = load64(out + 8 * OUT_COUNT)
    if count == load64(out + 8 * OUT_CAPACITY):
        capacity = max(64, count * 2)
        rows = reallocate(load64(out + 8 * OUT_ROWS), 8 * words * capacity)
        if rows == 0:
            return False
        store64(out + 8 * OUT_ROWS, rows)
        store64(out + 8 * OUT_CAPACITY, capacity)
    target = load64(out + 8 * OUT_ROWS) + 8 * words * count
    for w in range(words):
        store64(target + 8 * w, load64(row + 8 * w))
    store64(out + 8 * OUT_COUNT, count + 1)
    return True


@kernel
def insert(head: int, out: int, row: int, words: int, alone: bool) -> int:
    """Insert a head's row if it is new. A lone worker grows the table itself."""
    result = add_many(head, row)
    while result == FULL:
        if not alone:
            return MUST_GROW
        if not grow(head):
            return NO_MEMORY
        result = add_many(head, row)
    if result == ADDED and not keep(head, out, row, words):
        return NO_MEMORY
    return COMPLETE


@inlined
def tight_loop(
    head: int,
    out: int,
    row: int,
    place: int,
    count: int,
    stride: int,
    shift: int,
    bits: int,
    last: int,
    done: int,
) -> int:
    """Insert heads of one word from match number `done` on; the number of the match it stopped at.

    `bits` and `last` are constants where it is called, so that the compiler can fold them.
    """
    rest = load64(row) & ~(LOW << shift)
    slots = load64(head + 8 * SLOTS)
    mask = load64(head + 8 * MASK)
    place += stride * done
    for number in range(done, count):
        word = rest | (load32(place) << shift)
        place += stride
        result = add_one(head, slots, mask, bits, last, word)
        if result != PRESENT:
            store64(row, word)
            if result == FULL:
                return number
            if not keep(head, out, row, 1):
                return -1
    return count


@kernel
def tight_one_word(
    head: int, out: int, row: int, place: int, count: int, stride: int, shift: int, alone: bool
) -> int:
    """Insert `count` heads of one word; each match gives the cell at `shift`."""
    done = 0
    while True:
        bits = load64(head + 8 * BLOCK_BITS)
        last = load64(head + 8 * LAST_SHIFT)
        if bits == 0:
            done = tight_loop(head, out, row, place, count, stride, shift, 0, last, done)
        elif last == 0:
            done = tight_loop(head, out, row, place, count, stride, shift, 6, 0, done)
        elif shift == 0:
            done = tight_loop(head, out, row, place, count, stride, 0, 6, 32, done)
        else:
            done = tight_loop(head, out, row, place, count, stride, 32, 6, 32, done)
        if done == count:
            return COMPLETE
        if done < 0:
            return NO_MEMORY
        if not alone:
            return MUST_GROW
        if not grow(head):
            return NO_MEMORY


@kernel
def tight_two_words(
    code: Words,
    step: int,
    head: int,
    out: int,
    row: int,
    place: int,
    count: int,
    stride: int,
    alone: bool,
) -> int:
    """Insert `count` heads of two words; each match gives the cells that the step moves."""
    moves = code[step + MOVES]
    end = moves + 3 * code[step + MOVE_COUNT]
    rest = load64(row)
    more = load64(row + 8)
    for at in range(moves, end, 3):
        if code[at + 1] == 0:
            rest &= ~(LOW << code[at + 2])
        else:
            more &= ~(LOW << code[at + 2])
    slots = load64(head + 8 * SLOTS)
    mask = load64(head + 8 * MASK)
    bits = load64(head + 8 * BLOCK_BITS)
    shift = load64(head + 8 * LAST_SHIFT)
    for _ in range(count):
        first = rest
        last = more
        for at in range(moves, end, 3):
            cell = load32(place + code[at]) << code[at + 2]
            if code[at + 1] == 0:
                first |= cell
            else:
                last |= cell
        place += stride
        result = add_two(head, slots, mask, bits, shift, first, last)
        if result == PRESENT:
            continue
        if result == FULL and not alone:
            return MUST_GROW
        store64(row, first)
        store64(row + 8, last)
        if result == ADDED:
            if not keep(head, out, row, 2):
                return NO_MEMORY
            continue
        state = insert(head, out, row, 2, alone)
        if state != COMPLETE:
            return state
        slots = load64(head + 8 * SLOTS)
        mask = load64(head + 8 * MASK)
        bits = load64(head + 8 * BLOCK_BITS)
    return COMPLETE


@kernel
def run_form(
    code: Words,
    form: int,
    regs: Words,
    stack: Words,
    scratch: int,
    low: int,
    high: int,
    worker: int,
    run: int,
    counts: Words,
    number: int,
) -> tuple[int, int]:
    """Run a rule form over its driver's rows [low, high).

    Gives back how it ended and the row to go on with. `counts[number]` grows by the
    rule instances considered, exactly once for each, also when a row has to be redone.
    """
    wide = load64(run + 8 * RUN_WIDE)
    alone = load64(run + 8 * RUN_ALONE) != 0
    at = code[form + CONSTANTS]
    for _ in range(code[form + CONSTANT_COUNT]):
        regs[code[at]] = code[at + 1]
        at += 2
    head = code[form + HEAD]
    words = load64(head + 8 * WORDS)
    cells = max(1, load64(head + 8 * ARITY))
    head_registers = code[form + HEAD_REGISTERS]
    out = load64(head + 8 * OUTPUTS) + 8 * OUT_WORDS * worker
    steps = code[form + STEPS]
    last = code[form + STEP_COUNT] - 1
    tight = code[steps + STEP_WORDS * last + TIGHT]
    driver = code[steps + SOURCE]
    place = 0
    stride = 0
    if code[steps + KIND] != UNIT:
        stride = 8 * load64(driver + 8 * WORDS)
        place = load64(driver + 8 * ROWS) + stride * low
    row = scratch + KEY_BYTES
    considered = counts[number]
    for current in range(low, high):
        if not alone and load_shared(head + 8 * USED) * 10 > MAX_LOAD_TENTHS * (load64(head + 8 * MASK) + 1):
            counts[number] = considered
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
            match = stack[3 * level]
            count = stack[3 * level + 1]
            distance = stack[3 * level + 2]
            if level < last:
                if count == 0:
                    level -= 1
                    continue
                stack[3 * level] = match + distance
                stack[3 * level + 1] = count - 1
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
                move = code[step + MOVES]
                state = tight_one_word(
                    head, out, row, match + code[move], count, distance, code[move + 2], alone
                )
            elif tight == TWO_WORDS:
                considered += count
                gather(code, head_registers, cells, regs, row)
                state = tight_two_words(code, step, head, out, row, match, count, distance, alone)
            elif tight == COUNT_ONLY:
                considered += count
                gather(code, head_registers, cells, regs, row)
                state = insert(head, out, row, words, alone)
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
            counts[number] = at_start
            return state, current
    counts[number] = considered
    return COMPLETE, high
