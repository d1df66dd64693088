"""Which run has a tuple: the old one, the new one, or both, of a fixpoint in step.

A cursor in step keeps for each level whether the instance, as far as it goes, can be one of
the old run (1), of the new one (2), or of both (3), and drops a match as soon as neither can
have it. An own tuple is in a run if it has a first iteration there; a tuple of another stratum
is in the old run if it was held before the commit, and in the new one if it holds now.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import (
    ALL_MARKS,
    BODY,
    C_POSSIBLE,
    FLIP,
    FORMER,
    MARKS,
    NUMBERS,
    TOUCHED,
)
from tidelog.execute.local.memory import kernel, load16, load64, set_word, word
from tidelog.plan.parts import Mark

OLD_RUN, NEW_RUN = 1, 2
HELD, DELETED, ADDED = int(Mark.HELD), int(Mark.DELETED), int(Mark.ADDED)
LOW = (1 << 32) - 1


@kernel
def new_first(ledger: int, row: int) -> int:
    """The first iteration of the new run that has a tuple; 0: none has."""
    return (load64(word(ledger, NUMBERS) + 8 * row) >> 32) & LOW


@kernel
def old_first(ledger: int, row: int) -> int:
    """The first iteration of the old run that has a tuple; 0: none had."""
    if load16(word(ledger, MARKS) + 2 * row) & TOUCHED:
        return (load64(word(ledger, FORMER) + 8 * row) >> 32) & LOW
    return new_first(ledger, row)


@kernel
def narrow(cursor: int, level: int, runs: int) -> bool:
    """Go on with the runs that have this level's match too. False: none is left."""
    possible = word(cursor, C_POSSIBLE)
    left = word(possible, level) & runs
    set_word(possible, level + 1, left)
    return left != 0


@kernel
def matches_in_step(code: int, step: int, cursor: int, level: int, ledger: int, row: int) -> bool:
    runs = 0
    if word(code, step + BODY):
        if old_first(ledger, row):
            runs = OLD_RUN
        if new_first(ledger, row):
            runs |= NEW_RUN
    else:
        marks = load16(word(ledger, MARKS) + 2 * row) & ALL_MARKS
        if marks & HELD:
            runs = OLD_RUN
        if (marks & (HELD | DELETED)) == HELD or marks & ADDED:
            runs |= NEW_RUN
        if word(code, step + FLIP):
            runs ^= OLD_RUN | NEW_RUN
    return narrow(cursor, level, runs)


@kernel
def passes_in_step(cursor: int, level: int, ledger: int, row: int) -> bool:
    """A negated atom, given the row of its tuple (-1: it is not stored)."""
    runs = OLD_RUN | NEW_RUN
    if row >= 0:
        marks = load16(word(ledger, MARKS) + 2 * row) & ALL_MARKS
        if marks & HELD:
            runs &= ~OLD_RUN
        if (marks & (HELD | DELETED)) == HELD or marks & ADDED:
            runs &= ~NEW_RUN
    return narrow(cursor, level, runs)
