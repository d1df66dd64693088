"""Maintenance revisited, Examples 13 to 20: Delete/Rederive.

Example 13 goes through overdeletion, rederivation and insertion on the running example without negation;
Example 18 does so with negation. Examples 14 to 17 show where earlier variants repeat derivations
or overdelete too much: ours gets the same inputs, and must not. Example 20 shows what DRed still
does in vain.
"""

from __future__ import annotations

from tests.papers.keeping import DRED, Kept, kinds, program_of
from tests.papers.notation import atoms, instances
from tests.papers.running_example import (
    EXPLICIT,
    FIRES,
    POSITIVE,
    POSITIVE_EXPLICIT,
    POSITIVE_RULES,
    PROGRAM,
    STRATA,
    UPDATE,
)
from tidelog.maintain.dred import DRed
from tidelog.plan.maintenance import Keeper
from tidelog.plan.parts import Mark

# The instances of Example 13 by their numbers.
STEPS = {
    76: "R(b, e), An(b) -> T(b, e)",
    77: "T(b, e), B(b) -> B(e)",
    78: "T(e, c), B(e) -> B(c)",
    79: "T(c, d), B(c) -> B(d)",
    80: "T(d, c), B(d) -> B(c)",
    81: "T(b, c), B(b) -> B(c)",
    82: "S(b, f), A(b) -> T(b, f)",
    83: "T(b, f), B(b) -> B(f)",
    84: "T(f, g), B(f) -> B(g)",
    85: "T(g, c), B(g) -> B(c)",
}


def positive(keeper: Keeper, facts: str = POSITIVE_EXPLICIT, *strata: str) -> Kept:
    """The example without negation, started."""
    kept = Kept(keeper, POSITIVE, *(strata or STRATA))
    kept.start(DRed(), facts)
    return kept


def test_example_13(keeper: Keeper) -> None:
    """T(b, e) pulls down B(e), B(c), B(d). B(c) is rederived in one step, B(d) follows; and there is news."""
    kept = positive(keeper)
    story = kept.update(DRed(), minus="An(b)", plus="A(b)")

    overdelete, rederive, insert = story.over("T")
    assert kinds(story.over("T")) == DRED
    assert overdelete.considered == instances(STEPS[76])
    assert overdelete.marked(Mark.DELETED) & atoms("T(b, e)")
    assert rederive.considered == []
    assert rederive.marked(Mark.QUEUED) == set()
    assert insert.considered == instances(STEPS[82])
    assert insert.marked(Mark.QUEUED | Mark.CURRENT) == set()

    overdelete, rederive, insert = story.over("B")
    assert overdelete.marked(Mark.DELETED) - atoms("An(b)") == atoms("T(b, e) B(e) B(c) B(d)")
    assert overdelete.considered == instances(*(STEPS[i] for i in (77, 78, 79, 80)))
    assert rederive.marked(Mark.QUEUED) == atoms("B(c)")
    assert rederive.considered == instances(STEPS[81])
    assert insert.marked(Mark.ADDED) - atoms("A(b)") == atoms("T(b, f) B(c) B(d) B(f) B(g)")
    assert insert.considered == instances(*(STEPS[i] for i in (79, 80, 83, 84, 85)))

    assert (story.lost, story.gained) == (atoms("An(b) T(b, e) B(e)"), atoms("A(b) T(b, f) B(f) B(g)"))
    # Overdeletion deletes only what depends on A_n(b): B(b) does not.
    assert "B(b)" not in overdelete.marked(Mark.DELETED)


def test_example_14(keeper: Keeper) -> None:
    """Both atoms of instance (76) are deleted: it is considered once, not once for each of them."""
    kept = positive(keeper)
    story = kept.update(DRed(), minus="R(b, e) An(b)", plus="A(b)")
    assert story.over("T")[0].considered == instances(STEPS[76])
    assert not story.repeated


