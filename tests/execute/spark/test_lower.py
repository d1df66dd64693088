"""Each node of the algebra, over relations of a few rows."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyarrow as pa
import pytest

from tests.plan.building import apply, atom, rule, var, when
from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, Project, RulePlan, Scan, Select, Unit
from tidelog.plan.executor import RuleForm, Version
from tidelog.program.model import Const, Term, Value, Var, Wildcard
from tidelog.program.types import DOUBLE, S64, STRING
from tidelog.syntax.errors import EvaluationError

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from tidelog.execute.spark.failures import Guards
from tidelog.execute.spark.lower import Source, lower

TABLES: dict[str, tuple[pa.DataType, list[tuple[Value, ...]]]] = {
    "edge": (pa.int64(), [(1, 2), (1, 3), (2, 3), (3, 3)]),
    "node": (pa.int64(), [(3,), (4,)]),
    "weight": (pa.float64(), [(0.0, 1.0), (-0.0, 2.0), (math.nan, 3.0)]),
    "other": (pa.float64(), [(0.0, 10.0), (math.nan, 30.0)]),
}


class Tables:
    """Evaluates nodes over `TABLES`."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.guards = Guards()

    def read(self, relation: str, version: Version) -> DataFrame | None:
        if relation not in TABLES:
            return None
        type, rows = TABLES[relation]
        columns = [pa.array(column, type) for column in zip(*rows, strict=True)]
        return self.spark.createDataFrame(pa.table(columns, names=[f"c{i}" for i in range(len(columns))]))

    def rows(self, node: Node, *head: Term) -> list[tuple[Value, ...]] | None:
        """The rows of π[head](node), in order, with repetitions."""
        terms = tuple(term for term in head if not isinstance(term, Wildcard))
        plan = RulePlan(RuleForm(rule("head"), ()), Project(node, terms))
        frame = lower(plan, Source(self.spark, self.read, self.guards))
        return None if frame is None else sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def tables(spark: SparkSession) -> Tables:
    return Tables(spark)


def scan(text: str) -> Scan:
    found = atom(text)
    return Scan(found.relation, Version.ALL, found.terms)


def floats(relation: str, *names: str) -> Scan:
    return Scan(relation, Version.ALL, tuple(Var(name, DOUBLE) for name in names))


X, Y, Z = var("x"), var("y"), var("z")


def test_unit(tables: Tables) -> None:
    assert tables.rows(Unit(), Const(1, S64), Const("a", STRING)) == [(1, "a")]
    assert tables.rows(Unit()) == [(True,)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("edge x y", [(1, 2), (1, 3), (2, 3), (3, 3)]),
        ("edge y x", [(2, 1), (3, 1), (3, 2), (3, 3)]),
        ("edge x 3", [(1, 3), (2, 3), (3, 3)]),
        ("edge x x", [(3, 3)]),
    ],
)
def test_scan(tables: Tables, pattern: str, expected: Iterable[object]) -> None:
    node = scan(pattern)
    last = Y if Y in node.terms else Const(3, S64)
    found = tables.rows(node, X, last)
    assert found == expected


def test_scan_keeps_what_a_wildcard_stands_for(tables: Tables) -> None:
    assert tables.rows(scan("edge x _"), X) == [(1,), (1,), (2,), (3,)]
    assert tables.rows(scan("edge 1 _")) == [(True,), (True,)]


def test_scan_of_nothing(tables: Tables) -> None:
    assert tables.rows(Join(scan("edge x y"), scan("nothing y")), X) is None


def test_join(tables: Tables) -> None:
    path = Join(scan("edge x y"), scan("edge y z"))
    assert tables.rows(path, X, Z) == [(1, 3), (1, 3), (2, 3), (3, 3)]
    assert tables.rows(Join(path, scan("edge x z")), X, Y, Z) == [(1, 2, 3), (1, 3, 3), (2, 3, 3), (3, 3, 3)]


def test_join_of_nothing_shared(tables: Tables) -> None:
    assert tables.rows(Join(scan("edge x x"), scan("node y")), X, Y) == [(3, 3), (3, 4)]


def test_names_that_differ_in_case_alone(tables: Tables) -> None:
    assert tables.rows(Join(scan("edge x X"), scan("node X")), X, var("X")) == [(1, 3), (2, 3), (3, 3)]


