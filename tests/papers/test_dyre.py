"""DYRE, Examples 3.2 and 4.1 to 4.7, by the paper's definitions and by our rules in rewrite product form.

Where an example and the definitions that it illustrates disagree we follow the definitions:
- 4.2 prints I(S)[1] with P(b, c) at weight 2. The stream brings it once, with weight 1.
- 4.3 prints R(a, c) as an immediate consequence. It is one only once R(a, b) is among the facts.
- 4.4 prints directions as single provenances; Definition 4.3 has pairs of them.
"""

from __future__ import annotations

import doctest

import pytest

from tests.maintain.keeping import Live
from tests.papers.dyre import (
    DECLARED,
    EMPTY,
    Circuit,
    Fact,
    Row,
    Stream,
    body,
    consequence,
    delay,
    directions,
    facts,
    integrate,
    integrate_nested,
    introduce,
    join_order,
    lift,
    materialised,
    provenance,
    rewrite,
    rewrite_product,
    rules,
    signals,
    sum_of_streams,
    todiff,
    total,
)
from tests.papers.notation import read
from tidelog.maintain import zsets
from tidelog.maintain.dbsp import DBSP, is_product, kit, rewriting
from tidelog.maintain.zsets import ZSet
from tidelog.program.model import Positive, Rule

TEXT = "R(x, y) :- P(x, y). R(x, z) :- R(x, y), P(y, z)."
COPY, LEFT = rules(TEXT)


def test_example_3_2_rewrite_product() -> None:
    [atom] = body(COPY)
    given = facts("P(a, b) P(b, c) P(c, d)")
    found = rewrite_product([rewrite(x="a"), rewrite(x="b")], atom, given)
    assert found == {rewrite(x="a", y="b"), rewrite(x="b", y="c")}


def test_rewrite_product_from_the_empty_rewrite() -> None:
    """Section 3: the products of a body, one after the other, from the set that has only Σ₀."""
    given = facts("R(a, b) P(b, c) P(c, d)")
    first, second = body(LEFT)
    begun = rewrite_product([EMPTY], first, given)
    assert begun == {rewrite(x="a", y="b")}
    assert rewrite_product(begun, second, given) == {rewrite(x="a", y="b", z="c")}
    assert rewrite_product([EMPTY], second, given) == {rewrite(y="b", z="c"), rewrite(y="c", z="d")}


def test_definition_4_1_z_sets() -> None:
    one, other = ZSet({"a": 1, "b": 2}), ZSet({"a": -1, "b": 1, "c": -2})
    assert one + other == ZSet({"b": 3, "c": -2})
    assert -other == ZSet({"a": 1, "b": -1, "c": 2})
    assert one - one == ZSet()
    assert (one + other)["a"] == 0


def test_z_sets_as_their_docstring_says() -> None:
    result = doctest.testmod(zsets)
    assert (result.failed, result.attempted) == (0, 3)


def test_example_4_1_delay_toset_todiff() -> None:
    stream = [facts("P(a, b)"), facts("P(b, c)", 2), facts("P(c, d)")]
    signed = [facts("P(a, b)", -1), facts("P(b, c)", 2), facts("P(c, d)", -1)]
    short = [facts("P(a, b)"), facts("P(b, c)", 2)]
    assert lift(ZSet.toset, stream) == [facts("P(a, b)"), facts("P(b, c)"), facts("P(c, d)")]
    assert lift(todiff, signed) == [facts("P(a, b)", -1), facts("P(b, c)"), facts("P(c, d)", -1)]
    assert delay(short) == [ZSet(), facts("P(a, b)"), facts("P(b, c)", 2)]


FACT_CHANGES = [facts("P(a, b)"), facts("P(b, c)"), facts("P(c, d)")]
RULE_CHANGES: Stream[Rule] = [ZSet({COPY: 1}), ZSet({LEFT: 1}), ZSet({COPY: -1})]
ANSWER_CHANGES = [
    facts("P(a, b) R(a, b)"),
    facts("P(b, c) R(b, c) R(a, c)"),
    facts("R(a, b) R(b, c) R(a, c)", -1) + facts("P(c, d)"),
]


def test_example_4_2_integration() -> None:
    assert integrate(FACT_CHANGES) == [
        facts("P(a, b)"),
        facts("P(a, b) P(b, c)"),
        facts("P(a, b) P(b, c) P(c, d)"),
    ]


def test_example_4_2_naive_circuit() -> None:
    """Figure 1: everything from the rules and facts so far."""
    answers = [
        materialised(program, given)
        for program, given in zip(integrate(RULE_CHANGES), integrate(FACT_CHANGES), strict=True)
    ]
    assert answers == integrate(ANSWER_CHANGES)


def test_example_4_2_incremental_circuit() -> None:
    """Figure 2: the changes of the answers, from the changes of rules and facts."""
    circuit = Circuit()
    found = [circuit.commit(*changes) for changes in zip(RULE_CHANGES, FACT_CHANGES, strict=True)]
    assert found == ANSWER_CHANGES


