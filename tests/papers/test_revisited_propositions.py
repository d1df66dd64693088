"""Maintenance revisited, Propositions 27 to 36: how many rule instances each algorithm considers.

The proofs count rule instances on small families of inputs, and these are the families.

One thing about the numbers. Where a proof says how many instances an update takes, it counts the
deletion of the explicit fact as one (as if `-> B(a)` were a rule). We count instances of rules only, so
our number is less by the number of deleted facts: the tests say `stated - 1`.
Where a number of the paper differs from ours in another way the test says why.
"""

from __future__ import annotations

import random

import pytest

from tests.papers.keeping import Kept, optimum, program_of
from tests.papers.notation import atoms, instances
from tidelog.maintain.counting import Counting, Counts
from tidelog.maintain.dred import DRed
from tidelog.maintain.fbf import FBF
from tidelog.maintain.protocol import Algorithm
from tidelog.plan.maintenance import Keeper

N = 9  # n of the proofs

SPREAD = program_of("B(y) :- T(x, y), B(x).", "T/2", "B/1")  # (148)


def edges(n: int = N) -> str:
    """T(a1, a2), ..., T(an-1, an)."""
    return " ".join(f"T(a{i}, a{i + 1})" for i in range(1, n))


def spread(j: int) -> str:
    """The instance that derives B(aj)."""
    return f"T(a{j - 1}, a{j}), B(a{j - 1}) -> B(a{j})"


def traces(kept: Kept, relation: str) -> dict[str, dict[int, int]]:
    """The multiplicity of each fact of a relation in N_i, by i."""
    return {
        fact: dict(known.trace)
        for fact, known in kept.standing().items()
        if fact.startswith(f"{relation}(") and known.trace
    }


# --- 27 and 28: nonrecursive programs -------------------------------------------------

FLAT = program_of(
    """
    P(x, z) :- R(x, y), S(y, z), !Q(x).
    V(x) :- P(x, y), P(y, x).
    W(x, y) :- P(x, y), !V(x).
    W(x, y) :- S(x, y), Q(x).
    """,
    "Q/1",
    "R/2",
    "S/2",
    "P/2",
    "V/1",
    "W/2",
)


@pytest.mark.parametrize("algorithm", [Counts(), Counting()], ids=["one count", "trace"])
def test_27_counting_is_optimal_without_recursion(keeper: Keeper, algorithm: Algorithm) -> None:
    """Random updates: the instances considered are those that start or stop firing, and no others."""
    chance = random.Random(27)
    names = "abcd"
    possible = [f"Q({x})" for x in names]
    possible += [f"{r}({x}, {y})" for r in ("R", "S", "P", "W") for x in names for y in names]
    kept, facts = Kept(keeper, FLAT, "P", "V", "W"), set(chance.sample(possible, 20))
    kept.start(algorithm, " ".join(sorted(facts)))
    for _ in range(25):
        changed = set(chance.sample(possible, chance.choice([1, 2, 8])))
        before, after = " ".join(sorted(facts)), " ".join(sorted(facts ^ changed))
        story = kept.update(algorithm, " ".join(sorted(facts & changed)), " ".join(sorted(changed - facts)))
        assert story.considered == optimum(FLAT, before, after)
        facts ^= changed


TWICE = program_of("S(x) :- P(x).\n S(x) :- Q(x).", "P/1", "Q/1", "S/1")


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [(Counts(), []), (DRed(), ["Q(a) -> S(a)"]), (FBF(), ["Q(a) -> S(a)"])],
    ids=["counting", "dred", "fbf"],
)
def test_28_dred_and_fbf_are_not(keeper: Keeper, algorithm: Algorithm, more: list[str]) -> None:
    """S(a) loses one of two derivations: to know that, both have to look at the other one."""
    kept = Kept(keeper, TWICE, "S")
    kept.start(algorithm, "P(a) Q(a)")
    story = kept.update(algorithm, minus="P(a)")
    assert story.considered == instances("P(a) -> S(a)", *more)
    assert optimum(TWICE, "P(a) Q(a)", "Q(a)") == instances("P(a) -> S(a)")
    assert story.lost == atoms("P(a)")


# --- 29 and 30: a recursive rule ------------------------------------------------------


