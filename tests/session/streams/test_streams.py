"""Streams of Spark that a database follows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.session.states import TYPED
from tidelog import Database, DataError, Transaction, UnsupportedError
from tidelog.session.streams import StreamError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

SCHEMA = "_change_type string, from long, to long"
Changes = list[tuple[Any, ...]]


@pytest.fixture
def put(tmp_path: Path) -> Callable[[int, Changes], None]:
    """Write a file of changes, which is a batch: the time of a file says when it is its turn."""
    (tmp_path / "in").mkdir()

    def put(number: int, changes: Changes) -> None:
        path = tmp_path / f"in/{number}.json"
        rows = [dict(zip(("_change_type", "from", "to"), change, strict=True)) for change in changes]
        path.with_name(f".{number}").write_text("\n".join(map(json.dumps, rows)))
        os.utime(path.with_name(f".{number}"), (1e9 + number, 1e9 + number))
        path.with_name(f".{number}").rename(path)

    return put


@pytest.fixture
def changes(classic: SparkSession, tmp_path: Path, put: object) -> DataFrame:
    """The stream of those files."""
    reader = classic.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.json(str(tmp_path / "in"))


def forget(checkpoint: Path, batch: int, *logs: str) -> None:
    """Have Spark not know of a batch: a crash before it noted that."""
    for log in logs:
        for path in (checkpoint / log / str(batch), checkpoint / log / f".{batch}.crc"):
            path.unlink()


def test_each_batch_is_committed_once(
    classic: SparkSession, tmp_path: Path, changes: DataFrame, put: Callable[[int, Changes], None]
) -> None:
    store, feed, checkpoint = tmp_path / "store", tmp_path / "feed", tmp_path / "checkpoint"
    put(0, [("insert", 1, 2), ("insert", 2, 3)])
    put(1, [("update_preimage", 1, 2), ("update_postimage", 3, 1)])
    with Database(TYPED, spark=classic, store=store) as db:
        stream = db.stream(changes, "Edge", checkpoint=checkpoint, trigger="availableNow", feed=feed)
        assert stream.awaitTermination() is None
        assert (db.version, stream.name, stream.isActive, stream.exception()) == (2, "Edge", False, None)
        assert list(db["Path"]) == [(2, 1), (2, 3), (3, 1)]
        assert list(db.as_of(1)["Path"]) == [(1, 2), (1, 3), (2, 3)]
        assert db.last_batch(stream.id) == 1
    # It is killed after the commit, before the feed is written and Spark notes that the batch is done.
    forget(checkpoint, 1, "commits")
    (feed / "Path/00000002.parquet").unlink()
    (feed / "_feed.json").write_text(json.dumps(_note(store, 1)))
    put(2, [("insert", 7, 8)])
    with Database(spark=classic, store=store) as db:
        options: dict[str, Any] = {"checkpoint": checkpoint, "feed": feed}
        stream = db.stream(changes, "Edge", name="edges", trigger={"availableNow": True}, **options)
        stream.awaitTermination()
        assert (db.version, db.last_batch(stream.id)) == (3, 2)
        assert list(db["Path"]) == [(2, 1), (2, 3), (3, 1), (7, 8)]
    told = [pq.read_table(feed / f"Path/0000000{version}.parquet").to_pylist() for version in (1, 2, 3)]
    assert [sorted((r["_change_type"], r["from"], r["to"]) for r in rows) for rows in told[1:]] == [
        [("delete", 1, 2), ("delete", 1, 3), ("insert", 2, 1), ("insert", 3, 1)],
        [("insert", 7, 8)],
    ]
    # A checkpoint that is older than the store, and a store that never had the stream.
    forget(checkpoint, 2, "commits", "offsets")
    forget(checkpoint, 1, "commits", "offsets")
    for place, had in ((store, "has had those up to 2"), (tmp_path / "new", "has had none of them")):
        with Database(TYPED, spark=classic, store=place) as db:
            before = db.version
            with pytest.raises(StreamError) as caught:
                db.stream(changes, "Edge", checkpoint=checkpoint).processAllAvailable()
            assert str(caught.value).splitlines()[:2] == [
                "error[TL0811]: the checkpoint of the stream Edge does not go with the store",
                f"  = note: the checkpoint goes on with batch 1, and the store {had}",
            ]
            assert db.version == before


def test_a_batch_that_is_planned_again(
    classic: SparkSession, tmp_path: Path, changes: DataFrame, put: Callable[[int, Changes], None]
) -> None:
    """From a checkpoint that lacks the last batch: its number comes with other rows."""
    checkpoint = tmp_path / "checkpoint"
    with Database(TYPED, spark=classic, store=tmp_path / "store") as db:
        for number in (0, 1):
            put(number, [("insert", number, number)])
            db.stream(changes, "Edge", checkpoint=checkpoint, trigger="availableNow").awaitTermination()
            if number == 0:
                copytree(checkpoint, tmp_path / "copy")
    rmtree(checkpoint)
    put(2, [("insert", 2, 2)])
    whole = classic.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    with Database(spark=classic, store=tmp_path / "store") as db:
        stream = db.stream(whole, "Edge", checkpoint=tmp_path / "copy", trigger="availableNow")
        with pytest.raises(StreamError) as caught:
            stream.awaitTermination()
        assert str(caught.value).splitlines()[:3] == [
            "error[TL0811]: the checkpoint of the stream Edge does not go with the store",
            "  = note: the checkpoint goes on with batch 1, and the store has had another one of that number",
            "  = note: nothing has been changed",
        ]
        assert (db.version, list(db["Edge"])) == (2, [(0, 0), (1, 1)])


def test_an_older_copy_of_the_store(
    classic: SparkSession, tmp_path: Path, changes: DataFrame, put: Callable[[int, Changes], None]
) -> None:
    """It is found out before there are new data."""
    store, checkpoint = tmp_path / "store", tmp_path / "checkpoint"
    for number in (0, 1):
        put(number, [("insert", number, number)])
        with Database(TYPED, spark=classic, store=store) as db:
            db.stream(changes, "Edge", checkpoint=checkpoint, trigger="availableNow").awaitTermination()
        if number == 0:
            copytree(store, tmp_path / "copy")
    with Database(spark=classic, store=tmp_path / "copy") as db:
        with pytest.raises(StreamError) as caught:
            db.stream(changes, "Edge", checkpoint=checkpoint)
        assert str(caught.value).splitlines()[:2] == [
            "error[TL0811]: the checkpoint of the stream Edge does not go with the store",
            "  = note: the checkpoint goes on with batch 2, and the store has had those up to 0",
        ]
        assert (db.version, list(db["Edge"])) == (1, [(0, 0)])
    with Database(spark=classic, store=store) as db:  # the stream that was refused holds nothing back
        db.stream(changes, "Edge", checkpoint=checkpoint, trigger="availableNow").awaitTermination()
        assert db.version == 2


def _note(store: Path, version: int) -> dict[str, object]:
    return {
        "version": version,
        "timestamp": json.loads((store / f"manifests/{version:08}.json").read_text())["timestamp"],
        "relations": None,
    }


def test_a_batch_that_fails(
    classic: SparkSession, tmp_path: Path, changes: DataFrame, put: Callable[[int, Changes], None]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    with Database(TYPED, spark=classic) as db:
        put(0, [("insert", 1, 2)])
        put(1, [("insert", 2, 3), ("insert", None, 4)])
        stream = db.stream(changes, "Edge", checkpoint=checkpoint)
        for wait in (stream.processAllAvailable, stream.awaitTermination):
            with pytest.raises(DataError) as caught:
                wait()
        assert str(caught.value).splitlines()[:2] == [
            "error[TL0504]: cannot change Edge: a wrong row",
            "  --> column 1 (from): null, and there are no nulls",
        ]
        assert (stream.error, stream.exception()) == (caught.value, caught.value)
        assert (stream.isActive, db.version, list(db["Edge"])) == (False, 1, [(1, 2)])
        put(1, [("insert", 2, 3)])
        stream = db.stream(changes, "Edge", checkpoint=checkpoint)
        stream.processAllAvailable()
        assert (db.version, list(db["Path"])) == (2, [(1, 2), (1, 3), (2, 3)])


def test_a_function_for_batches(
    classic: SparkSession, tmp_path: Path, changes: DataFrame, put: Callable[[int, Changes], None]
) -> None:
    """Several relations in one commit; a subscriber ends the stream; closing the database ends the other."""
    program = "p(x) :- odd(x).\np(x) :- even(x)."

    def parted(tx: Transaction, batch: DataFrame) -> None:
        for name, rest in (("odd", 1), ("even", 0)):
            tx.insert(name, batch.filter(f"to % 2 = {rest}").select("to"))

    put(0, [("insert", 0, i) for i in range(5)])
    with Database(program, spark=classic) as db:
        stream = db.stream(changes, parted)
        db.subscribe("p", lambda *_: stream.stop())
        assert stream.awaitTermination(60) is True
        assert (db.version, list(db["odd"]), len(db["p"])) == (1, [(1,), (3,)], 5)
        assert stream.exception() is None
        other = db.stream(changes.select("to"), "odd", name="other")
        with db.transaction(), pytest.raises(Exception, match="TL0508"):
            other.stop()
    assert (other.isActive, other.exception()) == (False, None)
    assert repr(other) == "<tidelog stream other, ended>"


def test_a_checkpoint_has_one_stream(
    classic: SparkSession, tmp_path: Path, changes: DataFrame, put: Callable[[int, Changes], None]
) -> None:
    with Database(TYPED, spark=classic) as db:
        put(0, [("insert", 1, 2)])
        stream = db.stream(changes, "Edge", checkpoint=tmp_path / "checkpoint")
        stream.processAllAvailable()
        with pytest.raises(StreamError) as caught:
            db.stream(changes, "Edge", name="other", checkpoint=tmp_path / "checkpoint")
        assert str(caught.value).startswith("error[TL0810]: Spark does not start the stream other\n")
        assert "is already active" in str(caught.value)
        put(1, [("insert", 2, 3)])
        stream.processAllAvailable()
        assert list(db["Edge"]) == [(1, 2), (2, 3)]
    assert classic.conf.get("spark.sql.streaming.stopActiveRunOnRestart", None) is None


def test_what_does_not_begin(classic: SparkSession, changes: DataFrame) -> None:
    with Database(TYPED, spark=classic) as db:
        with pytest.raises(DataError, match="this DataFrame is not a stream"):
            db.stream(classic.range(3), "Edge")
        with pytest.raises(DataError) as caught:
            db.stream(changes.drop("to"), "Edge")
        assert str(caught.value).startswith("error[TL0504]: cannot change Edge: 1 column instead of 2 ")
        for trigger in ("never", {"continuous": "1 second"}):
            with pytest.raises(StreamError) as failed:
                db.stream(changes, "Edge", trigger=trigger)
            assert str(failed.value).startswith("error[TL0810]: Spark does not start the stream Edge\n")
        with pytest.raises(Exception, match="TL0801"):
            db.stream(changes, "Edge", feed="feed")
        assert classic.streams.active == []
    with pytest.raises(UnsupportedError, match="TL0612"), Database(TYPED, engine="substitution") as db:
        db.stream(changes, "Edge")
