"""The ways in which a fixpoint runs on Spark: the answers are the same."""

from __future__ import annotations

import pytest

from tests.oracle import model_of
from tests.running import run
from tidelog.execute.spark.settings import Way
from tidelog.program.check import check
from tidelog.syntax.errors import EvaluationError, TidelogError
from tidelog.syntax.parser import parse

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tidelog.execute.spark.executor import SparkExecutor

EDGES = "\n".join(f"edge({x}, {y})." for x, y in [(1, 2), (2, 3), (3, 4), (4, 2), (5, 6), (6, 1), (7, 7)])
NAMES = "\n".join(f'likes("{x}", "{y}").' for x, y in ["ab", "bc", "cd", "da", "ef", "ää"])
GRAPH = ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
PROGRAMS = {
    "left": GRAPH + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n" + EDGES,
    "right": GRAPH + "path(x, y) :- edge(x, y).\npath(x, z) :- edge(x, y), path(y, z).\n" + EDGES,
    "twice": GRAPH + "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), path(y, z).\n" + EDGES,
    "mutual": GRAPH
    + ".decl odd(x: number, y: number)\n.decl even(x: number, y: number)\n"
    + "odd(x, y) :- edge(x, y).\nodd(x, z) :- even(x, y), edge(y, z).\neven(x, z) :- odd(x, y), edge(y, z).\n"
    + EDGES,
    "three": GRAPH
    + ".decl closed(x: number)\nclosed(3).\n"
    + "path(x, y) :- edge(x, y).\npath(x, w) :- path(x, y), edge(y, z), edge(z, w), !closed(z), w != 7.\n"
    + EDGES,
    "generation": GRAPH + "path(x, y) :- edge(p, x), edge(p, y).\n"
    "path(x, y) :- edge(p, x), path(p, q), edge(q, y).\n" + EDGES,
    "strings": ".decl likes(x: symbol, y: symbol)\n.decl fan(x: symbol, y: symbol)\n"
    "fan(x, y) :- likes(x, y).\nfan(x, z) :- fan(x, y), likes(y, z).\n" + NAMES,
    "computed": ".decl edge(x: number, y: number)\n.decl far(x: number, y: number, n: number)\n"
    "far(x, y, 1) :- edge(x, y).\nfar(x, z, n + 1) :- far(x, y, n), edge(y, z), n < 5.\n" + EDGES,
}


def executor(spark: SparkSession, way: str) -> SparkExecutor:
    session = spark.newSession()
    session.conf.set("spark.tidelog.fixpoint", way)
    return SparkExecutor(session)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *((Way.barrier, name) for name in PROGRAMS),
        *((Way.shuffle, name) for name in ("three", "strings", "computed")),
        *((Way.single, name) for name in ("mutual", "strings", "computed")),
        *((Way.pivot, name) for name in ("left", "right", "twice")),
    ],
)
def test_answers(spark: SparkSession, way: Way, name: str) -> None:
    program = check(parse(PROGRAMS[name]))
    assert run(program, executor(spark, way)).relations == model_of(program)


@pytest.mark.parametrize("way", [Way.single, Way.barrier, Way.shuffle])
def test_a_failing_rule_is_named(spark: SparkSession, way: Way) -> None:
    text = GRAPH + "path(x, y) :- edge(x, y).\npath(x, 10 / (y - 3)) :- path(x, y), edge(y, _).\n" + EDGES
    with pytest.raises(EvaluationError, match="division by zero"):
        run(check(parse(text)), executor(spark, way))


def test_unknown_ways(spark: SparkSession) -> None:
    program = check(parse(PROGRAMS["left"]))
    with pytest.raises(TidelogError, match=r"TL0609.*fixpoint is 'fast'"):
        run(program, executor(spark, "fast"))


def test_more_tasks_than_slots(spark: SparkSession) -> None:
    """A barrier stage that asked for them all would wait for minutes, and in vain."""
    program = check(parse(PROGRAMS["twice"]))
    shared = executor(spark, Way.barrier)
    shared._spark.conf.set("spark.tidelog.tasks", "5")
    assert run(program, shared).relations == model_of(program)
