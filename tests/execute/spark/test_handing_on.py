"""Rules that hand on all rows of a relation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.plan.building import apply, fails, holds, let, rule, when
from tidelog.plan.deltas import whole_form
from tidelog.plan.executor import Derive
from tidelog.program.model import Rule
from tidelog.program.types import S64, STRING

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tests.execute.spark.building import Store, relation
from tidelog.execute.spark.handing_on import columns_handed_on

PAIR, TURNED = relation("pair", S64, STRING), relation("turned", STRING, S64)
ROWS = [(1, "a"), (2, "b"), (2, "a")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (rule("p x y", holds("q x y")), [0, 1]),
        (rule("p y x", holds("q x y")), [1, 0]),
        (rule("p x", holds("q x _")), None),
        (rule("p x", holds("q x y")), None),
        (rule("p x x", holds("q x y")), None),
        (rule("p x y", holds("q x y 3")), None),
        (rule("p x 3", holds("q x")), None),
        (rule("p x x", holds("q x x")), None),
        (rule("p x y", holds("q x y"), fails("r x")), None),
        (rule("p x y", holds("q x y"), when("<", "x", "y")), None),
        (rule("p x z", holds("q x y"), let("z", apply("+", "x", "y"))), None),
        (rule("p x y", holds("q x"), holds("r y")), None),
    ],
)
def test_which_rules(given: Rule, expected: Sequence[int] | None) -> None:
    assert columns_handed_on(given) == expected


def test_rows_are_handed_on(spark: SparkSession) -> None:
    store = Store(spark, PAIR, TURNED)
    store.insert("pair", ROWS)
    turning = whole_form(rule("turned y x", holds("pair x y"), id=7))
    report = store.executor.run(Derive((turning,)))
    assert store.rows("turned") == {(y, x) for x, y in ROWS}
    assert (report.rounds, report.new, report.instances) == (1, 3, {7: 3})
    # Now the head holds something: only what is new counts.
    store.insert("pair", [(5, "c")])
    report = store.executor.run(Derive((turning,)))
    assert store.rows("turned") == {("c", 5), *((y, x) for x, y in ROWS)}
    assert (report.new, report.instances) == (1, {7: 4})
    frame = store.executor.rows("turned").read()
    assert frame is not None  # what Spark has is what we read
    assert {tuple(row) for row in frame.collect()} == store.rows("turned")


def test_two_rules_with_one_head(spark: SparkSession) -> None:
    other = relation("other", STRING, S64)
    store = Store(spark, PAIR, TURNED, other)
    store.insert("pair", ROWS)
    store.insert("other", [("a", 1), ("z", 9)])
    forms = (
        whole_form(rule("turned y x", holds("pair x y"), id=1)),
        whole_form(rule("turned x y", holds("other x y"), id=2)),
    )
    report = store.executor.run(Derive(forms))
    assert store.rows("turned") == {("z", 9), *((y, x) for x, y in ROWS)}
    assert (report.new, report.instances) == (4, {1: 3, 2: 2})
