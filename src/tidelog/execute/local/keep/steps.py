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
(re-discovery): the instances of the new run that derive it tell which iteration is next. It is searched for
again when own tuples of an instance have gone and come back that is then in the same iteration of both runs.
"""

from __future__ import annotations

from tidelog.execute.local.keep.cursor import start
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
    next_event,
)
from tidelog.execute.local.keep.instances import (
    change_count,
    consider,
    driven_in,
    list_candidate,
    look_at_all,
    wait_for,
)
from tidelog.execute.local.keep.layout import (
    DONE,
    DRIVEN,
    F_DRIVER,
    F_DRIVER_PART,
    LIST,
    LIST_CAPACITY,
    LIST_COUNT,
    NO_MEMORY,
    NOW,
    QUEUE,
    R_CURSOR,
    R_EVENT,
    R_FORM,
    R_K,
    R_KEEP,
    R_LAST,
    R_OPEN,
    R_POOL,
    R_POSITION,
    R_RELATION,
    R_ROUNDS,
    R_STAGE,
    TOUCHED_ROWS,
)
from tidelog.execute.local.keep.ledger import is_in, marks_of, push, set_marks
from tidelog.execute.local.keep.marks import ADDED, ASSERTED, DELETED, EXPLICIT, HELD, RETRACTED
from tidelog.execute.local.keep.settling import settle
from tidelog.execute.local.keep.timing import NEW_RUN, OLD_RUN, new_first, old_first
from tidelog.execute.local.layout import COUNT, LEDGER
from tidelog.execute.local.memory import (
    Words,
    kernel,
    load64,
    set_word,
    store32,
    word,
)
from tidelog.execute.local.rounds import extend_indexes

SEEDING, SETTLING, FRESH, DRIVING, EVENTS = 0, 1, 2, 3, 4


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
    if is_old and is_new:
        waits = word(run, R_KEEP) or wait_for(run, word(event, E_RELATION), word(event, E_ROW), k)
        return DONE if waits else NO_MEMORY
    if not is_old and not is_new:
        return DONE
    consider(run, word(event, E_NUMBER) >> 8)
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
