"""Backward chaining with saturation: the guard `plan.maintenance.Proof` as a kernel.

Check is a recursion over tuples; here it has a stack of its own, a frame for each tuple whose
instances are being gone through. A frame has the memory of a cursor, so that it goes on where
it was when a tuple that it asked about has been checked.

    frame: number of the relation, row, reading, 1 while an instance is looked at, its next
           atom, the tuple asked about last (relation, row), and then a cursor

A guard asks first whether a tuple is explicit, delayed, or derived by a base rule (ASKING); then
either saturates from it (SATURATING), or opens a frame (SEARCHING).
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.cursor import advance, make_head, start
from tidelog.execute.local.keep.heads import (
    CURRENT,
    QUEUED,
    count_instance,
)
from tidelog.execute.local.keep.layout import (
    BODY,
    C_FORM,
    C_POSSIBLE,
    C_REGISTERS,
    C_ROWS,
    C_SCRATCH,
    C_STACK,
    C_WIDE,
    C_WORDS,
    C_WORK,
    DONE,
    F_HEAD,
    F_STEP_COUNT,
    F_STEPS,
    FOUND,
    GUARDING,
    LIST_COUNT,
    MISS,
    MISSING_IN_FRAME,
    MISSING_IN_GUARD,
    NO_MEMORY,
    NONE,
    NOW,
    OVER_BUDGET,
    QUEUE,
    R_ASKING,
    R_DEPTH,
    R_FORM,
    R_FRAME_ROOM,
    R_FRAME_WORDS,
    R_FRAMES,
    R_GUARD_CURSOR,
    R_LEFT,
    R_LEFT_AT,
    R_LIMIT,
    R_OPEN,
    R_POSITION,
    R_PROOF,
    R_RELATION,
    R_ROUNDS,
    R_ROW,
    R_ROW_RELATION,
    R_STAGE,
    R_WORK,
    SEEDING,
    SOURCE,
    SPREADING,
    STACK_WORDS,
    STARTING,
    STEP_WORDS,
)
from tidelog.execute.local.keep.ledger import marks_of, push, set_marks, touch
from tidelog.execute.local.keep.marks import EXPLICIT
from tidelog.execute.local.keep.rowmap import find_row
from tidelog.execute.local.keep.sweep import (
    queue_start,
    run_changes,
    settle,
    spread,
)
from tidelog.execute.local.layout import LEDGER
from tidelog.execute.local.memory import Words, kernel, reallocate, set_word, word
from tidelog.execute.local.rounds import extend_indexes
from tidelog.plan.parts import Mark

CHECKED, PROVED, PROVING = int(Mark.CHECKED), int(Mark.PROVED), int(Mark.PROVING)
BLOCKED, DELAYED = int(Mark.BLOCKED), int(Mark.DELAYED)

IDLE, ASKING, SATURATING, SEARCHING = 0, 1, 2, 3

P_RELATION, P_ROW, P_FORM, P_LOOKING, P_LEVEL, P_ASKED, P_ASKED_ROW, P_CURSOR = range(8)


@kernel
def marked(relations: Words, number: int, row: int) -> int:
    return marks_of(word(relations[number], LEDGER), row)


@kernel
def mark(relations: Words, number: int, row: int, gain: int, lose: int) -> bool:
    """Change the marks of a tuple. False: no memory."""
    ledger = word(relations[number], LEDGER)
    if not touch(ledger, row):
        return False
    set_marks(ledger, row, (marks_of(ledger, row) & ~lose) | gain)
    return True


@kernel
def number_of(relations: Words, relation: int) -> int:
    for i in range(len(relations)):
        if relations[i] == relation:
            return i
    return -1


# --- frames -------------------------------------------------------------------------


@kernel
def frame_at(run: int, depth: int) -> int:
    return word(run, R_FRAMES) + 8 * word(run, R_FRAME_WORDS) * depth


@kernel
def cursor_of(run: int, frame: int, registers: int, steps: int) -> int:
    """A frame's cursor, its addresses set: frames move when there are more of them."""
    cursor = frame + 8 * P_CURSOR
    at = cursor + 8 * C_WORDS
    set_word(cursor, C_REGISTERS, at)
    set_word(cursor, C_STACK, at + 8 * registers)
    set_word(cursor, C_ROWS, at + 8 * (registers + STACK_WORDS * steps))
    set_word(cursor, C_POSSIBLE, at + 8 * (registers + (STACK_WORDS + 1) * steps))
    set_word(cursor, C_SCRATCH, word(word(run, R_GUARD_CURSOR), C_SCRATCH))
    set_word(cursor, C_WIDE, word(word(run, R_GUARD_CURSOR), C_WIDE))
    set_word(cursor, C_WORK, run + 8 * R_WORK)
    return cursor


