"""Maintenance revisited, Examples 1 and 2: the running example, and what an update does to it.

Adding one fact, A(b), makes four rule instances fire and three stop firing; of the facts that
those three derived, one still has other derivations. Every algorithm must come to the same.
"""

from __future__ import annotations

from tests.papers.keeping import Kept, fired, model
from tests.papers.notation import atoms, instances
from tests.papers.running_example import ADDED, DELETED, DERIVED, EXPLICIT, FIRES, PROGRAM, STRATA, UPDATE
from tidelog.maintain.protocol import Algorithm
from tidelog.plan.maintenance import Keeper
from tidelog.plan.parts import Mark
from tidelog.program.strata import stratify


def test_the_figures_fit_the_text() -> None:
    """The facts that we read out of the text give the materialisations of Figures 1 and 2."""
    before, after = model(PROGRAM, EXPLICIT), model(PROGRAM, EXPLICIT + UPDATE)
    assert before == atoms(EXPLICIT) | atoms(DERIVED)
    assert before - after == atoms(DELETED)
    assert after - before == atoms(ADDED)


def test_example_1_strata() -> None:
    """(10): T is below B; the rules for T are nonrecursive, the one for B is recursive."""
    t, b = stratify(PROGRAM)
    assert (t.relations, len(t.base), len(t.recursive)) == (("T",), 2, 0)
    assert (b.relations, len(b.base), len(b.recursive)) == (("B",), 0, 1)


def test_example_1(keeper: Keeper, algorithm: Algorithm) -> None:
    """T(a, b) is explicit and T(b, e) derived, both of one relation; no instance is considered twice."""
    kept = Kept(keeper, PROGRAM, *STRATA)
    story = kept.start(algorithm, EXPLICIT)
    assert kept.held == atoms(EXPLICIT) | atoms(DERIVED)
    assert {fact for fact, known in kept.standing().items() if known.marks & Mark.EXPLICIT} == atoms(EXPLICIT)
    assert story.considered == sorted(fired(PROGRAM, EXPLICIT))


def test_example_2_rule_instances() -> None:
    """Which rule instances the update starts, stops and leaves alone."""
    before, after = fired(PROGRAM, EXPLICIT), fired(PROGRAM, EXPLICIT + UPDATE)
    assert sorted(after - before) == instances(*(FIRES[i] for i in (11, 12, 13, 14)))
    assert sorted(before - after) == instances(*(FIRES[i] for i in (15, 16, 17)))
    assert sorted(before & after) == instances(*(FIRES[i] for i in (18, 19, 63, 79)))


def test_example_2(keeper: Keeper, algorithm: Algorithm) -> None:
    """T(b, f), B(f), B(g) come, T(b, e) and B(e) go, B(c) stays; and the way back."""
    kept = Kept(keeper, PROGRAM, *STRATA)
    kept.start(algorithm, EXPLICIT)
    story = kept.update(algorithm, plus=UPDATE)
    assert (story.lost, story.gained) == (atoms(DELETED), atoms(ADDED))
    assert kept.held == (atoms(EXPLICIT) | atoms(DERIVED) | atoms(ADDED)) - atoms(DELETED)
    story = kept.update(algorithm, minus=UPDATE)
    assert (story.lost, story.gained) == (atoms(ADDED), atoms(DELETED))
    assert kept.held == atoms(EXPLICIT) | atoms(DERIVED)