@pytest.mark.parametrize("i", range(2, N + 1))
def test_29_counting(keeper: Keeper, i: int) -> None:
    """Nothing changes when B(ai) is added, or removed again, but the whole trace behind it moves (Figure 5).

    Each instance that derives B(aj) with j > i is considered twice: taken from one iteration, put in another.
    """
    kept = Kept(keeper, SPREAD, "B")
    kept.start(Counting(), f"B(a1) {edges()}")
    old = {f"B(a{j})": {j: 1} for j in range(1, N + 1)}
    new = {f"B(a{j})": {j: 1} if j < i else {j - i + 1: 1} for j in range(1, N + 1)}
    new[f"B(a{i})"] = {1: 1, i: 1}
    assert traces(kept, "B") == old
    moved = [spread(j) for j in range(i + 1, N + 1)]

    story = kept.update(Counting(), plus=f"B(a{i})")
    assert traces(kept, "B") == new
    assert story.considered == instances(*moved, *moved)
    assert story.count == 2 * (N - i)
    assert (story.lost, story.gained) == (set(), set())

    story = kept.update(Counting(), minus=f"B(a{i})")
    assert traces(kept, "B") == old
    assert story.considered == instances(*moved, *moved)
    assert (story.lost, story.gained) == (set(), set())


@pytest.mark.parametrize("i", range(2, N))
def test_29_dred_and_fbf(keeper: Keeper, i: int) -> None:
    """B(ai) is no longer explicit, but still derived: DRed goes forward from it, FBF backward.

    So FBF considers fewer instances when B(ai) has a short proof, DRed when little depends on it.
    """
    kept = Kept(keeper, SPREAD, "B")
    facts = f"B(a1) B(a{i}) {edges()}"
    kept.start(DRed(), facts)
    dred = kept.update(DRed(), minus=f"B(a{i})")
    behind = [spread(j) for j in range(i + 1, N + 1)]
    assert dred.considered == instances(*behind, spread(i), *behind)  # deleted, rederived, inserted
    assert dred.count == 2 * (N - i + 1) - 1

    kept.update(DRed(), plus=f"B(a{i})")
    fbf = kept.update(FBF(), minus=f"B(a{i})")
    proof = [spread(j) for j in range(2, i + 1)]
    # Forward chaining also looks at what follows from B(ai); it was not asked for, and is delayed.
    assert fbf.of("backward") == instances(*proof)
    assert fbf.of("forward") == instances(*proof, spread(i + 1))
    assert fbf.count == 2 * i - 1

    assert (fbf.count < dred.count) == (i < (N + 1) / 2)
    assert (fbf.count > dred.count) == (i > (N + 1) / 2)
    for story in (dred, fbf):
        assert (story.lost, story.gained) == (set(), set())


def test_30_fbf(keeper: Keeper) -> None:
    """B(an) is checked before B(a1) is deleted: backward chaining considers every instance, in vain.

    Deletion then considers every instance again. If B(a1) goes first, backward chaining stops one instance
    earlier. Which of them is taken first is up to the keeper; it sees both orders here.
    """
    every = instances(*(spread(j) for j in range(2, N + 1)))
    kept, found = Kept(keeper, SPREAD, "B"), set()
    kept.start(FBF(), edges())
    for ends in (f"B(a1) B(a{N})", f"B(a{N}) B(a1)"):
        kept.update(FBF(), plus=ends)
        story = kept.update(FBF(), minus=ends)
        assert story.lost == {f"B(a{j})" for j in range(1, N + 1)}
        assert story.of("deletion") == every
        assert story.of("backward") in (every, every[1:])
        found.add(story.of("backward").count)
    assert found == {N - 1, N - 2}


# --- 32 and 33: updates that only add instances --------------------------------------------


