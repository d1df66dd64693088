"""Databases with a store: versions, views, opening again, keys, values and names of every kind."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.session.states import GRAPH, TYPED
from tidelog import Database, ProgramError, TidelogError, UnknownRelationError
from tidelog.session.store.manifest import Manifest, sealed, unsealed

ENGINE = "substitution"


def opened(place: Path, program: str = "", **options: Any) -> Database:
    return Database(program, store=place, **{"engine": ENGINE, **options})


def raised(*arguments: Any, **options: Any) -> list[str]:
    """The lines of the error of opening a database."""
    with pytest.raises(TidelogError) as caught:
        opened(*arguments, **options)
    return str(caught.value).splitlines()


# --- versions ---------------------------------------------------------------------


def test_every_commit_is_a_version(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        assert (db.version, db.versions) == (0, [0])
        changes = db.commit(insert={"Edge": [(1, 2), (2, 3)]})
        db.commit(delete={"Edge": [(1, 2)]}, insert={"Path": [(9, 9)]})
        db.commit()  # changes nothing
        assert db.versions == [0, 1, 2, 3]
        views = [db.as_of(version) for version in db.versions]
        assert [view.version for view in views] == [0, 1, 2, 3]
        assert [list(view["Path"]) for view in views] == [
            [],
            [(1, 2), (1, 3), (2, 3)],
            [(2, 3), (9, 9)],
            [(2, 3), (9, 9)],
        ]
        assert views[1].timestamp == changes.time
        assert list(views[1]) == list(views[1].relations) == ["Edge", "Path"]
        assert views[1].rules == [
            (1, "Path(x, y) :- Edge(x, y)."),
            (2, "Path(x, z) :- Path(x, y), Edge(y, z)."),
        ]
        assert views[1].relations == db.relations
        assert "input relation Edge(from: s64, to: s64)" in views[1].declarations
        answer = views[1]["Path"]
        assert len(answer) == 3
        assert (1, 3) in answer
        assert answer.to_arrow().to_pylist()[0] == {"from": 1, "to": 2}
        assert list(answer.to_pandas().columns) == ["from", "to"]


def test_a_view_has_the_rules_of_its_time(tmp_path: Path) -> None:
    with opened(tmp_path, GRAPH) as db:
        db.commit(insert={"edge": [(1, 2)]})
        db.commit(add_rules="path(y, x) :- path(x, y).", remove_rules=1)
        db.commit(remove_rules=3)
        assert [[number for number, _ in db.as_of(version).rules] for version in (1, 2, 3)] == [
            [1, 2],
            [2, 3],
            [2],
        ]


def test_unknown_versions(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        for _ in range(3):
            db.commit()
        for version in (4, -1, "1", True):
            with pytest.raises(TidelogError) as caught:
                db.as_of(version)  # type: ignore[arg-type]
            assert str(caught.value).splitlines() == [
                f"error[TL0806]: version {version} is not there",
                "  = note: versions 0 to 3 can be read",
            ]
        db.vacuum(keep=2)
        with pytest.raises(TidelogError) as caught:
            db.as_of(1)
        assert str(caught.value).splitlines() == [
            "error[TL0806]: version 1 has been removed by vacuum",
            "  = note: versions 2 to 3 can be read",
        ]
        with pytest.raises(UnknownRelationError):
            db.as_of(3)["Pth"]


def test_without_a_store_there_are_no_versions() -> None:
    with Database(TYPED, engine=ENGINE) as db:
        with pytest.raises(TidelogError) as caught:
            db.versions  # noqa: B018
        assert str(caught.value).splitlines() == [
            "error[TL0801]: this database has no store, and so no versions but the current one",
            '  = hint: tidelog.Database(program, store="directory") keeps them',
        ]


def test_vacuum_keeps_what_is_needed(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        for i in range(30):
            db.commit(insert={"Edge": [(i, i + 1)]}, delete={"Edge": [(i - 3, i - 2)]})
        expected = {version: list(db.as_of(version)["Path"]) for version in db.versions[-3:]}
        before = {path for path in tmp_path.rglob("*") if path.is_file()}
        gone = db.vacuum(keep=3)
        after = {path for path in tmp_path.rglob("*") if path.is_file()}
        assert gone.versions == list(range(28))
        assert gone.files == len(before - after) > 28
        assert gone.bytes > 0
        assert {version: list(db.as_of(version)["Path"]) for version in db.versions} == expected
        assert db.vacuum(keep=3) == ([], 0, 0)
        with pytest.raises(TidelogError, match="cannot keep 0 versions"):
            db.vacuum(keep=0)
    with opened(tmp_path) as db:
        assert list(db["Path"]) == expected[30]


def test_changes_are_recorded(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        made = [
            db.commit(insert={"Edge": [(1, 2), (2, 3)]}),
            db.commit(),
            db.commit(delete={"Edge": [(1, 2)]}),
        ]
        found = db.store.changes("Path", 1, 3)
        assert [changes.version for changes in found] == [1, 3]
        assert found == [made[0]["Path"], made[2]["Path"]]
        assert found[1].to_arrow().equals(made[2]["Path"].to_arrow())
        db.vacuum(keep=1)
        with pytest.raises(TidelogError, match="version 2 has been removed"):
            db.store.changes("Path", 2, 3)


def test_batches_are_kept(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        for number in (0, 1):
            with db.transaction(batch=("orders", number)) as tx:
                tx.insert("Edge", [(number, number)])
        assert db.store.batch("orders") == 1
        assert db.store.batch("others") is None
    with opened(tmp_path) as db:
        with db.transaction(batch=("orders", 1)) as tx:
            tx.insert("Edge", [(7, 7)])
        assert (db.version, len(db["Edge"])) == (2, 2)
        db.commit(insert={"Edge": [(8, 8)]})
        assert json.loads((tmp_path / "manifests/00000003.json").read_text())["batches"] == {"orders": 1}


def test_the_version_at_opening(tmp_path: Path) -> None:
    """What the program has changed since is a commit, and comes after it."""
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(1, 2)]})
    with opened(tmp_path, f"{TYPED}\nPath(x, x) :- Edge(x, _).") as db:
        assert (db.opened_at, db.version) == (1, 2)


def test_a_manifest_of_before_times_were_kept(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        body = unsealed(db.store.manifest(0).text())
    assert body.pop("planned") == {}
    assert Manifest.read(sealed(body)).planned == {}


# --- opening again ------------------------------------------------------------------


def test_opened_again(tmp_path: Path) -> None:
    with opened(tmp_path, GRAPH + "edge(1, 2). path(8, 8).") as db:
        db.commit(insert={"edge": [(2, 3)]}, add_rules="back(y, x) :- path(x, y).")
        db.commit(delete={"path": [(8, 8)], "edge": [(1, 2)]})
        answers = {name: list(db[name]) for name in db}
        rules = db.rules
    for engine, maintained in (("substitution", True), ("local", True), ("local", False)):
        with opened(tmp_path, engine=engine, maintained=maintained) as db:
            assert (db.version, db.rules) == (2, rules)
            assert {name: list(db[name]) for name in db} == answers
    with opened(tmp_path) as db:
        assert db.commit(add_rules="back(x, y) :- path(x, y).").version == 3
        assert [rule.id for rule in db.rules] == [1, 2, 3, 4]


def test_a_fact_that_is_given_and_derived_stays_given(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(1, 2)], "Path": [(1, 2), (5, 5)]})
    with opened(tmp_path) as db:
        db.commit(delete={"Edge": [(1, 2)], "Path": [(5, 5)]})
        assert list(db["Path"]) == [(1, 2)]
    with opened(tmp_path) as db:
        db.commit(delete={"Path": [(1, 2)]})
        assert list(db["Path"]) == []


def test_a_relation_may_come_to_be_derived_and_cease_to_be(tmp_path: Path) -> None:
    with opened(tmp_path, "seen(1). known(2).") as db:
        db.commit(add_rules="known(x) :- seen(x).")
        db.commit(insert={"known": [(3,)]})
    with opened(tmp_path) as db:
        assert list(db["known"]) == [(1,), (2,), (3,)]
        db.commit(remove_rules=1)
        db.commit(insert={"known": [(4,)]})
    with opened(tmp_path) as db:
        assert list(db["known"]) == [(2,), (3,), (4,)]
        assert list(db.as_of(2)["known"]) == [(1,), (2,), (3,)]


def test_primary_keys(tmp_path: Path) -> None:
    program = "input relation Stock(item: string, count: s64) primary key (item)"
    with opened(tmp_path, program) as db, db.transaction() as tx:
        tx.insert("Stock", [("nails", 10), ("bolts", 5)])
    with opened(tmp_path) as db:
        with pytest.raises(TidelogError, match="TL0511"):
            db.commit(insert={"Stock": [("nails", 3)]})
        with db.transaction() as tx:
            tx.insert_or_update("Stock", [("nails", 3)])
        assert list(db["Stock"]) == [("bolts", 5), ("nails", 3)]


def test_the_same_program_goes_on_with_rules_that_came_later(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(1, 2)]}, add_rules="Path(y, x) :- Edge(x, y).", remove_rules=2)
    with opened(tmp_path, TYPED + "\n// the same, with a remark\n") as db:
        assert (db.version, [rule.id for rule in db.rules]) == (1, [1, 3])
        assert list(db["Path"]) == [(1, 2), (2, 1)]


def test_another_program_is_a_change_of_rules(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED + "Edge(7, 8)."):
        pass
    more = """
    output relation Back(from: s64, to: s64)
    Back(y, x) :- Path(x, y).
    Edge(8, 9).
    """
    with opened(tmp_path, TYPED.replace("Path(x, y) :- Edge(x, y).", "") + more) as db:
        assert db.version == 1
        assert [rule.id for rule in db.rules] == [2, 3]
        assert {name: list(db[name]) for name in db} == {"Edge": [(8, 9)], "Path": [], "Back": []}
        db.commit(insert={"Path": [(1, 8)]})
        assert list(db["Back"]) == [(8, 1), (9, 1)]
    with opened(tmp_path, TYPED.replace("Path(x, y) :- Edge(x, y).", "") + more) as db:
        assert db.version == 2


def test_declarations_have_to_agree(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED):
        pass
    assert raised(tmp_path, TYPED.replace("from: s64", "from: u8")) == [
        "error[TL0807]: this program does not go with the one in the store",
        "  = note: the store has input relation Edge(from: s64, to: s64), "
        "which is now input relation Edge(from: u8, to: s64)",
        "  = note: the store has output relation Path(from: s64, to: s64), "
        "which is now output relation Path(from: u8, to: s64)",
        "  = hint: declare these as they were, or begin another store",
    ]
    with pytest.raises(ProgramError):
        opened(tmp_path, TYPED + "Path(x, x) :- Nothing(x).")
    with opened(tmp_path, TYPED) as db:  # and nobody holds it
        assert db.version == 0


# --- values and names -----------------------------------------------------------------

VALUES: dict[str, list[Any]] = {
    "bool": [True, False],
    "s8": [-128, 127],
    "u8": [0, 255],
    "u16": [65535],
    "u32": [2**32 - 1],
    "s64": [-(2**63), 2**63 - 1],
    "u64": [2**64 - 1],
    "bit<12>": [4095],
    "signed<33>": [-(2**32)],
    "bit<40>": [2**40 - 1],
    "s128": [-(2**127)],
    "u128": [2**128 - 1],
    "bigint": [10**100, -(10**100)],
    "float": [0.5, -0.0, 0.0, math.nan, math.inf],
    "double": [0.1, -0.0, 0.0, math.nan, -math.inf],
    "string": ["", "ü\0\n", "'\"", "a" * 1000],
}


def texts(rows: Any) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("type", VALUES)
def test_values_of_every_type(tmp_path: Path, type: str) -> None:
    rows = [(value,) for value in VALUES[type]]
    program = f"input relation R(x: {type})\noutput relation S(x: {type})\nS(x) :- R(x)."
    with opened(tmp_path, program) as db:
        db.commit(insert={"R": rows})
        for row in rows[:2]:  # 0.0 and -0.0 are two values, NaN is one
            db.commit(delete={"R": [row]})
            db.commit(insert={"R": [row], "S": [row]})
    with opened(tmp_path) as db:
        assert texts(db["S"]) == texts(db.as_of(1)["R"]) == texts(rows)
        assert len(db.as_of(2)["S"]) == len(rows) - 1


def test_relations_without_columns_and_without_rows(tmp_path: Path) -> None:
    with opened(tmp_path, "input relation On()\ninput relation Never(x: s64)\noutput relation Off()") as db:
        db.commit(insert={"On": [()]})
        db.commit(delete={"On": [()]})
        db.commit(insert={"On": [()]}, add_rules="Off() :- On().")
    with opened(tmp_path) as db:
        assert [list(db.as_of(version)["On"]) for version in db.versions] == [[], [()], [], [()]]
        assert [list(db[name]) for name in db] == [[()], [], [()]]


def test_names_that_file_systems_do_not_tell_apart(tmp_path: Path) -> None:
    long = "r" * 200
    program = f"""
    .decl Edge(X: number, x: number)
    .decl edge(x: number)
    .decl _edge(x: number)
    .decl {long}(x: number)
    """
    rows = {"Edge": [(1, 2)], "edge": [(3,)], "_edge": [(4,)], long: [(5,)]}
    with opened(tmp_path, program) as db:
        db.commit(insert=rows)
        names = [path.name for path in (tmp_path / "data").iterdir()]
        assert len({name.casefold() for name in names}) == 4
        assert all(name.isascii() and name[0].isalpha() and len(name) < 100 for name in names)
    with opened(tmp_path) as db:
        assert {name: list(db[name]) for name in db} == rows


def test_anybody_can_read_the_files(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(1, 2)]})
    (path,) = (tmp_path / "data/Path").glob("00000001-????????-inserted.parquet")
    assert pq.read_table(path).to_pylist() == [{"from": 1, "to": 2}]
    manifest = json.loads((tmp_path / "manifests/00000001.json").read_text())
    assert manifest["changes"]["Path"]["inserted"] == {"path": str(path.relative_to(tmp_path)), "rows": 1}


# --- who may have it ---------------------------------------------------------------------


def test_one_database_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED):
        error = raised(tmp_path)
        assert error[0].startswith(f"error[TL0803]: the store {tmp_path} is in use by process ")
        child = f"import tidelog; tidelog.Database(store={str(tmp_path)!r}, engine='substitution')"
        done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=60)
        assert "TL0803" in done.stderr
    with opened(tmp_path) as db:
        assert db.version == 0


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    child = (
        "import os, signal, tidelog\n"
        f"db = tidelog.Database('seen(1).', store={str(tmp_path)!r}, engine='substitution')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", child], timeout=60)
    assert "process" in (tmp_path / "lock").read_text()
    with opened(tmp_path) as db:
        assert list(db["seen"]) == [(1,)]


def test_a_place_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("a")
    assert raised(tmp_path, TYPED) == [
        f"error[TL0801]: {tmp_path} is not a store",
        "  = note: there is no manifest in it, but letters.txt",
        "  = hint: give a directory that is empty or not there",
    ]
    assert raised(tmp_path / "letters.txt", TYPED)[0] == (
        f"error[TL0801]: {tmp_path / 'letters.txt'} is not a store"
    )
    assert raised("nosuch://bucket/place", TYPED)[0] == "error[TL0801]: nosuch://bucket/place is not a store"
