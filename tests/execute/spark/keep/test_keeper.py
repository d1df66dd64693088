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
    """Three edges in a row, then a gap, and so on."""
    ids = spark.range(count).filter(F.col("id") % 4 < 3)
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
    commit(keeper, maintenance, edge=chain(spark, MANY), source=[(0,), (40,)])
    edges = keeper._kept["edge"]
    base = edges.base
    assert base is not None and base.size == keeper.size("edge") == MANY * 3 // 4
    changes = commit(keeper, maintenance, edge=[(3, 4)], not_edge=[(40, 41), (1, 7)])
    assert shown(changes["edge"][0]) == [(40, 41)]
    assert shown(changes["edge"][1]) == [(3, 4)]
    assert shown(changes["reached"][0]) == [(41,), (42,), (43,)]
    assert shown(changes["reached"][1]) == [(4,), (5,), (6,), (7,)]
    assert edges.base is base  # nothing was written,
    assert len(edges.near.entries) == 2  # nothing was brought here but what has changed,
    later = commit(keeper, maintenance, not_edge=[(3, 4)])
    assert shown(changes["reached"][1]) == [(4,), (5,), (6,), (7,)]  # and what was given out stays
    assert shown(later["reached"][0]) == [(4,), (5,), (6,), (7,)]
    assert keeper.size("edge") == keeper.rows("edge").size == keeper.explicit("edge").size
    assert keeper.rows("edge").frame().count() == keeper.size("edge") == MANY * 3 // 4 - 1


def test_what_meets_nothing_costs_no_job(classic: SparkSession) -> None:
    keeper, maintenance = opened(classic, Limits())
    commit(keeper, maintenance, edge=[(1, 2), (8, 9)], source=[(1,)])
    context = classic.sparkContext

    def jobs(**rows: object) -> int:
        group = f"{rows}"
        context.setJobGroup(group, group)
        commit(keeper, maintenance, **rows)
        context.setLocalProperty("spark.jobGroup.id", None)
        return len(context.statusTracker().getJobIdsForGroup(group))

    assert jobs(edge=[(5, 6)], not_edge=[(8, 9)]) == 0
    assert jobs(source=[(70,)]) == 0  # it is handed on, and that is all
    assert jobs(edge=[(2, 3)]) > 0
    assert shown(keeper.rows("reached")) == [(1,), (2,), (3,), (70,)]


def test_more_rows_than_the_driver_is_to_hold(spark: SparkSession) -> None:
    keeper, maintenance = opened(spark, Limits(touched=50, local=0, overlay=5))
    commit(keeper, maintenance, edge=chain(spark, 100), source=[(0,)])
    assert shown(keeper.rows("reached")) == [(0,), (1,), (2,), (3,)]
    more = chain(spark, 300)
    changes = commit(keeper, maintenance, edge=more, source=[(200,)])
    assert [rows.size for rows in changes["edge"]] == [0, 150]
    assert shown(changes["reached"][1]) == [(200,), (201,), (202,), (203,)]
    changes = commit(keeper, maintenance, not_edge=more)
    assert [rows.size for rows in changes["edge"]] == [225, 0]
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
    keeper, maintenance = opened(spark, Limits(touched=6, local=0, overlay=2))
    commit(keeper, maintenance, edge=[(n, n + 1) for n in range(4)], source=[(0,)])
    commit(keeper, maintenance, edge=[(n, n + 1) for n in range(4, 7)])
    maintenance.begin(tuple(stratify(PROGRAM)))
    keeper.retract_rows("source", [(0,)])
    [upkeep] = maintenance.update({"source"})
    assert upkeep.why == "started anew, as the update outgrew the driver"
    assert keeper.changed("reached") == (8, 0)
    maintenance.commit()
    assert keeper.size("reached") == 0


GROUPS = check(
    parse("""
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl far(x: number, n: number)
.output far
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
far(x, n) :- path(x, _), n = count : { path(x, _) }.
""")
)


def test_a_relation_that_was_derived_anew_hands_on_what_has_changed(spark: SparkSession) -> None:
    """It is larger than the driver is to hold, yet only the groups that have changed are looked at."""
    keeper = SparkKeeper(spark, Limits(touched=6, local=0, overlay=5))
    for relation in GROUPS.relations.values():
        keeper.create(relation)
    maintenance = Maintenance(keeper, "recompute")
    edges = [(x, x + 1) for n in range(0, 50, 10) for x in (n, n + 1)]
    for given, strata in (edges, "for the first time"), ([(1, 7)], "an aggregate"):
        maintenance.begin(tuple(stratify(GROUPS)))
        keeper.assert_rows("edge", given)
        done = maintenance.update({"edge"})
        aggregates = [upkeep for upkeep in done if upkeep.algorithm == "regroup"]
        assert [upkeep.why for upkeep in aggregates] == [strata]
        assert keeper.changed("path")[1] == (15 if given is edges else 2)
        maintenance.commit()
    [report] = aggregates[0].phases
    assert report.details["groups"] == 2
    assert shown(keeper.rows("far"))[:4] == [(0, 3), (1, 2), (10, 2), (11, 1)]