@pytest.mark.parametrize("strata", ["B", "T B"])
@pytest.mark.parametrize("algorithm", [DRed(), FBF()], ids=["dred", "fbf"])
@pytest.mark.parametrize("plus", ["B(a3)", f"T(a{N}, z1) T(z1, z2)", "T(a2, y) B(x) T(x, a4) T(y, x)"])
def test_32_optimal_when_nothing_stops(keeper: Keeper, algorithm: Algorithm, plus: str, strata: str) -> None:
    """Only the new instances are considered, each once, whatever the stratification."""
    kept, facts = Kept(keeper, SPREAD, strata), f"B(a1) {edges()}"
    kept.start(algorithm, facts)
    story = kept.update(algorithm, plus=plus)
    assert story.considered == optimum(SPREAD, facts, f"{facts} {plus}")


def test_33_counting_is_not(keeper: Keeper) -> None:
    """B(a3) brings no new instance, yet the trace behind it moves. Without recursion nothing has to move."""
    kept, facts = Kept(keeper, SPREAD, "B"), f"B(a1) {edges()}"
    kept.start(Counting(), facts)
    assert optimum(SPREAD, facts, f"{facts} B(a3)") == []
    assert kept.update(Counting(), plus="B(a3)").count == 2 * (N - 3)


# --- 34: more strata, less work ---------------------------------------------------

COPIES = program_of(
    "\n".join(f"B{i + 1}(x) :- B{i}(x)." for i in range(1, N)), *(f"B{i}/1" for i in range(1, N + 1))
)  # (150)
ONE_STRATUM = (" ".join(f"B{i}" for i in range(1, N + 1)),)  # λ0
MANY_STRATA = tuple(f"B{i}" for i in range(2, N + 1))  # λ1


def copies(low: int, high: int) -> list[str]:
    """The instances that derive Bj(a), for j from low to high."""
    return [f"B{j - 1}(a) -> B{j}(a)" for j in range(low, high + 1)]


@pytest.mark.parametrize("i", [2, 5, N - 1])
def test_34_counting(keeper: Keeper, i: int) -> None:
    """One stratum: 2(n - i) instances, to move what is behind Bi(a). Many: nothing.

    The proof has one instance for many strata, Bi(a) -> Bi+1(a), as new. But Bi(a) was derived before, so
    that instance fired already: by Algorithm 3, and by Definition 26, it is not considered.
    """
    kept = Kept(keeper, COPIES, *ONE_STRATUM)
    kept.start(Counting(), "B1(a)")
    story = kept.update(Counting(), plus=f"B{i}(a)")
    assert story.considered == instances(*copies(i + 1, N), *copies(i + 1, N))
    assert story.count == 2 * (N - i)
    assert optimum(COPIES, "B1(a)", f"B1(a) B{i}(a)") == []


@pytest.mark.parametrize("i", [2, 5, N - 1])
@pytest.mark.parametrize("algorithm", [Counts(), Counting()], ids=["one count", "trace"])
def test_34_counting_with_many_strata(keeper: Keeper, algorithm: Algorithm, i: int) -> None:
    kept = Kept(keeper, COPIES, *MANY_STRATA)
    kept.start(algorithm, "B1(a)")
    assert kept.update(algorithm, plus=f"B{i}(a)").considered == []


def test_34_dred(keeper: Keeper) -> None:
    """One stratum: all from B2(a) on is deleted and comes back, 2n - 2. Many: B2(a) comes back at once, 2."""
    kept = Kept(keeper, COPIES, *ONE_STRATUM)
    kept.start(DRed(), "B1(a) B2(a)")
    story = kept.update(DRed(), minus="B2(a)")
    assert story.considered == instances(*copies(3, N), *copies(2, N))
    assert story.count == (2 * N - 2) - 1


def test_34_dred_with_many_strata(keeper: Keeper) -> None:
    kept = Kept(keeper, COPIES, *MANY_STRATA)
    kept.start(DRed(), "B1(a) B2(a)")
    story = kept.update(DRed(), minus="B2(a)")
    assert story.considered == instances(*copies(2, 2))
    assert story.count == 2 - 1


def test_34_fbf(keeper: Keeper) -> None:
    """One stratum: n - 1 instances back from Bn(a) to B1(a), and the same forward. Many: one proves Bn(a).

    For one stratum the proof does not count the deletion itself, for many it does: 2.
    """
    kept = Kept(keeper, COPIES, *ONE_STRATUM)
    kept.start(FBF(), f"B1(a) B{N}(a)")
    story = kept.update(FBF(), minus=f"B{N}(a)")
    assert story.of("backward") == story.of("forward") == instances(*copies(2, N))
    assert story.count == (N - 1) + (N - 1)