def test_floats_join_as_stored(tables: Tables) -> None:
    node = Join(floats("weight", "x", "y"), floats("other", "x", "z"))
    names = (Var("y", DOUBLE), Var("z", DOUBLE))
    assert tables.rows(node, *names) == [(1.0, 10.0), (3.0, 30.0)]
    negative_zero = Scan("weight", Version.ALL, (Const(-0.0, DOUBLE), Var("y", DOUBLE)))
    assert tables.rows(negative_zero, Var("y", DOUBLE)) == [(2.0,)]
    nan = Scan("weight", Version.ALL, (Const(math.nan, DOUBLE), Var("y", DOUBLE)))
    assert tables.rows(nan, Var("y", DOUBLE)) == [(3.0,)]


def test_anti_join(tables: Tables) -> None:
    edges = scan("edge x y")
    assert tables.rows(AntiJoin(edges, scan("node y")), X, Y) == [(1, 2)]
    assert tables.rows(AntiJoin(edges, scan("edge y _")), X, Y) == []
    assert tables.rows(AntiJoin(edges, scan("edge x 2")), X, Y) == [(2, 3), (3, 3)]
    assert tables.rows(AntiJoin(scan("node x"), scan("edge 1 _")), X) == []
    assert tables.rows(AntiJoin(scan("node x"), scan("edge 9 _")), X) == [(3,), (4,)]
    assert tables.rows(AntiJoin(scan("node x"), scan("nothing x")), X) == [(3,), (4,)]
    assert tables.rows(AntiJoin(Unit(), scan("edge 9 _")), Const(1, S64)) == [(1,)]


def test_select_and_extend(tables: Tables) -> None:
    less = Select(scan("edge x y"), when("lt", "x", "y").condition)
    assert tables.rows(less, X, Y) == [(1, 2), (1, 3), (2, 3)]
    sums = Extend(less, Z, apply("add", "x", "y"))
    assert tables.rows(sums, Z) == [(3,), (4,), (5,)]
    assert tables.rows(Select(sums, when("ge", apply("div", "z", "x"), "4").condition), X, Z) == [(1, 4)]
    assert tables.rows(Extend(Unit(), Z, Const(7, S64)), Z) == [(7,)]


def fails(tables: Tables, node: Node, *head: Var) -> EvaluationError:
    with pytest.raises(Exception, match="tidelog-failure") as caught:
        tables.rows(node, *head)
    found = tables.guards.explain(caught.value)
    assert found is not None
    return found


def test_a_failing_value_that_no_one_reads(tables: Tables) -> None:
    node = Extend(scan("edge x 2"), Z, apply("div", "x", apply("sub", "x", "1")))
    error = fails(tables, node, X)
    assert error.values == {"x": 1}
    assert str(error).startswith("error[TL0401]: division by zero")


def test_a_join_guards_what_fails_after_it(tables: Tables) -> None:
    """`node(x)` leaves 3 of the edges, so that 1 - x is never 0."""
    quotient = apply("div", "y", apply("sub", "1", "x"))
    node = Extend(Join(scan("edge x y"), scan("node x")), Z, quotient)
    assert tables.rows(node, X, Z) == [(3, -1)]
    guarded = AntiJoin(Join(scan("edge x y"), scan("node x")), scan("edge x 2"))
    assert tables.rows(Select(guarded, when("le", quotient, "y").condition), X, Y) == [(3, 3)]
    assert fails(tables, Extend(scan("edge x y"), Z, quotient), X).values in (
        {"x": 1, "y": 2},
        {"x": 1, "y": 3},
    )


def test_a_failing_condition(tables: Tables) -> None:
    node = Select(scan("edge 2 y"), when("gt", apply("mul", "y", str(2**62)), "0").condition)
    error = fails(tables, node, Y)
    assert error.values == {"y": 3}
    assert str(error).startswith("error[TL0401]: integer overflow")


def test_a_failing_constant(tables: Tables) -> None:
    node = Extend(scan("edge 2 y"), Z, apply("div", "1", "0"))
    assert str(fails(tables, node, Y)).endswith("with no variables")
    assert tables.rows(Extend(scan("edge 9 y"), Z, apply("div", "1", "0")), Y) == []