@kernel
def push_frame(run: int, number: int, row: int) -> bool:
    """Open a frame for a tuple. False: no memory."""
    depth = word(run, R_DEPTH)
    if depth == word(run, R_FRAME_ROOM):
        room = max(16, 2 * depth)
        frames = reallocate(word(run, R_FRAMES), 8 * word(run, R_FRAME_WORDS) * room)
        if frames == 0:
            return False
        set_word(run, R_FRAMES, frames)
        set_word(run, R_FRAME_ROOM, room)
    frame = frame_at(run, depth)
    for w in range(word(run, R_FRAME_WORDS)):
        set_word(frame, w, 0)
    set_word(frame, P_RELATION, number)
    set_word(frame, P_ROW, row)
    set_word(frame, P_FORM, -1)
    set_word(run, R_DEPTH, depth + 1)
    return True


# --- steps 0 and 1 of Check, and Saturate -------------------------------------------------


@kernel
def begin_check(relations: Words, run: int, number: int, row: int) -> int:
    """Begin to check a tuple, unless it is checked or its branch is given up; DONE or NO_MEMORY."""
    set_word(run, R_PROOF, SEARCHING)
    if marked(relations, number, row) & CHECKED:
        return DONE
    limit = word(run, R_LIMIT)
    if limit >= 0 and word(run, R_DEPTH) >= limit:
        return DONE if mark(relations, number, row, BLOCKED, 0) else NO_MEMORY
    if not mark(relations, number, row, CHECKED, 0):
        return NO_MEMORY
    set_word(run, R_ROW, row)
    set_word(run, R_ROW_RELATION, number)
    set_word(run, R_FORM, 0)
    set_word(run, R_OPEN, 0)
    set_word(run, R_PROOF, ASKING)
    return DONE


@kernel
def follows(relations: Words, code: int, base: Words, owners: Words, run: int) -> int:
    """Whether the tuple being checked is known without further search: FOUND, NONE or MISS."""
    number, row = word(run, R_ROW_RELATION), word(run, R_ROW)
    if marked(relations, number, row) & (EXPLICIT | DELAYED):
        return FOUND
    cursor = word(run, R_GUARD_CURSOR)
    while word(run, R_FORM) < len(base):
        if owners[word(run, R_FORM)] == number:
            if not word(run, R_OPEN):
                start(code, base[word(run, R_FORM)], cursor, row)
                set_word(run, R_OPEN, 1)
            state = advance(code, cursor)
            if state == MISS:
                return MISS
            set_word(run, R_OPEN, 0)
            if state == FOUND:
                count_instance(code, cursor, run)
                return FOUND
        set_word(run, R_FORM, word(run, R_FORM) + 1)
    return NONE


