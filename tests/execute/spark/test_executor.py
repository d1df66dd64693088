"""Tasks on the Spark executor: rounds and versions, stored values, aggregates, failures."""

from __future__ import annotations

import math

import pytest

from tests.plan.building import apply, fails, holds, let, rule, when
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Derive, Fixpoint, Group, Progress, RuleForm, Version
from tidelog.program.model import AggregateRule, Aggregation, Value
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type, signed
from tidelog.syntax.errors import EvaluationError

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tests.execute.spark.building import Store, relation

EDGE, PATH = relation("edge", S64, S64), relation("path", S64, S64)


@pytest.fixture
def frames(spark: SparkSession) -> SparkSession:
    """A session in the same Spark where fixpoints are loops of DataFrames."""
    session = spark.newSession()
    session.conf.set("spark.tidelog.fixpoint", "frames")
    return session


def test_fixpoint_in_rounds(frames: SparkSession) -> None:
    """path(x, z) :- path(x, y), edge(y, z).  over a chain with a loop at its end"""
    store = Store(frames, EDGE, PATH)
    edges = [(i, i + 1) for i in range(7)] + [(7, 7)]
    assert store.insert("edge", edges) == 8
    store.executor.run(Derive((whole_form(rule("path x y", holds("edge x y"), id=1)),)))
    seen: list[Progress] = []
    forms = delta_forms(rule("path x z", holds("path x y"), holds("edge y z"), id=2), {"path"})
    report = store.executor.run(Fixpoint(("path",), forms), seen.append)
    expected = {(i, j) for i in range(8) for j in range(i + 1, 8)} | {(7, 7)}
    assert store.rows("path") == expected
    assert store.sizes() == [8, len(expected)]
    assert (report.rounds, report.new) == (7, len(expected) - 8)
    assert report.instances == {2: len(expected)}  # each path is extended once: nonrepetition
    assert [p.round for p in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [p.tuples for p in seen] == [6, 11, 15, 18, 20, 21, 21]


def test_old_delta_and_all(frames: SparkSession) -> None:
    """Each pair of paths is joined once, whatever the rounds in which they were found."""
    store = Store(frames, PATH)
    store.insert("path", [(i, i + 1) for i in range(6)])
    forms = delta_forms(rule("path x z", holds("path x y"), holds("path y z"), id=3), {"path"})
    assert [form.reads for form in forms] == [(Version.DELTA, Version.ALL), (Version.OLD, Version.DELTA)]
    report = store.executor.run(Fixpoint(("path",), forms))
    assert store.rows("path") == {(i, j) for i in range(7) for j in range(i + 1, 7)}
    assert report.instances == {3: math.comb(7, 3)}
    assert report.rounds == 4


DEFAULTS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.tidelog.fixpoint": "frames",
}


@pytest.fixture
def plain(spark: SparkSession) -> SparkSession:
    """A session in the same Spark that plans and compiles as Spark does when nobody says otherwise."""
    session = spark.newSession()
    for name, value in DEFAULTS.items():
        session.conf.set(name, value)
    return session


def test_adaptive_execution(plain: SparkSession) -> None:
    """It leaves empty parts of plans out; their instances are counted all the same."""
    store = Store(plain, PATH)
    store.insert("path", [(i, i + 1) for i in range(4)])
    forms = delta_forms(rule("path x z", holds("path x y"), holds("path y z"), id=3), {"path"})
    report = store.executor.run(Fixpoint(("path",), forms))
    assert store.rows("path") == {(i, j) for i in range(5) for j in range(i + 1, 5)}
    assert report.new == 6
    assert report.instances == {3: math.comb(5, 3)}


def test_sparks_default_settings(plain: SparkSession) -> None:
    """A closure, who is not in it, and how far each one gets."""
    apart, reach = relation("apart", S64, S64), relation("reach", S64, S64)
    store = Store(plain, EDGE, PATH, apart, reach)
    store.insert("edge", [(1, 2), (2, 3), (3, 1), (4, 1)])
    base = rule("path x y", holds("edge x y"), id=1)
    step = rule("path x z", holds("path x y"), holds("edge y z"), id=2)
    other = rule("apart x y", holds("edge x _"), holds("edge y _"), fails("path x y"), id=3)
    reports = [
        store.executor.run(Derive((whole_form(base),))),
        store.executor.run(Fixpoint(("path",), delta_forms(step, {"path"}))),
        store.executor.run(Derive((whole_form(other),))),
        store.executor.run(Group(AggregateRule(4, "reach", "path", (0,), Aggregation.COUNT, None))),
    ]
    assert store.rows("path") == {(x, y) for x in (1, 2, 3, 4) for y in (1, 2, 3)}
    assert store.rows("apart") == {(1, 4), (2, 4), (3, 4), (4, 4)}
    assert store.rows("reach") == {(1, 3), (2, 3), (3, 3), (4, 3)}
    assert [report.instances for report in reports] == [{1: 4}, {2: 12}, {3: 4}, {}]