def test_34_fbf_with_many_strata(keeper: Keeper) -> None:
    kept = Kept(keeper, COPIES, *MANY_STRATA)
    kept.start(FBF(), f"B1(a) B{N}(a)")
    story = kept.update(FBF(), minus=f"B{N}(a)")
    assert story.considered == instances(*copies(N, N))
    assert story.count == 2 - 1


# --- 35 and 36: more strata, more work ------------------------------------------------

ENTRY = program_of("B(x) :- A(x).\n B(y) :- T(x, y), B(x).", "A/1", "T/2", "B/1")  # (151), (152)


def test_35_counting_in_one_stratum(keeper: Keeper) -> None:
    """Figure 6: both derivations of B(a2) are in iteration 2; undoing one instance is all there is to do."""
    kept = Kept(keeper, ENTRY, "A T B")
    kept.start(Counting(), f"A(a2) B(a1) {edges()}")
    chain = {f"B(a{j})": {j: 1} for j in range(1, N + 1)}
    assert traces(kept, "B") == {**chain, "B(a2)": {2: 2}}
    story = kept.update(Counting(), minus="A(a2)")
    assert traces(kept, "B") == chain
    assert story.considered == instances("A(a2) -> B(a2)")
    assert story.lost == atoms("A(a2)")


def test_35_counting_in_two_strata(keeper: Keeper) -> None:
    """Figure 7: they are in iterations 1 and 2 now. With the first gone, all from B(a3) on moves.

    That is one instance for A(a2), and two for each of the n - 2 facts behind B(a2): 2n - 3. Our copy of
    the paper has 2n - 5, which its own argument does not give.
    """
    kept = Kept(keeper, ENTRY, "T B")
    kept.start(Counting(), f"A(a2) B(a1) {edges()}")
    early = {f"B(a{j})": {j - 1: 1} for j in range(3, N + 1)}
    assert traces(kept, "B") == {"B(a1)": {1: 1}, "B(a2)": {1: 1, 2: 1}, **early}
    story = kept.update(Counting(), minus="A(a2)")
    assert traces(kept, "B") == {f"B(a{j})": {j: 1} for j in range(1, N + 1)}
    moved = [spread(j) for j in range(3, N + 1)]
    assert story.considered == instances("A(a2) -> B(a2)", *moved, *moved)
    assert story.count == 2 * N - 3


CYCLE = program_of("B(x) :- A(x), R(x, y).\n A(x) :- B(x).", "A/1", "R/2", "B/1")  # (153), (154)
FAN = "A(a) B(a) " + " ".join(f"R(a, b{i})" for i in range(1, N + 1))
BACK = "B(a) -> A(a)"  # of (154); what B(a), once proved, leads to. The proof leaves it out.


def test_36_fbf_in_one_stratum(keeper: Keeper) -> None:
    """A proof of B(a) needs one R(a, bi), and only that one is checked: one instance back, one forward."""
    kept = Kept(keeper, CYCLE, "A R B")
    kept.start(FBF(), FAN)
    story = kept.update(FBF(), minus="B(a)")
    any_of = instances(*(f"A(a), R(a, b{i}) -> B(a)" for i in range(1, N + 1)))
    [used] = [text for text in any_of if story.of("backward") == [text]][:1]
    assert story.of("forward") == [used, *instances(BACK)]
    assert story.count == 1 + 1 + 1
    assert (story.lost, story.gained) == (set(), set())


def test_36_fbf_in_two_strata(keeper: Keeper) -> None:
    """All R(a, bi) are below, and hold without being asked: one instance back, but n forward."""
    kept = Kept(keeper, CYCLE, "A B")
    kept.start(FBF(), FAN)
    story = kept.update(FBF(), minus="B(a)")
    forward = instances(*(f"A(a), R(a, b{i}) -> B(a)" for i in range(1, N + 1)))
    assert any(story.of("backward") == [used] for used in forward)
    assert story.of("forward") == [*forward, *instances(BACK)]
    assert story.count == 1 + N + 1
    assert (story.lost, story.gained) == (set(), set())
