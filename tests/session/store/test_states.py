"""States: answers are loaded with the numbers of their algorithm, and go on as if nothing had happened."""

from __future__ import annotations

import logging
import random
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.properties.expected import Expected
from tests.properties.histories import generate_history, splits
from tests.properties.replay import _perform, _state_problem
from tests.session.states import GRAPH, TYPED
from tidelog import Database, TidelogError
from tidelog.session.maintained import Maintained
from tidelog.session.store import stored

ALGORITHMS = ("auto", "ranked", "recompute", "dred", "fbf", "elastic", "counting", "dbsp")
EDGES = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 3), (6, 7)]
PROGRAM = """
input relation Edge(from: s64, to: s64)
input relation Closed(at: s64)
output relation Path(from: s64, to: s64)
output relation Open(from: s64, to: s64)
output relation Fan(from: s64, n: u64)
output relation Lonely(at: s64)

Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
Open(x, y) :- Path(x, y), not Closed(y).
Fan(x, n) :- Path(x, y), var n = y.group_by(x).count().
Lonely(x) :- Edge(_, x), not Edge(x, _).
"""


def opened(place: Path, program: str = "", **options: Any) -> Database:
    return Database(program, store=place, **{"engine": "local", **options})


def standing(db: Database) -> object:
    """Every tuple of a database with its marks and numbers, and what its algorithms keep for themselves."""
    db.report  # noqa: B018  (loads what there is)
    inner = db._commits.backend.inner  # type: ignore[union-attr]
    assert isinstance(inner, Maintained)
    names = [*inner.stored, *inner.maintenance.owned()]
    return {name: inner.keeper.standing(name) for name in names}, inner.maintenance.notes()


def answers(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(db[name]) for name in db}


def states(place: Path) -> list[str]:
    return sorted(path.name[:8] for path in place.glob("states/*"))


def crashed(place: Path) -> Path:
    """A copy of a store that is open: what a crash at this moment would leave."""
    copy = place.with_name(f"{place.name}x")
    shutil.copytree(place, copy)
    return copy


# --- all is as it was ---------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_numbers_are_as_they_were(algorithm: str, tmp_path: Path) -> None:
    with opened(tmp_path, PROGRAM, algorithm=algorithm) as db:
        db.commit(insert={"Edge": EDGES, "Path": [(3, 4), (9, 9)], "Closed": [(4,)]})
        db.commit(delete={"Edge": [(3, 4)]}, insert={"Edge": [(2, 4)], "Closed": [(1,)]})
        before, known = standing(db), answers(db)
    with opened(tmp_path, algorithm=algorithm) as db:
        assert (db.report.loaded, db.report.strata) == (2, ())
        assert standing(db) == before
        assert answers(db) == known


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_has_changed_since_is_brought_up_to_date(algorithm: str, tmp_path: Path) -> None:
    """Several versions after a state, of facts that are given, derived or both, then a crash."""
    place = tmp_path / "s"
    opened(place, PROGRAM, algorithm=algorithm).close()
    with opened(place, algorithm=algorithm) as db:
        db.commit(insert={"Edge": EDGES, "Path": [(3, 4), (9, 9)], "Closed": [(4,)]})
    with opened(place, algorithm=algorithm) as db:
        db.commit(delete={"Edge": [(3, 4), (6, 7)]}, insert={"Path": [(1, 2)]})
        db.commit(insert={"Edge": [(6, 7), (2, 4)]}, delete={"Path": [(9, 9)], "Closed": [(4,)]})
        db.commit(insert={"Edge": [(7, 7)]}, delete={"Edge": [(2, 3)]})
        assert states(place) == ["00000001"]
        with opened(crashed(place), algorithm=algorithm) as other:
            assert (other.version, other.report.loaded) == (4, 1)
            assert answers(other) == answers(db)
            for change in ({"Edge": [(7, 1)]}, {"Edge": [(2, 3)], "Path": [(8, 8)]}):
                assert other.commit(insert=change) == db.commit(insert=change)
            assert other.commit(delete={"Edge": EDGES[:3]}) == db.commit(delete={"Edge": EDGES[:3]})
            assert answers(other) == answers(db)


# How often there was a state of the same rules.
LOADED = (0, 8, 0, 2, 6, 0, 1, 5, 2, 3, 10, 3, 1, 8, 1, 3)


@pytest.mark.parametrize("seed", range(len(LOADED)))
def test_histories_go_on(seed: int, tmp_path: Path) -> None:
    """Random histories, closed or crashed now and then, give what the oracle says."""
    history = generate_history(seed)
    if seed % 3 == 1:
        history = splits(history)[1]
    draw = random.Random(seed)
    algorithm = ALGORITHMS[seed % len(ALGORITHMS)]
    models = Expected(history).models
    place, loaded = tmp_path / "s", 0
    database = opened(place, history.text, algorithm=algorithm)
    for i, transaction in enumerate(history.transactions):
        if i and draw.random() < 0.5:
            if draw.random() < 0.5:
                place, left = crashed(place), database
                database = opened(place, algorithm=algorithm)
                left.close()
            else:
                database.close()
                database = opened(place, algorithm=algorithm)
            loaded += database.report.loaded is not None
            assert _state_problem(database, models[i]) is None, f"opened before transaction {i}"
        try:
            _perform(database, transaction, history.declared)
        except TidelogError:
            assert transaction.ending == "failure"
        assert _state_problem(database, models[i + 1]) is None, f"after transaction {i}"
    database.close()
    assert loaded == LOADED[seed]


