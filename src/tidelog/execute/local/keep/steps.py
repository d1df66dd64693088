"""A fixpoint in step: from the iterations of the old run to those of the new one.

An instance belongs to the iteration after the latest in which one of its own tuples was first
derived; with no own tuples, to iteration 1. It is looked at when something it depends on is found to
differ between the runs, and then in both of its iterations: in the old run's its head loses one
derivation, in the new run's it gains one; if the two are the same iteration, nothing happens.

1  What has changed in other strata, in the rules and among explicit facts drives the instances it
   occurs in. Those of iteration 1 count at once, the others become *events* of their iterations.
2  for k = 1, 2, ... while there are events or tuples to drive:
3     a tuple is *fresh* if iteration k - 1 was its first in exactly one of the runs. Fresh tuples drive
      the instances they occur in: iteration k counts at once, later ones become events
4     the events of k count, unless a tuple of the instance has driven since they were made: it
      has then made another event, knowing more
5     heads whose count in k has changed, and those that wait for k, are looked at: is k the first
      iteration of the new run that derives them?

An instance that several tuples drive counts once: with the one that drives last, and among those
that drive in the same iteration with the first in the order of the body.

Where only first iterations are kept, a tuple that loses its own is searched for backwards
(re-discovery): the instances of the new run that derive it tell which iteration is next.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.cursor import advance, make_head, start
from tidelog.execute.local.keep.events import (
    CANDIDATE,
    E_DRIVE,
    E_KIND,
    E_NUMBER,
    E_OWN,
    E_RELATION,
    E_ROW,
    E_RUNS,
    E_SLOT,
    INSTANCE,
    TUPLE,
    events_of,
    new_event,
    next_event,
)
from tidelog.execute.local.keep.layout import (
    BODY,
    C_FORM,
    C_POSSIBLE,
    C_ROWS,
    CANDIDATES,
    DONE,
    DRIVEN,
    F_DRIVER,
    F_DRIVER_PART,
    F_HEAD,
    F_NUMBER,
    F_OWN,
    F_SLOT,
    F_STEP_COUNT,
    F_STEPS,
    LIST,
    LIST_CAPACITY,
    LIST_COUNT,
    LISTED,
    MARKS,
    MISS,
    MISSING,
    MISSING_IN_GUARD,
    NO_MEMORY,
    NONE,
    NOW,
    NUMBERS,
    OVER_BUDGET,
    PENDING,
    QUEUE,
    R_BUDGET,
    R_CONSIDERED,
    R_COUNTS,
    R_CURSOR,
    R_EVENT,
    R_FORM,
    R_FOUND,
    R_GUARD_CURSOR,
    R_K,
    R_KEEP,
    R_LAST,
    R_LATER,
    R_OPEN,
    R_POOL,
    R_POSITION,
    R_RELATION,
    R_ROUNDS,
    R_STAGE,
    R_WORK,
    SLOT,
    SOURCE,
    STEP_WORDS,
    TOUCHED_ROWS,
)
from tidelog.execute.local.keep.ledger import (
    ADDED,
    ASSERTED,
    DELETED,
    EXPLICIT,
    HELD,
    RETRACTED,
    find_or_append,
    is_in,
    marks_of,
    push,
    set_marks,
    touch,
)
from tidelog.execute.local.keep.sweep import failure
from tidelog.execute.local.keep.timing import LOW, NEW_RUN, OLD_RUN, new_first, old_first
from tidelog.execute.local.keep.traces import add_to_trace, count_in, next_iteration
from tidelog.execute.local.layout import COUNT, LEDGER
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
from tidelog.execute.local.rounds import extend_indexes

SEEDING, SETTLING, FRESH, DRIVING, EVENTS = 0, 1, 2, 3, 4
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
    if old == new or (drive and not drives(code, cursor, drive)):
        return DONE
    relation = word(code, form + F_HEAD)
    row = -1
    if (old != NO_ITERATION and old >= k) or (new != NO_ITERATION and new >= k):
        row = find_or_append(relation, make_head(code, cursor))
        if row < 0:
            return failure(row)
    if old == k or new == k:
        if not consider(run, word(code, form + F_NUMBER)):
            return OVER_BUDGET
        if not change_count(run, relation, row, -1 if old == k else 1):
            return NO_MEMORY
    if old != NO_ITERATION and old > k and not plan_instance(code, cursor, run, old, drive, possible, row):
        return NO_MEMORY
    if new != NO_ITERATION and new > k and not plan_instance(code, cursor, run, new, drive, possible, row):
        return NO_MEMORY
    return DONE


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


@kernel
def seed(code: int, forms: Words, run: int) -> int:
    """Step 1: whole readings, and those that changes of other strata drive."""
    cursor = word(run, R_CURSOR)
    while word(run, R_FORM) < len(forms):
        form = forms[word(run, R_FORM)]
        driver = word(code, form + F_DRIVER)
        count = 1
        if driver:
            count = load64(word(driver, LEDGER) + 8 * (TOUCHED_ROWS + LIST_COUNT))
        while word(run, R_POSITION) < count:
            if not word(run, R_OPEN):
                row = 0
                if driver:
                    row = word(load64(word(driver, LEDGER) + 8 * TOUCHED_ROWS), word(run, R_POSITION))
                    if not is_in(word(code, form + F_DRIVER_PART), marks_of(word(driver, LEDGER), row)):
                        set_word(run, R_POSITION, word(run, R_POSITION) + 1)
                        continue
                start(code, form, cursor, row)
                set_word(run, R_OPEN, 1)
            state = look_at_all(code, cursor, run, 0)
            if state != DONE:
                return state
            set_word(run, R_OPEN, 0)
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(run, R_POSITION, 0)
        set_word(run, R_FORM, word(run, R_FORM) + 1)
    set_word(run, R_FORM, 0)
    return DONE


@kernel
def seed_explicit(relations: Words, run: int, from_nothing: bool) -> bool:
    """Explicit facts that have come or gone count as an instance of iteration 1. False: no memory."""
    for relation in relations:
        ledger = word(relation, LEDGER)
        if from_nothing:
            for row in range(word(relation, COUNT)):
                if marks_of(ledger, row) & EXPLICIT and not change_count(run, relation, row, 1):
                    return False
            continue
        for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
            row = word(word(ledger, TOUCHED_ROWS), i)
            marks = marks_of(ledger, row)
            change = 0
            if marks & ASSERTED:
                change = 1
            elif marks & RETRACTED:
                change = -1
            if change and not change_count(run, relation, row, change):
                return False
    return True


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


@kernel
def gather_fresh(relations: Words, run: int) -> int:
    """Step 3, first half: the tuples that drive in this iteration; how many, or -1 without memory."""
    k = word(run, R_K)
    event = events_of(run, k)
    while event:
        place = word(run, R_POOL) + 8 * event
        if word(place, E_KIND) == TUPLE:
            ledger = word(word(place, E_RELATION), LEDGER)
            row = word(place, E_ROW)
            fresh = (old_first(ledger, row) == k - 1) != (new_first(ledger, row) == k - 1)
            if fresh and not push(ledger, QUEUE, row):
                return -1
        event = next_event(run, event)
    number = 0
    for relation in relations:
        ledger = word(relation, LEDGER)
        if not extend_indexes(relation):
            return -1
        for w in range(LIST, LIST_CAPACITY + 1):  # the queue becomes the list of this iteration
            swap = word(ledger, NOW + w)
            set_word(ledger, NOW + w, word(ledger, QUEUE + w))
            set_word(ledger, QUEUE + w, swap)
        set_word(ledger, QUEUE + LIST_COUNT, 0)
        count = word(ledger, NOW + LIST_COUNT)
        for i in range(count):
            store32(word(ledger, DRIVEN) + 4 * word(word(ledger, NOW), i), k)
        number += count
    return number


@kernel
def drive_fresh(relations: Words, code: int, forms: Words, owners: Words, run: int) -> int:
    """Step 3, second half."""
    cursor = word(run, R_CURSOR)
    while word(run, R_RELATION) < len(relations):
        number = word(run, R_RELATION)
        ledger = word(relations[number], LEDGER)
        while word(run, R_POSITION) < word(ledger, NOW + LIST_COUNT):
            while word(run, R_FORM) < len(forms):
                if owners[word(run, R_FORM)] == number:
                    if not word(run, R_OPEN):
                        row = word(word(ledger, NOW), word(run, R_POSITION))
                        start(code, forms[word(run, R_FORM)], cursor, row)
                        set_word(run, R_OPEN, 1)
                    state = look_at_all(code, cursor, run, word(run, R_K))
                    if state != DONE:
                        return state
                    set_word(run, R_OPEN, 0)
                set_word(run, R_FORM, word(run, R_FORM) + 1)
            set_word(run, R_FORM, 0)
            set_word(run, R_POSITION, word(run, R_POSITION) + 1)
        set_word(ledger, NOW + LIST_COUNT, 0)
        set_word(run, R_POSITION, 0)
        set_word(run, R_RELATION, number + 1)
    set_word(run, R_RELATION, 0)
    return DONE


@kernel
def is_latest(event: int) -> bool:
    """Whether no tuple of an event's instance has driven it since, or at once but before in the body."""
    drive = word(event, E_DRIVE)
    mine = word(event, E_SLOT)
    for slot in range(word(event, E_NUMBER) & 255):
        driven = driven_in(word(event, E_OWN + 2 * slot), word(event, E_OWN + 2 * slot + 1))
        if driven > drive or (driven == drive and drive and slot < mine):
            return False
    return True


