"""Primary keys: rows changed and deleted by key, and two rows with one key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.session.states import GRAPH, database
from tidelog import DataError, ProgramError, TidelogError, UnknownRelationError

pytestmark = pytest.mark.usefixtures("engine")

PEOPLE = """
input relation Person(id: u64, name: string, age: u8) primary key (x) x.id
output relation Adult(name: string)
Adult(n) :- Person(_, n, a), a >= 18.
"""
ROADS = """
.decl road(from: symbol, to: symbol, km: float) primary key (from, to)
.input road
"""


def test_insert_or_update() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36), (2, "Bob", 7)]})
    with db.transaction() as tx:
        tx.insert_or_update("Person", [(2, "Bob", 18), (3, "Cy", 20), (1, "Ada", 36)])
    assert tx.changes["Person"].deleted == [(2, "Bob", 7)]
    assert tx.changes["Person"].inserted == [(2, "Bob", 18), (3, "Cy", 20)]
    assert tx.changes["Adult"].inserted == [("Bob",), ("Cy",)]
    assert (tx.report.ignored_inserts, tx.report.ignored_deletes) == (1, 0)
    with db.transaction() as tx:  # the last one counts
        tx.insert_or_update("Person", [{"id": 9, "name": n, "age": 30} for n in ("Di", "Dora")])
        tx.insert_or_update("Person", [(3, "Cyd", 20), (3, "Cy", 20)])
    assert tx.changes["Person"].inserted == [(9, "Dora", 30)] and not tx.changes["Person"].deleted


def test_delete_key() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36), (2, "Bob", 7)]})
    with db.transaction() as tx:
        tx.delete_key("Person", [1, (8,)])
    assert tx.changes["Person"].deleted == [(1, "Ada", 36)]
    assert tx.report.ignored_deletes == 1
    with db.transaction() as tx:
        tx.delete_key("Person", [1])
    assert (len(tx.changes), tx.report.ignored_deletes) == (0, 1)


def test_modify() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36), (2, "Bob", 7)]})
    with db.transaction() as tx:
        tx.modify("Person", 2, {"age": 18})
        tx.modify("Person", 2, {"name": "Bobby"})
        tx.modify("Person", 1, {"id": 5})
    assert list(tx.changes["Person"]) == [
        ((1, "Ada", 36), -1),
        ((2, "Bob", 7), -1),
        ((2, "Bobby", 18), 1),
        ((5, "Ada", 36), 1),
    ]


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        (7, {"age": 1}, "error[TL0512]: Person has no row with the primary key 7"),
        (1, {"size": 1}, "no column is named size"),
        (1, {"age": 256}, "column 3 (age): 256 is outside u8 (0 to 255)"),
        ("x", {"age": 1}, "column 1 (id): 'x' is not a u64"),
        ((1, 2), {"age": 1}, "a key has 1 value (id: u64)"),
        (1, {"id": 2}, "row 1: (2, 'Ada', 36) has the key of (2, 'Bob', 7)"),
    ],
)
def test_modifying_what_cannot_be(key: object, values: dict[str, object], message: str) -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36), (2, "Bob", 7)]})
    with db.transaction() as tx:
        with pytest.raises(DataError) as caught:
            tx.modify("Person", key, values)
        tx.modify("Person", 1, {"age": 37})  # all is as it was
        tx.modify("Person", 2, {"age": 8})
    assert message in str(caught.value)
    assert list(db["Person"]) == [(1, "Ada", 37), (2, "Bob", 8)]


@pytest.mark.parametrize("keys", [1, None, 1.5, "ab", b"ab", {1: 2}])
def test_keys_that_are_no_collection(keys: object) -> None:
    db = database(PEOPLE + "input relation Road(from: string, to: string) primary key (from, to)")
    with db.transaction() as tx:
        with pytest.raises(DataError) as caught:
            tx.delete_key("Person", keys)  # type: ignore[arg-type]
        assert str(caught.value) == (
            f"error[TL0504]: cannot delete from Person: {keys!r} is not a collection of keys\n"
            "  = hint: give a list of values: a key has 1 value (id: u64)"
        )
        with pytest.raises(DataError) as caught:
            tx.delete_key("Road", keys)  # type: ignore[arg-type]
        assert str(caught.value) == (
            f"error[TL0504]: cannot delete from Road: {keys!r} is not a collection of keys\n"
            "  = hint: give a list of tuples: a key has 2 values (from: string, to: string)"
        )
        with pytest.raises(DataError, match=r"key 'a': a key has 2 values \(from: string, to: string\)"):
            tx.delete_key("Road", ("a", "b"))
        tx.insert("Person", [(1, "Ada", 36)])
        tx.delete_key("Person", (key for key in (1,)))
    assert not list(db["Person"])


def test_modifying_by_what_is_no_mapping() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36)]})
    values: list[object] = [37, None, "age", [("age", 37)]]
    with db.transaction() as tx:
        for given in values:
            with pytest.raises(DataError) as caught:
                tx.modify("Person", 1, given)  # type: ignore[arg-type]
            assert str(caught.value) == (
                f"error[TL0504]: cannot modify Person: {given!r} is not a mapping from columns to values\n"
                '  = hint: write {"age": ...}'
            )


def test_a_second_row_with_the_same_key() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36)]})
    with db.transaction() as tx:
        with pytest.raises(DataError) as caught:
            tx.insert("Person", [(2, "Bob", 7), (1, "Eve", 9), (2, "Bo", 7), (1, "Ada", 36)])
        assert str(caught.value) == (
            "error[TL0511]: cannot insert into Person: two rows with the same primary key (id)\n"
            "  --> row 2: (1, 'Eve', 9) has the key of (1, 'Ada', 36)\n"
            "  --> row 3: (2, 'Bo', 7) has the key of (2, 'Bob', 7)\n"
            "  = hint: insert_or_update replaces the row that is there"
        )
        tx.insert("Person", [(2, "Bo", 7)])  # nothing was kept of the rows before
        tx.delete("Person", [(1, "Eve", 9)])  # another row
        with pytest.raises(DataError):
            tx.insert("Person", [(1, "Eve", 9)])
        tx.delete("Person", [(1, "Ada", 36)])
        tx.insert("Person", [(1, "Eve", 9)])
    assert list(db["Person"]) == [(1, "Eve", 9), (2, "Bo", 7)]
    assert tx.report.ignored_deletes == 1


def test_keys_of_several_columns() -> None:
    db = database(ROADS)
    db.commit(insert={"road": [("a", "b", 1), ("b", "a", 2.5)]})
    with db.transaction() as tx:
        tx.delete_key("road", [("a", "b")])
        tx.modify("road", ("b", "a"), {"km": float("nan")})
        tx.insert_or_update("road", [("c", "d", -0.0)])
    assert repr(list(db["road"])) == "[('b', 'a', nan), ('c', 'd', -0.0)]"
    with db.transaction() as tx:
        tx.insert("road", [("b", "a", float("nan")), ("c", "d", -0.0)])  # the same rows
        with pytest.raises(DataError):
            tx.insert("road", [("c", "d", 0.0)])
    assert (len(tx.changes), tx.report.ignored_inserts) == (0, 2)


def test_floats_as_keys() -> None:
    db = database("input relation R(x: double, n: bigint) primary key (x, n)")
    db.commit(insert={"R": [(0.0, 10**30), (-0.0, 10**30), (float("nan"), 1)]})
    with db.transaction() as tx:
        tx.delete_key("R", [(-0.0, 10**30), (float("nan"), 1)])
    assert list(db["R"]) == [(0.0, 10**30)]


def test_undone_with_the_transaction() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36)]})
    with pytest.raises(RuntimeError), db.transaction() as tx:
        tx.delete_key("Person", [1])
        tx.insert("Person", [(1, "Eve", 9), (2, "Bob", 7)])
        raise RuntimeError
    abandoned = db.transaction()
    abandoned.insert_or_update("Person", [(1, "Eve", 9), (3, "Cy", 7)])
    del abandoned
    with db.transaction() as tx:
        tx.modify("Person", 1, {"age": 37})
        tx.insert("Person", [(2, "Bea", 8), (3, "Di", 8)])
    assert list(db["Person"]) == [(1, "Ada", 37), (2, "Bea", 8), (3, "Di", 8)]


def test_facts_of_the_program_have_keys() -> None:
    db = database(ROADS + 'road("a", "b", 1.0).')
    with db.transaction() as tx:
        tx.modify("road", ("a", "b"), {"km": 2})
    assert list(db["road"]) == [("a", "b", 2.0)]
    with pytest.raises(DataError, match=r"error\[TL0511\]"):
        database(ROADS + 'road("a", "b", 1.0). road("a", "b", 2.0).')


def test_loading(tmp_path: Path) -> None:
    (tmp_path / "Person.facts").write_text("1\tAda\t36\n2\tBob\t7\n")
    db = database(PEOPLE)
    db.load(tmp_path)
    with db.transaction() as tx:
        tx.modify("Person", 2, {"age": 30})
    assert tx.changes["Adult"].inserted == [("Bob",)]
    with pytest.raises(DataError, match=r"\(2, 'Bob', 7\) has the key of \(2, 'Bob', 30\)"):
        db.load(tmp_path)


def test_clear() -> None:
    db = database(PEOPLE)
    db.commit(insert={"Person": [(1, "Ada", 36)]})
    with db.transaction() as tx:
        tx.insert("Person", [(2, "Bob", 7)])
        tx.clear("Person")
        tx.insert("Person", [(1, "Eve", 9), (2, "Bo", 9)])
    assert list(db["Person"]) == [(1, "Eve", 9), (2, "Bo", 9)]


def test_a_key_that_comes_with_a_declaration() -> None:
    db = database()
    with db.transaction() as tx:
        tx.add_rule(PEOPLE)
        tx.insert("Person", [(1, "Ada", 36)])
        tx.modify("Person", 1, {"name": "Eve"})
    assert list(db["Adult"]) == [("Eve",)]
    with pytest.raises(ProgramError), db.transaction() as tx:
        tx.add_rule("Person(1, n, 2) :- Adult(n).")


def test_relations_without_keys() -> None:
    db = database(GRAPH)
    with db.transaction() as tx:
        uses: list[Callable[[], None]] = [
            lambda: tx.insert_or_update("edge", [(1, 2)]),
            lambda: tx.delete_key("edge", [1]),
            lambda: tx.modify("edge", 1, {"c0": 2}),
        ]
        for use in uses:
            with pytest.raises(TidelogError) as caught:
                use()
            assert str(caught.value) == (
                "error[TL0513]: edge has no primary key\n"
                "  = hint: declare one, as in: input relation edge(...) primary key (c0)"
            )
        with pytest.raises(UnknownRelationError):
            tx.delete_key("edges", [1])