@pytest.mark.parametrize(("first", "then"), [("auto", "elastic"), ("dbsp", "auto"), ("fbf", "counting")])
def test_another_algorithm_goes_on(first: str, then: str, tmp_path: Path) -> None:
    with opened(tmp_path, PROGRAM, algorithm=first) as db:
        db.commit(insert={"Edge": EDGES})
    with opened(tmp_path, algorithm=then) as db, Database(PROGRAM, engine="substitution") as other:
        other.commit(insert={"Edge": EDGES})
        assert db.report.loaded == 1
        for edge in EDGES[:3]:
            assert db.commit(delete={"Edge": [edge]}) == other.commit(delete={"Edge": [edge]})
        assert answers(db) == answers(other)


def test_rules_change_after_loading(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": EDGES})
    with opened(tmp_path, TYPED + "Path(y, x) :- Path(x, y).") as db:
        assert db.version == 2
        assert len(db["Path"]) == 28
        assert db.report.strata[0].why != "for the first time"


def test_rules_that_are_others_are_derived(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with opened(place, GRAPH) as db:
        db.commit(insert={"edge": EDGES})
    with opened(place) as db:
        db.commit(add_rules="path(y, x) :- path(x, y).")
        with opened(crashed(place)) as other:
            assert (other.report.loaded, answers(other)) == (None, answers(db))
        db.commit(remove_rules=3)
        with opened(tmp_path / "sx") as other:  # and these are the same again
            assert other.version == 2


# --- when states are written -----------------------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few changes are a reason to write a state."""
    monkeypatch.setattr(stored, "FEW", 0)
    yield


def test_a_state_is_written_when_much_has_changed(eager: None, tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        written = []
        for x in range(12):
            db.commit(insert={"Edge": [(x, x + 1)]})
            written.append(states(tmp_path))
    assert [int(name) for [name] in written] == [1, 2, 2, 4, 4, 4, 7, 7, 7, 7, 11, 11]


def test_little_is_not_worth_a_state_at_the_end(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(x, x + 1) for x in range(20)]})
    for version in (2, 3):
        with opened(tmp_path) as db:
            assert db.report.loaded == 1
            db.commit(insert={"Edge": [(0, version)]})
    assert states(tmp_path) == ["00000001"]
    with opened(tmp_path) as db:
        db.commit(insert={"Edge": [(20, 21), (21, 22)]})
    assert states(tmp_path) == ["00000004"]
    assert len(list(tmp_path.rglob("*-state.parquet"))) == 1


def test_vacuum_keeps_a_state(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(x, x + 1) for x in range(20)]})
    with opened(tmp_path) as db:
        for x in (0, 2, 3):
            db.commit(insert={"Edge": [(0, x)]})
    for keep, version in ((4, "00000001"), (3, "00000004")):
        with opened(tmp_path) as db:
            db.vacuum(keep=keep)
            assert states(tmp_path) == [version]
        with opened(tmp_path) as db:
            assert db.report.loaded == int(version)
            assert len(db["Path"]) == 211


def test_other_engines_leave_it(tmp_path: Path) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": EDGES})
    for options in ({"engine": "substitution"}, {"maintained": False}):
        with opened(tmp_path, **options) as db:
            assert db.report.loaded is None
            db.commit(delete={"Edge": [EDGES[db.version]]})
    with opened(tmp_path) as db:
        assert (db.version, db.report.loaded) == (3, 1)
        assert answers(db)["Edge"] == sorted({*EDGES} - {*EDGES[1:3]})
        assert len(db["Path"]) == 11


# --- states that are not what they should be --------------------------------------------


def broken(place: Path, how: str) -> None:
    [state], [data] = place.glob("states/*"), place.glob("data/Path/*-state.parquet")
    match how:
        case "no data":
            data.unlink()
        case "data cut short":
            data.write_bytes(data.read_bytes()[:-20])
        case "data altered":
            content = bytearray(data.read_bytes())
            content[len(content) // 3] ^= 1
            data.write_bytes(content)
        case "state altered":
            state.write_text(state.read_text().replace('"ranks"', '"counts"'))
        case "no version":
            (place / "manifests/00000001.json").unlink()
        case "not a state":
            state.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize(
    "how", ["no data", "data cut short", "data altered", "state altered", "no version", "not a state"]
)
def test_damage_costs_time_and_nothing_else(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path, TYPED) as db:
        db.commit(insert={"Edge": [(x, x + 1) for x in range(40)]})
    with opened(tmp_path) as db:
        db.commit(insert={"Edge": [(50, 51)]})
    broken(tmp_path, how)
    with caplog.at_level(logging.WARNING, logger="tidelog"), opened(tmp_path) as db:
        assert db.report.loaded is None
        assert len(db["Path"]) == 821
        assert "derived anew" in caplog.text
    assert states(tmp_path) == ["00000002"]
    with opened(tmp_path) as db:
        assert (db.report.loaded, len(db["Path"])) == (2, 821)


def test_a_full_disk_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = opened(tmp_path, TYPED)
    db.commit(insert={"Edge": EDGES})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # no file may grow larger
    try:
        db.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "could not be saved" in caplog.text
    assert states(tmp_path) == []
    assert list(tmp_path.rglob("*-state.parquet")) == []
    with opened(tmp_path) as db:
        assert (db.report.loaded, len(db["Path"])) == (None, 26)
