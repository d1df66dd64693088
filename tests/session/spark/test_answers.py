"""Answers and changes as DataFrames: names, types, what they keep, and what is given back."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from tests.session.states import GRAPH, TYPED
from tidelog import Database, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


TYPES = (
    *("bool", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "bit<3>", "signed<33>"),
    *("s128", "bigint", "float", "double", "string"),
)
MANY = 60_000  # more rows than the driver is to hold
ALL_TYPES = f"input relation R({', '.join(f'c_{i}: {type}' for i, type in enumerate(TYPES))})"


@pytest.mark.usefixtures("place")
def test_names_and_types(spark: SparkSession) -> None:
    values = (
        *(True, -1, 255, -300, 65535, -70000, 2**32 - 1, -(2**63), 2**64 - 1, 7, 2**32 - 1),
        *(-(2**127), 10**50, 0.5, -0.0, "åß"),
    )
    with Database(ALL_TYPES, spark=spark) as db, Database(ALL_TYPES, spark=spark) as other:
        empty = db["R"].to_spark()
        db.commit(insert={"R": [values]})
        frame = db["R"].to_spark()
        for found in (frame, empty):
            assert found.columns == [f"c_{i}" for i in range(len(TYPES))]
            assert [field.dataType.simpleString() for field in found.schema] == [
                *("boolean", "tinyint", "smallint", "smallint", "int", "int", "bigint", "bigint"),
                *("decimal(20,0)", "tinyint", "bigint", "string", "string", "float", "double", "string"),
            ]
        assert empty.count() == 0
        other.commit(insert={"R": frame})  # what is got can be given
        assert repr(list(other["R"])) == repr(list(db["R"])) == repr([values])
        assert not other.commit(insert={"R": frame})
        other.commit(delete={"R": frame})
        assert len(other["R"]) == 0


@pytest.mark.usefixtures("place")
def test_answers_stay_what_they_were(spark: SparkSession) -> None:
    with Database(GRAPH, spark=spark) as db:
        db.commit(insert={"edge": spark.createDataFrame([(1, 2), (2, 3)], "x int, y int")})
        answer, frame = db["path"], db["path"].to_spark()
        db.commit(insert={"edge": [(3, 4)]})
        later = db["path"]
        assert (rows(frame), rows(answer.to_spark())) == ([(1, 2), (1, 3), (2, 3)],) * 2
    assert list(answer) == rows(frame) == [(1, 2), (1, 3), (2, 3)]
    assert rows(later.to_spark()) == list(later) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_nothing_is_fetched_until_rows_are_asked_for(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where answers are derived anew; to keep them current, a few rows are looked at on the driver."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    def refuse(self: Classic) -> NoReturn:
        raise AssertionError("fetched")

    program = "p(x, y) :- q(y, x)."
    with Database(program, spark=spark, maintained=False) as db, monkeypatch.context() as patch:
        for name in ("toArrow", "toPandas", "collect", "toLocalIterator"):
            patch.setattr(Classic, name, refuse)
        frame = spark.range(30).selectExpr("id", "id + 1 as next")
        db.commit(insert={"q": frame})
        first = db["p"]
        db.commit(delete={"q": frame.filter("id > 9")}, insert={"q": [(77, 78)]})
        second = db["p"]
        with db.transaction() as tx:
            tx.clear("q")
            tx.insert("q", frame)
        assert [len(answer) for answer in (first, second, db["p"])] == [30, 11, 30]
        assert (4, 3) in first and (3, 4) not in first and (78, 77) not in first
        assert (78, 77) in second
        assert second.to_spark().count() == 11
    assert list(second)[-1] == (78, 77)


@pytest.mark.usefixtures("on_spark")
def test_a_few_rows_are_shown(spark: SparkSession) -> None:
    with Database("p(x) :- q(x).", spark=spark) as db:
        changes = db.commit(insert={"q": spark.range(1000)})
        assert repr(db["p"]).splitlines()[:4] == ["p(c0: s64): 1,000 tuples", "c0", " 0", " 1"]
        assert db["p"]._table is None
        assert repr(changes["p"]).splitlines()[:3] == ["p: 0 deleted, 1,000 inserted", "+ 0", "+ 1"]
        assert repr(changes["p"]).splitlines()[-1] == "... 980 more"


@pytest.mark.usefixtures("place")
def test_changes(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db:
        first = db.commit(insert={"Edge": [(1, 2), (2, 3)]})
        second = db.commit(insert={"Edge": [(3, 4)]}, delete={"Edge": [(1, 2)]})
        third = db.commit()
    frame = second.to_spark("Path")
    assert frame.dtypes == [
        ("from", "bigint"),
        ("to", "bigint"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
    ]
    assert rows(frame.drop("_commit_timestamp")) == [
        (1, 2, "delete", 2),
        (1, 3, "delete", 2),
        (2, 4, "insert", 2),
        (3, 4, "insert", 2),
    ]
    [(stamp,)] = frame.selectExpr("unix_micros(_commit_timestamp)").distinct().collect()
    assert stamp == round(second.time.timestamp() * 1_000_000)
    assert rows(first["Edge"].to_spark().select("from", "_change_type")) == [(1, "insert"), (2, "insert")]
    assert (third.to_spark("Path").dtypes, third.to_spark("Path").count()) == (frame.dtypes, 0)


@pytest.mark.usefixtures("place")
def test_subscribers_are_told(spark: SparkSession) -> None:
    heard = []
    with Database(GRAPH, spark=spark) as db:
        db.subscribe(
            "path", lambda changes, number: heard.append((number, rows(changes.to_spark().select("c0"))))
        )
        db.commit(insert={"edge": spark.createDataFrame([(1, 2)], "x int, y int")})
        db.commit(insert={"other": [(1,)]})
        db.commit(delete={"edge": [(1, 2)]})
    assert heard == [(1, [(1,)]), (3, [(1,)])]


def test_no_session_no_frames(spark: SparkSession) -> None:
    changes = (db := Database(GRAPH, engine="substitution")).commit(insert={"edge": [(1, 2)]})
    with pytest.raises(UnsupportedError) as caught:
        db["edge"].to_spark()
    assert str(caught.value) == (
        "error[TL0612]: edge is not in a Spark session of yours\n"
        "  = hint: Database(program, spark=session) keeps it there; "
        "session.createDataFrame(answer.to_arrow()) brings it there"
    )
    for relation in ("edge", "path"):
        with pytest.raises(UnsupportedError, match="TL0612"):
            changes.to_spark(relation)
    with Database(GRAPH, spark=spark, maintained=False) as once:
        changes = once.commit(insert={"edge": spark.createDataFrame([(1, 2)], "x int, y int")})
        assert rows(once["path"].to_spark()) == [(1, 2)]
        with pytest.raises(UnsupportedError, match="TL0608"):
            changes.to_spark("path")


@pytest.mark.usefixtures("on_spark")
def test_the_session_is_left_as_it_was(classic: SparkSession) -> None:
    """Its settings, and in the end its memory: what nobody refers to is given back."""
    spark = classic
    context, settings = spark.sparkContext, dict(spark.conf.getAll)

    def stored() -> set[int]:
        """The numbers of what Spark holds; asking for the RDDs themselves would keep them for a while."""
        return {info.id() for info in context._jsc.sc().getRDDStorageInfo()}

    before = stored()
    with Database("p(x, y) :- q(x, y).", spark=spark) as db:
        db.commit(insert={"q": spark.range(MANY).selectExpr("id", "id + 1")})
        answer = db["p"]
        changes = db.commit(delete={"q": spark.range(5).selectExpr("id", "id + 1")})
        assert (len(changes["p"].deleted), len(answer)) == (5, MANY)
        ours = stored() - before
    assert ours
    del answer, changes  # the database is closed, and holds nothing though it is still there
    for _ in range(30):  # Python tells Java once a second what it has let go of
        gc.collect()
        context._jvm.System.gc()  # type: ignore[union-attr]
        if not ours & stored():
            break
        time.sleep(0.5)
    assert not ours & stored()
    assert dict(spark.conf.getAll) == settings
    assert spark.range(3).count() == 3
