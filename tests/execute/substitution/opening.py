"""Keepers with small relations of integers, for tests."""

from __future__ import annotations

from collections.abc import Iterable

from tests.running import Row, rows_of
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.plan.maintenance import Standing
from tidelog.plan.parts import Mark
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64, Type

HELD = Mark.HELD
FACT = Mark.HELD | Mark.EXPLICIT


def relation(name: str, *types: Type) -> Relation:
    return Relation(name, tuple(Column(f"c{i}", t) for i, t in enumerate(types)))


def keeper(derived: str, **facts: Iterable[Row]) -> SubstitutionExecutor:
    """A keeper that holds facts. `derived` is like `p/2 q/1`: relations that rules derive into."""
    opened = SubstitutionExecutor()
    arities = {name: len(next(iter(rows))) for name, rows in facts.items() if rows}
    arities |= {text.split("/")[0]: int(text.split("/")[1]) for text in derived.split()}
    for name, arity in arities.items():
        opened.create(relation(name, *[S64] * arity))
    opened.derives([text.split("/")[0] for text in derived.split()])
    opened.remember(True)
    if facts:
        opened.begin()
        for name, rows in facts.items():
            opened.assert_rows(name, list(rows))
        for text in derived.split():
            name = text.split("/")[0]
            opened.renew([name])
            opened.renewed([name])
        opened.commit()
    return opened


def held(executor: SubstitutionExecutor, name: str) -> set[Row]:
    return {row for row, known in executor.standing(name).items() if known.marks & Mark.HELD}


def having(executor: SubstitutionExecutor, name: str, mark: Mark) -> set[Row]:
    return {row for row, known in executor.standing(name).items() if known.marks & mark}


def changes(executor: SubstitutionExecutor, name: str, arity: int) -> tuple[set[Row], set[Row]]:
    """What the commit takes from a relation of integers and adds to it."""
    made, delta = relation(name, *[S64] * arity), executor.delta(name)
    found = rows_of(made, delta.deleted), rows_of(made, delta.inserted)
    assert executor.changed(name) == (len(found[0]), len(found[1]))
    return found


def numbers(executor: SubstitutionExecutor, name: str) -> dict[Row, tuple[int, int]]:
    """First iteration (or rank) and count of the tuples that hold or did."""
    return {row: (known.first, known.count) for row, known in executor.standing(name).items()}


def traces(executor: SubstitutionExecutor, name: str) -> dict[Row, dict[int, int]]:
    return {row: dict(known.trace) for row, known in executor.standing(name).items()}


def whole_state(executor: SubstitutionExecutor, *names: str) -> dict[str, dict[Row, Standing]]:
    return {name: executor.standing(name) for name in names}
