"""What a commit does to the explicit facts of relations that rules derive into.

There it cannot be told from the tuples that come and go. It is what the operations say: of several
words on a fact the last one counts. Whether a fact was there before is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tidelog.session.backend import Operation, Work
from tidelog.session.frames.given import EVERYTHING, GivenFrame
from tidelog.session.store.rows import Moves, Sets, T

if TYPE_CHECKING:
    import pyarrow as pa

Words = Sequence[tuple[bool, object]]  # whether rows come, and the rows; in order


def computed(work: Work, derived: Collection[str]) -> tuple[Work, dict[str, Words]]:
    """What a commit says of some relations' facts.

    DataFrames are computed, and only once: the work has them so. Raises DataError.
    """
    operations: list[Operation] = []
    words: dict[str, list[tuple[bool, object]]] = {}
    for operation in work.operations:
        relation = work.new.relations.get(operation.relation)
        if operation.relation not in derived or relation is None:
            operations.append(operation)
            continue
        said = words.setdefault(operation.relation, [])
        rows: object = operation.rows
        if isinstance(rows, GivenFrame):
            from tidelog.execute.spark.state import split_changes

            done = rows.computed(rows.frame.sparkSession, relation)
            frame = done.read()
            if frame is not None:
                operation = operation._replace(rows=cast("pa.Table", replace(rows, frame=frame)))
            if rows.of_changes:
                come, gone = split_changes(done)
                said += [(False, gone), (True, come)]
            else:
                said.append((operation.insert, done))
        else:
            said.append((operation.insert, rows))
        operations.append(operation)
    return (replace(work, operations=operations) if words else work), dict(words)


def since_cleared(words: Words) -> tuple[bool, Words]:
    """Whether all facts were taken away, and what was said after that."""
    begin = max((i + 1 for i, (_, rows) in enumerate(words) if rows is EVERYTHING), default=0)
    return begin > 0, words[begin:]


def last_words(words: Words, sets: Sets[T]) -> Moves[T]:
    """What is said in the end."""
    gone: T | None = None
    come: T | None = None
    for insert, rows in words:
        given = sets.given(rows)
        mine, other = (come, gone) if insert else (gone, come)
        mine = given if mine is None else sets.plus(sets.minus(mine, given), given)
        other = None if other is None else sets.minus(other, given)
        gone, come = (other, mine) if insert else (mine, other)
    return Moves(gone, come)