def changes_of(commit: dict[str, tuple[set[Row], set[Row]]]) -> ZSet[Fact]:
    return ZSet({
        (name, row): weight
        for name, (deleted, inserted) in commit.items()
        for rows, weight in ((deleted, -1), (inserted, 1))
        for row in rows
    })  # fmt: skip


@pytest.mark.parametrize("every", [False, True])
def test_example_4_2_on_a_keeper(every: bool) -> None:
    live = Live(DECLARED + TEXT, DBSP(every), without=[LEFT.text])
    assert changes_of(live.commit(insert={"P": [("a", "b")]})) == ANSWER_CHANGES[0]
    assert changes_of(live.commit(insert={"P": [("b", "c")]}, add=[LEFT.text])) == ANSWER_CHANGES[1]
    assert changes_of(live.commit(insert={"P": [("c", "d")]}, remove=[COPY.text])) == ANSWER_CHANGES[2]


def immediate_changes(program: Stream[Rule], given: Stream[Fact]) -> Stream[Fact]:
    """(↑𝒯)^Δ as the formula for bilinear functions has it, which 𝒯 is not."""
    old_program, old_given = delay(integrate(program)), delay(integrate(given))
    return [
        consequence(program[t], given[t])
        + consequence(old_program[t], given[t])
        + consequence(program[t], old_given[t])
        for t in range(len(program))
    ]


def test_example_4_3_the_printed_terms() -> None:
    program, given = RULE_CHANGES[:2], FACT_CHANGES[:2]
    assert [consequence(*changes) for changes in zip(program, given, strict=True)] == [
        facts("R(a, b)"),
        ZSet(),
    ]
    assert immediate_changes(program, given) == [facts("R(a, b)"), facts("R(b, c)")]


def test_example_4_3_the_immediate_consequence_is_not_bilinear() -> None:
    """With R(a, b) among the facts from epoch 0 on, where the circuit puts it, R(a, c) is missed.

    It needs the new rule, an old fact and a new one: no term of the formula has all three.
    """
    program, given = RULE_CHANGES[:2], [facts("P(a, b) R(a, b)"), facts("P(b, c)")]
    changes = integrate(immediate_changes(program, given))
    whole = [consequence(p, e) for p, e in zip(integrate(program), integrate(given), strict=True)]
    assert whole == [facts("R(a, b)"), facts("R(a, b) R(b, c) R(a, c)")]
    assert changes == [facts("R(a, b)"), facts("R(a, b) R(b, c)")]


def test_example_4_3_without_it_the_two_agree() -> None:
    """As printed, R(a, b) is not among the facts, and then R(a, c) is no immediate consequence."""
    program, given = RULE_CHANGES[:2], FACT_CHANGES[:2]
    whole = consequence(integrate(program)[1], integrate(given)[1])
    assert whole == facts("R(a, b) R(b, c)") == integrate(immediate_changes(program, given))[1]


_, RIGHT = rules("R(x, y) :- P(x, y). R(x, z) :- P(x, y), R(y, z).")


def test_example_4_4_grounding_kit() -> None:
    program = ZSet({COPY: 1, RIGHT: 1})
    edge, path = body(RIGHT)
    assert provenance(COPY, 0) == provenance(RIGHT, 0) == hash(edge)
    assert provenance(RIGHT, 1) == hash(edge) + hash(path)
    assert directions(program) == ZSet({
        (0, hash(edge), edge): 2,
        (hash(edge), hash(edge) + hash(path), path): 1,
    })  # fmt: skip
    assert directions(program).linear(lambda direction: [direction[1]]) == ZSet({
        hash(edge): 2,
        provenance(RIGHT, 1): 1,
    })  # fmt: skip
    assert signals(program) == ZSet({(hash(edge), COPY.head): 1, (provenance(RIGHT, 1), RIGHT.head): 1})


def test_example_4_4_as_rules() -> None:
    """The same kit as ours has it: the products are the directions, the other rules the signals."""
    first, second, head = rewriting(RIGHT, every=True)
    same, copy = rewriting(COPY, every=True)
    assert same == first  # the provenance of P(x, y) in both rules
    assert kit(ZSet({COPY: 1, RIGHT: 1}), every=True) == ZSet({first: 2, second: 1, head: 1, copy: 1})
    edge, path = body(RIGHT)
    assert first.body == (Positive(edge),)
    assert second.body == (Positive(first.head), Positive(path))
    assert (copy.head, copy.body) == (COPY.head, (Positive(first.head),))
    assert (head.head, head.body) == (RIGHT.head, (Positive(second.head),))
    assert [is_product(rule) for rule in (first, second, head, copy)] == [True, True, False, False]


def test_kit_is_linear_in_the_rules() -> None:
    """A rule that goes takes its weight from what it shares, and ends what it does not."""
    both = kit(ZSet({COPY: 1, RIGHT: 1}), every=True)
    without = both + kit(ZSet({COPY: -1}), every=True)
    assert without == kit(ZSet({RIGHT: 1}), every=True)
    shared, copy = rewriting(COPY, every=True)
    assert without[shared] == 1
    assert without.toset() - both.toset() == ZSet({copy: -1})