def test_example_14_within_a_stratum(keeper: Keeper) -> None:
    """The same where both atoms are overdeleted in one round, or one of them in a round before.

    The closure of a - b - c - d, joined with itself. R(a, b) and R(b, c) go in one round, R(a, c) after them.
    """
    program = program_of("R(x, z) :- R(x, y), R(y, z).", "R/2")
    kept = Kept(keeper, program, "R")
    kept.start(DRed(), "R(a, b) R(b, c) R(c, d)")
    story = kept.update(DRed(), minus="R(a, b) R(b, c)")
    overdelete, rederive, insert = story.steps
    assert overdelete.considered == instances(
        "R(a, b), R(b, c) -> R(a, c)",
        "R(b, c), R(c, d) -> R(b, d)",
        "R(a, b), R(b, d) -> R(a, d)",
        "R(a, c), R(c, d) -> R(a, d)",
    )
    assert rederive.considered == insert.considered == []
    assert kept.held == atoms("R(c, d)")


def test_example_15(keeper: Keeper) -> None:
    """A(b) and S(b, h) are both new: the instance that has both derives T(b, h) once."""
    kept = positive(keeper)
    story = kept.update(DRed(), minus="An(b)", plus="A(b) S(b, h)")
    assert story.over("T")[2].considered == instances(STEPS[82], "S(b, h), A(b) -> T(b, h)")
    assert {"T(b, h)", "B(h)"} <= story.gained
    assert not story.repeated


def test_example_16(keeper: Keeper) -> None:
    """k - 1 instances can rederive B(b): one is considered. B(c) is left to the insertion."""
    k = 10
    sources = [f"a{i}" for i in range(1, k + 1)]
    program = program_of(
        """
        B(y) :- T(x, y), B(x).
        B(x) :- Be(x).
        """,
        "T/2",
        "Be/1",
        "B/1",
    )
    kept = Kept(keeper, program, "B")
    kept.start(DRed(), " ".join(f"T({a}, b) Be({a})" for a in sources) + " T(b, c)")
    story = kept.update(DRed(), minus="Be(a1)")
    overdelete, rederive, insert = story.steps
    assert overdelete.marked(Mark.DELETED) - atoms("Be(a1)") == atoms("B(a1) B(b) B(c)")
    assert overdelete.considered == instances(
        "Be(a1) -> B(a1)", "T(a1, b), B(a1) -> B(b)", "T(b, c), B(b) -> B(c)"
    )
    assert rederive.marked(Mark.QUEUED) == atoms("B(b)")
    others = instances(*(f"T({a}, b), B({a}) -> B(b)" for a in sources[1:]))
    assert any(rederive.considered == [used] for used in others)  # any of them will do
    assert insert.considered == instances("T(b, c), B(b) -> B(c)")
    assert story.lost == atoms("Be(a1) B(a1)")


def chain(k: int) -> str:
    """The facts of Example 17: a path of T, and a second reason for its first edge."""
    edges = " ".join(f"Te(a{i}, a{i + 1})" for i in range(1, k))
    return f"{edges} Be(a1) R(a1, a2) An(a1)"


def test_example_17(keeper: Keeper) -> None:
    """T(a1, a2) is rederived before B has its turn, so that nothing of B is overdeleted."""
    kept = positive(keeper, chain(10))
    story = kept.update(DRed(), minus="An(a1)")
    overdelete, rederive, _ = story.over("T")
    assert overdelete.marked(Mark.DELETED) - atoms("An(a1)") == atoms("T(a1, a2)")
    assert rederive.marked(Mark.QUEUED) == atoms("T(a1, a2)")
    assert rederive.considered == instances("Te(a1, a2) -> T(a1, a2)")
    assert sum(step.count for step in story.over("B")) == 0
    assert not any(fact.startswith("B(") for step in story.steps for fact in step.marked(Mark.DELETED))
    assert story.lost == atoms("An(a1)")


def test_example_17_in_one_stratum(keeper: Keeper) -> None:
    """Without strata every B(ai) with i > 1 is overdeleted, to be put back."""
    k = 10
    kept = positive(keeper, chain(k), "T B")
    story = kept.update(DRed(), minus="An(a1)")
    after = " ".join(f"B(a{i})" for i in range(2, k + 1))
    assert story.steps[0].marked(Mark.DELETED) - atoms("An(a1)") == atoms("T(a1, a2) " + after)
    assert story.lost == atoms("An(a1)")


