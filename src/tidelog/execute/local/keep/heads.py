"""Heads of rule instances: reached by a sweep, or counted by a tally.

Where ranks are kept, the low half of a tuple's numbers has the number of instances that derive it
if this is KNOWN, as it is of tuples that a sweep has brought, and of first ones that came by one instance.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.cursor import (
    first_of,
    highest_first,
    make_head,
    was_there,
)
from tidelog.execute.local.keep.layout import (
    C_FORM,
    DONE,
    F_HEAD,
    F_NUMBER,
    F_SIGN,
    NO_MEMORY,
    NUMBERS,
    QUEUE,
    R_BUDGET,
    R_CONSIDERED,
    R_COUNTS,
    R_INSTANCES,
    R_NEW,
    R_RANKS,
    R_STAGE,
    R_WORK,
    SPREADING,
    TOO_MANY,
)
from tidelog.execute.local.keep.ledger import (
    NO_NUMBERS,
    append_row,
    is_in,
    marks_of,
    push,
    set_marks,
    touch,
)
from tidelog.execute.local.keep.rowmap import (
    find_row,
)
from tidelog.execute.local.layout import (
    LEDGER,
)
from tidelog.execute.local.memory import (
    kernel,
    load64,
    set_word,
    store64,
    word,
)
from tidelog.plan.parts import (
    Mark,
)

QUEUED, CURRENT, CHECKED = int(Mark.QUEUED), int(Mark.CURRENT), int(Mark.CHECKED)
WAITING = QUEUED | CURRENT
LOW = (1 << 32) - 1
KNOWN = 1 << 31

# What the instances of a sweep mean for the counts of their heads.
GAINED, LOST, MIXED, FORMER_LOST = 1, 2, 3, 4


@kernel
def failure(number: int) -> int:
    """How a task ends when a row could not be appended."""
    return TOO_MANY if number == NO_NUMBERS else NO_MEMORY


@kernel
def count_instance(code: int, cursor: int, run: int) -> bool:
    """Count the current instance. False: the budget is spent."""
    counts = word(run, R_COUNTS)
    number = word(code, word(cursor, C_FORM) + F_NUMBER)
    set_word(counts, number, word(counts, number) + 1)
    set_word(run, R_CONSIDERED, word(run, R_CONSIDERED) + 1)
    return word(run, R_WORK) <= word(run, R_BUDGET)


@kernel
def set_first(ledger: int, row: int, first: int) -> None:
    numbers = word(ledger, NUMBERS) + 8 * row
    store64(numbers, (first << 32) | (load64(numbers) & LOW))


@kernel
def recount(ledger: int, row: int, instances: int) -> bool:
    """One more instance, or one less, derives a row; or it is no longer clear. False: no memory."""
    count = load64(word(ledger, NUMBERS) + 8 * row) & LOW
    if not count & KNOWN:
        return True
    if not touch(ledger, row):
        return False
    numbers = word(ledger, NUMBERS) + 8 * row
    if instances == MIXED or count == LOW:
        store64(numbers, load64(numbers) & ~LOW)
    else:
        store64(numbers, load64(numbers) + (1 if instances == GAINED else -1))
    return True


@kernel
def has_no_instance(ledger: int, row: int, run: int) -> bool:
    """Whether it is known that no instance derives a row any more, of those that were there before."""
    instances = word(run, R_INSTANCES)
    if instances != LOST and instances != FORMER_LOST:
        return False
    return load64(word(ledger, NUMBERS) + 8 * row) & LOW == KNOWN


@kernel
def is_counted(code: int, cursor: int, run: int) -> bool:
    """Whether the current instance counts for its head."""
    instances = word(run, R_INSTANCES)
    if instances != FORMER_LOST or word(run, R_STAGE) != SPREADING:
        return instances != 0
    return was_there(code, cursor)


@kernel
def stands_elsewhere(code: int, cursor: int, run: int, ledger: int, row: int) -> bool:
    """Whether a row can do without the current instance, which is lost: it is not from lower ranks."""
    instances = word(run, R_INSTANCES)
    if instances == 0 or instances == GAINED or has_no_instance(ledger, row, run):
        return False
    first = first_of(ledger, row)
    return first != 0 and highest_first(code, cursor) >= first


@kernel
def enqueue(ledger: int, row: int, marks: int, rank: int) -> bool:
    """Mark a row QUEUED, with a rank if it is not 0. False: no memory."""
    if not touch(ledger, row):
        return False
    set_marks(ledger, row, marks | QUEUED)
    if rank:
        set_first(ledger, row, rank)
    return push(ledger, QUEUE, row)


@kernel
def reach(code: int, cursor: int, run: int, part: int) -> int:
    """Queue the head of the current instance if it is in a part and not waiting; DONE or a failure."""
    relation = word(code, word(cursor, C_FORM) + F_HEAD)
    ledger = word(relation, LEDGER)
    head = make_head(code, cursor)
    row = find_row(relation, head)
    marks = 0
    if row >= 0:
        if is_counted(code, cursor, run) and not recount(ledger, row, word(run, R_INSTANCES)):
            return NO_MEMORY
        marks = marks_of(ledger, row)
    if marks & WAITING or not is_in(part, marks):
        return DONE
    if row >= 0 and stands_elsewhere(code, cursor, run, ledger, row):
        return DONE
    if row < 0:
        row = append_row(relation, head)
        if row < 0:
            return failure(row)
        set_word(run, R_NEW, word(run, R_NEW) + 1)
        if word(run, R_INSTANCES) == GAINED:
            store64(word(ledger, NUMBERS) + 8 * row, KNOWN | 1)
    rank = highest_first(code, cursor) + 1 if word(run, R_RANKS) else 0
    return DONE if enqueue(ledger, row, marks, rank) else NO_MEMORY


@kernel
def tally(code: int, cursor: int) -> int:
    """Add the reading's sign to the count of the current instance's head; DONE or a failure."""
    form = word(cursor, C_FORM)
    relation = word(code, form + F_HEAD)
    ledger = word(relation, LEDGER)
    head = make_head(code, cursor)
    row = find_row(relation, head)
    if row < 0:
        row = append_row(relation, head)
        if row < 0:
            return failure(row)
    elif not touch(ledger, row):
        return NO_MEMORY
    numbers = word(ledger, NUMBERS) + 8 * row
    both = load64(numbers) + word(code, form + F_SIGN)
    if both & LOW == KNOWN and word(code, form + F_SIGN) > 0:
        return TOO_MANY  # more derivations than a count can hold
    store64(numbers, both)
    return DONE
