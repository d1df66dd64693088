"""Stores of databases on Spark: Spark writes and reads what is large, and others read the same files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.session.states import TYPED
from tests.session.store.test_store import VALUES, texts
from tidelog import Database
from tidelog.session.store.store import Store

relation = pytest.importorskip("tidelog.execute.spark.keep.relation")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


@pytest.fixture
def large(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session for which nothing is small."""
    monkeypatch.setattr(Store, "in_process", 0)
    spark.conf.set("spark.tidelog.process", "0")
    yield spark
    spark.conf.unset("spark.tidelog.process")


def edges(spark: SparkSession, rows: list[tuple[int, int]]) -> DataFrame:
    return spark.createDataFrame(rows, "from long, to long")


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_spark_writes_and_reads(large: SparkSession, tmp_path: Path) -> None:
    tmp_path = tmp_path / "a [b]{c}*"  # what Spark would see a pattern in
    with Database(TYPED, spark=large, store=tmp_path) as db:
        db.commit(insert={"Edge": edges(large, [(1, 2), (2, 3)]), "Path": edges(large, [(2, 3), (9, 9)])})
        made = db.commit(delete={"Edge": edges(large, [(1, 2)]), "Path": [(9, 9)]})
        (path,) = (tmp_path / "data/Path").glob("00000001-????????-inserted.parquet")
        assert path.is_dir()
        assert sorted(map(tuple, map(dict.values, pq.read_table(path).to_pylist()))) == [
            (1, 2),
            (1, 3),
            (2, 3),
            (9, 9),
        ]
        view = db.as_of(1)
        assert rows_of(view["Path"].to_spark()) == list(view["Path"]) == [(1, 2), (1, 3), (2, 3), (9, 9)]
        assert (2, 3) in view["Path"]
        recorded = db.store.changes("Path", 1, 2)
        assert recorded[1] == made["Path"]
        columns = recorded[1].to_spark().columns
        assert columns == ["from", "to", "_change_type", "_commit_version", "_commit_timestamp"]
        assert rows_of(recorded[1].to_spark()) == rows_of(made.to_spark("Path"))
    with Database(store=tmp_path, spark=large) as db:  # (2, 3) is given and derived
        assert list(db["Path"]) == [(2, 3)]
        db.commit(delete={"Edge": edges(large, [(2, 3)])})
        assert rows_of(db["Path"].to_spark()) == [(2, 3)]
    with Database(store=tmp_path, engine="substitution") as db:
        assert (db.version, list(db["Path"])) == (3, [(2, 3)])
        assert db.commit(delete={"Path": [(2, 3)]})["Path"].deleted == [(2, 3)]


@pytest.mark.parametrize(("algorithm", "most"), [("counting", 1), ("auto", 1_000)])
def test_answers_are_loaded(
    algorithm: str, most: int, large: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their numbers, from what Spark has written, or the driver where it holds all of it."""
    monkeypatch.setattr(relation, "Limits", partial(relation.Limits, local=most, overlay=most))
    given = {"Edge": [(1, 2), (2, 3), (3, 1), (3, 4)], "Path": [(2, 3), (9, 9)]}
    with Database(TYPED, spark=large, store=tmp_path, algorithm=algorithm) as db:
        db.commit(insert=given)
        before = db._commits.backend.inner._current.keeper.standing("Path")  # type: ignore[union-attr]
    (state,) = tmp_path.glob("data/Path/*-state.parquet")
    assert state.is_dir() is (most == 1)
    with Database(store=tmp_path, spark=large, algorithm=algorithm) as db:
        assert db.report.loaded == 1
        assert db._commits.backend.inner._current.keeper.standing("Path") == before  # type: ignore[union-attr]
        gone = db.commit(delete={"Edge": [(2, 3)]})["Path"].deleted
        assert gone == [(1, 1), (1, 3), (1, 4), (3, 3)]  # (2, 3) is given
        db.commit(insert={"Edge": edges(large, [(4, 9)])})
        known = list(db["Path"])
    for options in ({"spark": large}, {"engine": "local"}):
        with Database(store=tmp_path, **options) as db:
            assert list(db["Path"]) == known
            assert db.report.loaded == (3 if "spark" in options else None)


def test_small_changes_are_written_in_process(spark: SparkSession, tmp_path: Path) -> None:
    with Database(TYPED, spark=spark, store=tmp_path) as db:
        db.commit(insert={"Edge": edges(spark, [(1, 2), (2, 3)])})
        (path,) = (tmp_path / "data/Path").glob("00000001-????????-inserted.parquet")
        assert path.is_file()
        assert rows_of(db.as_of(1)["Path"].to_spark()) == [(1, 2), (1, 3), (2, 3)]
        assert rows_of(db.store.changes("Edge", 1, 1)[0].to_spark().select("from", "to")) == [(1, 2), (2, 3)]


def test_values_of_every_type(large: SparkSession, tmp_path: Path) -> None:
    """Written by Arrow and read by Spark, and the other way round."""
    columns = [f"x{i}: {type}" for i, type in enumerate(VALUES)]
    rows = [tuple(values[i % len(values)] for values in VALUES.values()) for i in range(5)]
    program = (
        f"input relation R({', '.join(columns)})\ninput relation X(x: double, X: double)\ninput relation On()"
    )
    with Database(program, store=tmp_path, engine="substitution") as db:
        db.commit(insert={"R": rows[:3], "X": [(0.0, -0.0)], "On": [()]})
    with Database(store=tmp_path, spark=large) as db:
        assert texts(db["R"]) == texts(db.as_of(1)["R"]) == texts(rows[:3])
        assert list(db["On"]) == list(db.as_of(1)["On"]) == [()]
        db.commit(insert={"R": rows[2:], "X": [(-0.0, 0.0)]}, delete={"R": rows[1:2]})
        assert texts(db.as_of(2)["R"]) == texts([rows[0], *rows[2:]])
        db.commit(insert={"R": rows[1:2]}, delete={"On": [()]})
    with Database(store=tmp_path, engine="substitution") as db:
        assert texts(db["R"]) == texts(rows)
        assert texts(db["X"]) == texts([(0.0, -0.0), (-0.0, 0.0)])
        assert list(db["On"]) == []


def test_many_commits_become_one(large: SparkSession, tmp_path: Path) -> None:
    """Spark merges files too: what is read is the same."""
    with Database("input relation N(x: s64)", store=tmp_path, engine="substitution") as db:
        for i in range(8):
            db.commit(insert={"N": [(i,), (i + 100,)]}, delete={"N": [(i + 99,)]})
    with Database(store=tmp_path, spark=large) as db:
        db.commit(insert={"N": [(8,)]}, delete={"N": [(0,)]})
        (path,) = (tmp_path / "data/N").glob("00000009-*-snapshot.parquet")
        assert path.is_dir()
        assert sorted(db.as_of(9)["N"]) == [*((i,) for i in range(1, 9)), (107,)]
