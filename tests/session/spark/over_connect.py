"""A database over Spark Connect, from its first facts to what it leaves; `pytest --connect` runs it.

`tests/execute/spark/test_connect.py` does so, in a process of its own.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import functions as F
from pyspark.sql.connect.dataframe import DataFrame as Connected
from pyspark.sql.connect.plan import CachedRemoteRelation

from tests.session.states import TYPED
from tidelog import Database, DataError, UnsupportedError
from tidelog.execute.spark.checkpoint import checkpointed
from tidelog.execute.spark.letting_go import let_go

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    assert isinstance(frame, Connected)
    return sorted(map(tuple, frame.collect()))


def raised(db: Database, relation: str, frame: DataFrame) -> list[str]:
    with pytest.raises(DataError) as caught:
        db.commit(insert={relation: frame})
    return str(caught.value).splitlines()


@pytest.fixture(autouse=True)
def as_it_was(spark: SparkSession) -> Any:
    """The settings of the session are what they were."""
    settings = dict(spark.conf.getAll)
    yield
    assert dict(spark.conf.getAll) == settings
    assert spark.range(3).count() == 3


def test_facts_answers_and_changes(spark: SparkSession) -> None:
    db = Database(TYPED, spark=spark)
    db.commit(insert={"Edge": spark.createDataFrame([(2, 1), (3, 2), (3, 2)], "to int, from long")})
    assert db.report.ignored_inserts == 1
    first = db["Path"]
    assert rows(first.to_spark()) == [(1, 2), (1, 3), (2, 3)]

    feed = [("update_preimage", 1, 2), ("update_postimage", 1, 3), ("insert", 3, 4)]
    with db.transaction() as tx:
        tx.apply("Edge", spark.createDataFrame(feed, "_change_type string, from long, to long"))
    found = tx.changes.to_spark("Path")
    assert found.columns == ["from", "to", "_change_type", "_commit_version", "_commit_timestamp"]
    assert rows(found.drop("_commit_timestamp")) == [
        (1, 2, "delete", 2),
        (1, 4, "insert", 2),
        (2, 4, "insert", 2),
        (3, 4, "insert", 2),
    ]
    assert tx.changes["Path"].deleted == [(1, 2)]
    db.commit(delete={"Edge": spark.createDataFrame([(3, 4)], "a long, b long")}, insert={"Edge": [(7, 8)]})
    assert list(db["Path"]) == [(1, 3), (2, 3), (7, 8)]
    assert (7, 8) in db["Path"] and (8, 7) not in db["Path"]
    assert len(first) == 3 and list(first) == [(1, 2), (1, 3), (2, 3)]

    kept = db["Path"].to_spark()
    db.close()
    del db, tx
    gc.collect()
    assert rows(kept) == [(1, 3), (2, 3), (7, 8)]


def test_what_is_refused(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db:
        db.commit(insert={"Edge": [(1, 3)]})
        assert raised(db, "Edge", spark.createDataFrame([(1, None)], "x int, y int"))[:2] == [
            "error[TL0504]: cannot insert into Edge: a wrong row",
            "  --> column 2 (to): null, and there are no nulls",
        ]
        texts = spark.createDataFrame([("1", "two")], "x string, y string")
        wrong = raised(db, "Edge", texts.select(F.col("x").cast("long"), F.col("y").cast("long")))
        assert wrong[0] == "error[TL0504]: cannot insert into Edge: Spark cannot compute the DataFrame"
        assert "CAST_INVALID_INPUT" in wrong[1]
        assert raised(db, "Edge", texts)[0] == "error[TL0504]: cannot insert into Edge: 2 columns do not fit"
        assert (db.version, list(db["Path"])) == (1, [(1, 3)])
        with pytest.raises(UnsupportedError) as caught:
            db.stream(spark.readStream.format("rate").load(), "Edge")
        said = "a stream cannot be followed over Spark Connect: what is given its batches runs on the server"
        assert str(caught.value).splitlines()[0] == f"error[TL0612]: {said}"


def test_the_server_is_told_what_to_forget_at_a_safe_moment(spark: SparkSession) -> None:
    frame = checkpointed(spark.range(3))
    name = cast("Any", frame)._plan._relation_id
    there = Connected(CachedRemoteRelation(name, None), cast("Any", spark))  # type: ignore[arg-type]
    del frame
    gc.collect()
    assert there.count() == 3  # to collect it has told nobody: it could be in the middle of another call
    let_go(spark)
    with pytest.raises(SparkConnectGrpcException, match=name):
        there.count()


def test_a_database_moves_to_spark(spark: SparkSession) -> None:
    spark.conf.set("spark.tidelog.process", "30")
    with Database("p(y, x) :- q(x, y).", spark=spark) as db:
        db.commit(insert={"q": [(1, 2), (3, 4)]})
        kept = db["p"].to_spark()
        changes = db.commit(insert={"q": spark.range(20).select("id", (F.col("id") + 1).alias("next"))})
        assert db.report.place is not None and db.report.place.startswith("on Spark from now on")
        assert len(db["p"]) == 20 == db["p"].to_spark().count()
        assert repr(db["p"]).splitlines()[2].split() == ["1", "0"]
        assert len(changes["p"]) == 18 == changes.to_spark("p").count()
        db.commit(delete={"q": spark.createDataFrame([(3, 4)], "a long, b long")})
        assert (len(db["p"]), rows(kept)) == (19, [(2, 1), (4, 3)])
    spark.conf.unset("spark.tidelog.process")
