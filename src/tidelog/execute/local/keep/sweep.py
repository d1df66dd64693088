"""Sweeps, one-step rederivation and tallies: loops over cursors that mark or count heads.

Every loop can be left and entered again: where it is stands in the run's record, so that Python
can compute the value of an expression in between (MISSING), or give up (OVER_BUDGET).

A task's readings come in groups: the seeds; those that CURRENT tuples drive; those of a guard. A
group is an array with the places of its readings in the code, and beside it one with the number of
the own relation that drives each (`owners`; -1: another relation).

A sweep can take up its changes in portions: every eighth, say, is followed to the end, then as many again,
then twice as many, and so on (R_PORTION, R_FURTHER). Between portions it comes back, so that what they took
tells what the rest will take.
"""

from __future__ import annotations

from tidelog.execute.local.keep.cursor import (
    advance,
    first_of,
    highest_first,
    start,
)
from tidelog.execute.local.keep.heads import (
    CHECKED,
    CURRENT,
    LOW,
    QUEUED,
    WAITING,
    count_instance,
    enqueue,
    has_no_instance,
    reach,
    tally,
)
from tidelog.execute.local.keep.layout import (
    C_LIMIT,
    C_PRUNED,
    DONE,
    F_DRIVER,
    F_DRIVER_PART,
    FOUND,
    GUARDING,
    LIST_COUNT,
    MISS,
    MISSING,
    MISSING_IN_GUARD,
    NO_MEMORY,
    NONE,
    NOW,
    NUMBERS,
    OVER_BUDGET,
    PORTION_DONE,
    QUEUE,
    R_BUDGET,
    R_CURSOR,
    R_FORM,
    R_FURTHER,
    R_GUARD_CURSOR,
    R_NEW,
    R_OPEN,
    R_PORTION,
    R_POSITION,
    R_RANKS,
    R_RELATION,
    R_ROUNDS,
    R_STAGE,
    R_UNDECIDED,
    R_WORK,
    SEEDING,
    SPREADING,
    STARTED,
    STARTING,
    TOUCHED_ROWS,
)
from tidelog.execute.local.keep.ledger import AHEAD, is_in, marks_of, prefetch_row, push, set_marks
from tidelog.execute.local.keep.marks import ADDED, DELETED, EXPLICIT, HELD
from tidelog.execute.local.layout import (
    LEDGER,
)
from tidelog.execute.local.memory import (
    Words,
    kernel,
    load64,
    set_word,
    word,
)
from tidelog.execute.local.rounds import (
    extend_indexes,
)


@kernel
def drain(code: int, cursor: int, run: int, part: int) -> int:
    """Go through the instances that are left: reach their heads, or tally them where `part` is 0."""
    while True:
        state = advance(code, cursor)
        if state == NONE:
            return DONE
        if state == MISS:
            return MISSING
        within = count_instance(code, cursor, run)
        result = tally(code, cursor) if part == 0 else reach(code, cursor, run, part)
        if result != DONE:
            return result
        if not within:
            return OVER_BUDGET


@kernel
def of_portion(run: int, number: int) -> int:
    """The place, in a list of touched tuples, of the one with this number in the portion."""
    return (2 * number + 1 if word(run, R_FURTHER) else number) << word(run, R_PORTION)


@kernel
def run_changes(code: int, forms: Words, run: int, part: int) -> int:
    """Run readings once: driven ones by the touched tuples of their driver's part, those of this portion."""
    cursor = word(run, R_CURSOR)
    while word(run, R_FORM) < len(forms):
        form = forms[word(run, R_FORM)]
        driver = word(code, form + F_DRIVER)
        count = 1
        if driver:
            count = load64(word(driver, LEDGER) + 8 * (TOUCHED_ROWS + LIST_COUNT))
        while of_portion(run, word(run, R_POSITION)) < count:
            if not word(run, R_OPEN):
                row = 0
                if driver:
                    rows = load64(word(driver, LEDGER) + 8 * TOUCHED_ROWS)
                    row = word(rows, of_portion(run, word(run, R_POSITION)))
                    if not is_in(word(code, form + F_DRIVER_PART), marks_of(word(driver, LEDGER), row)):
                        set_word(run, R_POSITION, word(run, R_POSITION) + 1)
                        continue
                start(code, form, cursor, row)
                set_word(run, R_OPEN, 1)
            state = drain(code, cursor, run, part)
            if state != DONE:
                return state
            set_word(run, R_OPEN, 0)
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(run, R_POSITION, 0)
        set_word(run, R_FORM, word(run, R_FORM) + 1)
    set_word(run, R_FORM, 0)
    return DONE


