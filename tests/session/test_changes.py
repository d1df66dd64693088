"""Change sets: what commits return, in which order operations apply, what has no effect."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tests.session.states import GRAPH, TYPED, database
from tidelog import ChangeSet, DataError, TidelogError, UnknownRelationError, UnsupportedError

pytestmark = pytest.mark.usefixtures("engine")


def shown(changes: ChangeSet) -> dict[str, tuple[list[object], list[object]]]:
    return {name: (list(changes[name].deleted), list(changes[name].inserted)) for name in changes}


def test_commit_returns_what_has_changed() -> None:
    db = database(GRAPH)
    changes = db.commit(insert={"edge": [(2, 3), (1, 2)]})
    assert shown(changes) == {
        "edge": ([], [(1, 2), (2, 3)]),
        "path": ([], [(1, 2), (1, 3), (2, 3)]),
    }
    changes = db.commit(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})
    assert shown(changes) == {
        "edge": ([(1, 2)], [(3, 4)]),
        "path": ([(1, 2), (1, 3)], [(2, 4), (3, 4)]),
    }
    assert list(db["path"]) == [(2, 3), (2, 4), (3, 4)]


def test_a_transaction_has_its_changes() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2)])
    assert shown(tx.changes) == {"Edge": ([], [(1, 2)]), "Path": ([], [(1, 2)])}
    assert tx.report == db.report and tx.report.version == 1
    again = db.transaction()
    again.delete("Edge", [(1, 2)])
    assert shown(again.commit()) == {"Edge": ([(1, 2)], []), "Path": ([(1, 2)], [])}


def test_changes_before_a_commit_and_after_a_rollback() -> None:
    db = database(TYPED)
    tx = db.transaction()
    for attribute in ("changes", "report"):
        with pytest.raises(TidelogError, match=r"error\[TL0508\]: this transaction has not been committed"):
            getattr(tx, attribute)
    tx.rollback()
    with pytest.raises(TidelogError, match="has not been committed"):
        tx.changes  # noqa: B018


def test_a_relation_that_has_not_changed() -> None:
    db = database(GRAPH)
    changes = db.commit(insert={"colour": [("red",)]})
    assert (changes["path"].inserted, changes["path"].deleted, len(changes["path"])) == ([], [], 0)
    assert list(changes) == ["colour"] and len(changes) == 1 and "path" not in changes
    with pytest.raises(UnknownRelationError) as caught:
        changes["pth"]
    assert "did you mean path?" in str(caught.value)


def test_what_the_program_alone_says_is_no_change() -> None:
    db = database("p(1). q(x) :- p(x). n(c) :- c = count : { p(_) }.")
    assert shown(db.commit(insert={"p": [(2,)]})) == {
        "p": ([], [(2,)]),
        "q": ([], [(2,)]),
        "n": ([(1,)], [(2,)]),
    }


def test_changes_stay_as_they_were() -> None:
    db = database(GRAPH)
    kept = [db.commit(insert={"edge": [(i, i + 1)]}) for i in range(3)]
    db.commit(delete={"edge": [(1, 2)]})
    db.close()
    assert [shown(changes) for changes in kept] == [
        {"edge": ([], [(0, 1)]), "path": ([], [(0, 1)])},
        {"edge": ([], [(1, 2)]), "path": ([], [(0, 2), (1, 2)])},
        {"edge": ([], [(2, 3)]), "path": ([], [(0, 3), (1, 3), (2, 3)])},
    ]


def test_hidden_relations_are_not_shown() -> None:
    db = database("big(x) :- p(x, _), 1 < count : { p(x, _) }, !skip(x, _).")
    changes = db.commit(insert={"p": [(1, 1), (1, 2), (2, 1)], "skip": [(7, 7)]})
    assert list(changes) == ["p", "skip", "big"]
    assert changes["big"].inserted == [(1,)]


# --- in order -------------------------------------------------------------------------


def test_the_last_word_counts() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)]})
    with db.transaction() as tx:
        tx.insert("edge", [(5, 6), (7, 8)])
        tx.delete("edge", [(5, 6)])
        tx.delete("edge", [(1, 2)])
        tx.insert("edge", [(1, 2)])
        tx.delete("edge", [(9, 9)])
        tx.insert("edge", [(9, 9)])
    assert shown(tx.changes) == {
        "edge": ([], [(7, 8), (9, 9)]),
        "path": ([], [(7, 8), (9, 9)]),
    }


def test_insert_then_delete_is_nothing() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)]})
    with db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
        tx.delete("edge", [(2, 3)])
    assert shown(tx.changes) == {} and not tx.changes
    assert (tx.report.ignored_inserts, tx.report.ignored_deletes) == (0, 0)


def test_deletions_go_before_insertions_in_one_call() -> None:
    db = database(GRAPH)
    assert shown(db.commit(insert={"edge": [(1, 2)]}, delete={"edge": [(1, 2)]})) == {
        "edge": ([], [(1, 2)]),
        "path": ([], [(1, 2)]),
    }


def test_what_has_no_effect_is_counted() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2), (1, 2), (2, 3)]})
    assert (db.report.ignored_inserts, db.report.ignored_deletes) == (1, 0)
    changes = db.commit(insert={"edge": [(2, 3)]}, delete={"edge": [(8, 8), (9, 9)]})
    assert shown(changes) == {}
    assert (db.report.ignored_inserts, db.report.ignored_deletes) == (1, 2)
    assert str(db.report).splitlines()[-1] == "1 inserted that was there, 2 deleted that were not there"


def test_a_fact_that_is_also_derived() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)], "path": [(1, 2), (8, 9)]})
    assert shown(db.commit(delete={"path": [(1, 2)]})) == {}
    assert db.report.ignored_deletes == 0
    assert shown(db.commit(delete={"path": [(1, 2)]})) == {}
    assert db.report.ignored_deletes == 1  # derived, but not given any more
    assert shown(db.commit(delete={"edge": [(1, 2)]})) == {"edge": ([(1, 2)], []), "path": ([(1, 2)], [])}
    assert list(db["path"]) == [(8, 9)]


def test_facts_of_the_program_can_be_deleted() -> None:
    db = database("p(1). p(2). q(x) :- p(x).")
    assert shown(db.commit(delete={"p": [(1,)]})) == {"p": ([(1,)], []), "q": ([(1,)], [])}
    db.commit(add_rules=["r(x) :- p(x)."])
    assert list(db["r"]) == [(2,)]


def test_clear() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2), (2, 3)], "path": [(7, 8), (1, 2)]})
    with db.transaction() as tx:
        tx.insert("path", [(9, 9)])
        tx.clear("path")
        tx.insert("path", [(5, 5)])
        tx.clear("edge")
        tx.insert("edge", [(2, 3)])
    assert shown(tx.changes) == {
        "edge": ([(1, 2)], []),
        "path": ([(1, 2), (1, 3), (7, 8)], [(5, 5)]),
    }
    assert (tx.report.ignored_inserts, tx.report.ignored_deletes) == (0, 0)
    with pytest.raises(UnknownRelationError), database(TYPED).transaction() as tx:
        tx.clear("path")


def test_clearing_what_is_not_there() -> None:
    db = database(GRAPH)
    with db.transaction() as tx:
        tx.clear("edge")  # which rules speak of
        with pytest.raises(UnknownRelationError) as caught:
            tx.clear("edgy")
        tx.insert("colour", [(1, "red")])
        tx.clear("colour")
    assert str(caught.value).splitlines() == [
        "error[TL0506]: there is no relation edgy",
        "  = note: the relations are path, edge",
        "  = hint: did you mean edge?",
    ]
    assert not tx.changes


# --- from nothing -----------------------------------------------------------------------


def test_an_empty_program() -> None:
    db = database()
    assert list(db) == [] and db.rules == []
    with db.transaction() as tx:
        tx.insert("edge", [("a", "b")])
        tx.add_rule("path(x, y) :- edge(x, y).")
    assert list(db["path"]) == [("a", "b")]
    assert [str(c.type) for c in db.relations["path"].columns] == ["string", "string"]


def test_an_empty_commit() -> None:
    db = database()
    changes = db.commit()
    assert (len(changes), repr(changes), db.version) == (0, "no changes", 1)
    assert changes._repr_html_() == "<p>no changes</p>"


def test_relations_wait_for_their_types() -> None:
    db = database("n(c) :- c = count : { p(_) }. q(x) :- p(x), !r(x, _). s(t) :- t = sum x : { p(x) }.")
    assert list(db["n"]) == [(0,)]
    assert (list(db["q"]), list(db["s"])) == ([], [])
    changes = db.commit(insert={"p": [(1,), (2,)]})
    assert shown(changes) == {
        "p": ([], [(1,), (2,)]),
        "q": ([], [(1,), (2,)]),
        "n": ([(0,)], [(2,)]),
        "s": ([], [(3,)]),
    }
    assert shown(db.commit(insert={"r": [(1, "x")]}))["q"] == ([(1,)], [])
    assert shown(db.commit(delete={"p": [(2,), (1,)]}))["s"] == ([(3,)], [(0,)])


def test_deleting_from_what_is_not_there() -> None:
    db = database(GRAPH)
    with db.transaction() as tx:
        tx.delete("edge", [(1, 2)])
        with pytest.raises(UnknownRelationError):
            tx.delete("colour", [(1, 2)])
        with pytest.raises(UnknownRelationError, match="there is no relation 5"):
            tx.insert(5, [(1, 2)])  # type: ignore[arg-type]
    assert tx.report.ignored_deletes == 1
    assert db.relations["edge"].columns[0].type.kind == "unknown"


@pytest.mark.parametrize("what", ["insert", "delete"])
@pytest.mark.parametrize(("given", "kind"), [([("edge", (1, 2))], "list"), ("edge", "str"), ((), "tuple")])
def test_rows_without_their_relation(what: str, given: object, kind: str) -> None:
    db = database(GRAPH)
    with pytest.raises(DataError) as caught:
        db.commit(**{what: given})  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"error[TL0504]: cannot {what}: a mapping from relations to rows is wanted, not {kind}\n"
        f'  = hint: write {what}={{"edge": [(1, 2), (2, 3)]}}'
    )
    assert db.version == 0
    db.commit(insert={"edge": [(1, 2)]})
    assert list(db["path"]) == [(1, 2)]


def test_a_wrong_row_to_delete() -> None:
    db = database(TYPED)
    with db.transaction() as tx, pytest.raises(DataError) as caught:
        tx.delete("Edge", [(1, "x")])
    assert str(caught.value) == (
        "error[TL0504]: cannot delete from Edge: 1 wrong row\n  --> row 1: column 2 (to): 'x' is not an s64"
    )


def test_deleting_tables_and_dicts() -> None:
    db = database(TYPED)
    db.commit(insert={"Edge": [(i, i + 1) for i in range(0, 1200, 2)]})
    most = pa.table({"from": list(range(2, 1200, 2)), "to": list(range(3, 1201, 2))})
    changes = db.commit(delete={"Edge": most})
    assert (len(changes["Edge"]), list(db["Path"])) == (599, [(0, 1)])
    assert shown(db.commit(delete={"Edge": [{"to": 1, "from": 0}]}))["Path"] == ([(0, 1)], [])


@pytest.mark.parametrize(
    ("type", "rows", "order"),
    [
        ("double", [(2.5,), (float("inf"),), (-0.0,), (0.0,), (1,)], [-0.0, 0.0, 1.0, 2.5, float("inf")]),
        ("float", [(0.1,), (16777217,)], [0.10000000149011612, 16777216.0]),
        ("bigint", [(10**30,), (-5,), (7,)], [-5, 7, 10**30]),
        ("u128", [(2**127,), (0,)], [0, 2**127]),
        ("string", [("b",), ("é",), ("a",)], ["a", "b", "é"]),
        ("bool", [(True,), (False,)], [False, True]),
    ],
)
def test_values(type: str, rows: list[tuple[object]], order: list[object]) -> None:
    db = database(f"input relation R(x: {type})\noutput relation S(x: {type})\nS(x) :- R(x).")
    assert [repr(row[0]) for row in db.commit(insert={"R": rows})["S"].inserted] == list(map(repr, order))
    db.commit(insert={"R": rows})
    assert db.report.ignored_inserts == len(rows)
    assert [repr(row[0]) for row in db.commit(delete={"R": rows})["S"].deleted] == list(map(repr, order))


def test_nan_is_one_value() -> None:
    db = database("input relation R(x: double)")
    db.commit(insert={"R": [(float("nan"),), (-float("nan"),)]})
    assert db.report.ignored_inserts == 1
    assert len(db.commit(delete={"R": [(float("nan"),)]})["R"].deleted) == 1


# --- how changes look ---------------------------------------------------------------------


def test_iteration_and_equality() -> None:
    db = database(GRAPH)
    db.commit(insert={"edge": [(1, 2)]})
    changes = db.commit(insert={"edge": [(3, 4)]}, delete={"edge": [(1, 2)]})
    assert list(changes["edge"]) == [((1, 2), -1), ((3, 4), 1)]
    assert len(changes["edge"]) == 2
    assert changes["edge"] == changes["edge"] != changes["path"]
    assert changes["edge"] != 1


def test_repr_and_html() -> None:
    db = database("input relation R(n: s64, name: string)")
    db.commit(insert={"R": [(0, "<old>")]})
    changes = db.commit(insert={"R": [(n, "<b>") for n in range(1, 31)]}, delete={"R": [(0, "<old>")]})
    lines = repr(changes).splitlines()
    assert lines[:3] == ["R: 1 deleted, 30 inserted", "- 0  <old>", "+ 1  <b>"]
    assert (len(lines), lines[-1]) == (22, "... 11 more")
    assert changes._repr_html_().startswith(
        "<table><caption>R: 1 deleted, 30 inserted, the first 20 shown</caption>"
        "<thead><tr><th></th><th>n: s64</th><th>name: string</th></tr></thead>"
        "<tbody><tr><td>-</td><td>0</td><td>&lt;old&gt;</td></tr>"
    )


def test_arrow() -> None:
    db = database("input relation R(n: s64)\ninput relation Go()")
    before = datetime.now(UTC)
    db.commit(insert={"R": [(1,)], "Go": [()]})
    tables = db.commit(insert={"R": [(3,), (2,)]}, delete={"R": [(1,)], "Go": [()]}).to_arrow()
    assert list(tables) == ["R", "Go"]
    table = tables["R"]
    assert table.column_names == ["n", "_change_type", "_commit_version", "_commit_timestamp"]
    assert table.column("n").to_pylist() == [1, 2, 3]
    assert table.column("_change_type").to_pylist() == ["delete", "insert", "insert"]
    assert table.column("_commit_version").to_pylist() == [2, 2, 2]
    assert before <= table.column("_commit_timestamp").to_pylist()[0] <= datetime.now(UTC)
    assert tables["Go"].column_names == ["_change_type", "_commit_version", "_commit_timestamp"]
    assert tables["Go"].column("_change_type").to_pylist() == ["delete"]
    assert db.commit()["R"].to_arrow().num_rows == 0


def test_columns_of_a_feed_are_not_doubled() -> None:
    db = database("input relation R(n: s64, _Change_Type: string)")
    changes = db.commit(insert={"R": [(1, "insert")]})
    assert changes["R"].inserted == [(1, "insert")]
    with pytest.raises(DataError) as caught:
        changes["R"].to_arrow()
    assert str(caught.value) == (
        "error[TL0504]: the changes of R are no table: there would be two columns _Change_Type\n"
        "  = hint: rename the column; .inserted and .deleted have the tuples"
    )


# --- answers already taken ------------------------------------------------------------------


def test_only_answers_that_change_are_taken_out_of_the_engine() -> None:
    db = database(GRAPH + "colour(1).")
    db.commit(insert={"edge": [(1, 2)]})
    colour, path = db["colour"], db["path"]
    db.commit(insert={"edge": [(2, 3)]})
    assert (colour._table, path._table is None) == (None, False)
    assert (list(colour), list(path)) == ([(1,)], [(1, 2)])


# --- no changes kept --------------------------------------------------------------------------


def test_a_database_that_keeps_no_changes() -> None:
    db = database(GRAPH, maintained=False)
    changes = db.commit(insert={"edge": [(1, 2), (2, 3)]})
    for use in (lambda: list(changes), lambda: len(changes), lambda: changes["edge"]):
        with pytest.raises(UnsupportedError) as caught:
            use()
        assert str(caught.value) == (
            "error[TL0608]: changes are not kept by a database made with maintained=False"
        )
    with pytest.raises(UnsupportedError):
        db.subscribe("edge", print)
    db.commit(delete={"edge": [(1, 2)]}, add_rules=["back(y, x) :- path(x, y)."])
    assert (list(db["path"]), list(db["back"])) == ([(2, 3)], [(3, 2)])
    assert db.report.ignored_deletes == 0
