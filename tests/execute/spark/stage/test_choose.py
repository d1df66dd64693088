"""Which way is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.building import holds, rule
from tidelog.execute.spark.settings import Settings, Way
from tidelog.execute.spark.stage.choose import choose

LINEAR = rule("path x z", holds("path x y"), holds("edge y z"))
TWICE = rule("path x z", holds("path x y"), holds("path y z"))
SETTINGS = Settings(None, tasks=4, small=1_000, whole=10_000)


@pytest.mark.parametrize(
    ("rules", "path", "edge", "way"),
    [
        ([LINEAR], 100, 100, Way.single),
        ([LINEAR], 2_000, 2_000, Way.pivot),
        ([LINEAR], 20_000, 20_000, Way.barrier),
        ([TWICE], 2_000, 0, Way.barrier),
        ([LINEAR, TWICE], 2_000, 2_000, Way.barrier),
    ],
)
def test_by_sizes(rules: list, path: int, edge: int, way: Way) -> None:
    assert choose(rules, ["path"], {"path": path, "edge": edge}, SETTINGS).way is way


def test_one_task() -> None:
    sizes = {"path": 10**9, "edge": 10**9}
    assert choose([TWICE], ["path"], sizes, replace(SETTINGS, tasks=1)).way is Way.single


@pytest.mark.parametrize(
    ("tasks", "part", "way"), [(4, 0.4, "pivot"), (4, 0.5, "barrier"), (10, 0.2, "barrier")]
)
def test_a_pivot_that_most_rows_have(tasks: int, part: float, way: str) -> None:
    sizes = {"path": 2_000, "edge": 2_000}
    found = choose([LINEAR], ["path"], sizes, replace(SETTINGS, tasks=tasks), lambda name, column: part)
    assert found.way == way
    assert way == "pivot" or found.why == f"{part:.0%} of the rows have the same value in path.0"


def test_as_set() -> None:
    sizes = {"path": 10, "edge": 10}
    assert choose([LINEAR], ["path"], sizes, replace(SETTINGS, way=Way.pivot)).pivots == {"path": 0}
    assert choose([TWICE], ["path"], sizes, replace(SETTINGS, way=Way.pivot)).way is Way.barrier
    assert choose([LINEAR], ["path"], sizes, replace(SETTINGS, way=Way.frames)).way is Way.frames
    assert choose([LINEAR], ["path"], sizes, replace(SETTINGS, way=Way.shuffle)).way is Way.shuffle
