"""Keys that very many rows have: found in a sample, and shared by all tasks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.running import table_of
from tidelog.execute.spark.stage.skew import heavy_keys
from tidelog.program.check import check
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import BIGINT, DOUBLE, S64, STRING, Type
from tidelog.syntax.parser import parse

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tidelog.execute.spark.executor import SparkExecutor
from tidelog.execute.spark.stage.fixpoint import Stage
from tidelog.maintain.seminaive import materialise
from tidelog.program.strata import stratify


@pytest.mark.parametrize(
    ("type", "values"),
    [(S64, [7, -1, 1 << 40]), (STRING, ["ä", "", "b"]), (BIGINT, [1 << 90, 2, 3]), (DOUBLE, [0.5, 1.0, 2.0])],
)
def test_heavy_keys_of_every_type(type: Type, values: list[Value]) -> None:
    relation = Relation("r", (Column("x", type), Column("y", S64)))
    rows = [(values[0], i) for i in range(80)] + [(values[1], i) for i in range(15)] + [(values[2], 1)] * 5
    sample = table_of(relation, rows)
    assert heavy_keys(relation, sample, (0,), 10_000, 1_000) == {(values[0],): 8_000, (values[1],): 1_500}
    assert heavy_keys(relation, sample, (1, 0), 10_000, 400) == {(1, values[2]): 500}
    assert heavy_keys(relation, sample.slice(0, 0), (0,), 10_000, 1_000) == {}


HUB = """
    .decl edge(x: number, y: number)
    .input edge
    .decl path(x: number, y: number)
    .output path
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
"""


def test_a_hub_is_shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub with 200,000 edges, which four nodes lead to: all tasks find some of the paths over it."""
    session = spark.newSession()
    session.conf.set("spark.tidelog.fixpoint", "barrier")
    session.conf.set("spark.tidelog.tasks", "2")
    tasks: list[Mapping[str, Any]] = []
    reported = Stage._reported

    def spy(stage: Stage, said: Sequence[Mapping[str, Any]]) -> Any:
        tasks.extend(said)
        return reported(stage, said)

    monkeypatch.setattr(Stage, "_reported", spy)
    program = check(parse(HUB))
    executor = SparkExecutor(session)
    for relation in program.relations.values():
        executor.create(relation)
    sources = [(i, 0) for i in range(-4, 0)]
    targets = list(range(1, 200_001))
    random.Random(1).shuffle(targets)
    x = pa.array([x for x, _ in sources] + [0] * len(targets), pa.int32())
    y = pa.array([y for _, y in sources] + targets, pa.int32())
    executor.insert("edge", pa.table({"x": x, "y": y}))
    [report] = [r.report for r in materialise(stratify(program), executor) if r.report.way]
    assert executor.size("path") == 5 * 200_000 + 4
    assert report.instances[2] == 4 * 200_000
    found = [sum(told["instances"].values()) for told in tasks]
    assert len(found) == 2
    assert max(found) <= 0.7 * sum(found)
