"""What goes wrong with a store: a commit that cannot be written changes nothing, damage names the file."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.session.states import TYPED
from tidelog import Database, TidelogError
from tidelog.session.store.files import LocalFiles


def opened(place: Path, program: str = "") -> Database:
    return Database(program, store=place, engine="substitution")


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def committed(place: Path) -> Database:
    """A database with one commit."""
    db = opened(place, TYPED)
    db.commit(insert={"Edge": [(1, 2), (2, 3)]})
    return db


def failed(db: Database) -> list[str]:
    """The lines of the error of a commit."""
    with pytest.raises(TidelogError) as caught:
        db.commit(insert={"Edge": [(x, x + 1) for x in range(10, 40)]})
    return str(caught.value).splitlines()


def test_a_full_disk(tmp_path: Path) -> None:
    with committed(tmp_path) as db:
        before = files(tmp_path)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # no file may grow larger
        try:
            error = failed(db)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert error[0] == f"error[TL0805]: cannot write to the store {tmp_path}"
        assert error[-1] == "  = note: nothing has been changed"
        assert files(tmp_path) == before
        assert (db.version, len(db["Path"])) == (1, 3)
        assert db.commit(insert={"Edge": [(3, 4)]}).version == 2
        assert len(db["Path"]) == 6


def test_somebody_else_has_committed(tmp_path: Path) -> None:
    """As where there are no locks."""
    with committed(tmp_path) as db:
        theirs = tmp_path / "manifests/00000002.json"
        theirs.write_text("theirs")
        before = files(tmp_path)
        assert failed(db) == [
            "error[TL0804]: version 2 is there already: somebody else has committed to this store",
            "  = note: manifests/00000002.json exists",
            "  = note: nothing has been changed",
            "  = hint: open the database again, and repeat the transaction",
        ]
        assert files(tmp_path) == before
        assert theirs.read_text() == "theirs"
        assert (db.version, len(db["Path"])) == (1, 3)


def test_a_store_that_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "store"
    with committed(place) as db:
        shutil.rmtree(place)
        place.write_text("a file now")
        assert failed(db)[0] == f"error[TL0805]: cannot write to the store {place}"
        assert len(db["Path"]) == 3


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def altered(path: Path) -> None:
    path.write_text(path.read_text().replace('"size": 3', '"size": 4'))


def newer(path: Path) -> None:
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))


@pytest.mark.parametrize(
    ("pattern", "damage", "why"),
    [
        ("manifests/00000001.json", cut, "it is not JSON as it should be: Unterminated"),
        ("manifests/00000001.json", altered, "its checksum is another one: it has been altered"),
        ("manifests/00000001.json", newer, "it has the format 2, and this version of Tidelog reads 1"),
        ("manifests/00000001.json", lambda path: path.write_text("[]"), "it has no checksum"),
        ("programs/00000000-*.json", cut, "it is not JSON as it should be"),
        ("programs/00000000-*.json", Path.unlink, "the file is not there"),
        ("data/Edge/00000001-*-inserted.parquet", cut, "Parquet"),
        ("data/Edge/00000001-*-inserted.parquet", Path.unlink, "the file is not there"),
    ],
)
def test_damage(tmp_path: Path, pattern: str, damage: Callable[[Path], object], why: str) -> None:
    committed(tmp_path).close()
    (path,) = tmp_path.glob(pattern)
    damage(path)
    with pytest.raises(TidelogError) as caught, opened(tmp_path) as db:
        db["Path"].to_list()
    lines = str(caught.value).splitlines()
    assert lines[0] == f"error[TL0802]: the store is damaged: {path.relative_to(tmp_path)}"
    assert lines[1].startswith("  = note: ")
    assert why in lines[1]


def test_answers_that_do_not_follow(tmp_path: Path) -> None:
    """Files of facts that have been swapped for others with as many rows."""
    committed(tmp_path).close()
    other = tmp_path / "other"
    with opened(other, TYPED) as db:
        db.commit(insert={"Edge": [(1, 2), (7, 8)]})
    (here,) = tmp_path.glob("data/Edge/*-inserted.parquet")
    (there,) = other.glob("data/Edge/*-inserted.parquet")
    shutil.copy(there, here)
    with opened(tmp_path) as db:
        with pytest.raises(TidelogError) as caught:
            db["Path"]
        assert str(caught.value).splitlines()[:2] == [
            "error[TL0802]: the store is damaged: manifests/00000001.json",
            "  = note: Path has 3 tuples in it, and 2 follow from its facts",
        ]
        assert len(db.as_of(1)["Path"]) == 3


def test_what_a_commit_leaves_is_removed(tmp_path: Path) -> None:
    committed(tmp_path).close()
    before = files(tmp_path)
    for name in (
        "data/Edge/00000002-0123abcd-inserted.parquet",
        "programs/00000002-0123abcd.json",
        "manifests/.00000002.json",
    ):
        (tmp_path / name).write_text("half of it")
    opened(tmp_path).close()
    assert files(tmp_path) == before


def test_files_of_others_stay(tmp_path: Path) -> None:
    theirs = (
        "data/sales/20240101-north.csv",
        "data/sales/.keep",
        "programs/20250101-prog.dl",
        "programs/.env",
    )
    for name in theirs:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("theirs")
    with pytest.raises(TidelogError) as caught:
        opened(tmp_path)
    assert str(caught.value).splitlines()[:2] == [
        f"error[TL0801]: {tmp_path} is not a store",
        "  = note: there is no manifest in it, but data/sales/.keep",
    ]
    assert files(tmp_path) == set(theirs)  # not even a lock
    store = tmp_path / "store"
    committed(store).close()
    for name in (*theirs, "data/notes.txt"):  # put there later
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text("theirs")
    with opened(store) as db:
        db.commit(insert={"Edge": [(8, 9)]})
        db.vacuum(keep=1)
    assert files(store) >= {*theirs, "data/notes.txt"}


class Forgetful(LocalFiles):
    """A file system that does what it is told, and then loses the connection."""

    def publish(self, path: str, data: bytes) -> None:
        super().publish(path, data)
        raise OSError("connection lost")


def test_a_version_that_is_there_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed(tmp_path).close()
    with monkeypatch.context() as patch:
        patch.setattr("tidelog.session.store.store.open_files", lambda place: Forgetful(Path(place)))
        with opened(tmp_path) as db:
            assert failed(db) == [
                "error[TL0805]: version 2 may be in the store or not, and this database is closed",
                "  = hint: open the database again: it goes on with what is there",
            ]
            with pytest.raises(TidelogError, match="TL0515"):
                db["Path"]
    with opened(tmp_path) as db:
        assert (db.version, len(db["Edge"])) == (2, 32)
