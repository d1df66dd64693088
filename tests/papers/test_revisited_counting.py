"""Maintenance revisited, Examples 3 to 9: counting, without and with recursion.

Examples 3 to 6 show how earlier counting algorithms work and where they do needless work or go wrong.
The same inputs are given to ours. Examples 7 and 8 go through the traces of Figure 3 before and after the
update of Example 2; Figure 3 is a picture, and `running_example` has its rows as the
text gives them. Example 9 is Example 5 again, done right.
"""

from __future__ import annotations

import pytest

from tests.papers.keeping import Kept, optimum, program_of
from tests.papers.notation import atoms, instances
from tests.papers.running_example import (
    ADDED,
    DELETED,
    EXPLICIT,
    FIRES,
    NEW_B,
    NEW_T,
    OLD_B,
    OLD_T,
    PROGRAM,
    STRATA,
    UPDATE,
)
from tidelog.maintain.counting import Counting
from tidelog.plan.maintenance import Keeper
from tidelog.plan.parts import Mark

JOIN = program_of("S(x, z) :- R(x, y), R(y, z).", "R/2", "S/2")  # (20)
TURN = program_of("R(y, x) :- R(x, y).", "R/2")  # (41)


def traces(kept: Kept, relation: str) -> dict[str, dict[int, int]]:
    """The trace of each fact of a relation: its multiplicity in N_i, by i."""
    return {
        fact: dict(known.trace)
        for fact, known in kept.standing().items()
        if fact.startswith(f"{relation}(") and known.trace
    }


# --- Examples 3 and 4: one count ------------------------------------------------


def test_example_3(keeper: Keeper) -> None:
    """S(a, d) follows by b and by c. It has two derivations; with R(a, b) gone it still has one."""
    kept = Kept(keeper, JOIN, "S")
    kept.start(Counting(), "")
    story = kept.update(Counting(), plus="R(a, b) R(b, d) R(a, c) R(c, d)")
    assert traces(kept, "S") == {"S(a, d)": {1: 2}}  # (33)
    assert story.considered == instances("R(a, b), R(b, d) -> S(a, d)", "R(a, c), R(c, d) -> S(a, d)")
    assert "S(a, d)" in story.gained

    story = kept.update(Counting(), minus="R(a, b)")
    assert traces(kept, "S") == {"S(a, d)": {1: 1}}  # (36)
    assert story.considered == instances("R(a, b), R(b, d) -> S(a, d)")
    assert (story.lost, story.gained) == (atoms("R(a, b)"), set())


def test_example_4(keeper: Keeper) -> None:
    """R(a, b) comes as R(b, c) goes. No instance joins an old fact with a new one, as (39) and (40) do."""
    kept = Kept(keeper, JOIN, "S")
    kept.start(Counting(), "R(b, c)")
    story = kept.update(Counting(), minus="R(b, c)", plus="R(a, b)")
    assert story.considered == []
    assert story.count == 0
    assert kept.held == atoms("R(a, b)")


# --- Examples 5, 6 and 9: a fact that follows from itself -----------------------------


def test_examples_5_and_9(keeper: Keeper) -> None:
    """One count in all would hold R(a, b) up by itself (49). Counts by iteration, Figure 4, do not."""
    kept = Kept(keeper, TURN, "R")
    kept.start(Counting(), "R(a, b)")
    assert traces(kept, "R") == {"R(a, b)": {1: 1, 3: 1}, "R(b, a)": {2: 1}}  # Figure 4
    story = kept.update(Counting(), minus="R(a, b)")
    assert traces(kept, "R") == {}
    assert story.lost == atoms("R(a, b) R(b, a)")
    assert kept.held == set()


