"""What needs no Spark job: a reading whose driving tuples meet nothing, or need to meet nothing.

Relations of few tuples are on the driver. Where one of them has no tuple that agrees with a driving one,
the rule has no instance. The last round of a task is mostly of this kind. Where a rule reads nothing but
its driver, each driving tuple is an instance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tidelog.execute.spark.keep.entries import Cell, Row, constant
from tidelog.execute.spark.keep.relation import KeptRelation
from tidelog.plan.maintenance import Reading
from tidelog.program.model import Atom, Const, Positive, Var, Wildcard


def driver_atom(reading: Reading) -> Atom:
    """The atom that drives a reading."""
    assert reading.driver is not None
    literal = reading.rule.body[reading.driver]
    assert isinstance(literal, Positive)
    return literal.atom


def touched_rows(reading: Reading, relations: Mapping[str, KeptRelation]) -> list[Row] | None:
    """The touched tuples that drive a reading; None if they are in Spark."""
    kept = relations[driver_atom(reading).relation]
    assert reading.driver is not None
    part = reading.parts[reading.driver]
    assert part is not None
    return None if kept.bulk is not None else [entry.row for entry in kept.near.touched(part)]


def meet(
    reading: Reading,
    driving: Collection[Row],
    relations: Mapping[str, KeptRelation],
    whole: Collection[str] = (),
) -> bool:
    """Whether there may be instances with one of some tuples at the driver.

    Relations in `whole` are not read by parts: any of their tuples may do.
    """
    at = {term.name: i for i, term in enumerate(driver_atom(reading).terms) if isinstance(term, Var)}
    for i, literal in enumerate(reading.rule.body):
        if i == reading.driver or not isinstance(literal, Positive):
            continue
        name = literal.atom.relation
        kept, part = relations[name], reading.parts[i]
        if kept.base is not None or kept.bulk is not None:
            continue
        assert part is not None
        terms = list(enumerate(literal.atom.terms))
        shared = [(j, at[t.name]) for j, t in terms if isinstance(t, Var) and t.name in at]
        fixed = [(j, constant(t.value, kept.types[j])) for j, t in terms if isinstance(t, Const)]
        wanted = {tuple(row[k] for _, k in shared) for row in driving}
        rows: Iterable[Row] = (
            row for row, entry in kept.near.entries.items() if name in whole or entry.within(part)
        )
        if not any(
            tuple(row[j] for j, _ in shared) in wanted and all(row[j] == cell for j, cell in fixed)
            for row in rows
        ):
            return False
    return True


def handed_on(reading: Reading, driving: Collection[Row], head: Sequence[Var | Const]) -> list[Row] | None:
    """What becomes of driving tuples in a rule that reads nothing else; None if there is more to it."""
    terms = driver_atom(reading).terms
    at = {term.name: i for i, term in enumerate(terms) if isinstance(term, Var)}
    plain = len(at) == sum(not isinstance(term, Wildcard) for term in terms)  # no constant, no variable twice
    if len(reading.rule.body) > 1 or not plain:
        return None
    cells: list[tuple[int | None, Cell]] = [
        (at[term.name], False) if isinstance(term, Var) else (None, constant(term.value, term.type))
        for term in head
    ]
    return [tuple(cell if i is None else row[i] for i, cell in cells) for row in driving]