@kernel
def saturate(relations: Words, code: int, forward: Words, owners: Words, run: int) -> int:
    """Prove what is left to prove, and what follows from it among checked tuples."""
    left = word(run, R_LEFT)
    cursor = word(run, R_GUARD_CURSOR)
    while word(run, R_LEFT_AT) < word(left, LIST_COUNT):
        at = word(run, R_LEFT_AT)
        number, row = word(word(left, 0), at), word(word(left, 0), at + 1)
        if not word(run, R_OPEN) and word(run, R_FORM) == 0:
            if marked(relations, number, row) & PROVED:
                set_word(run, R_LEFT_AT, at + 2)
                continue
            if not mark(relations, number, row, PROVED | PROVING, 0):
                return NO_MEMORY
        while word(run, R_FORM) < len(forward):
            if owners[word(run, R_FORM)] == number:
                if not word(run, R_OPEN):
                    start(code, forward[word(run, R_FORM)], cursor, row)
                    set_word(run, R_OPEN, 1)
                while True:
                    state = advance(code, cursor)
                    if state == MISS:
                        return MISSING_IN_GUARD
                    if state == NONE:
                        break
                    within = count_instance(code, cursor, run)
                    if not prove_head(relations, code, cursor, run):
                        return NO_MEMORY
                    if not within:
                        return OVER_BUDGET
                set_word(run, R_OPEN, 0)
            set_word(run, R_FORM, word(run, R_FORM) + 1)
        set_word(run, R_FORM, 0)
        mark(relations, number, row, 0, PROVING)
        set_word(run, R_LEFT_AT, at + 2)
    set_word(run, R_LEFT_AT, 0)
    set_word(left, LIST_COUNT, 0)
    return DONE


@kernel
def prove_head(relations: Words, code: int, cursor: int, run: int) -> bool:
    """A head that follows from proved tuples is proved in turn if it is checked, else delayed."""
    relation = word(code, word(cursor, C_FORM) + F_HEAD)
    row = find_row(relation, make_head(code, cursor))
    if row < 0:
        return True
    number = number_of(relations, relation)
    marks = marked(relations, number, row)
    if marks & PROVED:
        return True
    if marks & CHECKED:
        left = word(run, R_LEFT)
        return push(left, 0, number) and push(left, 0, row)
    return mark(relations, number, row, DELAYED, 0)


# --- step 2 of Check ----------------------------------------------------------------------


@kernel
def next_own(code: int, cursor: int, level: int) -> int:
    """The next level behind one whose atom is over an own relation; -1: there is none."""
    form = word(cursor, C_FORM)
    steps = word(code, form + F_STEPS)
    for i in range(level + 1, word(code, form + F_STEP_COUNT)):
        if word(code, steps + STEP_WORDS * i + BODY):
            return i
    return -1


@kernel
def search(
    relations: Words, code: int, forms: Words, owners: Words, run: int, registers: int, steps: int
) -> int:
    """Go on with the topmost frame until it asks about another tuple, or is finished."""
    depth = word(run, R_DEPTH) - 1
    frame = frame_at(run, depth)
    number, row = word(frame, P_RELATION), word(frame, P_ROW)
    cursor = cursor_of(run, frame, registers, steps)
    while True:
        if marked(relations, number, row) & PROVED:
            set_word(run, R_DEPTH, depth)
            return DONE
        if word(frame, P_LOOKING):
            if word(frame, P_ASKED) >= 0:
                asked = marked(relations, word(frame, P_ASKED), word(frame, P_ASKED_ROW))
                set_word(frame, P_ASKED, -1)
                if asked & BLOCKED and not asked & PROVED and not mark(relations, number, row, BLOCKED, 0):
                    return NO_MEMORY
            level = next_own(code, cursor, word(frame, P_LEVEL))
            if level < 0:
                set_word(frame, P_LOOKING, 0)
                continue
            set_word(frame, P_LEVEL, level)
            step = word(code, word(cursor, C_FORM) + F_STEPS) + STEP_WORDS * level
            asked_row = word(word(cursor, C_ROWS), level)
            asked_number = number_of(relations, word(code, step + SOURCE))
            set_word(frame, P_ASKED, asked_number)
            set_word(frame, P_ASKED_ROW, asked_row)
            return begin_check(relations, run, asked_number, asked_row)
        if word(frame, P_FORM) >= 0:
            state = advance(code, cursor)
            if state == MISS:
                set_word(run, R_ASKING, cursor)
                return MISSING_IN_FRAME
            if state == FOUND:
                set_word(frame, P_LOOKING, 1)
                set_word(frame, P_LEVEL, -1)
                set_word(frame, P_ASKED, -1)
                if not count_instance(code, cursor, run):
                    return OVER_BUDGET
                continue
        form = word(frame, P_FORM) + 1
        while form < len(forms) and owners[form] != number:
            form += 1
        if form >= len(forms):
            set_word(run, R_DEPTH, depth)
            return DONE
        set_word(frame, P_FORM, form)
        start(code, forms[form], cursor, row)