def test_fixpoint_over_nothing(spark: SparkSession) -> None:
    store = Store(spark, EDGE, PATH)
    forms = delta_forms(rule("path x z", holds("path x y"), holds("edge y z"), id=2), {"path"})
    assert store.executor.run(Fixpoint(("path",), forms)).rounds == 0
    report = store.executor.run(Derive((whole_form(rule("path x y", holds("edge x y"), id=1)),)))
    assert (report.rounds, report.new, report.instances) == (1, 0, {1: 0})
    assert store.rows("path") == set()


def test_derive_several_heads_and_what_is_held(spark: SparkSession) -> None:
    node, end = relation("node", S64), relation("end")
    store = Store(spark, EDGE, node, end)
    store.insert("edge", [(1, 2), (2, 3), (1, 3)])
    store.insert("node", [(1,)])
    forms = (
        rule("node x", holds("edge x _"), id=1),
        rule("node y", holds("edge _ y"), id=2),
        rule("end", holds("edge x y"), fails("edge y _"), id=3),
    )
    report = store.executor.run(Derive(tuple(map(whole_form, forms))))
    assert store.rows("node") == {(1,), (2,), (3,)}
    assert store.rows("end") == {()}
    assert (report.new, report.instances) == (3, {1: 3, 2: 3, 3: 2})
    store.executor.clear("node")
    assert store.sizes() == [3, 0, 1]


ALL_TYPES: dict[str, tuple[Type, list[Value]]] = {
    "bool": (BOOL, [False, True]),
    "s8": (signed(8), [-128, 0, 127]),
    "s64": (S64, [-(2**63), 0, 2**63 - 1]),
    "u64": (U64, [0, 2**63, 2**64 - 1]),
    "s128": (signed(128), [-(2**127), 2**127 - 1]),
    "bigint": (BIGINT, [-(10**60), 0, 10**60]),
    "float": (FLOAT, [0.5, math.inf, 0.10000000149011612]),
    "double": (DOUBLE, [0.1, 5e-324, -math.inf]),
    "string": (STRING, ["", "\t\n\0", "é\U0001f600", "NULL"]),
}


def test_values_come_back_as_they_were(spark: SparkSession) -> None:
    """Inserted, derived into a second relation, read."""
    pairs = {name: (relation(name, t), relation(f"{name}_2", t)) for name, (t, _) in ALL_TYPES.items()}
    store = Store(spark, *[r for pair in pairs.values() for r in pair])
    for name, (_, values) in ALL_TYPES.items():
        assert store.insert(name, [(v,) for v in [*values, *values]]) == len(values)
        assert store.insert(name, [(values[0],)]) == 0
        assert store.rows(name) == {(v,) for v in values}
        copied = store.executor._relations[name].read()
        assert copied is not None
        fresh = store.executor._relations[f"{name}_2"].fresh(copied.unionAll(copied))
        assert fresh is not None
        store.executor._relations[f"{name}_2"].add(*fresh)
        assert store.rows(f"{name}_2") == {(v,) for v in values}


def test_floats_are_stored_as_themselves(spark: SparkSession) -> None:
    store = Store(spark, relation("f", DOUBLE, S64), relation("g", DOUBLE, S64))
    rows: list[tuple[Value, ...]] = [(0.0, 1), (-0.0, 1), (math.nan, 1), (math.nan, 1), (0.0, 1)]
    assert store.insert("f", rows) == 3
    frame = store.executor._relations["f"].read()
    assert frame is not None
    held = store.executor._relations["g"]
    assert store.insert("g", [(-0.0, 1)]) == 1
    fresh = held.fresh(frame.unionAll(frame))
    assert fresh is not None and fresh[1] == 2
    held.add(*fresh)
    found = [repr(value) for value in store.executor.table("g").column(0).to_pylist()]
    assert sorted(found) == ["-0.0", "0.0", "nan"]
    assert store.insert("g", [(0.0, 1), (-0.0, 2), (-0.0, 2)]) == 1


def aggregate(
    spark: SparkSession, op: Aggregation, type: Type, result: Type, rows: list[tuple[Value, ...]]
) -> dict[Value, Value]:
    source, head = relation("source", STRING, type), relation("head", STRING, result)
    store = Store(spark, source, head)
    store.insert("source", rows)
    aggregated = AggregateRule(
        9, "head", "source", (0,), op, None if op is Aggregation.COUNT else 1, text="a rule"
    )
    report = store.executor.run(Group(aggregated))
    found = dict(store.rows("head"))
    assert (report.rounds, report.new, report.instances) == (1, len(found), {})
    return found


