"""A rule that swaps columns on a diagonal: support moves to later iterations, proofs run in circles."""

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