def test_example_18(keeper: Keeper) -> None:
    """With negation: that A(b) is inserted deletes T(b, e), by instance (15); the rest is as in Example 13.

    The new fact is in stratum 1, and only afterwards does stratum 2 delete.
    """
    kept = Kept(keeper, PROGRAM, *STRATA)
    kept.start(DRed(), EXPLICIT)
    story = kept.update(DRed(), plus=UPDATE)
    overdelete, rederive, insert = story.over("T")
    assert overdelete.marked(Mark.DELETED) == atoms("T(b, e)")
    assert overdelete.considered == instances(FIRES[15])
    assert rederive.considered == []
    assert insert.considered == instances(FIRES[11])
    overdelete, rederive, insert = story.over("B")
    assert overdelete.marked(Mark.DELETED) == atoms("T(b, e) B(e) B(c) B(d)")
    assert overdelete.considered == instances(*(FIRES[i] for i in (16, 17, 79, 19)))
    assert rederive.marked(Mark.QUEUED) == atoms("B(c)")
    assert rederive.considered == instances(FIRES[18])
    assert insert.marked(Mark.ADDED) == atoms("A(b) T(b, f) B(c) B(d) B(f) B(g)")
    assert insert.considered == instances(*(FIRES[i] for i in (79, 19, 12, 13, 14)))


def test_rederivation_leaves_new_instances_to_insertion(keeper: Keeper) -> None:
    """Section 6.2, on line 42: rederivation reads I - (D - A), not (I - D) | A, which would repeat insertion.

    B(b) loses T(a, b) and gains T(c, b). Rederivation does not see the new fact; insertion does.
    """
    program = program_of("B(y) :- T(x, y), B(x).", "T/2", "B/1")
    kept = Kept(keeper, program, "B")
    kept.start(DRed(), "B(a) B(c) T(a, b)")
    story = kept.update(DRed(), minus="T(a, b)", plus="T(c, b)")
    overdelete, rederive, insert = story.steps
    assert overdelete.considered == instances("T(a, b), B(a) -> B(b)")
    assert rederive.considered == []
    assert insert.considered == instances("T(c, b), B(c) -> B(b)")
    assert (story.lost, story.gained) == (atoms("T(a, b)"), atoms("T(c, b)"))


def test_what_is_explicit_is_rederived_without_a_rule(keeper: Keeper) -> None:
    """Line 42: an overdeleted fact that is in E comes back as such, and no instance is looked for."""
    program = program_of("B(y) :- T(x, y), B(x).", "T/2", "B/1")
    kept = Kept(keeper, program, "B")
    kept.start(DRed(), "B(a) B(b) T(a, b) T(b, c) T(d, b) B(d)")
    story = kept.update(DRed(), minus="B(a)")
    overdelete, rederive, insert = story.steps
    assert overdelete.marked(Mark.DELETED) == atoms("B(a) B(b) B(c)")
    assert rederive.marked(Mark.QUEUED) == atoms("B(b)")
    assert rederive.considered == []
    assert insert.considered == instances("T(b, c), B(b) -> B(c)")
    assert story.lost == atoms("B(a)")


def test_theorem_19(keeper: Keeper) -> None:
    """Overdeletion repeats nothing, and rederivation and insertion together repeat nothing.

    With all facts deleted, overdeletion considers every instance of the old materialisation,
    and with all of them inserted, insertion every one of the new.
    """
    kept = Kept(keeper, PROGRAM, *STRATA)
    every = kept.start(DRed(), EXPLICIT).considered
    story = kept.update(DRed(), plus=UPDATE)
    for relation in STRATA:
        overdelete, rederive, insert = story.over(relation)
        assert not overdelete.considered.repeated
        assert not (rederive.considered + insert.considered).repeated
    kept.update(DRed(), minus=UPDATE)
    story = kept.update(DRed(), minus=EXPLICIT)
    assert kept.held == set()
    assert story.considered == every
    story = kept.update(DRed(), plus=EXPLICIT)
    assert story.considered == every


def test_example_20(keeper: Keeper) -> None:
    """B(c) and B(d) still hold, by (81): DRed deletes and rederives them all the same."""
    kept = positive(keeper)
    story = kept.update(DRed(), minus="An(b)", plus="A(b)")
    overdelete = story.over("B")[0]
    assert atoms("B(c) B(d)") <= overdelete.marked(Mark.DELETED)
    assert not atoms("B(c) B(d)") & story.lost
    assert POSITIVE_RULES.count(":-") == 5  # no rule of the example is left out
