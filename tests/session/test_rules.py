"""Programs that change while their facts stay: rules added and removed, relations that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from tests.session.states import GRAPH, TYPED, database
from tidelog import Database, DataError, ProgramError, UnknownRelationError, UnknownRuleError

pytestmark = pytest.mark.usefixtures("engine")

ALGORITHMS = ("recompute", "counting", "dred", "fbf", "elastic", "ranked", "dbsp", "auto")


def ids(db: Database) -> dict[str, int]:
    """The numbers of the rules that are evaluated, by what they derive and how many of them there are."""
    found: dict[str, int] = {}
    for rule in db.program.rules:
        number = sum(name.partition("/")[0] == rule.head.relation for name in found)
        found[f"{rule.head.relation}/{number}"] = rule.id
    return found


# --- rules come and go --------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rules_are_added_and_removed(algorithm: str) -> None:
    db = database("", algorithm=algorithm)
    db.commit(insert={"edge": [(1, 2), (2, 3), (3, 1), (3, 4)]})
    changes = db.commit(add_rules=["path(x, y) :- edge(x, y)."])
    assert changes["path"].inserted == [(1, 2), (2, 3), (3, 1), (3, 4)]
    changes = db.commit(add_rules=["path(x, z) :- path(x, y), edge(y, z)."])
    assert len(changes["path"].inserted) == 12 - 4
    changes = db.commit(add_rules=["far(x) :- path(x, 4), !edge(x, 4)."], delete={"edge": [(3, 1)]})
    assert changes["far"].inserted == [(1,), (2,)]
    changes = db.commit(remove_rules=["path(a, c) :- path(a, b), edge(b, c)."])
    assert changes["path"].deleted == [(1, 3), (1, 4), (2, 4)]
    assert (list(db["path"]), list(db["far"])) == ([(1, 2), (2, 3), (3, 4)], [])


def test_the_numbers_of_rules() -> None:
    db = database(GRAPH)
    assert db.rules == [(1, "path(x, y) :- edge(x, y)."), (2, "path(x, z) :- path(x, y), edge(y, z).")]
    with db.transaction() as tx:
        assert tx.add_rule("p(x) :- edge(x, _).\nq(x) :- p(x).") == (3, 4)
        tx.remove_rule(3)
        tx.remove_rule(1)
    assert db.rules == [(2, "path(x, z) :- path(x, y), edge(y, z)."), (4, "q(x) :- p(x).")]
    assert db.rules[0].id == 2 and db.rules[0].text == "path(x, z) :- path(x, y), edge(y, z)."
    with db.transaction() as tx:
        assert tx.add_rule("p(x) :- edge(x, _).") == (5,)
    with db.transaction() as tx:
        assert tx.add_rule("p(y) :- edge(y, _).") == (5,)  # it is there already
    assert [rule.id for rule in db.rules] == [2, 4, 5]


def test_rules_that_stay_keep_their_numbers_within() -> None:
    db = database("""
        a(x, n) :- p(x), n = count : { e(x, _) }.
        b(x) :- p(x), !e(x, _).
        c(x, m) :- p(x), m = max y : { e(x, y) }.
    """)
    db.commit(insert={"p": [(1,), (2,)], "e": [(1, 5), (1, 6)]})
    before, relations = ids(db), list(db.program.relations)
    db.commit(remove_rules=[1], add_rules=["d(x, s) :- p(x), s = sum y : { e(x, y), y > 0 }."])
    after = ids(db)
    kept = {name: number for name, number in before.items() if not name.startswith("a")}
    assert kept.items() <= after.items()
    assert not {number for name, number in after.items() if name not in kept} & set(before.values())
    assert [name for name in db.program.relations if name.startswith("c$")] == [
        name for name in relations if name.startswith("c$")
    ]
    assert list(db["d"]) == [(1, 11), (2, 0)]
    assert list(db["c"]) == [(1, 6)]
    db.commit(insert={"e": [(2, 9)]})
    assert (list(db["c"]), list(db["d"]), list(db["b"])) == ([(1, 6), (2, 9)], [(1, 11), (2, 9)], [])


def test_only_strata_with_changed_rules_are_worked_on() -> None:
    db = database(GRAPH + "colour(x) :- tint(x).")
    db.commit(insert={"edge": [(1, 2)], "tint": [(3,)]})
    db.commit(add_rules=["bright(x) :- colour(x)."])
    assert [line.relations for line in db.report.strata] == [("bright",)]
    assert db.report.instances == 1


@pytest.mark.parametrize(
    "text",
    [
        "path(x, z) :- path(x, y), edge(y, z).",
        "path(A,B):-path(A,C),edge(C,B).",
        "path(\n  x, z) :- // the step\n  path(x, y), edge(y, z).",
    ],
)
def test_a_rule_is_found_however_it_is_written(text: str) -> None:
    db = database(GRAPH)
    db.commit(remove_rules=[text])
    assert [rule.id for rule in db.rules] == [1]


def test_a_rule_that_is_not_there() -> None:
    db = database(GRAPH)
    with db.transaction() as tx:
        with pytest.raises(UnknownRuleError) as caught:
            tx.remove_rule("path(x, z) :- path(x, y), edge(z, y).")
        assert str(caught.value) == (
            "error[TL0514]: there is no rule path(x, z) :- path(x, y), edge(z, y).\n"
            "  = hint: there is path(x, z) :- path(x, y), edge(y, z).\n"
            "  = hint: there is path(x, y) :- edge(x, y)."
        )
        with pytest.raises(UnknownRuleError) as caught:
            tx.remove_rule(7)
        assert str(caught.value).splitlines()[0] == "error[TL0514]: there is no rule number 7"
        with pytest.raises(UnknownRuleError, match="lists the rules"):
            tx.remove_rule("something_else(x) :- nothing_alike(x, x, x, x).")
        with pytest.raises(UnknownRuleError):
            tx.remove_rule(".decl edge(x: number)")
    assert len(db.rules) == 2


@pytest.mark.parametrize(("text", "carets"), [("", "^"), ("// nothing\n", "^^^^^^^^^^")])
def test_an_empty_text_is_no_rule(text: str, carets: str) -> None:
    db = database(GRAPH)
    for what in ("add_rules", "remove_rules"):
        with pytest.raises(ProgramError) as caught:
            db.commit(**{what: [text]})  # type: ignore[arg-type]
        assert str(caught.value) == (
            "error[TL0003]: expected a rule, and there is none in this text\n"
            " --> <rule>:1:1\n"
            "  |\n"
            f"1 | {text.rstrip()}\n"
            f"  | {carets}\n"
            "  = hint: write one, as in: path(x, y) :- edge(x, y)."
        )
    assert (len(db.rules), db.version) == (2, 0)


def test_what_is_no_text_is_no_rule() -> None:
    db = database(GRAPH)
    with db.transaction() as tx, pytest.raises(TypeError, match="a rule is text, not int"):
        tx.add_rule(7)  # type: ignore[arg-type]
    with db.transaction() as tx, pytest.raises(TypeError, match="a rule is text, not NoneType"):
        tx.remove_rule(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="by its text or its number, not by bool"):
        db.commit(remove_rules=[True])
    with pytest.raises(TypeError, match="a rule is text, not bytes"):
        db.commit(remove_rules=b"q(x) :- p(x).")
    with pytest.raises(TypeError, match="a rule is text, not NoneType"):
        db.commit(remove_rules=None)  # type: ignore[arg-type]
    assert len(db.rules) == 2


def test_a_rule_is_removed_by_any_kind_of_integer() -> None:
    db = database(GRAPH)
    db.commit(remove_rules=np.int64(2))
    assert [rule.id for rule in db.rules] == [1]


def test_a_single_rule_needs_no_list() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2), (2, 3)]}, add_rules="q(x) :- edge(x, _).")
    assert (list(db["q"]), db.rules[-1]) == ([(1,), (2,)], (3, "q(x) :- edge(x, _)."))
    db.commit(remove_rules="q(y) :- edge(y, _).")
    assert ("q" in db, len(db.rules)) == (False, 2)
    assert db.commit(remove_rules=2)["path"].deleted == [(1, 3)]


def test_rules_are_a_set() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)]})
    for _ in range(2):
        changes = db.commit(add_rules="q(x) :- edge(x, _).")
    assert not changes and len(db.rules) == 3
    assert db.commit(remove_rules="q(x) :- edge(x, _).")["q"].deleted == [(1,)]
    with pytest.raises(UnknownRuleError):
        db.commit(remove_rules="q(x) :- edge(x, _).")


def test_removed_and_added_again_is_nothing() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2), (2, 3)]})
    with db.transaction() as tx:
        tx.remove_rule(2)
        assert tx.add_rule("path(a, c) :- path(a, b), edge(b, c).") == (2,)
    assert not tx.changes and tx.report.instances == 0
    with db.transaction() as tx:
        tx.add_rule("new(x) :- edge(x, x).")
        tx.remove_rule("new(y) :- edge(y, y).")
    assert "new" not in db and [rule.id for rule in db.rules] == [1, 2]


def test_a_rule_that_was_there_twice() -> None:
    db = database("q(x) :- p(x). q(y) :- p(y). q(x) :- r(x). p(1). r(1).")
    db.commit(remove_rules=["q(z) :- p(z)."])
    assert (list(db["q"]), [rule.id for rule in db.rules]) == ([(1,)], [3])
    assert db.commit(delete={"r": [(1,)]})["q"].deleted == [(1,)]


def test_several_heads() -> None:
    db = database("p(1).")
    db.commit(add_rules=["q(x), r(x + 1) :- p(x)."])
    assert (list(db["q"]), list(db["r"])) == ([(1,)], [(2,)])
    changes = db.commit(remove_rules=["q(y), r(y + 1) :- p(y)."])
    assert (changes["q"].deleted, changes["r"].deleted, list(db)) == ([(1,)], [(2,)], ["p"])


# --- relations come and go ------------------------------------------------------------------


def test_a_relation_goes_with_its_last_rule() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)]}, add_rules=["far(x) :- path(x, _), !near(x)."])
    assert list(db.relations) == ["edge", "path", "far", "near"]
    answer = db["far"]
    changes = db.commit(remove_rules=[3])
    assert changes["far"].deleted == list(answer) == [(1,)]
    assert list(db.relations) == ["edge", "path"]
    with pytest.raises(UnknownRelationError):
        db["far"]
    assert db.commit(add_rules=["far(x, y) :- edge(x, y)."])["far"].inserted == [(1, 2)]


def test_a_relation_with_facts_stays() -> None:
    db = database("q(x) :- p(x). r(x) :- q(x).")
    db.commit(insert={"q": [(7,)], "p": [(1,)]})
    changes = db.commit(remove_rules=[1, 2])
    assert (changes["q"].deleted, list(db["q"]), list(db)) == ([(1,)], [(7,)], ["q", "p"])
    assert db.commit(insert={"q": [(8,)]})["q"].inserted == [(8,)]
    db.commit(add_rules=["r(x) :- q(x)."])
    assert list(db["r"]) == [(7,), (8,)]


def test_a_relation_whose_facts_go_with_the_rule() -> None:
    db = database("q(x) :- p(x).")
    db.commit(insert={"p": [(1,)]})
    db.commit(remove_rules=[1], delete={"p": [(1,)]})
    assert list(db) == []
    with db.transaction() as tx:
        tx.insert("p", [("other", "types")])
    assert list(db["p"]) == [("other", "types")]


def test_types_stay() -> None:
    db = database("p(1).")
    with pytest.raises(DataError) as wrong:
        db.commit(add_rules=["p(x) :- q(x)."], insert={"q": [(1.5,)]})
    assert "column 1 (c0): 1.5 is not an s64" in str(wrong.value)
    with pytest.raises(ProgramError) as caught:
        db.commit(add_rules=["p(x + 0.5) :- q(x)."])
    assert [d.code for d in caught.value.diagnostics] == ["TL0202"]
    assert "column c0 of `p` is s64 in its facts" in str(caught.value)
    db.commit(add_rules=["r(x) :- p(x)."], delete={"p": [(1,)]})
    with pytest.raises(DataError):
        db.commit(insert={"r": [(1.5,)]})
    assert list(db) == ["p", "r"]


def test_declarations_come_with_rules() -> None:
    db = database(TYPED)
    with pytest.raises(ProgramError) as caught:
        db.commit(add_rules=["Far(x) :- Path(x, y), y > 2."])
    assert [d.code for d in caught.value.diagnostics] == ["TL0101"]
    with db.transaction() as tx:
        tx.add_rule("""
            input relation Skip(x: s64)
            relation Far(x: s64)
            Far(x) :- Path(x, y), y > 2, not Skip(x).
        """)
        tx.insert("Edge", [(1, 2), (2, 3)])
        tx.insert("Skip", [(2,)])
        with pytest.raises(DataError):
            tx.insert("Skip", [("x",)])
    assert list(db["Far"]) == [(1,)]


def test_the_first_text_decides_on_the_style() -> None:
    db = database()
    declarations = "input relation R(x: float)\nrelation S(x: float)\n"
    db.commit(add_rules=[declarations + "S(x * 2.0) :- R(x), not R(x * 2.0)."])
    assert [str(c.type) for c in db.relations["R"].columns] == ["float"]
    db.commit(insert={"R": [(1.5,)]}, add_rules=["S(x) :- R(x), x == 1.5."])
    assert list(db["S"]) == [(1.5,), (3.0,)]


def test_a_declaration_that_comes_too_late() -> None:
    db = database()
    db.commit(insert={"edge": [(1, 2)]})
    with pytest.raises(ProgramError) as caught:
        db.commit(add_rules=[".decl edge(x: symbol, y: symbol)"])
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.notes) == ("TL0516", ("it has the columns c0: s64, c1: s64",))
    assert list(db["edge"]) == [(1, 2)]


def test_facts_among_rules() -> None:
    db = database()
    with db.transaction() as tx:
        tx.add_rule('edge("a", "b"). edge("b", "c"). path(x, y) :- edge(x, y).')
        tx.delete("edge", [("a", "b")])
    assert list(db["path"]) == [("b", "c")]
    db.commit(remove_rules=['edge("b", "c").'])
    assert (list(db["path"]), db.report.ignored_deletes) == ([], 0)
    with db.transaction() as tx, pytest.raises(ProgramError):
        tx.add_rule("edge(x, 1).")


def test_mistakes_of_syntax_are_told_at_once() -> None:
    db = database(GRAPH)
    with db.transaction() as tx:
        with pytest.raises(ProgramError) as caught:
            tx.add_rule("path(x, y) :- edge(x, y)")
        tx.add_rule("back(y, x) :- edge(x, y).")
    assert [d.code for d in caught.value.diagnostics] == ["TL0009"]
    assert "<rule>:1:" in str(caught.value)
    assert "back" in db


# --- how a program may not change --------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("p(x) :- edge(y, y).", "TL0301"),
        ("edge(y, x) :- edge(x, y), !path(x, y).", "TL0305"),
        ("path(x, n) :- edge(x, _), n = count : { path(x, _) }.", "TL0306"),
        ("p(x) :- path(x).", "TL0102"),
        ('p(x) :- edge(x, "a").', "TL0202"),
    ],
)
def test_rules_that_do_not_fit(rule: str, code: str) -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)]})
    with pytest.raises(ProgramError) as caught:
        db.commit(add_rules=[rule], insert={"edge": [(2, 3)]})
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert (list(db["path"]), len(db.rules), db.version) == ([(1, 2)], 2, 1)


def test_only_the_rules_in_the_end_have_to_go_together() -> None:
    db = database("a(x) :- p(x), !b(x). p(1).")
    with db.transaction() as tx:
        tx.add_rule("b(x) :- a(x).")
        tx.insert("p", [(2,)])
        tx.remove_rule("a(x) :- p(x), !b(x).")
        tx.add_rule("a(x) :- p(x).")
    assert list(db["b"]) == [(1,), (2,)]


# --- algorithms ------------------------------------------------------------------------------------


def test_the_algorithm_can_change_between_commits() -> None:
    db = database(GRAPH)
    expected = set()
    for number, algorithm in enumerate((*ALGORITHMS, *reversed(ALGORITHMS))):
        db.algorithm = algorithm
        changes = db.commit(insert={"edge": [(number, number + 1)]})
        expected |= {(x, number + 1) for x in range(number + 1)}
        assert (db.algorithm, set(db["path"])) == (algorithm, expected)
        assert {row[1] for row in changes["path"].inserted} == {number + 1}


def test_policies() -> None:
    for policy, algorithm in (("full", "recompute"), ("incremental", "auto"), ("auto", "auto")):
        db = database(GRAPH, policy=policy)
        db.commit(insert={"edge": [(1, 2), (2, 3)]})
        db.commit(delete={"edge": [(1, 2)]})
        assert [line.algorithm for line in db.report.strata] == [algorithm]
        assert list(db["path"]) == [(2, 3)]


def test_a_policy_beside_an_algorithm() -> None:
    """Full recomputes whatever the algorithm; the others leave any but auto as it is."""
    for policy, algorithm in (("full", "recompute"), ("incremental", "dred"), ("auto", "dred")):
        db = database(GRAPH, algorithm="dred", policy=policy)
        db.commit(insert={"edge": [(1, 2), (2, 3)]})
        db.commit(delete={"edge": [(1, 2)]})
        assert [line.algorithm for line in db.report.strata] == [algorithm]
        with pytest.raises(AttributeError):
            db.policy = "auto"  # type: ignore[misc]
        assert db.policy == policy


def test_auto_says_why() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(0, 1)]})
    db.commit(insert={"edge": [(1, 2)]})
    assert db.report.strata[0].why == "recompute: 1 change, of 1 tuple"
    db.commit(insert={"edge": [(2, 3), (3, 4), (4, 5), (5, 6)]})
    assert db.report.strata[0].why == "recompute: 4 changes, of 2 tuples"
    db.commit(insert={"edge": [(6, 7)]})
    assert ": 1 change" in db.report.strata[0].why


def test_names_that_are_none() -> None:
    from tidelog import TidelogError

    for options, message in (
        (
            {"algorithm": "dread"},
            "there is no algorithm 'dread'; algorithms are recompute, counting, dred, "
            "fbf (or fbf(2), with a depth), elastic (or elastic(0.5), with a share), ranked, dbsp, auto",
        ),
        ({"policy": "never"}, "there is no policy 'never'; policies are auto, incremental, full"),
    ):
        with pytest.raises(TidelogError) as caught:
            database(GRAPH, **options)
        assert str(caught.value).startswith(f"error[TL0509]: {message}")
    db = database(GRAPH)
    with pytest.raises(TidelogError):
        db.algorithm = "dread"
    assert db.algorithm == "auto"