@kernel
def happen(run: int, event: int) -> int:
    """Step 4, for the event of an instance."""
    k = word(run, R_K)
    old, new = 0, 0
    runs = word(event, E_RUNS)
    if not is_latest(event):
        return DONE
    for slot in range(word(event, E_NUMBER) & 255):
        ledger = word(event, E_OWN + 2 * slot)
        row = word(event, E_OWN + 2 * slot + 1)
        old = max(old, old_first(ledger, row))
        new = max(new, new_first(ledger, row))
        if new_first(ledger, row) == 0:
            runs &= ~NEW_RUN
    is_old = runs & OLD_RUN and old + 1 == k
    is_new = runs & NEW_RUN and new + 1 == k
    if is_old == is_new or (is_old and is_new):
        return DONE
    if not consider(run, word(event, E_NUMBER) >> 8):
        return OVER_BUDGET
    done = change_count(run, word(event, E_RELATION), word(event, E_ROW), -1 if is_old else 1)
    return DONE if done else NO_MEMORY


@kernel
def run_events(run: int) -> int:
    """Step 4."""
    event = events_of(run, word(run, R_K))
    while event:
        place = word(run, R_POOL) + 8 * event
        kind = word(place, E_KIND)
        if kind == INSTANCE:
            state = happen(run, place)
            if state != DONE:
                return state
        elif kind == CANDIDATE and not list_candidate(
            word(word(place, E_RELATION), LEDGER), word(place, E_ROW)
        ):
            return NO_MEMORY
        event = next_event(run, event)
    return DONE


