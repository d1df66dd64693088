"""Histories on which something once was wrong, found by the property and made small."""

from __future__ import annotations

import pytest

from tests.properties.expected import Expected
from tests.properties.histories import AddRule, Delete, History, Insert, RemoveRule, Transaction
from tests.properties.replay import ALGORITHMS, ENGINES, Way, problem_of

EDGES = (".decl e_a(c0: number, c1: number)", ".input e_a")
CLOSURE = ("r0_a(x, y) :- e_a(x, y).", "r0_a(x, z) :- r0_a(x, y), e_a(y, z).")


def history(
    declarations: tuple[str, ...], rules: tuple[str, ...], *transactions: Transaction, declared: bool = True
) -> History:
    return History(0, declarations, rules, transactions, declared)


def commit(*operations: Insert | Delete | AddRule | RemoveRule, ending: str = "commit") -> Transaction:
    return Transaction(operations, ending)


FOUND = {
    # An index made in the middle of a renewal had rows that were lost in this commit.
    "an index made while a stratum starts anew": history(
        (
            ".decl e_a(c0: symbol, c1: number)",
            ".decl e_b(c0: number, c1: number)",
            ".decl r0_a(c0: number, c1: number)",
            ".decl r0_b(c0: number, c1: number)",
        ),
        ("r0_b(n10, n8) :- n10 = n8 - 1, e_a(s7, n8).", "r0_b(x, z) :- r0_a(x, y), e_b(y, z)."),
        commit(Insert("e_a", ("c", 3)), Insert("e_b", (3, 0))),
        commit(AddRule("r0_a(n4, n5) :- r0_b(n4, n5)."), Delete("e_b", (3, 0))),
        declared=False,
    ),
    # Lost rows stayed hidden when a task failed in the middle of a renewal.
    "a failure while a stratum starts anew": history(
        (*EDGES, ".decl r0_a(c0: number, c1: number)", ".output r0_a"),
        CLOSURE,
        commit(Insert("e_a", (1, 2)), Insert("e_a", (2, 3)), Insert("e_a", (3, 4))),
        commit(
            Delete("e_a", (2, 3)), AddRule("r0_a(x, 1) :- e_a(x, y), 1 / (x - x) > 0."), ending="failure"
        ),
        commit(Insert("e_a", (4, 5))),
        commit(Delete("e_a", (3, 4))),
    ),
    # A rank of 0, which counts leave behind, was taken for no limit.
    "a tuple that stands on itself, after counts": history(
        (*EDGES, ".decl r0_a(c0: number)", ".output r0_a"),
        ("r0_a(n1) :- e_a(n0, n1).",),
        commit(Insert("e_a", (1, 3))),
        commit(RemoveRule("r0_a(n1) :- e_a(n0, n1)."), AddRule("r0_a(n6) :- r0_a(n6).")),
    ),
    # Relations that went with their last rule were not found by operations of the same transaction.
    "facts deleted from a relation that goes with its rule": history(
        (
            ".decl r0_b(c0: number, c1: number)",
            ".decl r1_a(c0: number, c1: number)",
            ".decl r1_b()",
            ".decl r2_a(c0: number, c1: number)",
        ),
        ("r1_a(4, 1) :- r1_b().", "r1_a(x, z) :- r0_b(x, y), r1_a(y, z).", "r2_a(x, y) :- r0_b(y, x)."),
        commit(RemoveRule("r2_a(x, y) :- r0_b(y, x)."), Delete("r2_a", (2, 3))),
        commit(Insert("r2_a", (2, 3))),
        declared=False,
    ),
    "facts that come and go with a relation's last rule": history(
        (".decl e_a(c0: number)", ".decl e_b(c0: number)", ".decl r0_a(c0: number)"),
        ("r0_a(x) :- e_b(x), e_a(x).", "r0_a(x) :- e_a(x), x > 2."),
        commit(
            Insert("e_b", (2,)),
            RemoveRule("r0_a(x) :- e_b(x), e_a(x)."),
            Delete("e_b", (2,)),
            Insert("e_a", (3,)),
        ),
        declared=False,
    ),
    "types that came with a rule that goes again": history(
        (
            ".decl e_b(c0: symbol, c1: number, c2: number)",
            ".decl r0_a(c0: number, c1: number)",
            ".decl r0_c(c0: number)",
            ".decl r2_a(c0: number, c1: number)",
        ),
        ('r2_a(x, y) :- r2_a(x, y), e_b("c", _, y).', "r2_a(x, z) :- r0_a(x, y), r2_a(y, z)."),
        commit(
            AddRule("r0_c(x) :- e_b(_, x, _), y = -x + 9."),
            Insert("r0_a", (2, 1)),
            Insert("e_b", ("c", 1, 2)),
            RemoveRule("r2_a(x, z) :- r0_a(x, y), r2_a(y, z)."),
        ),
        commit(Insert("e_b", ("c", 5, 2)), Delete("e_b", ("c", 1, 2))),
        declared=False,
    ),
    # Ranks were read where none were kept.
    "explicit facts alone, and then a recursive rule": history(
        (".decl r0_a(c0: number, c1: number)", ".output r0_a"),
        (),
        commit(*(Insert("r0_a", (i, i + 1)) for i in range(8))),
        commit(AddRule("r0_a(x, z) :- r0_a(x, y), r0_a(y, z)."), Delete("r0_a", (2, 3))),
        commit(Insert("r0_a", (2, 5)), Insert("r0_a", (0, 4))),
        commit(Delete("r0_a", (6, 7)), Delete("r0_a", (0, 4))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str, algorithm: str, engine: str) -> None:
    found = FOUND[name]
    assert problem_of(found, Way(algorithm, engine), Expected(found)) is None
