"""A relation as a list of levels, so that a commit writes as much as it changes, and reading stays cheap.

The first level has what was there once, the others what commits have changed since. Eight of a
tier become one of the next tier: a row is written again as often as the number of commits
has octal digits, and a list has at most seven levels for each of these. When the changes have more rows than
the first level, all become one: reading a relation then takes no more than two to three times its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidelog.session.store.manifest import Level, Levels
from tidelog.session.store.rows import Moves, Sets, T

FAN = 8
FEW = 10_000  # rows of changes that are no reason to write a relation anew

Merge = Callable[[Levels, bool], Level]


def with_level(levels: Levels, level: Level, merge: Merge) -> Levels:
    """A list with one more level. `merge` writes several as one, which is the first or comes later."""
    if not levels:  # nothing can be deleted
        level = replace(level, deleted=None)
    if not level.parts:
        return levels
    levels = (*levels, level)
    changes = sum(later.rows for later in levels[1:])
    if changes > levels[0].rows and (len(levels) > FAN or changes > FEW):
        whole = merge(levels, True)
        return (whole,) if whole.parts else ()
    while len(levels) > FAN and len({level.tier for level in levels[-FAN:]}) == 1:
        levels = (*levels[:-FAN], merge(levels[-FAN:], False))
    return levels


def folded(levels: Levels, sets: Sets[T], *, first: bool, exact: bool) -> Moves[T]:
    """Several levels as one; before the `first` there is nothing.

    In an `exact` list no level inserts what is there.
    """
    gone: T | None = None
    come: T | None = None
    for level in levels:
        if level.deleted is not None:
            rows = sets.read(level.deleted)
            come = None if come is None else sets.minus(come, rows)
            if not first:
                gone = rows if gone is None else sets.plus(sets.minus(gone, rows), rows)
        if level.inserted is not None:
            rows = sets.read(level.inserted)
            come = rows if come is None else sets.plus(come if exact else sets.minus(come, rows), rows)
    return Moves(gone, come)


def merged(levels: Levels, sets: Sets[T], path: Callable[[str], str], *, first: bool, exact: bool) -> Level:
    """Several levels written as one; `path` makes a name from what a file holds."""
    moves = folded(levels, sets, first=first, exact=exact)
    what = "snapshot" if first else f"merged{levels[-1].tier + 1}"
    return Level(
        None if moves.gone is None else sets.write(moves.gone, path(f"{what}-deleted")),
        None if moves.come is None else sets.write(moves.come, path(what if first else f"{what}-inserted")),
        0 if first else levels[-1].tier + 1,
    )
