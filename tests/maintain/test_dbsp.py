"""DBSP: rules in rewrite product form, and strata kept by the circuit."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest

from tests.maintain.keeping import Live
from tests.oracle import model_of
from tests.random_programs import generate
from tidelog.maintain.dbsp import DBSP, circuit, is_product, kit, rewrites, rewriting
from tidelog.maintain.protocol import StratumChange
from tidelog.maintain.zsets import ZSet
from tidelog.plan.executor import unwatched
from tidelog.plan.maintenance import Abandoned, PhaseReport, Row
from tidelog.plan.printer import print_rule
from tidelog.program.check import check
from tidelog.program.model import Positive, Program, Rule, Stratum
from tidelog.program.strata import stratify
from tidelog.syntax.parser import parse

DECLARED = """
.decl e(x: number, y: number)
.decl f(x: number, y: number)
.decl n(x: number)
.decl p(x: number, y: number)
.decl q(x: number, y: number)
.input e
.input f
.input n
.output p
.output q
"""


def program(text: str) -> Program:
    return check(parse(DECLARED + text))


def recursive(text: str) -> Stratum:
    """The one recursive stratum of a program."""
    [stratum] = [stratum for stratum in stratify(program(text)) if stratum.recursive]
    return stratum


def written(rules: Iterable[Rule]) -> list[str]:
    """Rules as text; relations of rewrites are numbered in the order in which they occur."""
    numbers: dict[str, str] = {}

    def number(name: re.Match[str]) -> str:
        return numbers.setdefault(name.group(), f"${len(numbers) + 1}")

    return [re.sub(r"\w+\$[0-9a-f]{14}\$rewrite", number, print_rule(rule)) for rule in rules]


def rewritten(text: str, every: bool = False) -> list[str]:
    """The last rule of a program, in rewrite product form."""
    stratum = recursive("p(x, y) :- e(x, y).\n" + text)
    rule = max((*stratum.base, *stratum.recursive), key=lambda rule: rule.id)
    return written(rewriting(rule, every))


# --- rewriting --------------------------------------------------------------------


def test_two_atoms_stay_as_they_are() -> None:
    assert rewritten("p(x, z) :- p(x, y), e(y, z), x != z.") == ["p(x, z) :- p(x, y), e(y, z), x != z."]


def test_a_product_for_each_inner_prefix() -> None:
    """Each prefix keeps the variables that the rest of the rule needs."""
    assert rewritten("p(x, w) :- p(x, y), e(y, z), f(z, v), e(v, w).") == [
        "$1(x, z) :- p(x, y), e(y, z).",
        "$2(x, v) :- $1(x, z), f(z, v).",
        "p(x, w) :- $2(x, v), e(v, w).",
    ]


def test_atoms_that_share_variables_come_together() -> None:
    assert rewritten("p(x, w) :- p(x, y), e(v, w), f(z, v), e(y, z).") == [
        "$1(x, z) :- p(x, y), e(y, z).",
        "$2(x, v) :- $1(x, z), f(z, v).",
        "p(x, w) :- $2(x, v), e(v, w).",
    ]


def test_every_prefix() -> None:
    assert rewritten("p(x, z) :- p(x, y), e(y, z).", every=True) == [
        "$1(x, y) :- p(x, y).",
        "$2(x, z) :- $1(x, y), e(y, z).",
        "p(x, z) :- $2(x, z).",
    ]


def test_conditions_negation_and_computed_variables_come_as_soon_as_they_can() -> None:
    assert rewritten("p(x, w) :- p(x, y), e(y, z), !n(z), f(z, v), v > y, e(u, w), u = max(v, 3).") == [
        "$1(x, y, z) :- p(x, y), e(y, z), not n(z).",
        "$2(x, u) :- $1(x, y, z), f(z, v), v > y, u = max(v, 3).",
        "p(x, w) :- $2(x, u), e(u, w).",
    ]


def test_what_can_fail_comes_last() -> None:
    assert rewritten("p(x, w) :- p(x, y), e(y, z), f(z, v), w = v / y, y != 0.") == [
        "$1(x, y, z) :- p(x, y), y != 0, e(y, z).",
        "p(x, w) :- $1(x, y, z), f(z, v), w = v / y.",
    ]


def test_constants_are_said_again_and_not_kept() -> None:
    assert rewritten("p(k, w) :- k = 3, e(k, y), f(y, z), p(z, w), w > k.") == [
        "$1(z) :- f(y, z), e(k, y), k == 3.",
        "p(k, w) :- $1(z), p(z, w), w > k, k = 3.",
    ]


def test_a_prefix_without_variables() -> None:
    rules = rewritten("p(x, y) :- e(1, 2), f(2, 1), p(y, x).")
    assert rules == ["$1() :- e(1, 2), f(2, 1).", "p(x, y) :- $1(), p(y, x)."]


def test_rules_without_atoms_stay_as_they_are() -> None:
    stratum = recursive("p(1, 2) :- !n(1). p(x, z) :- p(x, y), e(y, z).")
    for every in (False, True):
        assert rewriting(stratum.base[0], every) == (stratum.base[0],)


def test_relations_of_rewrites() -> None:
    """Columns are named and typed as the variables; the name says whose rewrites they are."""
    stratum = recursive("p(x, y) :- e(x, y). p(x, v) :- p(x, y), e(y, z), f(z, v).")
    product, _ = rewriting(stratum.recursive[0])
    relation = rewrites(product)
    assert re.fullmatch(r"p\$[0-9a-f]{14}\$rewrite", relation.name)
    assert [(column.name, str(column.type)) for column in relation.columns] == [("x", "s64"), ("z", "s64")]
    assert relation.made_by == "rewrite"
    assert product.id < 0
    assert product.text == stratum.recursive[0].text


SHARED = """
p(x, y) :- e(x, y).
p(x, v) :- e(x, y), f(y, z), p(z, v).
p(x, v) :- e(x, y), f(y, z), p(v, z).
p(x, v) :- e(x, y), f(y, z), p(z, w), p(w, v).
q(x, v) :- e(x, y), f(y, z), q(z, v), p(v, v).
p(x, y) :- q(x, y).
"""


def test_rules_for_one_relation_share_prefixes() -> None:
    """The first three longer rules have e(x, y), f(y, z) in common; q has a prefix of its own."""
    stratum = recursive(SHARED)
    rules = (*stratum.base, *stratum.recursive)
    found = kit(ZSet.of(rules))
    weights = sorted(weight for rule, weight in found.items() if is_product(rule))
    assert weights == [1, 1, 1, 3]
    assert len({rule.id for rule in found}) == len(found)


def test_rules_that_keep_other_variables_of_a_prefix_do_not_share_it() -> None:
    stratum = recursive(
        "p(x, y) :- e(x, y). p(x, v) :- e(x, y), f(y, z), p(z, v). p(y, v) :- e(x, y), f(y, z), p(z, v)."
    )
    first, second = (rewriting(rule)[0] for rule in stratum.recursive)
    assert first.body == second.body
    assert first.head.relation != second.head.relation
    assert first.id != second.id


def transformed(whole: Program, every: bool) -> Program:
    """A program with all its rules in rewrite product form."""
    rules: dict[Rule, None] = {}
    for stratum in stratify(whole):
        for rule in (*stratum.base, *stratum.recursive):
            rules.update(dict.fromkeys(rewriting(rule, every)))
    made = {rule.head.relation: rewrites(rule) for rule in rules if is_product(rule)}
    assert not made.keys() & whole.relations.keys()
    return Program({**whole.relations, **made}, tuple(rules), whole.aggregates, whole.facts)


@pytest.mark.parametrize("every", [False, True])
def test_rewriting_keeps_the_meaning_of_random_programs(every: bool) -> None:
    longest = 0
    for seed in range(40):
        whole = check(parse(generate(seed).text))
        form = transformed(whole, every)
        longest = max(longest, len(form.rules) - len(whole.rules))
        for rule in form.rules:
            atoms = [literal for literal in rule.body if isinstance(literal, Positive)]
            assert len(atoms) <= 2
        found = model_of(form)
        assert {name: found[name] for name in whole.relations} == model_of(whole), f"seed {seed}"
    assert longest >= 3  # there was something to rewrite


# --- the circuit ------------------------------------------------------------------


def test_circuit_of_a_stratum_whose_rules_stay() -> None:
    stratum = recursive("p(x, y) :- e(x, y). p(x, w) :- p(x, y), e(y, z), f(z, w).")
    found = circuit(StratumChange(stratum))
    assert written(found.steps.base) == ["p(x, y) :- e(x, y)."]
    recursive_rules = ["$1(x, z) :- p(x, y), e(y, z).", "p(x, w) :- $1(x, z), f(z, w)."]
    assert written(found.steps.recursive) == recursive_rules
    assert found.steps.removed == found.steps.added == ()
    assert found.steps.relations == ("p", *found.after)
    assert found.before == found.after


def change_of(before: str, after: str) -> StratumChange:
    """From one program to another; rules are the same if their texts are."""
    numbers: dict[str, int] = {}

    def numbered(stratum: Stratum) -> Stratum:
        def number(rules: Iterable[Rule]) -> tuple[Rule, ...]:
            return tuple(
                Rule(numbers.setdefault(rule.text, len(numbers) + 1), rule.head, rule.body, rule.text)
                for rule in rules
            )

        return Stratum(stratum.index, stratum.relations, number(stratum.base), number(stratum.recursive))

    old, new = numbered(recursive(before)), numbered(recursive(after))
    was, now = ((*stratum.base, *stratum.recursive) for stratum in (old, new))
    added = tuple(rule for rule in now if rule not in was)
    return StratumChange(new, added, tuple(rule for rule in was if rule not in now))


BASE = "p(x, y) :- e(x, y).\n"
FIRST = "p(x, v) :- e(x, y), f(y, z), p(z, v).\n"
SECOND = "p(x, v) :- e(x, y), f(y, z), p(v, z).\n"


def test_a_new_rule_that_shares_its_prefix_adds_only_its_head() -> None:
    found = circuit(change_of(BASE + FIRST, BASE + FIRST + SECOND))
    assert written(found.steps.base) == ["p(x, y) :- e(x, y).", "$1(x, z) :- e(x, y), f(y, z)."]
    assert written(found.steps.recursive) == ["p(x, v) :- $1(x, z), p(z, v)."]
    assert written(found.steps.added) == ["p(x, v) :- $1(x, z), p(v, z)."]
    assert found.steps.removed == ()
    assert found.before == found.after


def test_the_last_rule_of_a_prefix_takes_it_away() -> None:
    found = circuit(change_of(BASE + FIRST + "p(x, y) :- p(y, x).", BASE + "p(x, y) :- p(y, x)."))
    assert written(found.steps.removed) == [
        "$1(x, z) :- e(x, y), f(y, z).",
        "p(x, v) :- $1(x, z), p(z, v).",
    ]
    assert found.steps.added == ()
    assert found.after == {}
    assert found.steps.relations == ("p", *found.before)


def test_one_rule_for_another_keeps_the_prefix_they_share() -> None:
    found = circuit(change_of(BASE + FIRST, BASE + SECOND))
    assert written(found.steps.removed) == ["p(x, v) :- $1(x, z), p(z, v)."]
    assert written(found.steps.added) == ["p(x, v) :- $1(x, z), p(v, z)."]
    assert found.before == found.after
    assert len(found.after) == 1


# --- on a keeper, beside the oracle -------------------------------------------------


def rewrite_relations(live: Live) -> dict[str, int]:
    """The relations of rewrites that the keeper has, by name, with their sizes."""
    stratum = next(stratum for stratum in live.maintenance.strata if stratum.recursive)
    return {name: live.keeper.size(name) for name in circuit(StratumChange(stratum)).after}


def weights(live: Live, relation: str) -> dict[Row, dict[int, int]]:
    """The weight of each tuple in each iteration."""
    return {row: dict(known.trace) for row, known in live.keeper.standing(relation).items()}


LONG = "p(x, v) :- e(y, z), f(z, v), p(x, y)."
CLOSURE = "p(x, z) :- p(x, y), p(y, z)."
SMALL = DECLARED + "p(x, y) :- e(x, y).\n" + LONG + "\n" + CLOSURE


def test_facts_come_and_go() -> None:
    """Rewrites follow e and f; p(2, 1) is from p(2, 3) and the rewrite of e(3, 4) and f(4, 1)."""
    live = Live(SMALL, "dbsp", {"e": [(1, 2), (2, 3)], "f": [(3, 7)]}, without=[CLOSURE])
    assert live.model["p"] == {(1, 2), (2, 3), (1, 7)}
    [product] = rewrite_relations(live)
    assert set(live.keeper.standing(product)) == {(2, 7)}
    assert live.commit(insert={"e": [(3, 4)], "f": [(4, 1)]})["p"] == (set(), {(3, 4), (2, 1)})
    assert set(live.keeper.standing(product)) == {(2, 7), (3, 1)}
    assert live.commit(delete={"e": [(1, 2)]})["p"] == ({(1, 2), (1, 7)}, set())
    assert live.commit(delete={"f": [(4, 1)]})["p"] == ({(2, 1)}, set())
    assert set(live.keeper.standing(product)) == {(2, 7)}
    assert live.algorithms() == {("p",): "dbsp"}


def test_weights_of_each_iteration() -> None:
    """p(1, 7) is derived from p(1, 2) and the rewrite (2, 7), which is there from iteration 1."""
    live = Live(SMALL, "dbsp", {"e": [(1, 2), (2, 3), (2, 4)], "f": [(3, 7), (4, 7)]})
    [product] = rewrite_relations(live)
    assert weights(live, product) == {(2, 7): {1: 2}}  # over 3 and over 4
    assert weights(live, "p") == {
        (1, 2): {1: 1},
        (2, 3): {1: 1},
        (2, 4): {1: 1},
        (1, 7): {2: 1},
        (1, 3): {2: 1},
        (1, 4): {2: 1},
    }
    live.commit(delete={"f": [(3, 7)]})
    assert weights(live, product) == {(2, 7): {1: 1}}
    assert live.phases("p")["circuit"].instances == {live.rule(LONG): 1}  # the rewrite stays: no more to do


def test_instances_of_products_count_for_the_users_rule() -> None:
    live = Live(SMALL, "dbsp", {"e": [(1, 2), (2, 3)], "f": [(3, 7)]}, without=[CLOSURE])
    base = live.rule("p(x, y) :- e(x, y).")
    assert live.phases("p")["circuit"].instances == {base: 2, live.rule(LONG): 2}  # a product, a head
    live.commit(insert={"f": [(3, 8)]})
    assert live.phases("p")["circuit"].instances == {live.rule(LONG): 2}


def test_a_rule_change_costs_what_the_rule_derives() -> None:
    """A thousand tuples that the new rule has nothing to do with are not looked at."""
    chains = [(10 * i + j, 10 * i + j + 1) for i in range(10, 110) for j in range(3)]
    live = Live(SMALL, "dbsp", {"e": [(1, 2), (2, 3), *chains], "f": [(3, 7)]}, without=[LONG])
    assert len(live.model["p"]) == 603
    live.commit(add=[LONG])
    considered = live.phases("p")["circuit"]
    assert considered.instances == {live.rule(LONG): 2}
    assert considered.touched == 2
    assert list(rewrite_relations(live).values()) == [1]
    [product] = rewrite_relations(live)
    live.commit(remove=[LONG])
    assert live.phases("p")["circuit"].instances == {live.rule(LONG): 2}
    with pytest.raises(KeyError):
        live.keeper.size(product)


def test_a_rollback_brings_rewrites_back() -> None:
    live = Live(SMALL, "dbsp", {"e": [(1, 2), (2, 3)], "f": [(3, 7)]})
    [product] = rewrite_relations(live)
    before = live.keeper.standing(product)
    live.begin({}, {"e": [(1, 2)]}, remove=[LONG])
    live.maintenance.rollback()
    assert live.keeper.standing(product) == before
    live._absent.discard(LONG)
    live.facts["e"].add((1, 2))
    live.agrees()
    assert live.commit(insert={"f": [(3, 9)]})["p"] == (set(), {(1, 9)})


def test_other_algorithms_take_over_and_give_back() -> None:
    """Rewrites are dropped when another algorithm has its turn, and made anew afterwards."""
    live = Live(SMALL, "dbsp", {"e": [(1, 2), (2, 3)], "f": [(3, 7)]})
    [product] = rewrite_relations(live)
    live.maintenance.algorithm = "dred"
    live.commit(insert={"e": [(3, 4)]})
    with pytest.raises(KeyError):
        live.keeper.size(product)
    live.commit(insert={"f": [(4, 1)]}, delete={"f": [(3, 7)]})
    live.maintenance.algorithm = "dbsp"
    live.commit(insert={"e": [(7, 8)]})
    assert set(live.keeper.standing(product)) == {(3, 1)}
    live.commit(delete={"e": [(2, 3)]})


def test_an_abandoned_update_leaves_the_rewrites_as_they_were() -> None:
    other = "p(x, v) :- p(y, x), e(y, z), f(v, z)."
    live = Live(SMALL + other, "dbsp", {"e": [(1, 2), (2, 3)], "f": [(3, 7)]}, without=[other])
    [product] = rewrite_relations(live)
    before = live.keeper.standing(product)
    [whole] = [stratum for stratum in stratify(live._all) if stratum.recursive]
    change = StratumChange(whole, tuple(rule for rule in whole.recursive if rule.text == other))
    live.keeper.begin()
    live.keeper.assert_rows("f", [(2, 1), (3, 1)])
    with pytest.raises(Abandoned):
        DBSP().update(change, live.keeper, unwatched, 1)
    assert live.keeper.standing(product) == before
    made = circuit(change).after.keys() - {product}
    assert len(made) == 1
    with pytest.raises(KeyError):
        live.keeper.size(*made)
    live.keeper.rollback()
    live.agrees()


def test_strata_without_recursion_if_they_are_not_counted() -> None:
    text = DECLARED + "q(x, v) :- e(x, y), f(y, z), e(z, v), !n(z)."
    live = Live(text, "dbsp", {"e": [(1, 2), (3, 4)], "f": [(2, 3)]}, counts=False)
    assert live.algorithms() == {("q",): "dbsp"}
    assert live.model["q"] == {(1, 4)}
    assert live.commit(insert={"n": [(3,)]})["q"] == ({(1, 4)}, set())
    assert live.commit(delete={"n": [(3,)]}, insert={"e": [(3, 5)]})["q"] == (set(), {(1, 4), (1, 5)})


RULES = """
p(x, y) :- e(x, y).
p(x, v) :- p(x, y), e(y, z), f(z, v).
p(x, v) :- e(x, y), f(y, z), p(z, v).
p(x, v) :- e(x, y), f(y, z), p(v, z), !n(x), v != y.
p(x, z) :- p(x, y), p(y, z).
p(1, y) :- q(x, y), e(x, x), f(y, _).
q(x, w) :- p(x, y), q(y, z), p(z, w), !n(w).
q(x, y) :- f(x, y), x < 4.
q(k, v) :- k = 2, e(k, y), f(y, z), p(z, v), !n(z).
q(x, u) :- q(x, y), f(y, z), u = z + 1, e(u, _), u < 6.
p(x, y) :- q(y, x), e(x, z), e(z, x).
"""


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_random_histories(seed: int, every: bool) -> None:
    """Facts, explicit ones of derived relations too, and rules come and go; the oracle says what holds."""
    draw = random.Random(seed)
    texts = RULES.split("\n")[1:-1]
    absent = set(draw.sample(texts, 4))
    arities = {"e": 2, "f": 2, "n": 1, "p": 2, "q": 2}
    numbers = range(1, 7)

    def rows(name: str, most: int) -> set[tuple[int, ...]]:
        return {tuple(draw.choices(numbers, k=arities[name])) for _ in range(draw.randint(0, most))}

    first = {"e": rows("e", 9), "f": rows("f", 9), "n": rows("n", 2), "p": rows("p", 1)}
    live = Live(DECLARED + RULES, DBSP(every), first, without=absent)
    for _ in range(8):
        insert = {name: rows(name, 2) for name in draw.sample(sorted(arities), 2)}
        delete = {
            name: draw.sample(sorted(live.facts[name]), min(len(live.facts[name]), draw.randint(0, 3)))
            for name in draw.sample(sorted(arities), 2)
        }
        add, remove = list[str](), list[str]()
        if draw.random() < 0.5:
            add = draw.sample(sorted(absent), min(len(absent), draw.randint(0, 2)))
            remove = draw.sample(sorted(set(texts) - absent), draw.randint(0, 2))
        absent = (absent - set(add)) | set(remove)
        live.commit(insert, delete, add, remove)
        for report in live.reports:
            assert_nonrepeating(report.phases)


def assert_nonrepeating(phases: list[PhaseReport]) -> None:
    """No instance is added twice or taken twice."""
    for phase in phases:
        found = list(zip(phase.kinds, phase.considered, strict=True))
        assert len(found) == sum(phase.instances.values())
        assert len(set(found)) == len(found)
