"""What a keeper on Spark leaves where it is, and what it gives out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tests.running import rows_of
from tidelog.execute.spark.keep.keeper import SparkKeeper
from tidelog.execute.spark.keep.relation import Limits
from tidelog.execute.spark.state import Rows, computed
from tidelog.maintain.update import Maintenance
from tidelog.program.check import check
from tidelog.program.strata import stratify
from tidelog.syntax.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REACH = """
.decl source(x: number)
.decl edge(x: number, y: number)
.decl reached(x: number)
.output reached
reached(x) :- source(x).
reached(y) :- reached(x), edge(x, y).
"""
PROGRAM = check(parse(REACH))
MANY = 20_000


def opened(spark: SparkSession, limits: Limits) -> tuple[SparkKeeper, Maintenance]:
    keeper = SparkKeeper(spark, limits)
    for relation in PROGRAM.relations.values():
        keeper.create(relation)
    return keeper, Maintenance(keeper, "ranked")


def chain(spark: SparkSession, count: int) -> Rows:
    """Ten edges in a row, then a gap, and so on."""
    ids = spark.range(count).filter(F.col("id") % 10 < 9)
    return computed(
        spark, PROGRAM.relations["edge"], ids.select(F.col("id").alias("c0"), (F.col("id") + 1).alias("c1"))
    )


def commit(keeper: SparkKeeper, maintenance: Maintenance, **rows: object) -> dict[str, tuple[Rows, Rows]]:
    """Assert rows, or retract those of a relation with `not_` before its name; what has changed."""
    maintenance.begin(tuple(stratify(PROGRAM)))
    for name, some in rows.items():
        if name.startswith("not_"):
            keeper.retract_rows(name.removeprefix("not_"), some)  # type: ignore[arg-type]
        else:
            keeper.assert_rows(name, some)  # type: ignore[arg-type]
    maintenance.update({name.removeprefix("not_") for name in rows})
    changes = {name: keeper.changes(name) for name in PROGRAM.relations}
    maintenance.commit()
    return changes


def shown(rows: Rows) -> list[tuple[object, ...]]:
    return sorted(rows_of(rows.relation, rows.table()))


def test_a_small_commit_on_a_large_relation(spark: SparkSession) -> None:
    keeper, maintenance = opened(spark, Limits(touched=1_000, local=0, overlay=100))
    commit(keeper, maintenance, edge=chain(spark, MANY), source=[(0,), (50,)])
    edges = keeper._kept["edge"]
    base = edges.base
    assert base is not None and base.size == keeper.size("edge") == MANY * 9 // 10
    changes = commit(keeper, maintenance, edge=[(9, 10)], not_edge=[(50, 51), (1, 7)])
    assert shown(changes["edge"][0]) == [(50, 51)]
    assert shown(changes["edge"][1]) == [(9, 10)]
    assert shown(changes["reached"][0]) == [(n,) for n in range(51, 60)]
    assert shown(changes["reached"][1]) == [(n,) for n in range(10, 20)]
    assert edges.base is base  # nothing was written,
    assert len(edges.near.entries) == 2  # nothing was brought here but what has changed,
    later = commit(keeper, maintenance, not_edge=[(9, 10)])
    assert shown(changes["reached"][1]) == [(n,) for n in range(10, 20)]  # and what was given out stays
    assert shown(later["reached"][0]) == [(n,) for n in range(10, 20)]
    assert (
        keeper.size("edge") == keeper.rows("edge").size == keeper.explicit("edge").size == MANY * 9 // 10 - 1
    )
    assert keeper.rows("edge").frame().count() == MANY * 9 // 10 - 1


def test_more_rows_than_the_driver_is_to_hold(spark: SparkSession) -> None:
    keeper, maintenance = opened(spark, Limits(touched=50, local=0, overlay=5))
    commit(keeper, maintenance, edge=chain(spark, 100), source=[(0,)])
    assert shown(keeper.rows("reached")) == [(n,) for n in range(10)]
    more = chain(spark, 300)
    changes = commit(keeper, maintenance, edge=more, source=[(200,)])
    assert [rows.size for rows in changes["edge"]] == [0, 180]
    assert shown(changes["reached"][1]) == [(n,) for n in range(200, 210)]
    changes = commit(keeper, maintenance, not_edge=more)
    assert [rows.size for rows in changes["edge"]] == [270, 0]
    assert shown(keeper.rows("reached")) == [(0,), (200,)]
    assert [keeper.size(name) for name in PROGRAM.relations] == [2, 0, 2]


def test_what_tasks_did_is_taken_back(spark: SparkSession) -> None:
    keeper, maintenance = opened(spark, Limits(local=0))
    commit(keeper, maintenance, edge=[(1, 2), (2, 3)], source=[(1,)])
    before = keeper.standing("reached")
    maintenance.begin(tuple(stratify(PROGRAM)))
    assert keeper.retract_rows("edge", [(2, 3)]) == 1
    assert keeper.assert_rows("reached", [(7,)]) == 1
    maintenance.update({"edge", "reached"})
    assert keeper.changed("reached") == (1, 1)
    keeper.undo(["reached"])
    assert keeper.changed("reached") == (0, 0)
    assert shown(keeper.explicit("reached")) == [(7,)]  # facts stay
    maintenance.rollback()
    assert keeper.standing("reached") == before


def test_an_update_that_outgrows_the_driver_starts_anew(spark: SparkSession) -> None:
    keeper, maintenance = opened(spark, Limits(touched=20, local=0, overlay=5))
    commit(keeper, maintenance, edge=[(n, n + 1) for n in range(18)], source=[(0,)])
    commit(keeper, maintenance, edge=[(n, n + 1) for n in range(18, 36)])
    maintenance.begin(tuple(stratify(PROGRAM)))
    keeper.retract_rows("source", [(0,)])
    [upkeep] = maintenance.update({"source"})
    assert upkeep.why == "started anew, as the update outgrew the driver"
    assert keeper.changed("reached") == (37, 0)
    maintenance.commit()
    assert keeper.size("reached") == 0
