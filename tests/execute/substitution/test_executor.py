"""The reference executor by itself: versions, counts, values and failures."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from tests.plan.building import apply, fails, holds, let, rule, when
from tests.running import Row, rows_of, table_of
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Derive, Fixpoint, Group, Progress
from tidelog.program.model import AggregateRule, Aggregation, Column, Relation
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, Type, unsigned
from tidelog.syntax.errors import EvaluationError


def relation(name: str, *types: Type) -> Relation:
    return Relation(name, tuple(Column(f"c{i}", t) for i, t in enumerate(types)))


def opened(**relations: list[Row]) -> SubstitutionExecutor:
    """An executor with relations of integers; an empty list is a relation of two columns."""
    executor = SubstitutionExecutor()
    for name, rows in relations.items():
        made = relation(name, *[S64] * (len(rows[0]) if rows else 2))
        executor.create(made)
        executor.insert(name, table_of(made, rows))
    return executor


def rows(executor: SubstitutionExecutor, name: str) -> set[Row]:
    return {tuple(row.values()) for row in executor.table(name).to_pylist()}


def test_derive() -> None:
    executor = opened(e=[(1, 2), (2, 3), (2, 2)], n=[(3,)], h=[])
    r = rule("h x y", holds("e x y"), fails("n y"))
    report = executor.run(Derive((whole_form(r),)))
    assert rows(executor, "h") == {(1, 2), (2, 2)}
    assert (report.rounds, report.new, report.instances) == (1, 2, {0: 2})


def test_insert_counts_what_is_new() -> None:
    executor = opened(e=[(1, 2), (2, 3)])
    assert executor.insert("e", table_of(relation("e", S64, S64), [(2, 3), (3, 4), (3, 4)])) == 1
    assert executor.size("e") == 3
    executor.clear("e")
    assert executor.size("e") == 0


def test_fixpoint_in_rounds() -> None:
    """A chain of five edges: in each round of the non-linear closure paths get twice as long."""
    edges: list[Row] = [(i, i + 1) for i in range(5)]
    executor = opened(p=edges)
    seen: list[Progress] = []
    r = rule("p x z", holds("p x y"), holds("p y z"))
    report = executor.run(Fixpoint(("p",), delta_forms(r, {"p"})), seen.append)
    assert rows(executor, "p") == {(i, j) for i in range(6) for j in range(i + 1, 6)}
    # Lengths 1; then 2; then 3 and 4; then 5; then nothing.
    assert seen == [Progress(1, 4), Progress(2, 9), Progress(3, 10), Progress(4, 10)]
    assert (report.rounds, report.new) == (4, 10)
    # Nonrepetition: one instance for each x < y < z, and no more.
    assert report.instances == {0: math.comb(6, 3)}


def test_each_tuple_behind_a_wildcard_is_an_instance() -> None:
    executor = opened(e=[(1, 2), (1, 3), (2, 9)], h=[(0,)])
    report = executor.run(Derive((whole_form(rule("h x", holds("e x _"))),)))
    assert (report.new, report.instances) == (2, {0: 3})


def test_values_come_back_as_they_went_in() -> None:
    made = relation("v", BOOL, unsigned(8), BIGINT, unsigned(128), FLOAT, DOUBLE, STRING)
    given: list[Row] = [
        (True, 255, 10**40, 2**128 - 1, 0.5, -0.0, "ü\t\n"),
        (False, 0, -(10**40), 0, math.inf, 1e300, ""),
    ]
    executor = SubstitutionExecutor()
    executor.create(made)
    executor.insert("v", table_of(made, given))
    assert rows_of(made, executor.table("v")) == set(given)


def test_floats_are_stored_as_themselves() -> None:
    """NaN is one value; 0.0 and -0.0 are two."""
    made = relation("f", DOUBLE)
    executor = SubstitutionExecutor()
    executor.create(made)
    values = [math.nan, -math.nan, 0.0, -0.0, 0.0]
    assert executor.insert("f", pa.table([pa.array(values)], schema=pa.schema([("c0", pa.float64())]))) == 3


def test_no_columns() -> None:
    executor = SubstitutionExecutor()
    for name in ("yes", "no", "h"):
        executor.create(relation(name))
    executor.insert("yes", table_of(relation("yes"), [(), ()]))
    executor.run(Derive((whole_form(rule("h", holds("yes"), fails("no"))),)))
    assert executor.table("h").to_pydict() == {"_": [True]}
    assert executor.table("no").to_pydict() == {"_": []}


def test_a_failure_names_rule_and_values() -> None:
    executor = opened(e=[(7, 0)], h=[])
    r = rule("h x z", holds("e x y"), let("z", apply("div", "x", "y")))
    with pytest.raises(EvaluationError) as problem:
        executor.run(Derive((whole_form(r),)))
    assert str(problem.value) == (
        "error[TL0401]: division by zero\n  = note: in the rule h x z\n  = note: with x = 7, y = 0"
    )


def test_a_guarded_failure_does_not_happen() -> None:
    executor = opened(e=[(7, 0), (6, 3)], h=[])
    r = rule("h x z", let("z", apply("div", "x", "y")), holds("e x y"), when("ne", "y", "0"))
    executor.run(Derive((whole_form(r),)))
    assert rows(executor, "h") == {(6, 2)}


@pytest.mark.parametrize(
    ("op", "type", "values", "result"),
    [
        (Aggregation.SUM, S64, [3, -1, 2**62], 2**62 + 2),
        (Aggregation.MIN, STRING, ["b", "a", "ä"], "a"),
        (Aggregation.MAX, STRING, ["b", "a", "ä"], "ä"),
        (Aggregation.SUM, DOUBLE, [1e100, 1.0, -1e100], 1.0),
        (Aggregation.SUM, DOUBLE, [1.5e308, 1.0e308, -1.5e308], 1.0e308),
        (Aggregation.SUM, DOUBLE, [1.5e308, 1.0e308], math.inf),
        (Aggregation.MAX, DOUBLE, [1.0, math.inf, -3.5], math.inf),
        (Aggregation.MEAN, DOUBLE, [0.5, 1.0], 0.75),
        (Aggregation.SUM, BIGINT, [10**30, 1], 10**30 + 1),
    ],
)
def test_aggregates(op: Aggregation, type: Type, values: list[Row], result: object) -> None:
    source, head = relation("s", S64, type), relation("h", S64, type)
    executor = SubstitutionExecutor()
    executor.create(source)
    executor.create(head)
    executor.insert("s", table_of(source, [(1, value) for value in values]))  # type: ignore[misc]
    report = executor.run(Group(AggregateRule(5, "h", "s", (0,), op, 1)))
    assert rows_of(head, executor.table("h")) == {(1, result)}
    assert report.new == 1


def test_the_mean_of_integers_is_a_double() -> None:
    source, head = relation("s", S64), relation("h", DOUBLE)
    executor = SubstitutionExecutor()
    executor.create(source)
    executor.create(head)
    executor.insert("s", table_of(source, [(2**62,), (2**62 - 1,), (-3,)]))
    executor.run(Group(AggregateRule(5, "h", "s", (), Aggregation.MEAN, 0)))
    assert rows_of(head, executor.table("h")) == {((2**63 - 4) / 3,)}


def test_min_and_max_see_nan_as_the_largest() -> None:
    for op, expected in ((Aggregation.MIN, "[1.0]"), (Aggregation.MAX, "[nan]")):
        executor = SubstitutionExecutor()
        for name in ("s", "h"):
            executor.create(relation(name, DOUBLE))
        executor.insert("s", table_of(relation("s", DOUBLE), [(math.nan,), (1.0,), (2.0,)]))
        executor.run(Group(AggregateRule(5, "h", "s", (), op, 0)))
        assert str(executor.table("h").column(0).to_pylist()) == expected


def test_a_sum_that_does_not_fit_names_the_rule_and_the_group() -> None:
    executor = opened(s=[(1, 2**62), (1, 2**62 + 1), (2, 5)], h=[])
    aggregate = AggregateRule(5, "h", "s", (0,), Aggregation.SUM, 1, text="total(k, sum(v))")
    with pytest.raises(EvaluationError) as problem:
        executor.run(Group(aggregate))
    assert str(problem.value) == (
        "error[TL0401]: integer overflow\n  = note: in the rule total(k, sum(v))\n  = note: with c0 = 1"
    )
