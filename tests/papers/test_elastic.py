"""Elastic incrementalisation, sections 2 and 3: a pointer analysis before and after an update.

From: D. Zhao, P. Subotić, M. Raghothaman, B. Scholz, *Towards Elastic Incrementalization for Datalog*,
PPDP 2021. Facts about eight lines of code say which variable may point to which object. Bootstrap
gives each tuple the iteration that first derives it and the number of its derivations there (N#);
Update follows the old iterations and corrects both. Iteration 0, the input, has no numbers here.
"""

from __future__ import annotations

import pytest

from tests.papers.keeping import Kept, program_of, together
from tests.papers.notation import atoms, instances
from tidelog.maintain.elastic import Elastic
from tidelog.plan.maintenance import Keeper
from tidelog.plan.parts import Mark

RELATIONS = ("new/2", "assign/2", "load/3", "store/3", "vpt/2", "alias/2")
RULES = """
    vpt(v, o) :- new(v, o).
    vpt(v, o) :- assign(v, w), vpt(w, o).
    vpt(v, o) :- load(v, y, f), store(p, f, q), vpt(q, o), vpt(p, o2), vpt(y, o2).
"""  # r1 to r3 of Figure 3c
ALIAS = "alias(v, w) :- vpt(v, o), vpt(w, o)."  # r4
UNLIKE = "alias(v, w) :- vpt(v, o), vpt(w, o), v != w."  # r4 with the constraint of section 3.3

POINTERS = program_of(RULES + ALIAS, *RELATIONS)
# Figure 3b.
INPUT = """
    new(a, L1) assign(b, a) new(c, L3) new(d, L4) store(c, f, a) load(e, d, f) load(b, c, f) assign(a, b)
"""
FIRST = {
    1: {"vpt(a, L1)": 1, "vpt(c, L3)": 1, "vpt(d, L4)": 1},
    2: {"vpt(b, L1)": 2},
}  # N#_1 and N#_2 of Bootstrap, section 3.1
SECOND = {
    1: {"vpt(a, L1)": 1, "vpt(c, L3)": 1, "vpt(d, L4)": 1},
    2: {"vpt(b, L1)": 1, "vpt(e, L3)": 1},
}  # the same after the update of section 3.2


def counts(kept: Kept, relation: str = "vpt") -> dict[int, dict[str, int]]:
    """N#: the tuples by first iteration, with their counts."""
    found: dict[int, dict[str, int]] = {}
    for fact, known in kept.standing().items():
        if fact.startswith(f"{relation}(") and known.marks & Mark.HELD:
            found.setdefault(known.first, {})[fact] = known.count
    return found


@pytest.fixture
def pointers(keeper: Keeper) -> Kept:
    """The pointer analysis; the rule for aliases is in a stratum of its own."""
    return Kept(keeper, POINTERS, "vpt", "alias")


def test_bootstrap(pointers: Kept) -> None:
    """Sections 2.2 and 3.1: a tuple is in the iteration of its first derivation, with the count it has there.

    Two instances derive vpt(b, L1) in iteration 2. In iteration 3 only vpt(a, L1) is derived
    again: nothing is new, and that derivation is not counted.
    """
    story = pointers.start(Elastic(), INPUT)
    assert counts(pointers) == FIRST
    assert {fact for fact in story.gained if fact.startswith("vpt")} == {
        fact for iteration in FIRST.values() for fact in iteration
    }
    assert together(story.over("vpt")) == instances(
        "new(a, L1) -> vpt(a, L1)",
        "new(c, L3) -> vpt(c, L3)",
        "new(d, L4) -> vpt(d, L4)",
        "assign(b, a), vpt(a, L1) -> vpt(b, L1)",
        "load(b, c, f), store(c, f, a), vpt(a, L1), vpt(c, L3), vpt(c, L3) -> vpt(b, L1)",
        "assign(a, b), vpt(b, L1) -> vpt(a, L1)",
    )


def test_update(pointers: Kept) -> None:
    """Section 3.2: in iteration 2, vpt(b, L1) loses one derivation and vpt(e, L3) gains one.

    The two instances that say so are the only ones considered in the stratum.
    """
    pointers.start(Elastic(), INPUT)
    story = pointers.update(Elastic(), minus="assign(b, a)", plus="store(d, f, c)")
    assert counts(pointers) == SECOND
    assert together(story.over("vpt")) == instances(
        "assign(b, a), vpt(a, L1) -> vpt(b, L1)",
        "load(e, d, f), store(d, f, c), vpt(c, L3), vpt(d, L4), vpt(d, L4) -> vpt(e, L3)",
    )
    assert story.lost == atoms("assign(b, a)")
    assert story.gained == atoms("store(d, f, c) vpt(e, L3) alias(c, e) alias(e, c) alias(e, e)")


def test_update_gives_what_bootstrap_gives(pointers: Kept) -> None:
    """Theorem 3.5, there and back: the counts are those of a fresh start on the changed input."""
    pointers.start(Elastic(), INPUT)
    pointers.update(Elastic(), minus="assign(b, a)", plus="store(d, f, c)")
    back = pointers.update(Elastic(), minus="store(d, f, c)", plus="assign(b, a)")
    assert counts(pointers) == FIRST
    assert back.lost == atoms("store(d, f, c) vpt(e, L3) alias(c, e) alias(e, c) alias(e, e)")


def test_a_change_of_small_impact(pointers: Kept) -> None:
    """Section 2.3: without line L6 nothing else changes, and no instance is considered."""
    pointers.start(Elastic(), INPUT)
    story = pointers.update(Elastic(), minus="load(e, d, f)")
    assert (story.lost, story.gained, story.count) == (atoms("load(e, d, f)"), set(), 0)


