"""A program with all kinds of strata, kept current by every algorithm; `Live` asks the oracle each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.execute.spark.keep.opening import open_keeper
from tests.maintain.conftest import VARIANTS
from tests.maintain.keeping import Live
from tidelog.maintain.protocol import Algorithm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATHS = """
.decl edge(x: number, y: number)
.decl blocked(x: number)
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y), !blocked(y).
path(x, z) :- path(x, y), edge(y, z), !blocked(z).
"""
TEXT = f"""
{PATHS}
.decl alone(x: number)
.decl reach(x: number, n: number)
.output alone
.output reach
alone(x) :- edge(x, _), !path(x, x).
reach(x, n) :- edge(x, _), n = count : {{ path(x, _) }}.
"""
# As small as can be, with a path that holds itself up: each round of a task is several Spark jobs.
FACTS = {"edge": [(1, 2), (2, 1)], "path": [(7, 1)], "blocked": [(9,)]}
CHOSEN = ("recompute", "counting", "dred", "fbf", "fbf, depth 1", "elastic", "ranked")


@pytest.mark.parametrize("make", [VARIANTS[name] for name in CHOSEN], ids=CHOSEN)
def test_commits(spark: SparkSession, make: Callable[[], Algorithm]) -> None:
    live = Live(PATHS, make(), FACTS, keeper=open_keeper(spark, "near"))
    assert live.commit({"edge": [(2, 3)]}, {"edge": [(2, 1)], "path": [(7, 1)]})["path"] == (
        {(1, 1), (2, 1), (2, 2), (7, 1), (7, 2)},
        {(1, 3), (2, 3)},
    )


@pytest.mark.parametrize("where", ["in Spark", "in bulk"])
def test_commits_with_relations_in_spark(spark: SparkSession, where: str) -> None:
    live = Live(TEXT, "ranked", FACTS, keeper=open_keeper(spark, where))
    assert live.commit({"edge": [(2, 3)]}, {"edge": [(2, 1)]})["alone"] == (set(), {(1,), (2,)})


def test_rules_come_and_go(spark: SparkSession) -> None:
    shortcut = "path(x, x) :- blocked(x)."
    text = PATHS + shortcut
    live = Live(text, "ranked", FACTS, without=[shortcut], keeper=open_keeper(spark, "near"))
    assert live.commit(add=[shortcut])["path"] == (set(), {(9, 9)})
    [recursive] = [rule for rule in live.program.rules if "path(x, z)" in rule.text]
    live.commit(remove=[recursive.text])
    assert live.model["path"] == {(1, 2), (2, 1), (7, 1), (9, 9)}


def test_a_commit_that_is_taken_back(spark: SparkSession) -> None:
    keeper = open_keeper(spark, "in Spark")
    live = Live(PATHS, "elastic", FACTS, keeper=keeper)
    before = {name: keeper.standing(name) for name in live.facts}
    live.begin({"edge": [(5, 5)]}, {"edge": [(1, 2)]})
    live.maintenance.rollback()
    assert {name: keeper.standing(name) for name in live.facts} == before