def test_example_4_5_nested_streams() -> None:
    stream = FACT_CHANGES[:2]
    assert introduce(stream[0]) == [facts("P(a, b)")]
    nested = lift(introduce, stream)
    assert nested == [[facts("P(a, b)")], [facts("P(b, c)")]]
    assert total(stream) == facts("P(a, b) P(b, c)")
    assert lift(total, nested) == [facts("P(a, b)"), facts("P(b, c)")]
    assert sum_of_streams(nested) == [facts("P(a, b) P(b, c)")]


def test_example_4_6_integrals_of_a_nested_stream() -> None:
    """The left side of a product sums over iterations, the right side over epochs."""
    nested = [[facts("P(a, b)"), facts("R(a, b)")], [facts("P(b, c)"), facts("R(b, c)"), facts("R(a, c)")]]
    lifted = lift(integrate, nested)
    assert lifted[1] == [facts("P(b, c)"), facts("P(b, c) R(b, c)"), facts("P(b, c) R(b, c) R(a, c)")]
    assert integrate_nested(nested)[1] == [
        facts("P(a, b) P(b, c)"),
        facts("R(a, b) R(b, c)"),
        facts("R(a, c)"),
    ]


def test_example_4_7_join_order() -> None:
    """E is read whole, T by its zeroth term: written with P for E and R for T."""
    [rule] = rules("R(x, y) :- P(x, y), R(y, _).")
    assert join_order(rule) == ZSet({("P", ()): 1, ("R", (0,)): 1})


CLOSURE = rules("R(x, y) :- P(x, y). R(x, z) :- R(x, y), R(y, z). R(x, z) :- R(x, y), P(y, w), R(w, z).")
HISTORIES = {
    "facts come and go": [
        (CLOSURE, [], "P(a, b) P(b, c) P(c, d)", ""),
        ([], [], "P(d, a)", ""),
        ([], [], "", "P(b, c)"),
        ([], [], "P(b, c) P(a, c)", "P(a, b)"),
    ],
    "rules come and go": [
        (CLOSURE[:1], [], "P(a, b) P(b, c) P(c, a) P(c, d)", ""),
        (CLOSURE[2:], [], "", ""),
        (CLOSURE[1:2], CLOSURE[2:], "P(d, e)", "P(c, a)"),
        ([], CLOSURE[:1], "R(a, b) R(b, c)", ""),
    ],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_the_circuits_agree(history: list[tuple[list[Rule], list[Rule], str, str]]) -> None:
    """Figure 2 gives the changes between what Figure 1 gives."""
    circuit, program, given, before = Circuit(), ZSet[Rule](), ZSet[Fact](), ZSet[Fact]()
    for added, removed, inserted, deleted in history:
        rule_change = ZSet.of(added) - ZSet.of(removed)
        fact_change = facts(inserted) - facts(deleted)
        program, given = program + rule_change, given + fact_change
        after = materialised(program, given)
        assert circuit.commit(rule_change, fact_change) == after - before
        before = after


def test_the_trace_is_the_stream_of_weights_summed_over_epochs() -> None:
    """What a keeper has of each tuple, beside Figure 2: weights before distinct, by iteration.

    The circuit keeps the rewrites of the first atom for an iteration before they meet the
    second; here S does so. Iteration t' of the circuit is iteration t' + 1 of the keeper.
    """
    held = DECLARED + ".decl S(x: symbol, y: symbol)\n"
    copy, keep, left = "R(x, y) :- P(x, y).", "S(x, y) :- R(x, y).", "R(x, z) :- S(x, y), P(y, z)."
    live = Live("\n".join([held, copy, keep, left]), "dbsp", whole=True, without=[copy])
    circuit = Circuit()
    circuit.commit(ZSet({LEFT: 1}), ZSet())
    history = [
        ([], [], "P(a, b) P(b, c) P(c, d)", ""),
        ([COPY], [], "", ""),
        ([], [], "P(c, a) P(d, e)", ""),
        ([], [], "R(b, e) P(a, c)", "P(b, c)"),
        ([], [COPY], "R(a, b)", ""),
        ([COPY], [], "", "R(b, e) P(c, a)"),
    ]
    longest = 0
    for added, removed, inserted, deleted in history:
        circuit.commit(ZSet.of(added) - ZSet.of(removed), facts(inserted) - facts(deleted))
        live.commit(
            read(inserted), read(deleted), [rule.text for rule in added], [rule.text for rule in removed]
        )
        traces = {
            (name, row): dict(known.trace)
            for name in ("P", "R")
            for row, known in live.keeper.standing(name).items()
        }
        assert traces == circuit.weights()
        longest = max(longest, *(len(trace) for trace in traces.values()))
    assert longest > 1  # some tuple was derived in several iterations