@kernel
def mark_by_first(relations: Words) -> None:
    """At the end: a touched tuple holds if it has a first iteration."""
    for relation in relations:
        ledger = word(relation, LEDGER)
        for i in range(word(ledger, TOUCHED_ROWS + LIST_COUNT)):
            row = word(word(ledger, TOUCHED_ROWS), i)
            marks = marks_of(ledger, row) & ~(DELETED | ADDED)
            holds = new_first(ledger, row) != 0
            if marks & HELD:
                marks |= 0 if holds else DELETED
            else:
                marks |= ADDED if holds else 0
            set_marks(ledger, row, marks)
            store32(word(ledger, DRIVEN) + 4 * row, 0)


@kernel
def steps(
    relations: Words,
    code: int,
    seeds: Words,
    forms: Words,
    owners: Words,
    backward: Words,
    backward_owners: Words,
    from_nothing: bool,
    run: int,
) -> int:
    """The whole fixpoint, or what is left of it."""
    if word(run, R_STAGE) == SEEDING:
        set_word(run, R_K, 1)
        if word(run, R_EVENT) == 0:
            if not seed_explicit(relations, run, from_nothing):
                return NO_MEMORY
            set_word(run, R_EVENT, 1)
        state = seed(code, seeds, run)
        if state != DONE:
            return state
        set_word(run, R_STAGE, SETTLING)
    while True:
        if word(run, R_STAGE) == SETTLING:
            state = settle(relations, code, backward, backward_owners, run)
            if state != DONE:
                return state
            set_word(run, R_ROUNDS, word(run, R_K))
            set_word(run, R_K, word(run, R_K) + 1)
            set_word(run, R_STAGE, FRESH)
        if word(run, R_STAGE) == FRESH:
            fresh = gather_fresh(relations, run)
            if fresh < 0:
                return NO_MEMORY
            if fresh == 0 and word(run, R_K) > word(run, R_LAST):
                break
            set_word(run, R_STAGE, DRIVING)
        if word(run, R_STAGE) == DRIVING:
            state = drive_fresh(relations, code, forms, owners, run)
            if state != DONE:
                return state
            set_word(run, R_STAGE, EVENTS)
        state = run_events(run)
        if state != DONE:
            return state
        set_word(run, R_STAGE, SETTLING)
    mark_by_first(relations)
    for relation in relations:
        if not extend_indexes(relation):
            return NO_MEMORY
    return DONE
