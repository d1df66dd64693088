"""Engines that derive everything anew at each commit: the same transactions, changes and errors."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

import pytest

from tests.session.states import GRAPH
from tidelog import Database, DataError, EvaluationError
from tidelog.session.backend import Backend
from tidelog.session.options import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Anew(Options):
    """Answers are not brought up to date, but derived again and compared."""

    def keeping(self) -> Backend:
        return self.deriving(RLock(), compare=True)


def anew(program: str, spark: SparkSession | None = None) -> Database:
    """A database that does so: on the reference engine, or on Spark."""
    db = Database(program, engine="substitution" if spark is None else "spark", spark=spark)
    db._commits.options = Anew(**vars(db._commits.options))
    return db


def check_commits(db: Database) -> None:
    first = db.commit(insert={"edge": [(1, 2), (2, 3), (2, 3)], "path": [(8, 9)]})
    assert db.report.ignored_inserts == 1
    answer = db["path"]
    second = db.commit(
        insert={"edge": [(3, 4), (1, 2)]},
        delete={"edge": [(1, 2), (7, 7)]},
        add_rules=["ends(x) :- path(_, x), !edge(x, _)."],
    )
    assert (db.report.ignored_inserts, db.report.ignored_deletes, db.report.version) == (0, 1, 2)
    third = db.commit(remove_rules=["ends(y) :- path(_, y), !edge(y, _)."], delete={"edge": [(1, 2)]})
    assert "ends" not in db
    assert list(first) == ["edge", "path"]
    assert first["path"].inserted == [(1, 2), (1, 3), (2, 3), (8, 9)]
    assert (second["edge"].inserted, second["edge"].deleted) == ([(3, 4)], [])
    assert (second["path"].inserted, second["ends"].inserted) == ([(1, 4), (2, 4), (3, 4)], [(4,), (9,)])
    assert third["path"].deleted == [(1, 2), (1, 3), (1, 4)]
    assert third["ends"].deleted == [(4,), (9,)]
    assert list(answer) == [(1, 2), (1, 3), (2, 3), (8, 9)]


def test_commits() -> None:
    check_commits(anew(GRAPH))


def test_changes_are_compared_before_the_engine_goes() -> None:
    db = anew(GRAPH)
    kept = [db.commit(insert={"edge": [(i, i + 1)]}) for i in range(4)]
    db.close()
    assert [changes["path"].inserted for changes in kept] == [
        [(x, i + 1) for x in range(i + 1)] for i in range(4)
    ]


def test_errors_leave_everything_as_it_was() -> None:
    db = anew("q(10 / x) :- p(x). input(x) :- q(x).")
    db.commit(insert={"p": [(2,)]})
    with pytest.raises(EvaluationError):
        db.commit(insert={"p": [(0,)]}, delete={"p": [(2,)]}, add_rules=["r(x) :- q(x)."])
    with pytest.raises(DataError):
        db.commit(delete={"p": [("x",)]})
    assert (list(db["p"]), list(db["q"]), len(db.rules), db.version) == ([(2,)], [(5,)], 2, 1)
    assert db.commit(insert={"p": [(5,)]})["q"].inserted == [(2,)]


def test_floats_are_compared_as_they_are_stored() -> None:
    db = anew("input relation R(x: double)")
    db.commit(insert={"R": [(0.0,), (float("nan"),)]})
    changes = db.commit(insert={"R": [(-0.0,), (float("nan"),)]}, delete={"R": [(0.0,)]})
    assert repr(list(changes["R"])) == "[((0.0,), -1), ((-0.0,), 1)]"
    assert db.report.ignored_inserts == 1


def test_spark(spark: SparkSession) -> None:
    with anew(GRAPH, spark=spark) as db:
        check_commits(db)