NUMBERS: list[tuple[Value, ...]] = [("a", 1), ("a", 5), ("b", 2), ("a", -3)]
HUGE: list[tuple[Value, ...]] = [("a", 10**40), ("a", 9), ("b", -1)]
REALS: list[tuple[Value, ...]] = [("a", 1e100), ("a", 1.0), ("a", -1e100), ("b", 0.1), ("b", 0.2), ("b", 0.3)]
WORDS: list[tuple[Value, ...]] = [("a", "z"), ("a", "\uffff"), ("a", "\U0001f600")]


@pytest.mark.parametrize(
    ("op", "type", "result", "rows", "expected"),
    [
        (Aggregation.COUNT, S64, S64, NUMBERS, {"a": 3, "b": 1}),
        (Aggregation.SUM, S64, S64, NUMBERS, {"a": 3, "b": 2}),
        (Aggregation.MIN, S64, S64, NUMBERS, {"a": -3, "b": 2}),
        (Aggregation.MEAN, S64, DOUBLE, NUMBERS, {"a": 1.0, "b": 2.0}),
        (Aggregation.SUM, BIGINT, BIGINT, HUGE, {"a": 10**40 + 9, "b": -1}),
        (Aggregation.MAX, BIGINT, BIGINT, HUGE, {"a": 10**40, "b": -1}),
        (Aggregation.SUM, U64, U64, [("a", 2**63), ("a", 2**63 - 1)], {"a": 2**64 - 1}),
        (Aggregation.SUM, DOUBLE, DOUBLE, REALS, {"a": 1.0, "b": 0.6}),
        (Aggregation.MEAN, DOUBLE, DOUBLE, REALS, {"a": 1 / 3, "b": 0.6 / 3}),
        (Aggregation.MAX, DOUBLE, DOUBLE, REALS, {"a": 1e100, "b": 0.3}),
        (Aggregation.MAX, STRING, STRING, WORDS, {"a": "\U0001f600"}),
    ],
    ids=lambda value: value.value if isinstance(value, Aggregation) else None,
)
def test_aggregates(
    spark: SparkSession,
    op: Aggregation,
    type: Type,
    result: Type,
    rows: list[tuple[Value, ...]],
    expected: dict[Value, Value],
) -> None:
    assert aggregate(spark, op, type, result, rows) == expected


ZEROS: list[tuple[Value, ...]] = [("z", 0.0), ("z", -0.0), ("n", -0.0), ("p", 0.0), ("p", -1.5), ("q", 1.5)]
ENDS: list[tuple[Value, ...]] = [("i", math.nan), ("i", math.inf), ("i", -math.inf), ("o", math.nan)]
SMALLEST = {"z": "-0.0", "n": "-0.0", "p": "-1.5", "q": "1.5", "i": "-inf", "o": "nan"}
LARGEST = {"z": "0.0", "n": "-0.0", "p": "0.0", "q": "1.5", "i": "nan", "o": "nan"}


@pytest.mark.parametrize("type", [DOUBLE, FLOAT], ids=str)
@pytest.mark.parametrize(
    ("op", "expected"), [(Aggregation.MIN, SMALLEST), (Aggregation.MAX, LARGEST)], ids=["min", "max"]
)
def test_the_order_of_floats(
    spark: SparkSession, op: Aggregation, expected: dict[str, str], type: Type
) -> None:
    """-inf < ... < -0.0 < 0.0 < ... < inf < NaN, whatever the order of the rows."""
    for rows in (ZEROS + ENDS, (ZEROS + ENDS)[::-1]):
        found = aggregate(spark, op, type, type, rows)
        assert {name: repr(value) for name, value in found.items()} == expected


def test_aggregate_of_nothing(spark: SparkSession) -> None:
    assert aggregate(spark, Aggregation.COUNT, S64, S64, []) == {}


@pytest.mark.parametrize("type", [S64, U64, signed(128)], ids=str)
def test_a_sum_that_does_not_fit(spark: SparkSession, type: Type) -> None:
    most = type.bounds()[1]
    with pytest.raises(EvaluationError) as caught:
        aggregate(spark, Aggregation.SUM, type, type, [("a", most), ("a", 1), ("b", 1)])
    assert str(caught.value) == (
        "error[TL0401]: integer overflow\n  = note: in the rule a rule\n  = note: with col0 = 'a'"
    )


def test_a_failing_rule_changes_nothing(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    store = Store(spark, EDGE, PATH)
    store.insert("edge", [(1, 2), (7, 0)])
    fine = rule("path y x", holds("edge x y"), id=1)
    wrong = rule("path x z", holds("edge x y"), let("z", apply("mod", "x", "y")), when("ne", "x", "1"), id=2)
    forms: tuple[RuleForm, ...] = (whole_form(fine), whole_form(wrong))
    with pytest.raises(EvaluationError) as caught:
        store.executor.run(Derive(forms))
    assert str(caught.value) == (
        "error[TL0401]: division by zero\n  = note: in the rule path x z\n  = note: with x = 7, y = 0"
    )
    assert capfd.readouterr() == ("", "")
    assert store.rows("path") == set()