def test_example_6(keeper: Keeper) -> None:
    """Nothing is derived again in each round: both instances are made once, and undone once.

    The naive algorithm of the example makes R(b, a) in both rounds (51, 53) and undoes it in both (57, 60).
    """
    both = instances("R(a, b) -> R(b, a)", "R(b, a) -> R(a, b)")
    kept = Kept(keeper, TURN, "R")
    assert kept.start(Counting(), "R(a, b)").considered == both
    assert kept.update(Counting(), minus="R(a, b)").considered == both
    assert kept.update(Counting(), plus="R(a, b)").considered == both


# --- Examples 7 and 8: Figure 3 -------------------------------------------------------


@pytest.fixture
def running(keeper: Keeper) -> Kept:
    """The running example, started."""
    kept = Kept(keeper, PROGRAM, *STRATA)
    kept.start(Counting(), EXPLICIT)
    return kept


def test_example_7(running: Kept) -> None:
    """Left of Figure 3. B(c) is derived in three iterations, by instances (18), (17) and (19)."""
    assert traces(running, "T") == OLD_T
    assert traces(running, "B") == OLD_B


def test_example_8(running: Kept) -> None:
    """Right of Figure 3, reached with no other rule instance than those that start or stop firing."""
    story = running.update(Counting(), plus=UPDATE)
    assert traces(running, "T") == NEW_T
    assert traces(running, "B") == NEW_B
    assert (story.lost, story.gained) == (atoms(DELETED), atoms(ADDED))
    # s = 2: T(b, f) is increased by (11), T(b, e) decreased by (15).
    [step] = story.over("T")
    assert step.considered == instances(FIRES[11], FIRES[15])
    # s = 3: B(e) and B(f) for i = 3, B(c) and B(g) for i = 4, B(c) for i = 5.
    [step] = story.over("B")
    assert step.considered == instances(*(FIRES[i] for i in (16, 12, 17, 13, 14)))
    assert story.considered == optimum(PROGRAM, EXPLICIT, EXPLICIT + UPDATE)


def test_figure_3_marks_what_differs(running: Kept) -> None:
    """The multiplicities with an asterisk: T(b, e), T(b, f), and those of s = 3 that Example 8 names."""
    running.update(Counting(), plus=UPDATE)
    old, new = {**OLD_T, **OLD_B}, {**traces(running, "T"), **traces(running, "B")}
    starred = {
        (fact, i): (old.get(fact, {}).get(i, 0), new.get(fact, {}).get(i, 0))
        for fact in old.keys() | new.keys()
        for i in old.get(fact, {}).keys() | new.get(fact, {}).keys()
        if old.get(fact, {}).get(i, 0) != new.get(fact, {}).get(i, 0)
    }
    assert starred == {
        ("T(b, e)", 1): (1, 0),
        ("T(b, f)", 1): (0, 1),
        ("B(e)", 3): (1, 0),
        ("B(f)", 3): (0, 1),
        ("B(c)", 4): (1, 0),
        ("B(g)", 4): (0, 1),
        ("B(c)", 5): (1, 2),
    }


def test_example_8_and_back(running: Kept) -> None:
    """The trace of the old facts comes back when A(b) goes, by the same instances."""
    there = running.update(Counting(), plus=UPDATE)
    back = running.update(Counting(), minus=UPDATE)
    assert traces(running, "T") == OLD_T
    assert traces(running, "B") == OLD_B
    assert back.considered == there.considered


def test_theorem_12_from_nothing(keeper: Keeper) -> None:
    """Section 5.2: starting is an update from nothing, and as cheap; and so is taking everything away."""
    kept = Kept(keeper, PROGRAM, *STRATA)
    kept.start(Counting(), "")
    story = kept.update(Counting(), plus=EXPLICIT)
    assert {**traces(kept, "T"), **traces(kept, "B")} == {**OLD_T, **OLD_B}
    assert story.considered == optimum(PROGRAM, "", EXPLICIT)
    assert not story.repeated
    story = kept.update(Counting(), minus=EXPLICIT)
    assert story.considered == optimum(PROGRAM, EXPLICIT, "")
    assert kept.held == set()
    assert not any(known.marks & Mark.HELD for known in kept.standing().values())
