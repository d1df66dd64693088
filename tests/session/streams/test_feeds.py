"""What commits have changed, as files for others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.session.states import TYPED
from tidelog import Database, TidelogError, UnknownRelationError
from tidelog.session.store.errors import StoreError

Rows = set[tuple[object, ...]]


def database(place: Path, program: str = TYPED) -> Database:
    return Database(program, store=place, engine="substitution")


def commits(db: Database) -> None:
    db.commit(insert={"Edge": [(1, 2), (2, 3)]})
    db.commit(insert={"Edge": [(3, 4)]}, delete={"Edge": [(1, 2)]})
    db.commit(insert={"Edge": [(3, 4)]})  # nothing new
    db.commit(add_rules="Path(x, x) :- Edge(x, _).")


def files(feed: Path) -> dict[str, bytes]:
    return {str(p.relative_to(feed)): p.read_bytes() for p in feed.rglob("*") if p.is_file()}


def check(db: Database, feed: Path, relation: str = "Path", first: int = 0) -> None:
    """The feed, replayed from nothing, gives each version, and tells nothing twice."""
    held: Rows = set()
    for version in range(first, db.version + 1):
        path = feed / relation / f"{version:08}.parquet"
        for row in pq.read_table(path).to_pylist() if path.exists() else []:
            kind, of = row.pop("_change_type"), row.pop("_commit_version")
            assert (of, row.pop("_commit_timestamp")) == (version, db.as_of(version).timestamp)
            values = tuple(row.values())
            assert (values in held) == (kind == "delete")
            (held.remove if kind == "delete" else held.add)(values)
        assert held == set(db.as_of(version)[relation])


def test_each_version_is_told_once(tmp_path: Path) -> None:
    feed = tmp_path / "feed"
    with database(tmp_path / "store") as db:
        assert db.write_feed(feed) == 1  # there is nothing yet, in version 0
        db.commit(insert={"Edge": [(0, 1)]})
        assert db.write_feed(feed) == 1
        commits(db)
        assert db.write_feed(feed) == 4
        assert db.write_feed(feed) == 0
        check(db, feed)
    assert sorted(files(feed)) == [*(f"Path/0000000{i}.parquet" for i in (1, 2, 3, 5)), "_feed.json"]
    schema = pq.read_schema(feed / "Path/00000003.parquet")
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "from": pa.int64(),
        "to": pa.int64(),
        "_change_type": pa.string(),
        "_commit_version": pa.int64(),
        "_commit_timestamp": pa.timestamp("us", tz="UTC"),
    }


def test_after_a_crash_the_same_files_are_written(tmp_path: Path) -> None:
    """Between the files of a version and its note, or before: what is missing is what comes next."""
    feed = tmp_path / "feed"
    with database(tmp_path / "store") as db:
        db.commit(insert={"Edge": [(0, 1)]})
        db.write_feed(feed)
        early = (feed / "_feed.json").read_bytes()
        commits(db)
        db.write_feed(feed)
        whole = files(feed)
        (feed / "_feed.json").write_bytes(early)
        (feed / "Path/00000003.parquet").rename(feed / "Path/.00000003.parquet")
    with database(tmp_path / "store") as db:
        assert db.write_feed(feed) == 4
        assert files(feed) == whole


def test_chosen_relations(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        commits(db)
        db.write_feed(tmp_path / "both", ["Edge", "Path"])
        db.write_feed(tmp_path / "one", "Edge")
        check(db, tmp_path / "both")
        check(db, tmp_path / "both", "Edge")
        check(db, tmp_path / "one", "Edge")
        assert not (tmp_path / "one/Path").exists()
        with pytest.raises(StoreError) as caught:
            db.write_feed(tmp_path / "both")
        assert "\n  = note: it is of Edge, Path, not of the program's outputs\n" in str(caught.value)
        with pytest.raises(UnknownRelationError, match="did you mean Edge"):
            db.write_feed(tmp_path / "none", ["Egde"])


def test_a_relation_that_goes(tmp_path: Path) -> None:
    with database(tmp_path / "store", "p(x, y) :- q(x, y).") as db:
        db.commit(insert={"q": [(1, 2)]})
        [rule] = db.rules
        db.commit(remove_rules=rule.id)
        assert "p" not in db
        db.write_feed(tmp_path / "feed")
        told = pq.read_table(tmp_path / "feed/p/00000002.parquet").select(["c0", "c1", "_change_type"])
        assert told.to_pylist() == [{"c0": 1, "c1": 2, "_change_type": "delete"}]


def test_values_of_all_kinds(tmp_path: Path) -> None:
    program = """
    input relation In(b: bool, n: bigint, u: u64, f: float, s: string)
    output relation Out(b: bool, n: bigint, u: u64, f: float, s: string)
    output relation Any()
    Out(b, n, u, f, s) :- In(b, n, u, f, s).
    Any() :- In(_, _, _, _, _).
    """
    row = (True, 10**30, 2**64 - 1, 0.5, "ß")
    with database(tmp_path / "store", program) as db:
        db.commit(insert={"In": [row]})
        db.commit(delete={"In": [row]})
        db.write_feed(tmp_path / "feed")
    for version, kind in ((1, "insert"), (2, "delete")):
        [told] = pq.read_table(tmp_path / f"feed/Out/0000000{version}.parquet").to_pylist()
        assert list(told.values())[:6] == [True, str(10**30), 2**64 - 1, 0.5, "ß", kind]
        [told] = pq.read_table(tmp_path / f"feed/Any/0000000{version}.parquet").to_pylist()
        assert next(iter(told.items())) == ("_change_type", kind)


def test_a_feed_that_begins_late_begins_with_everything(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        commits(db)
        db.vacuum(keep=3)
        assert db.write_feed(tmp_path / "feed") == 3
        check(db, tmp_path / "feed", first=2)


def test_what_cannot_go_on(tmp_path: Path) -> None:
    feed, store = tmp_path / "feed", tmp_path / "store"
    with database(store) as db:
        db.write_feed(feed)
        time = db.as_of(0).timestamp.isoformat(timespec="microseconds")
        commits(db)
        db.vacuum(keep=1)
        with pytest.raises(StoreError) as caught:
            db.write_feed(feed)
        assert str(caught.value) == (
            f"error[TL0812]: the feed {feed} cannot go on with what is in {store}\n"
            "  = note: its last version is 0: version 0 has been removed by vacuum\n"
            "  = hint: give another directory: a feed begins with all that there is"
        )
        db.write_feed(tmp_path / "new")
    with database(tmp_path / "other") as db:
        with pytest.raises(StoreError, match="its last version is 4, and the store's is 0"):
            db.write_feed(tmp_path / "new")
        other = db.as_of(0).timestamp.isoformat(timespec="microseconds")
        with pytest.raises(StoreError) as caught:
            db.write_feed(feed)
        assert f"is 0 of {time}, and in the store that one is of {other}\n" in str(caught.value)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed/Path").write_text("in the way")
    with database(tmp_path / "store") as db:
        commits(db)
        with pytest.raises(StoreError) as caught:
            db.write_feed(tmp_path / "feed")
        first, *others = str(caught.value).splitlines()
        assert first == f"error[TL0812]: cannot write the feed {tmp_path / 'feed'}"
        assert others[1] == "  = note: commits are not concerned; what is missing is written the next time"
        (tmp_path / "feed/Path").unlink()
        db.write_feed(tmp_path / "feed")
        check(db, tmp_path / "feed")


def test_a_feed_needs_a_store(tmp_path: Path) -> None:
    with pytest.raises(TidelogError, match="TL0801"), Database(TYPED, engine="substitution") as db:
        db.write_feed(tmp_path / "feed")


def test_columns_of_a_feed_are_not_doubled(tmp_path: Path) -> None:
    program = "input relation R(n: s64)\noutput relation S(_commit_version: s64)\nS(n) :- R(n)."
    with database(tmp_path / "store", program) as db:
        db.commit(insert={"R": [(1,)]})
        with pytest.raises(
            TidelogError, match="the changes of S are no table: there would be two columns _commit_"
        ):
            db.write_feed(tmp_path / "feed")


def test_the_store_is_no_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with database(tmp_path / "store") as db:
        before = files(tmp_path / "store")
        for place in (tmp_path / "store", "store", f"file://{tmp_path}/store"):
            with pytest.raises(StoreError, match=r"TL0812.*is the store itself"):
                db.write_feed(place)
        assert files(tmp_path / "store") == before
