"""Semi-naive materialisation: the paper's own example, and nonrepetition counted by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.running import Row, run, table_of
from tidelog.maintain.seminaive import materialise, tasks
from tidelog.plan.executor import Derive, Executor, Fixpoint, Group, Progress
from tidelog.program.check import check
from tidelog.program.model import Program, Stratum
from tidelog.program.strata import stratify
from tidelog.syntax.parser import parse

Open = Callable[[], Executor]

# Example 1: rules (7) to (9).
EXAMPLE_1 = """
.decl A(x: symbol)
.decl R(x: symbol, y: symbol)
.decl S(x: symbol, y: symbol)
.decl T(x: symbol, y: symbol)
.decl B(x: symbol)
.input A
.input R
.input S
.input T
.input B
.output T
.output B
T(x, y) :- R(x, y), !A(x).
T(x, y) :- S(x, y), A(x).
B(y) :- T(x, y), B(x).
"""
# The explicit facts of Figure 1 that the text names.
FIGURE_1: dict[str, list[Row]] = {
    "A": [],
    "R": [("b", "e")],
    "S": [("b", "f")],
    "T": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "c"), ("e", "c"), ("f", "g"), ("g", "c")],
    "B": [("a",)],
}


def program(text: str) -> Program:
    return check(parse(text))


def test_example_1(evaluator: Open) -> None:
    """T and B are both explicit and derived."""
    result = run(program(EXAMPLE_1), evaluator(), FIGURE_1)
    assert result.relations["T"] == {*FIGURE_1["T"], ("b", "e")}
    assert result.relations["B"] == {("a",), ("b",), ("c",), ("d",), ("e",)}
    # Rule (7) fires for R(b, e); rule (9) for each T(x, y) with B(x): a, b twice, c, d, e.
    assert list(result.instances.values()) == [1, 0, 6]


def test_example_2(evaluator: Open) -> None:
    """With A(b): R(b, e) is blocked, S(b, f) opens the way to f and g."""
    result = run(program(EXAMPLE_1), evaluator(), {**FIGURE_1, "A": [("b",)]})
    assert result.relations["T"] == {*FIGURE_1["T"], ("b", "f")}
    assert result.relations["B"] == {("a",), ("b",), ("c",), ("d",), ("f",), ("g",)}
    # Rule (9): a-b, b-c, b-f, f-g, g-c, c-d, d-c.
    assert list(result.instances.values()) == [0, 1, 7]


CLOSURES = """
.decl edge(x: number, y: number)
.input edge
.decl linear(x: number, y: number)
.decl doubling(x: number, y: number)
.output linear
.output doubling
linear(x, y) :- edge(x, y).
linear(x, z) :- linear(x, y), edge(y, z).
doubling(x, y) :- edge(x, y).
doubling(x, z) :- doubling(x, y), doubling(y, z).
"""


def test_no_instance_is_considered_twice(evaluator: Open) -> None:
    """A chain of n edges: each instance of a closure rule is one choice of points of the chain."""
    n = 30
    result = run(program(CLOSURES), evaluator(), {"edge": [(i, i + 1) for i in range(n)]})
    paths = math.comb(n + 1, 2)
    assert len(result.relations["linear"]) == len(result.relations["doubling"]) == paths
    # linear(x, y), edge(y, z): x < y and z = y + 1; doubling: any x < y < z.
    assert list(result.instances.values()) == [n, math.comb(n, 2), n, math.comb(n + 1, 3)]


def test_no_instance_is_considered_twice_in_a_cycle(evaluator: Open) -> None:
    n = 7
    edges: list[Row] = [(i, (i + 1) % n) for i in range(n)]
    result = run(program(CLOSURES), evaluator(), {"edge": edges})
    assert len(result.relations["linear"]) == n * n
    assert list(result.instances.values()) == [n, n * n, n, n**3]


def test_tasks_of_a_stratum() -> None:
    text = """
    .decl e(x: number, y: number)
    .decl p(x: number, y: number)
    .decl n(c: number)
    .input e
    .output n
    p(x, y) :- e(x, y).
    p(x, z) :- p(x, y), p(y, z).
    n(c) :- c = count : { p(_, _) }.
    """
    kinds = [[type(task) for task in tasks(stratum)] for stratum in stratify(program(text))]
    assert [Derive, Fixpoint] in kinds
    assert [Group] in kinds


def test_progress_and_reports(evaluator: Open) -> None:
    checked = program(CLOSURES)
    executor = evaluator()
    for relation in checked.relations.values():
        executor.create(relation)
    executor.insert("edge", table_of(checked.relations["edge"], [(1, 2), (2, 3), (3, 4)]))
    seen: list[tuple[int, Progress]] = []

    def watch(stratum: Stratum, progress: Progress) -> None:
        seen.append((stratum.index, progress))

    reports = materialise(stratify(checked), executor, watch)
    assert [(r.relations, r.report.new) for r in reports] == [(("linear",), 6), (("doubling",), 6)]
    for report in reports:
        last = [progress for index, progress in seen if index == report.stratum][-1]
        assert last.tuples == report.report.new
    executor.close()