@kernel
def queue_start(relations: Words, part: int, ranks: int, run: int) -> bool:
    """Queue the touched tuples of a part, those of this portion. False: no memory."""
    for relation in relations:
        ledger = word(relation, LEDGER)
        if not word(run, R_FURTHER):
            set_word(ledger, STARTED, word(ledger, TOUCHED_ROWS + LIST_COUNT))
        for i in range(of_portion(run, 0), word(ledger, STARTED), of_portion(run, 1) - of_portion(run, 0)):
            row = word(word(ledger, TOUCHED_ROWS), i)
            marks = marks_of(ledger, row)
            if is_in(part, marks) and not marks & WAITING and not enqueue(ledger, row, marks, ranks):
                return False
    return True


@kernel
def supported(code: int, forms: Words, owners: Words, number: int, run: int, row: int, ledger: int) -> int:
    """Whether an instance derives a row from lower ranks: FOUND, NONE, or MISS (to be called again)."""
    cursor = word(run, R_GUARD_CURSOR)
    set_word(cursor, C_LIMIT, first_of(ledger, row) + 1)
    if not word(run, R_OPEN) and word(run, R_FORM) == 0:
        set_word(cursor, C_PRUNED, 0)
    while word(run, R_FORM) < len(forms):
        if owners[word(run, R_FORM)] == number:
            if not word(run, R_OPEN):
                start(code, forms[word(run, R_FORM)], cursor, row)
                set_word(run, R_OPEN, 1)
            state = advance(code, cursor)
            if state == MISS:
                return MISS
            set_word(run, R_OPEN, 0)
            if state == FOUND:
                count_instance(code, cursor, run)
                set_word(run, R_FORM, 0)
                return FOUND
        set_word(run, R_FORM, word(run, R_FORM) + 1)
    set_word(run, R_FORM, 0)
    return NONE


@kernel
def begin_round(
    relations: Words,
    code: int,
    forms: Words,
    owners: Words,
    guarded: bool,
    fresh: int,
    run: int,
) -> int:
    """Step 3 of a sweep: QUEUED tuples become CURRENT, unless the guard keeps them."""
    while word(run, R_RELATION) < len(relations):
        number = word(run, R_RELATION)
        ledger = word(relations[number], LEDGER)
        rows = word(ledger, QUEUE)
        while word(run, R_POSITION) < word(ledger, QUEUE + LIST_COUNT):
            row = word(rows, word(run, R_POSITION))
            prefetch_row(relations[number], QUEUE, word(run, R_POSITION) + AHEAD)
            marks = marks_of(ledger, row) & ~QUEUED
            keep = False
            if guarded:
                keep = marks & EXPLICIT != 0
                if word(run, R_WORK) > word(run, R_BUDGET):
                    return OVER_BUDGET
                if not keep:
                    state = NONE
                    if has_no_instance(ledger, row, run) and not is_in(fresh, marks):
                        set_word(word(run, R_GUARD_CURSOR), C_PRUNED, 0)
                    else:
                        state = supported(code, forms, owners, number, run, row, ledger)
                    if state == MISS:
                        return MISSING_IN_GUARD
                    keep = state == FOUND
            if keep:
                set_marks(ledger, row, marks)
            else:
                if guarded and not word(word(run, R_GUARD_CURSOR), C_PRUNED):
                    marks |= CHECKED  # no instance derives it, of whatever rank
                else:
                    set_word(run, R_UNDECIDED, word(run, R_UNDECIDED) + 1)
                set_marks(ledger, row, marks | CURRENT)
                if not push(ledger, NOW, row):
                    return NO_MEMORY
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(ledger, QUEUE + LIST_COUNT, 0)
        set_word(run, R_POSITION, 0)
        set_word(run, R_RELATION, number + 1)
    set_word(run, R_RELATION, 0)
    return DONE


@kernel
def spread(relations: Words, code: int, forms: Words, owners: Words, run: int, part: int) -> int:
    """Step 4: reach the heads of the instances that CURRENT tuples drive."""
    cursor = word(run, R_CURSOR)
    while word(run, R_RELATION) < len(relations):
        number = word(run, R_RELATION)
        ledger = word(relations[number], LEDGER)
        while word(run, R_POSITION) < word(ledger, NOW + LIST_COUNT):
            prefetch_row(relations[number], NOW, word(run, R_POSITION) + AHEAD)
            while word(run, R_FORM) < len(forms):
                if owners[word(run, R_FORM)] == number:
                    if not word(run, R_OPEN):
                        row = word(word(ledger, NOW), word(run, R_POSITION))
                        start(code, forms[word(run, R_FORM)], cursor, row)
                        set_word(run, R_OPEN, 1)
                    state = drain(code, cursor, run, part)
                    if state != DONE:
                        return state
                    set_word(run, R_OPEN, 0)
                set_word(run, R_FORM, word(run, R_FORM) + 1)
            set_word(run, R_FORM, 0)
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(run, R_POSITION, 0)
        set_word(run, R_RELATION, number + 1)
    set_word(run, R_RELATION, 0)
    return DONE


