"""Maintenance revisited, Examples 21 to 24: Forward/Backward/Forward.

Before a fact is deleted, backward chaining looks for a proof of it among the facts that survive.
C are the facts that were checked, P those that were proved, Y those that follow from P but
were not asked for. Where the result of a step depends on which instance backward chaining
takes first, the examples discuss both orders and so do the tests: they accept either.
"""

from __future__ import annotations

from tests.papers.keeping import Kept, Step, program_of
from tests.papers.notation import atoms, instances
from tests.papers.running_example import ADDED, DELETED, EXPLICIT, FIRES, PROGRAM, STRATA, UPDATE
from tidelog.maintain.dred import DRed
from tidelog.maintain.fbf import FBF
from tidelog.plan.maintenance import Keeper
from tidelog.plan.parts import Mark

SPREAD = program_of("B(y) :- T(x, y), B(x).", "T/2", "B/1")  # (137)
EDGES = "T(a, b) T(b, c) T(c, b) T(c, d) T(d, e)"


def sets(step: Step) -> dict[str, set[str]]:
    """D, C, P and Y, of the stratum of B."""
    marks = {"D": Mark.DELETED, "C": Mark.CHECKED, "P": Mark.PROVED, "Y": Mark.DELAYED}
    return {
        name: {fact for fact in step.marked(mark) if fact.startswith("B(")} for name, mark in marks.items()
    }


def test_example_21(keeper: Keeper) -> None:
    """B(c) has a proof, by (81) and (136), from B(a). So it stays, and B(d) is not reached at all."""
    kept = Kept(keeper, PROGRAM, *STRATA)
    kept.start(FBF(), EXPLICIT)
    story = kept.update(FBF(), plus=UPDATE)
    found = sets(story.over("B")[0])
    assert found["D"] == atoms("B(e)")
    # B(d) is checked only if T(d, c), B(d) -> B(c) is looked at before (81).
    assert atoms("B(e) B(c) B(b) B(a)") <= found["C"] <= atoms("B(e) B(c) B(b) B(a) B(d)")
    assert found["P"] == found["C"] - atoms("B(e)")
    assert story.of("deletion") == instances(FIRES[15], FIRES[16], FIRES[17])
    assert story.of("backward").has(instances(FIRES[18], FIRES[63]))
    assert story.of("forward").has(instances(FIRES[63], FIRES[18], FIRES[79]))
    assert (story.lost, story.gained) == (atoms(DELETED), atoms(ADDED))


def test_example_22_dred(keeper: Keeper) -> None:
    """DRed overdeletes all that follows from B(b), and rederives it."""
    kept = Kept(keeper, SPREAD, "B")
    kept.start(DRed(), f"B(a) B(b) {EDGES}")
    story = kept.update(DRed(), minus="B(b)")
    overdelete, rederive, insert = story.steps
    assert overdelete.marked(Mark.DELETED) == atoms("B(b) B(c) B(d) B(e)")
    assert rederive.marked(Mark.QUEUED) == atoms("B(b)")
    assert insert.marked(Mark.ADDED) == atoms("B(b) B(c) B(d) B(e)")
    assert (story.lost, story.gained) == (set(), set())


def test_example_22_fbf(keeper: Keeper) -> None:
    """FBF proves B(b) from B(a), by (141), whether or not it has gone round by (142) and (144) before."""
    kept = Kept(keeper, SPREAD, "B")
    kept.start(FBF(), f"B(a) B(b) {EDGES}")
    story = kept.update(FBF(), minus="B(b)")
    found = sets(story.steps[0])
    assert found["D"] == set()
    assert found["C"] in (atoms("B(a) B(b)"), atoms("B(a) B(b) B(c)"))
    assert found["P"] == found["C"]
    assert (story.lost, story.gained) == (set(), set())


def test_example_23(keeper: Keeper) -> None:
    """Every node leads to every other: each fact is checked once, though n! orders would be there to try.

    Backward chaining considers each of the n² instances once, and deletion each once more.
    """
    n = 7
    nodes = [f"a{i}" for i in range(1, n + 1)]
    kept = Kept(keeper, SPREAD, "B")
    started = kept.start(FBF(), "B(a1) " + " ".join(f"T({x}, {y})" for x in nodes for y in nodes))
    assert started.count == n**2
    story = kept.update(FBF(), minus="B(a1)")
    everything = {f"B({x})" for x in nodes}
    assert sets(story.steps[0]) == {"D": everything, "C": everything, "P": set(), "Y": set()}
    assert story.lost == everything
    assert story.details == {"backward": n**2, "deletion": n**2}
    every = instances(*(f"T({x}, {y}), B({x}) -> B({y})" for x in nodes for y in nodes))
    assert story.of("backward") == story.of("deletion") == every


def test_example_24(keeper: Keeper) -> None:
    """B(b) and B(c) stand for each other. B(a) proves both; B(d) and B(e) are not asked for.

    C and P are {B(a), B(b), B(c)}; B(d) follows from P, but as it was never checked it only waits in Y.
    """
    kept = Kept(keeper, SPREAD, "B")
    kept.start(FBF(), f"B(a) B(b) B(c) {EDGES}")
    story = kept.update(FBF(), minus="B(b) B(c)")
    found = sets(story.steps[0])
    assert found["D"] == set()
    assert found["C"] == found["P"] == atoms("B(a) B(b) B(c)")
    assert found["Y"] - found["C"] == atoms("B(d)")
    assert (story.lost, story.gained) == (set(), set())
    assert "B(e)" not in {fact for marked in found.values() for fact in marked}
    # Forward chaining goes along each edge out of P once; backward chaining begins with (142) or not.
    assert story.of("forward") == instances(
        "T(a, b), B(a) -> B(b)", "T(b, c), B(b) -> B(c)", "T(c, b), B(c) -> B(b)", "T(c, d), B(c) -> B(d)"
    )
    assert story.of("backward") in (
        instances("T(a, b), B(a) -> B(b)"),
        instances("T(c, b), B(c) -> B(b)", "T(b, c), B(b) -> B(c)", "T(a, b), B(a) -> B(b)"),
    )
    assert story.of("deletion") == []


def test_theorem_25_f(keeper: Keeper) -> None:
    """With every branch given up at once, FBF is DRed: the same sets, by the same instances."""
    never = FBF(depth=0)
    kept = Kept(keeper, PROGRAM, *STRATA)
    kept.start(never, EXPLICIT)
    theirs = kept.update(never, plus=UPDATE)
    back = kept.update(never, minus=UPDATE)
    ours = kept.update(DRed(), plus=UPDATE)
    assert kept.update(DRed(), minus=UPDATE).considered == back.considered
    assert theirs.considered == ours.considered
    restored = [step for step in theirs.steps if step.report.phase == "restore"]  # line 63
    assert [step.report.touched for step in restored] == [0, 0]
    rest = [step for step in theirs.steps if step not in restored]
    for left, right in zip(rest, ours.steps, strict=True):
        assert left.marked(Mark.DELETED) == right.marked(Mark.DELETED)
        assert left.marked(Mark.QUEUED) == right.marked(Mark.QUEUED)
        assert left.marked(Mark.ADDED) == right.marked(Mark.ADDED)
    assert not any(step.marked(Mark.PROVED) for step in theirs.steps)