@kernel
def check(
    relations: Words,
    code: int,
    base: Words,
    base_owners: Words,
    forms: Words,
    owners: Words,
    forward: Words,
    forward_owners: Words,
    run: int,
    registers: int,
    steps: int,
) -> int:
    """Check one tuple to the end: DONE, or a reason to come back."""
    while True:
        if word(run, R_PROOF) == ASKING:
            state = follows(relations, code, base, base_owners, run)
            if state == MISS:
                return MISSING_IN_GUARD
            number, row = word(run, R_ROW_RELATION), word(run, R_ROW)
            set_word(run, R_FORM, 0)
            if state == FOUND:
                left = word(run, R_LEFT)
                if not (push(left, 0, number) and push(left, 0, row)):
                    return NO_MEMORY
                set_word(run, R_PROOF, SATURATING)
            else:
                if not push_frame(run, number, row):
                    return NO_MEMORY
                set_word(run, R_PROOF, SEARCHING)
        if word(run, R_PROOF) == SATURATING:
            state = saturate(relations, code, forward, forward_owners, run)
            if state != DONE:
                return state
            set_word(run, R_PROOF, SEARCHING)
        if word(run, R_PROOF) == SEARCHING:
            if word(run, R_DEPTH) == 0:
                set_word(run, R_PROOF, IDLE)
                return DONE
            state = search(relations, code, forms, owners, run, registers, steps)
            if state != DONE:
                return state


@kernel
def sweep_proof(
    relations: Words,
    code: int,
    seeds: Words,
    forms: Words,
    owners: Words,
    base: Words,
    base_owners: Words,
    back: Words,
    back_owners: Words,
    forward: Words,
    forward_owners: Words,
    start_part: int,
    reach_part: int,
    gain: int,
    run: int,
    registers: int,
    steps: int,
) -> int:
    """A whole sweep with this guard, or what is left of it."""
    if word(run, R_STAGE) == STARTING:
        if not queue_start(relations, start_part, 0, run):
            return NO_MEMORY
        set_word(run, R_STAGE, SEEDING)
    if word(run, R_STAGE) == SEEDING:
        state = run_changes(code, seeds, run, reach_part)
        if state != DONE:
            return state
        for relation in relations:
            if not extend_indexes(relation):
                return NO_MEMORY
        set_word(run, R_STAGE, GUARDING)
    while True:
        if word(run, R_STAGE) == GUARDING:
            while word(run, R_RELATION) < len(relations):
                number = word(run, R_RELATION)
                ledger = word(relations[number], LEDGER)
                while word(run, R_POSITION) < word(ledger, QUEUE + LIST_COUNT):
                    row = word(word(ledger, QUEUE), word(run, R_POSITION))
                    if word(run, R_PROOF) == IDLE:
                        state = begin_check(relations, run, number, row)
                        if state != DONE:
                            return state
                    state = check(
                        relations, code, base, base_owners, back, back_owners, forward, forward_owners,
                        run, registers, steps,
                    )  # fmt: skip
                    if state != DONE:
                        return state
                    set_word(run, R_FORM, 0)
                    marks = marks_of(ledger, row) & ~QUEUED
                    if marks & PROVED:
                        set_marks(ledger, row, marks)
                    else:
                        set_marks(ledger, row, marks | CURRENT)
                        if not push(ledger, NOW, row):
                            return NO_MEMORY
                    set_word(run, R_POSITION, word(run, R_POSITION) + 1)
                set_word(ledger, QUEUE + LIST_COUNT, 0)
                set_word(run, R_POSITION, 0)
                set_word(run, R_RELATION, number + 1)
            set_word(run, R_RELATION, 0)
            set_word(run, R_STAGE, SPREADING)
        state = spread(relations, code, forms, owners, run, reach_part)
        if state != DONE:
            return state
        settled = settle(relations, gain)
        if settled < 0:
            return NO_MEMORY
        if settled == 0:
            return DONE
        set_word(run, R_ROUNDS, word(run, R_ROUNDS) + 1)
        set_word(run, R_STAGE, GUARDING)