@kernel
def settle(relations: Words, gain: int) -> int:
    """Step 5: CURRENT tuples have had their consequences drawn; how many there were, -1 without memory."""
    settled = 0
    for relation in relations:
        ledger = word(relation, LEDGER)
        rows = word(ledger, NOW)
        count = word(ledger, NOW + LIST_COUNT)
        for i in range(count):
            row = word(rows, i)
            set_marks(ledger, row, (marks_of(ledger, row) & ~CURRENT) | gain)
        set_word(ledger, NOW + LIST_COUNT, 0)
        settled += count
        if not extend_indexes(relation):
            return -1
    return settled


@kernel
def sweep(
    relations: Words,
    code: int,
    seeds: Words,
    forms: Words,
    owners: Words,
    guards: Words,
    guard_owners: Words,
    guarded: bool,
    fresh: int,
    start_part: int,
    reach_part: int,
    gain: int,
    run: int,
) -> int:
    """A whole sweep (`plan.maintenance.Sweep`), or what is left of it."""
    if word(run, R_STAGE) == STARTING:
        if not queue_start(relations, start_part, word(run, R_RANKS), run):
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
            state = begin_round(relations, code, guards, guard_owners, guarded, fresh, run)
            if state != DONE:
                return state
            set_word(run, R_STAGE, SPREADING)
        state = spread(relations, code, forms, owners, run, reach_part)
        if state != DONE:
            return state
        settled = settle(relations, gain)
        if settled < 0:
            return NO_MEMORY
        if settled:
            set_word(run, R_ROUNDS, word(run, R_ROUNDS) + 1)
            set_word(run, R_STAGE, GUARDING)
        elif word(run, R_PORTION) == 0:
            return DONE
        else:
            set_word(run, R_FURTHER, 1)
            set_word(run, R_PORTION, word(run, R_PORTION) - 1)
            set_word(run, R_STAGE, STARTING)
            return PORTION_DONE


@kernel
def redeem(
    relations: Words, code: int, forms: Words, owners: Words, candidates: int, known: int, run: int
) -> int:
    """A whole one-step rederivation (`plan.maintenance.Redeem`), or what is left of it."""
    cursor = word(run, R_CURSOR)
    while word(run, R_RELATION) < len(relations):
        number = word(run, R_RELATION)
        ledger = word(relations[number], LEDGER)
        while word(run, R_POSITION) < word(ledger, TOUCHED_ROWS + LIST_COUNT):
            row = word(word(ledger, TOUCHED_ROWS), word(run, R_POSITION))
            prefetch_row(relations[number], TOUCHED_ROWS, word(run, R_POSITION) + AHEAD)
            marks = marks_of(ledger, row)
            rank = -1
            if word(run, R_WORK) > word(run, R_BUDGET):
                return OVER_BUDGET
            if is_in(candidates, marks) and not marks & WAITING:
                if is_in(known, marks):
                    rank = 0
                while rank < 0 and word(run, R_FORM) < len(forms):
                    if owners[word(run, R_FORM)] == number:
                        if not word(run, R_OPEN):
                            start(code, forms[word(run, R_FORM)], cursor, row)
                            set_word(run, R_OPEN, 1)
                        state = advance(code, cursor)
                        if state == MISS:
                            return MISSING
                        set_word(run, R_OPEN, 0)
                        if state == FOUND:
                            count_instance(code, cursor, run)
                            rank = highest_first(code, cursor) if word(run, R_RANKS) else 0
                    set_word(run, R_FORM, word(run, R_FORM) + 1)
                set_word(run, R_FORM, 0)
            if rank >= 0:
                if not enqueue(ledger, row, marks, rank + 1 if word(run, R_RANKS) else 0):
                    return NO_MEMORY
                set_word(run, R_NEW, word(run, R_NEW) + 1)
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(run, R_POSITION, 0)
        set_word(run, R_RELATION, number + 1)
    set_word(run, R_RELATION, 0)
    return DONE


@kernel
def mark_by_count(relations: Words) -> bool:
    """A touched tuple holds if it is explicit or has a count. False: no memory."""
    for relation in relations:
        ledger = word(relation, LEDGER)
        rows = word(ledger, TOUCHED_ROWS)
        for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
            row = word(rows, i)
            marks = marks_of(ledger, row) & ~(DELETED | ADDED)
            holds = marks & EXPLICIT or load64(word(ledger, NUMBERS) + 8 * row) & LOW
            if marks & HELD:
                marks |= 0 if holds else DELETED
            else:
                marks |= ADDED if holds else 0
            set_marks(ledger, row, marks)
        if not extend_indexes(relation):
            return False
    return True
