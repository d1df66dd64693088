"""Small cases in which an algorithm once went wrong: swaps, proofs in circles, something old beside new."""

from __future__ import annotations

import itertools

import pytest

import tidelog

NAMES = ("recompute", "ranked", "auto", "counting", "dbsp", "dred", "elastic", "elastic(100)")
DEPTHS = ("fbf", *(f"fbf({depth})" for depth in range(5)))
ENGINES = ("local", "substitution")

DECLARATIONS = """
input relation E(a: s64, b: s64)
output relation P(a: s64, b: s64)
"""
RULES = ("P(x, y) :- E(x, y).", "P(x, y) :- P(y, x), P(x, x).", "P(x, z) :- P(x, y), E(y, z).")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [*NAMES, *DEPTHS])
@pytest.mark.parametrize("rules", list(itertools.permutations((*RULES, "P(x, y) :- E(y, x)."))))
def test_a_tuple_is_found_again_in_an_iteration_in_which_nothing_changed(
    rules: tuple[str, ...], algorithm: str, engine: str
) -> None:
    # P(1, 4) loses iteration 1. In 3 it has P(4, 1) and P(1, 1), as before; P(4, 1) has gone and come back.
    with tidelog.Database(DECLARATIONS + "\n".join(rules), algorithm=algorithm, engine=engine) as db:
        db.commit(insert={"P": [(4, 5)]})
        db.commit(insert={"E": [(4, 1), (5, 1)]})
        changes = db.commit(delete={"E": [(4, 1)]})
        assert set(db["P"]) == {(1, 1), (1, 4), (1, 5), (4, 1), (4, 5), (5, 1)}
        assert len(changes["P"]) == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [*NAMES, *DEPTHS])
@pytest.mark.parametrize("rules", list(itertools.permutations(RULES)))
def test_what_was_given_up_inside_a_circle_comes_back(
    rules: tuple[str, ...], algorithm: str, engine: str
) -> None:
    ring = [(20, 11), (11, 18), (18, 9), (9, 20)]
    with tidelog.Database(DECLARATIONS + "\n".join(rules), algorithm=algorithm, engine=engine) as db:
        db.commit(insert={"E": [*ring, (7, 11)]})
        db.commit(delete={"E": [(7, 11)]})
        assert set(db["P"]) == set(itertools.product((9, 11, 18, 20), repeat=2))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [*NAMES, *DEPTHS])
def test_something_new_meets_what_was_deleted_and_came_back(algorithm: str, engine: str) -> None:
    program = """
        input relation e(x: s64)
        input relation f(x: s64, y: s64)
        output relation p(x: s64)
        p(x) :- e(x).
        p(y) :- f(y, z), p(z).
    """
    with tidelog.Database(program, algorithm=algorithm, engine=engine) as db:
        db.commit(insert={"e": [(0,), (1,)], "f": [(1, 0), (1, 1), (2, 0), (0, 0)]})
        changes = db.commit(delete={"e": [(1,)], "f": [(0, 0)]}, insert={"f": [(3, 1)]})
        assert set(db["p"]) == {(0,), (1,), (2,), (3,)}
        assert (changes["p"].inserted, changes["p"].deleted) == ([(3,)], [])


FAILING = """
    input relation e(x: s64)
    input relation f(x: s64, y: s64)
    output relation p(x: s64)
    p(x) :- e(x).
    p(y) :- f(y, z), p(z), var d = 10 / z.
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", [*NAMES, *DEPTHS])
@pytest.mark.parametrize("facts", [2, 50])
def test_a_division_of_something_new_by_something_gone_does_not_fail(
    facts: int, algorithm: str, engine: str
) -> None:
    with tidelog.Database(FAILING, algorithm=algorithm, engine=engine) as db:
        held = [(i,) for i in range(facts)]
        db.commit(insert={"e": held, "f": [(100 + i, i) for i in range(1, facts)]})
        before = set(db["p"])
        changes = db.commit(delete={"e": [(0,)]}, insert={"f": [(3, 0)]})
        assert (changes["p"].inserted, changes["p"].deleted) == ([], [(0,)])
        with pytest.raises(tidelog.TidelogError, match=r"TL0401.*division by zero"):
            db.commit(insert={"e": [(0,)]})
        assert set(db["p"]) == before - {(0,)}
        db.commit(insert={"e": [(0,)]}, delete={"f": [(3, 0)]})
        assert set(db["p"]) == before
