"""Commits on which something once was wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tidelog
from tidelog.maintain.algorithms import ALGORITHMS

REACHED = """
.decl edge(x: number, y: number)
.input edge
.decl f(x: number, y: number)
.input f
.decl path(x: number, y: number)
.decl q(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
q(x, z) :- f(x, y), path(y, z).
"""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_row_that_comes_and_goes_and_is_derived_is_in_new_indexes(algorithm: str) -> None:
    """Indexes are made by the first update; a row without marks was missing in them for ever."""
    db = tidelog.Database(REACHED, algorithm=algorithm)
    db.commit(insert={"edge": [(1, 2), (2, 3)], "f": [(100 + i, 200 + i) for i in range(50)]})
    with db.transaction() as tx:
        tx.insert("path", [(1, 5)])
        tx.delete("path", [(1, 5)])
        tx.insert("edge", [(1, 5)])
        tx.insert("f", [(7, 1)])
    assert sorted(db["q"]) == [(7, 2), (7, 3), (7, 5)]


def test_a_relation_too_wide_to_be_kept_is_refused_at_once_and_nothing_changes() -> None:
    columns = ", ".join(f"c{i}: number" for i in range(260))
    names = ", ".join(f"c{i}" for i in range(260))
    db = tidelog.Database(f".decl wide({columns})\n.input wide\n.decl r({columns})\n")
    rows = pa.table({f"c{i}": np.arange(12_000) for i in range(260)})
    db.commit(insert={"wide": rows})
    version = db.version
    with pytest.raises(tidelog.TidelogError, match="TL0605"):
        db.commit(add_rules=[f"r({names}) :- wide({names}).", f"r({names}) :- r({names})."])
    assert (db.version, len(db["wide"]), list(db.rules)) == (version, 12_000, [])
    db.commit(delete={"wide": rows.slice(0, 1)})
    assert len(db["wide"]) == 11_999


def test_rules_that_come_and_go_leave_no_compiled_tasks() -> None:
    db = tidelog.Database(REACHED, algorithm="ranked")
    db.commit(insert={"edge": [(1, 2), (2, 3)]})
    rule = "q(x, y) :- edge(x, y), path(y, x)."
    for _ in range(20):
        db.commit(add_rules=[rule])
        db.commit(insert={"edge": [(3, 1)]})
        db.commit(delete={"edge": [(3, 1)]})
        db.commit(remove_rules=[rule])
    keeper = db._commits.backend.keeper  # type: ignore[union-attr]
    assert len(keeper._compiled) <= 10


GUARDED = """
.decl M(a: number)
.decl R(a: number)
.decl z()
.decl S(a: number, b: number)
.decl D(a: number)
.output D
"""
ZERO, MORE = {"M": [(0,)]}, {"M": [(0,), (3,)], "R": [(0,)]}


@pytest.mark.parametrize(
    ("rule", "facts", "answers"),
    [
        ("D(q) :- R(x), M(y), y > x, q = 12 / y.", MORE, [(4,)]),
        ("D(q) :- M(y), R(x), y != x, q = 12 / y.", MORE, [(4,)]),
        ("D(q) :- M(y), z(), q = 12 / y.", ZERO, []),
        ("D(12 / y) :- M(y), z().", ZERO, []),
        ("D(b) :- M(y), z(), q = 12 / y, R(q), S(q, b).", ZERO, []),
        ("D(q) :- M(y), z(), 12 / y > 3, q = y.", ZERO, []),
        ("D(q) :- M(y), q = 12 / y, 1 < count : { R(_) }.", {**ZERO, "R": [(1,)]}, []),
        ("D(q) :- D(x), M(y), y > x, q = 12 / y. D(0) :- R(_).", MORE, [(0,), (4,)]),
        ("D(b) :- M(y), q = 12 / y, R(q), S(q, b).", {"M": [(3,)], "R": [(4,)], "S": [(4, 7)]}, [(7,)]),
    ],
)
def test_what_has_nothing_to_do_with_a_division_guards_it_too(
    rule: str, facts: dict[str, list[tuple[int, ...]]], answers: list[tuple[int, ...]]
) -> None:
    """Where answers are kept current as where they are derived anew."""
    for algorithm in ALGORITHMS:
        db = tidelog.Database(GUARDED + rule, algorithm=algorithm)
        db.commit(insert=facts)
        assert sorted(db["D"]) == answers, algorithm
        db.commit(delete={"M": facts["M"]})
        db.commit(insert={"M": facts["M"]})
        assert sorted(db["D"]) == answers, algorithm
    db = tidelog.Database(GUARDED + rule, maintained=False)
    db.commit(insert=facts)
    assert sorted(db["D"]) == answers
