"""Shapiro, Examples 3.5, 4.1 and 4.2: a closure step by step, and DRed as rules about rules.

From: B. R. C. A. de Lima, K. Apinis, *A Back-to-basics Empirical Study of Datalog Materialization*.
Example 3.5 closes a chain of three edges with a rule that joins the closure with itself. Examples 4.1 and 4.2
write down the rules that overdeletion and rederivation evaluate. With us these are readings of
the program's own rules; the tests write the readings in the paper's way and compare.
"""

from __future__ import annotations

from tests import oracle
from tests.papers.keeping import Kept, layers, program_of
from tests.papers.notation import atoms, instances, named, read
from tidelog.maintain.dred import DRed, overdelete, rederive
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.protocol import StratumChange
from tidelog.plan.maintenance import Keeper, Reading
from tidelog.plan.parts import CURRENT, KEPT, LOST, D, Mark, Part
from tidelog.program.model import Atom, Positive, Var

DOUBLING = program_of(
    "TC(x, y) :- Edge(x, y).\n TC(x, z) :- TC(x, y), TC(y, z).", "Edge/2", "TC/2", column="number"
)
LINEAR = program_of(
    "TC(x, z) :- Edge(x, y), TC(y, z).\n TC(x, y) :- Edge(x, y).", "Edge/2", "TC/2", column="number"
)
CHAIN = "Edge(1, 2) Edge(2, 3) Edge(3, 4)"
# What each application of the immediate consequence operator adds; the fourth adds nothing.
ADDS = ["TC(1, 2) TC(2, 3) TC(3, 4)", "TC(1, 3) TC(2, 4)", "TC(1, 4)", ""]


def test_example_3_5_naive() -> None:
    """I_C applied to everything, four times; the fourth time DB = I_C(DB)."""
    database = {name: set(read(CHAIN).get(name, [])) for name in DOUBLING.relations}
    expected = atoms(CHAIN)
    for added in ADDS:
        consequence = [(rule.head.relation, list(oracle.derived(rule, database))) for rule in DOUBLING.rules]
        for relation, rows in consequence:
            database[relation].update(rows)
        expected |= atoms(added)
        assert named(database) == expected


def test_example_3_5(keeper: Keeper) -> None:
    """Each fact is first derived in the iteration that the example has it in.

    Semi-naive evaluation considers each of the three edges, and each of the four ways to cut a path, once.
    """
    kept = Kept(keeper, DOUBLING, "TC")
    story = kept.start(Elastic(), CHAIN)
    first: dict[int, set[str]] = {}
    for fact, known in kept.standing().items():
        if fact.startswith("TC"):
            first.setdefault(known.first, set()).add(fact)
    assert first == {i: atoms(added) for i, added in enumerate(ADDS, 1) if added}
    assert story.considered == instances(
        "Edge(1, 2) -> TC(1, 2)",
        "Edge(2, 3) -> TC(2, 3)",
        "Edge(3, 4) -> TC(3, 4)",
        "TC(1, 2), TC(2, 3) -> TC(1, 3)",
        "TC(2, 3), TC(3, 4) -> TC(2, 4)",
        "TC(1, 2), TC(2, 4) -> TC(1, 4)",
        "TC(1, 3), TC(3, 4) -> TC(1, 4)",
    )
    assert kept.held == atoms(CHAIN + " ".join(ADDS))


def as_rule(reading: Reading, sign: str, gone: Part) -> str:
    """A reading as one of the paper's rules: atoms that must be deleted ones have a minus."""

    def atom(a: Atom) -> str:
        return f"{a.relation}({', '.join(t.name for t in a.terms if isinstance(t, Var))})"

    body = []
    for literal, part in zip(reading.rule.body, reading.parts, strict=True):
        assert isinstance(literal, Positive)
        body.append(("-" if part == gone else "") + atom(literal.atom))
    return f"{sign}{atom(reading.rule.head)} <- {', '.join(body)}"


