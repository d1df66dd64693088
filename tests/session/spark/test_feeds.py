"""One DataFrame of rows that come and rows that go, as change feeds have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.session.states import TYPED
from tidelog import Database, DataError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

Rows = list[tuple[Any, ...]]


@pytest.mark.usefixtures("place")
def test_apply(spark: SparkSession) -> None:
    schema = "_change_type string, to long, from long"
    with Database(TYPED, spark=spark) as db:
        db.commit(insert={"Edge": [(1, 2), (2, 3), (4, 5)]})
        with db.transaction() as tx:
            changes: Rows = [
                ("update_preimage", 3, 2),
                ("update_postimage", 4, 2),
                ("insert", 2, 1),
                ("delete", 5, 4),
                ("delete", 5, 4),
                ("delete", 8, 8),
                ("insert", 9, 9),
                ("delete", 9, 9),
            ]
            tx.apply("Edge", spark.createDataFrame(changes, schema))
        assert list(db["Edge"]) == [(1, 2), (2, 4), (9, 9)]
        assert (tx.report.ignored_inserts, tx.report.ignored_deletes) == (1, 1)
        before = db.version
        for kind, shown in (("upsert", "'upsert'"), (None, "'null'")):
            with pytest.raises(DataError) as caught, db.transaction() as tx:
                tx.apply("Edge", spark.createDataFrame([("insert", 1, 1), (kind, 1, 2)], schema))
            assert str(caught.value) == (
                "error[TL0504]: cannot change Edge: a wrong row\n"
                f"  --> _change_type: {shown} is none of insert, update_postimage, delete, update_preimage"
            )
        assert (list(db["Edge"]), db.version) == ([(1, 2), (2, 4), (9, 9)], before)


@pytest.mark.usefixtures("place")
def test_the_last_version_counts(spark: SparkSession) -> None:
    schema = "x double, _change_type string, _commit_version int, _commit_timestamp timestamp"
    nan = float("nan")
    rows: Rows = [
        (0.0, "insert", 1, None),
        (0.0, "delete", 2, None),
        (-0.0, "delete", 1, None),
        (-0.0, "insert", 3, None),
        (nan, "delete", 2, None),
        (nan, "insert", 2, None),
        (1.5, "insert", 10, None),
        (1.5, "delete", 9, None),
    ]
    with Database("input relation R(x: double)", spark=spark) as db:
        db.commit(insert={"R": [(0.0,)]})
        with db.transaction() as tx:
            tx.apply("R", spark.createDataFrame(rows, schema))
        assert repr(list(db["R"])) == "[(-0.0,), (1.5,), (nan,)]"


def test_changes_of_one_database_are_facts_of_another(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as one, Database("p(x, y) :- q(x, y).", spark=spark) as other:
        for insert, delete in (([(1, 2), (2, 3)], []), ([(3, 4)], [(1, 2)])):
            changes = one.commit(insert={"Edge": insert}, delete={"Edge": delete})
            with other.transaction() as tx:
                tx.apply("q", changes.to_spark("Path"))
            assert list(other["p"]) == list(one["Path"])


def test_what_cannot_be_applied(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db, db.transaction() as tx:
        with pytest.raises(DataError) as caught:
            tx.apply("Edge", spark.createDataFrame([(1, 2)], "from long, to long"))
        assert str(caught.value) == (
            "error[TL0504]: cannot change Edge: the DataFrame has no column _change_type of strings\n"
            "  = note: its columns are from: bigint, to: bigint\n"
            "  = hint: tx.insert and tx.delete take rows without it"
        )
        with pytest.raises(DataError) as caught:
            tx.insert(
                "Edge", spark.createDataFrame([(1, 2, "insert")], "from long, to long, _change_type string")
            )
        assert str(caught.value) == (
            "error[TL0504]: cannot insert into Edge: 3 columns instead of 2 (from: s64, to: s64)\n"
            "  = note: the columns of the DataFrame are from: bigint, to: bigint, _change_type: string\n"
            "  = hint: tx.apply takes a DataFrame with _change_type"
        )
        for type in ("double", "string"):
            schema = f"from long, to long, _change_type string, _commit_version {type}"
            with pytest.raises(DataError) as caught:
                tx.apply("Edge", spark.createDataFrame([], schema))
            assert str(caught.value) == (
                "error[TL0504]: cannot change Edge: a column does not fit\n"
                f"  --> _commit_version is s64, `_commit_version` of the DataFrame is {type}\n"
                '  = hint: _commit_version: convert it, as in F.col("_commit_version").cast("bigint")'
            )
        with pytest.raises(UnsupportedError, match="TL0612"):
            tx.apply("Edge", [(1, 2, "insert")])  # type: ignore[arg-type]
    with Database(TYPED, engine="substitution").transaction() as tx:
        with pytest.raises(UnsupportedError, match="TL0612"):
            tx.apply("Edge", spark.createDataFrame([(1, 2)], "from long, to long"))
        tx.insert(
            "Edge", spark.createDataFrame([(1, 2)], "from long, to long")
        )  # an engine in this process fetches it
    assert tx.changes["Path"].inserted == [(1, 2)]