@pytest.mark.parametrize(
    ("rule", "kept_aliases"),
    [(ALIAS, "alias(c, c) alias(d, d)"), (UNLIKE, "")],
    ids=["as printed", "of different variables"],
)
def test_a_change_of_large_impact(keeper: Keeper, rule: str, kept_aliases: str) -> None:
    """Section 2.3: without lines L6 and L1 half of vpt goes, and all of alias.

    All of alias: if a variable is not an alias of itself, which r4 as printed makes it.
    """
    pointers = Kept(keeper, program_of(RULES + rule, *RELATIONS), "vpt", "alias")
    pointers.start(Elastic(), INPUT)
    story = pointers.update(Elastic(), minus="load(e, d, f) new(a, L1)")
    assert {fact for fact in story.lost if fact.startswith("vpt")} == atoms("vpt(a, L1) vpt(b, L1)")
    assert counts(pointers) == {1: {"vpt(c, L3)": 1, "vpt(d, L4)": 1}}
    assert {fact for fact in pointers.held if fact.startswith("alias")} == atoms(kept_aliases)
    assert {"alias(a, b)", "alias(b, a)"} <= story.lost


def test_sparsification_and_rediscovery(pointers: Kept) -> None:
    """Section 3.2: a tuple is in one iteration only; when it is lost there, a later one may still derive it.

    With new(b, L1) the tuple vpt(b, L1) is derived in iteration 1 already and is taken out of 2.
    When that fact goes, both derivations of iteration 2 are found again.
    """
    pointers.start(Elastic(), INPUT)
    story = pointers.update(Elastic(), plus="new(b, L1)")
    assert story.gained == atoms("new(b, L1)")
    assert counts(pointers) == {1: {**FIRST[1], "vpt(b, L1)": 1}}
    story = pointers.update(Elastic(), minus="new(b, L1)")
    assert story.lost == atoms("new(b, L1)")
    assert counts(pointers) == FIRST
    moved = "assign(a, b), vpt(b, L1) -> vpt(a, L1)"  # from iteration 2 to 3
    assert story.considered == instances(
        "new(b, L1) -> vpt(b, L1)",
        "assign(b, a), vpt(a, L1) -> vpt(b, L1)",
        "load(b, c, f), store(c, f, a), vpt(a, L1), vpt(c, L3), vpt(c, L3) -> vpt(b, L1)",
        moved,
        moved,
    )


def test_rediscovery_in_a_later_iteration(keeper: Keeper) -> None:
    """A tuple that loses its first iteration comes back in a later one, and so does what follows from it."""
    program = program_of("reach(y) :- reach(x), edge(x, y).", "edge/2", "reach/1")
    kept = Kept(keeper, program, "reach")
    kept.start(Elastic(), "reach(s) edge(s, c) edge(s, a) edge(a, b) edge(b, c) edge(c, d)")
    assert counts(kept, "reach") == {
        1: {"reach(s)": 1},
        2: {"reach(a)": 1, "reach(c)": 1},
        3: {"reach(b)": 1, "reach(d)": 1},
    }
    story = kept.update(Elastic(), minus="edge(s, c)")
    assert counts(kept, "reach") == {
        1: {"reach(s)": 1},
        2: {"reach(a)": 1},
        3: {"reach(b)": 1},
        4: {"reach(c)": 1},
        5: {"reach(d)": 1},
    }
    assert (story.lost, story.gained) == (atoms("edge(s, c)"), set())


def test_the_old_iterations_are_followed_to_their_end(keeper: Keeper) -> None:
    """Algorithm 3 as printed returns when an iteration of the new epoch is empty (line 16).

    Here it is empty at once, and every tuple of the later old iterations has to go.
    """
    program = program_of("reach(y) :- reach(x), edge(x, y).", "edge/2", "reach/1")
    kept = Kept(keeper, program, "reach")
    kept.start(Elastic(), "reach(a) edge(a, b) edge(b, c) edge(c, d)")
    assert counts(kept, "reach") == {i: {f"reach({x})": 1} for i, x in enumerate("abcd", 1)}
    story = kept.update(Elastic(), minus="reach(a)")
    assert story.lost == atoms("reach(a) reach(b) reach(c) reach(d)")
    assert counts(kept, "reach") == {}


def test_negation(keeper: Keeper) -> None:
    """Section 3.3: edge(a, c) comes, and path(a, c) goes because it is a direct edge now; and back.

    The paper's rule needs a path to begin with, path(b, c); edge(d, a) shows that the loss goes on.
    """
    rule = "path(x, z) :- edge(x, y), path(y, z), !edge(x, z)."
    kept = Kept(keeper, program_of(rule, "edge/2", "path/2"), "path")
    kept.start(Elastic(), "edge(a, b) edge(d, a) path(b, c)")
    before = {1: {"path(b, c)": 1}, 2: {"path(a, c)": 1}, 3: {"path(d, c)": 1}}
    assert counts(kept, "path") == before
    story = kept.update(Elastic(), plus="edge(a, c)")
    assert (story.lost, story.gained) == (atoms("path(a, c) path(d, c)"), atoms("edge(a, c)"))
    assert counts(kept, "path") == {1: {"path(b, c)": 1}}
    assert story.considered == instances(
        "edge(a, b), path(b, c), not edge(a, c) -> path(a, c)",
        "edge(d, a), path(a, c), not edge(d, c) -> path(d, c)",
    )
    story = kept.update(Elastic(), minus="edge(a, c)")
    assert (story.lost, story.gained) == (atoms("edge(a, c)"), atoms("path(a, c) path(d, c)"))
    assert counts(kept, "path") == before