def test_example_4_1_rules() -> None:
    """One reading for each atom of each body; the atom that drives is the deleted one.

    -r0 and -r1 are driven by what is gone from the stratum below and start the sweep; -r2 goes on from the
    sweep's newest. Another atom reads what is left, so that no instance comes twice: the paper's rules let
    -r1 and -r2 both find an instance that has lost its two atoms.
    """
    [stratum] = layers(LINEAR, "TC")
    sweep = overdelete(StratumChange(stratum))
    assert {as_rule(reading, "-", LOST) for reading in sweep.seeds} == {
        "-TC(x, y) <- -Edge(x, y)",  # -r0
        "-TC(x, z) <- -Edge(x, y), TC(y, z)",  # -r1
    }
    [reading] = sweep.forms
    assert as_rule(reading, "-", CURRENT) == "-TC(x, z) <- Edge(x, y), -TC(y, z)"  # -r2
    assert reading.parts[0] == KEPT
    assert [r.parts[r.driver] for r in sweep.seeds if r.driver is not None] == [LOST, LOST]


def test_example_4_1(keeper: Keeper) -> None:
    """Edge(2, 3) goes, and TC(2, 3) with it, and all that was inferred from that."""
    kept = Kept(keeper, LINEAR, "TC")
    kept.start(DRed(), CHAIN)
    story = kept.update(DRed(), minus="Edge(2, 3)")
    deletion = story.steps[0]
    assert deletion.marked(Mark.DELETED) - atoms("Edge(2, 3)") == atoms("TC(2, 3) TC(2, 4) TC(1, 3) TC(1, 4)")
    assert deletion.considered == instances(
        "Edge(2, 3) -> TC(2, 3)",  # -r0
        "Edge(2, 3), TC(3, 4) -> TC(2, 4)",  # -r1
        "Edge(1, 2), TC(2, 3) -> TC(1, 3)",  # -r2
        "Edge(1, 2), TC(2, 4) -> TC(1, 4)",  # -r2
    )
    assert story.lost == atoms("Edge(2, 3) TC(2, 3) TC(2, 4) TC(1, 3) TC(1, 4)")


def test_example_4_2_rules() -> None:
    """One reading for each rule, with the overdeleted head as one more atom before the body."""
    [stratum] = layers(LINEAR, "TC")
    redeem = rederive(StratumChange(stratum), False)
    assert {as_rule(reading, "+", D) for reading in redeem.forms} == {
        "+TC(x, y) <- -TC(x, y), Edge(x, y)",  # r0
        "+TC(x, z) <- -TC(x, z), Edge(x, y), TC(y, z)",  # r1
    }
    assert {reading.driver for reading in redeem.forms} == {0}


def test_example_4_2(keeper: Keeper) -> None:
    """TC(3, 4) is overdeleted, as a path by way of 5; Edge(3, 4) is still there and puts it back, by r0.

    TC(2, 4), overdeleted too, follows from TC(3, 4) only: it comes back with the insertion, not in one step.
    """
    kept = Kept(keeper, LINEAR, "TC")
    kept.start(DRed(), f"{CHAIN} Edge(3, 5) Edge(5, 4)")
    story = kept.update(DRed(), minus="Edge(3, 5)")
    deletion, back, rest = story.steps
    gone = "TC(3, 5) TC(2, 5) TC(1, 5)"
    assert deletion.marked(Mark.DELETED) - atoms("Edge(3, 5)") == atoms(f"{gone} TC(3, 4) TC(2, 4) TC(1, 4)")
    assert back.marked(Mark.QUEUED) == atoms("TC(3, 4)")
    assert back.considered == instances("Edge(3, 4) -> TC(3, 4)")
    assert rest.marked(Mark.ADDED) == atoms("TC(3, 4) TC(2, 4) TC(1, 4)")
    assert story.lost == atoms(f"Edge(3, 5) {gone}")
