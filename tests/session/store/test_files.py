"""Stores on file systems that are not the local disk, by way of Arrow; and levels of files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from tests.session.states import TYPED
from tidelog import Database, TidelogError
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64
from tidelog.session.store import files
from tidelog.session.store.files import ArrowFiles, LocalFiles
from tidelog.session.store.levels import FAN, folded, merged, with_level
from tidelog.session.store.manifest import Level, Levels
from tidelog.session.store.rows import ArrowSets


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A URI of a file system that only Arrow knows."""
    system = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    known = files.open_files
    monkeypatch.setattr(
        "tidelog.session.store.store.open_files",
        lambda place: ArrowFiles(system, "/bucket", place) if "://" in str(place) else known(place),
    )
    return "far://bucket"


def test_a_store_elsewhere(elsewhere: str, tmp_path: Path) -> None:
    with Database(TYPED, store=elsewhere, engine="substitution") as db:
        for i in range(10):
            db.commit(insert={"Edge": [(i, i + 1)]})
        assert len(db.as_of(5)["Path"]) == 15
    with Database(store=elsewhere, engine="substitution") as db:
        assert (db.version, len(db["Path"])) == (10, 55)
        assert db.vacuum(keep=1).versions == list(range(10))
    with Database(store=tmp_path / "bucket", engine="substitution") as db:  # the same files
        assert len(db["Path"]) == 55


@pytest.mark.parametrize("beginning", ["file:", "file://"])
def test_a_uri_of_this_machine(beginning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Database(TYPED, store=f"{beginning}{tmp_path}/store", engine="substitution").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "store"]
    assert not any((tmp_path / "here").iterdir())


def test_without_locks_the_second_is_told(elsewhere: str) -> None:
    with (
        Database(TYPED, store=elsewhere, engine="substitution") as first,
        Database(store=elsewhere, engine="substitution") as second,
    ):
        first.commit(insert={"Edge": [(1, 2)]})
        with pytest.raises(TidelogError, match=r"TL0804.* version 1 is there already"):
            second.commit(insert={"Edge": [(7, 8)]})
        assert list(second["Edge"]) == []
        assert list(first.as_of(1)["Edge"]) == [(1, 2)]


# --- levels ------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_levels_are_few_and_hold_what_they_should(tmp_path: Path, seed: int, exact: bool) -> None:
    relation = Relation("r", (Column("x", S64),))
    sets = ArrowSets(LocalFiles(tmp_path), relation)
    draw, expected, levels, count = random.Random(seed), set[tuple[int]](), Levels(), 0

    def path(what: str) -> str:
        nonlocal count
        count += 1
        return f"data/{count}-{what}.parquet"

    def merge(several: Levels, first: bool) -> Level:
        return merged(several, sets, path, first=first, exact=exact)

    for _ in range(150):
        gone = {(draw.randrange(300),) for _ in range(draw.randrange(3))}
        come = {(draw.randrange(300),) for _ in range(draw.randrange(6))}
        if exact:  # what goes was there, what comes was not
            gone &= expected
            come -= expected - gone
        level = Level(
            sets.write(sets.given(sorted(gone)), path("deleted")),
            sets.write(sets.given(sorted(come)), path("inserted")),
        )
        levels = with_level(levels, level, merge)
        expected = (expected - gone) | come
    found = sets.table(folded(levels, sets, first=True, exact=exact).come)
    assert sorted(found.column("x").to_pylist()) == sorted(x for (x,) in expected)
    assert len(levels) <= 1 + 3 * FAN
    assert sum(level.rows for level in levels) <= 4 * len(expected)
