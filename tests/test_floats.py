"""Floats that are not plain numbers: compared as numbers, stored as themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.running import table_of
from tidelog.maintain.seminaive import materialise
from tidelog.plan.executor import Executor
from tidelog.program.check import check
from tidelog.program.strata import stratify
from tidelog.syntax.parser import parse

PROGRAM = """
.decl f(x: float)
.decl g(x: float)
.input f
.input g
.decl joined(x: float)
.decl absent(x: float)
.decl itself(x: float)
.decl zero(x: float)
.decl less(x: float, y: float)
.decl highest(x: float)
.decl lowest(x: float)
.output joined
.output absent
.output itself
.output zero
.output less
.output highest
.output lowest

joined(x) :- f(x), g(x).
absent(x) :- f(x), !g(x).
itself(x) :- f(x), x = x.
zero(x) :- f(x), x = 0.0.
less(x, y) :- f(x), g(y), x < y.
highest(n) :- n = max x : { f(x) }.
lowest(n) :- n = min x : { f(x) }.
"""


def test_special_floats(executor: Callable[[], Executor]) -> None:
    program, opened = check(parse(PROGRAM)), executor()
    for relation in program.relations.values():
        opened.create(relation)
    f = [math.nan, -math.nan, 0.0, -0.0, math.inf]
    assert opened.insert("f", table_of(program.relations["f"], [(x,) for x in f])) == 4
    opened.insert("g", table_of(program.relations["g"], [(math.nan,), (0.0,), (math.inf,)]))
    materialise(stratify(program), opened)

    def rows(name: str) -> list[str]:
        return sorted(", ".join(map(repr, row.values())) for row in opened.table(name).to_pylist())

    assert rows("joined") == ["0.0", "inf", "nan"]
    assert rows("absent") == ["-0.0"]
    assert rows("itself") == ["-0.0", "0.0", "inf"]
    assert rows("zero") == ["-0.0", "0.0"]
    assert rows("less") == ["-0.0, inf", "0.0, inf"]
    assert rows("highest") == ["nan"]
    assert rows("lowest")[0] in ("0.0", "-0.0")
    opened.close()
