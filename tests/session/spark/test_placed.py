"""Where answers are kept: in this process while they are few, then on Spark; and how they get there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.session.states import GRAPH
from tidelog import Changes, Database, EvaluationError, TidelogError
from tidelog.session.changes import ChangeSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

Rows = list[tuple[Any, ...]]
Process = Callable[[int], None]
MOVED = "on Spark from now on: "


def edges(spark: SparkSession, rows: Rows) -> DataFrame:
    return spark.createDataFrame(rows, "x long, y long")


def chain(*numbers: int) -> Rows:
    return [(i, i + 1) for i in numbers]


def told(changes: ChangeSet) -> dict[str, list[tuple[Any, int]]]:
    return {name: list(changes[name]) for name in sorted(changes)}


def frames(changes: ChangeSet) -> dict[str, list[tuple[Any, int]]]:
    """The same, from DataFrames."""
    found = {}
    for name in sorted(changes):
        frame = changes.to_spark(name).drop("_commit_version", "_commit_timestamp")
        signed = [(tuple(row)[:-1], 1 if row[-1] == "insert" else -1) for row in frame.collect()]
        found[name] = sorted(signed, key=lambda change: (change[1], change[0]))
    return found


def test_a_database_outgrows_this_process(spark: SparkSession, process: Process) -> None:
    """Commits before, in which, and after it; answers of a relation that goes, too."""
    process(20)
    last = "last(x) :- path(_, x), !edge(x, _)."
    commits: list[dict[str, Any]] = [
        {"insert": {"edge": chain(1, 2)}},
        {"insert": {"path": [(8, 9)]}, "delete": {"edge": [(2, 3)]}},
        {"insert": {"edge": chain(2, 4, 5, 6)}, "delete": {"edge": [(1, 2)], "path": [(7, 7)]}},
        {"insert": {"edge": chain(1, 3)}, "delete": {"edge": [(5, 6)]}},  # it moves
        {"insert": {"edge": chain(1)}, "delete": {"edge": [(4, 5)]}},
        {"add_rules": "path(y, x) :- path(x, y), y > 6.", "remove_rules": last, "delete": {"path": [(8, 9)]}},
    ]
    places = []
    with Database(GRAPH + last, spark=spark) as db, Database(GRAPH + last, engine="substitution") as other:
        for commit in commits:
            before, expected = {name: db[name] for name in db}, {name: list(other[name]) for name in other}
            changes, wanted = db.commit(**commit), other.commit(**commit)
            assert told(changes) == told(wanted)
            assert {name: list(answer) for name, answer in before.items()} == expected
            assert {name: list(db[name]) for name in db} == {name: list(other[name]) for name in other}
            mine, its = db.report, other.report
            assert (mine.ignored_inserts, mine.ignored_deletes) == (its.ignored_inserts, its.ignored_deletes)
            places.append(mine.place)
            if mine.place.startswith(MOVED):
                assert frames(changes) == told(wanted)
    here = "in this process: there are no more tuples than 20 (spark.tidelog.process)"
    there = f"{MOVED}there are more tuples than 20 (spark.tidelog.process)"
    assert places == [here, here, here, there, "on Spark", "on Spark"]


def test_reports_say_where_strata_are(spark: SparkSession, process: Process) -> None:
    process(6)
    with Database(GRAPH, spark=spark) as db:
        db.commit(insert={"edge": chain(1, 2)})
        [line] = db.report.strata
        assert (line.way, line.why) == ("in this process: 3 tuples", "for the first time")
        db.commit(insert={"edge": chain(3)})
        [line] = db.report.strata
        assert line.way.startswith("on Spark: 6 tuples; single: ")
        assert str(db.report).splitlines()[0].split()[-1] == "way"
        assert str(db.report).splitlines()[-1].startswith(MOVED)
        assert MOVED in db.report._repr_html_()
        db.algorithm = "dred"
        db.commit(delete={"edge": chain(3)})
        [line] = db.report.strata
        assert (line.algorithm, line.why, line.way) == ("dred", "as asked for", "on Spark: 3 tuples")


def test_a_large_frame_goes_to_spark_at_once(spark: SparkSession, process: Process) -> None:
    process(20)
    with Database("p(x) :- q(x, _).", spark=spark) as db:
        db.commit(insert={"q": [(1, 2)]})
        changes = db.commit(
            insert={"q": spark.range(18).selectExpr("id % 3", "id")},
            delete={"q": edges(spark, chain(1, 2, 3))},
        )
        assert db.report.place == f"{MOVED}21 rows were given, more than 20 (spark.tidelog.process)"
        assert (len(changes["q"]), changes["p"].inserted) == (19, [(0,), (2,)])


def test_a_move_that_fails(spark: SparkSession, process: Process) -> None:
    """All is as it was, in this process."""
    process(5)
    with Database("q(x, 10 / x) :- p(x). r(x) :- q(x, _), s(x).", spark=spark) as db:
        db.commit(insert={"p": [(1,)], "s": [(1,)]})
        answer = db["q"]
        with pytest.raises(EvaluationError):
            db.commit(
                insert={"p": [(i,) for i in range(7)]}, delete={"s": [(1,)]}, add_rules=["t(x) :- s(x)."]
            )
        assert (db.version, len(db.rules), list(db["q"]), list(answer)) == (1, 2, [(1, 10)], [(1, 10)])
        changes = db.commit(delete={"p": [(1,)]})
        assert changes["r"].deleted == [(1,)]
        assert db.report.place.startswith("in this process")
        changes = db.commit(insert={"p": [(i,) for i in range(1, 7)]})
        assert (changes["r"].inserted, len(changes["q"]), "s" in changes) == ([(1,)], 6, False)
        assert db.report.place.startswith(MOVED)
        assert list(answer) == [(1, 10)]


def test_only_what_subscribers_hear_of_is_compared(spark: SparkSession, process: Process) -> None:
    process(3)
    heard: list[tuple[int, list[tuple[Any, int]]]] = []

    def hear(changes: Changes, version: int) -> None:
        heard.append((version, list(changes)))

    with Database("p(x) :- q(x). r(x) :- q(x), x > 5.", spark=spark) as db:
        db.subscribe("p", hear)
        db.subscribe("r", hear)
        db.commit(insert={"q": [(1,)]})
        changes = db.commit(insert={"q": [(2,)]})
        assert db.report.place.startswith(MOVED)
        assert set(changes._changed._pairs) == {"q"}  # type: ignore[attr-defined]
        db.commit(delete={"q": [(1,)]}, insert={"q": [(6,)]})
    assert heard == [(1, [((1,), 1)]), (2, [((2,), 1)]), (3, [((1,), -1), ((6,), 1)]), (3, [((6,), 1)])]


def test_changes_outlast_a_session_of_our_own(spark: SparkSession, process: Process) -> None:
    """Where no session was given, there are no DataFrames, and nothing is left to be fetched in the end."""
    process(3)
    db = Database("p(x) :- q(x).", engine="spark")
    kept = [db.commit(insert={"q": [(i,)]}) for i in range(3)]
    answer = db["p"]
    for frames_of in (answer.to_spark, kept[1]["p"].to_spark):
        with pytest.raises(TidelogError, match="TL0612"):
            frames_of()
    db.close()
    assert [list(changes["p"]) for changes in kept] == [[((i,), 1)] for i in range(3)]
    assert answer._table is not None and list(answer) == [(0,), (1,), (2,)]


def test_a_setting_that_is_none(spark: SparkSession) -> None:
    spark.conf.set("spark.tidelog.process", "many")
    try:
        with pytest.raises(TidelogError, match="TL0609"):
            Database("p(1).", spark=spark)["p"]
    finally:
        spark.conf.unset("spark.tidelog.process")


# --- keys -------------------------------------------------------------------------

KEYED = "input relation R(x: s64, y: s64) primary key (x)\noutput relation S(y: s64)\nS(y) :- R(_, y)."


def test_keys_and_frames(spark: SparkSession) -> None:
    """In this process rows are checked, so DataFrames may have keys."""
    with Database(KEYED, spark=spark) as db:
        db.commit(insert={"R": edges(spark, [(1, 10), (2, 20)])})
        with db.transaction() as tx:
            with pytest.raises(TidelogError) as caught:
                tx.insert("R", edges(spark, [(3, 30), (2, 21)]))
            assert str(caught.value).splitlines()[:2] == [
                "error[TL0511]: cannot insert into R: two rows with the same primary key (x)",
                "  --> row 2: (2, 21) has the key of (2, 20)",
            ]
            tx.insert_or_update("R", edges(spark, [(2, 22), (3, 33)]))
            tx.delete("R", edges(spark, [(1, 10), (2, 20)]))
        assert list(db["R"]) == [(2, 22), (3, 33)]
        feed = spark.createDataFrame(
            [("update_preimage", 2, 22), ("update_postimage", 2, 23), ("delete", 3, 33), ("insert", 4, 44)],
            "_change_type string, x long, y long",
        )
        with db.transaction() as tx:
            tx.apply("R", feed)
        assert (list(db["R"]), list(db["S"])) == ([(2, 23), (4, 44)], [(23,), (44,)])
        with db.transaction() as tx:
            tx.modify("R", 4, {"y": 45})
        assert list(tx.changes["S"]) == [((44,), -1), ((45,), 1)]


def test_keys_and_frames_on_spark(spark: SparkSession, process: Process) -> None:
    process(3)
    with Database(KEYED, spark=spark) as db:
        message = (
            "error[TL0612]: R has a primary key, and keys are not checked in Spark\n"
            "  = hint: give it rows of this process, as in df.toArrow(), or declare it without the key"
        )
        with db.transaction() as tx, pytest.raises(TidelogError) as caught:
            tx.insert("R", edges(spark, chain(1, 2, 3, 4)))
        assert str(caught.value) == message
        db.commit(insert={"R": chain(1, 2)})
        assert db.report.place.startswith(MOVED)
        with db.transaction() as tx:
            for change in (tx.insert, tx.delete, tx.insert_or_update):
                with pytest.raises(TidelogError) as caught:
                    change("R", edges(spark, [(5, 2)]))
                assert str(caught.value) == message
            tx.insert_or_update("R", edges(spark, [(1, 7), (5, 2)]).toArrow())
        assert list(tx.changes["R"]) == [((1, 2), -1), ((1, 7), 1), ((5, 2), 1)]
