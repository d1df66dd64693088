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
.decl opposite(x: float)
.decl no_opposite(x: float)
.decl pair(x: float, y: float)
.input pair
.decl turned(x: float)
.decl not_turned(x: float)
.decl top(x: float)
.decl not_top(x: float)
.output joined
.output absent
.output itself
.output zero
.output less
.output highest
.output lowest
.output opposite
.output no_opposite
.output turned
.output not_turned
.output top
.output not_top

joined(x) :- f(x), g(x).
absent(x) :- f(x), !g(x).
itself(x) :- f(x), x = x.
zero(x) :- f(x), x = 0.0.
less(x, y) :- f(x), g(y), x < y.
highest(n) :- n = max x : { f(x) }.
lowest(n) :- n = min x : { f(x) }.
opposite(x) :- f(x), g(-x).
no_opposite(x) :- f(x), !g(-x).
turned(x) :- pair(x, -x).
not_turned(x) :- pair(x, _), !pair(x, -x).
top(x) :- pair(x, max y : { pair(x, y) }).
not_top(x) :- pair(x, _), !pair(x, max y : { pair(x, y) }).
"""


def test_special_floats(executor: Callable[[], Executor]) -> None:
    program, opened = check(parse(PROGRAM)), executor()
    for relation in program.relations.values():
        opened.create(relation)
    f = [math.nan, -math.nan, 0.0, -0.0, math.inf]
    assert opened.insert("f", table_of(program.relations["f"], [(x,) for x in f])) == 4
    opened.insert("g", table_of(program.relations["g"], [(math.nan,), (0.0,), (math.inf,)]))
    pairs = [(0.0, -0.0), (-0.0, -0.0), (1.0, -1.0), (math.nan, math.nan), (2.0, 2.0), (2.0, math.nan)]
    opened.insert("pair", table_of(program.relations["pair"], pairs))
    materialise(stratify(program), opened)

    def rows(name: str) -> list[str]:
        return sorted(", ".join(map(repr, row.values())) for row in opened.table(name).to_pylist())

    assert rows("joined") == ["0.0", "inf", "nan"]
    assert rows("absent") == ["-0.0"]
    assert rows("itself") == ["-0.0", "0.0", "inf"]
    assert rows("zero") == ["-0.0", "0.0"]
    assert rows("less") == ["-0.0, inf", "0.0, inf"]
    assert rows("highest") == ["nan"]
    assert rows("lowest") == ["-0.0"]
    # An argument that is computed matches what is stored, and a negated one is the complement.
    assert rows("opposite") == ["-0.0", "nan"]
    assert rows("no_opposite") == ["0.0", "inf"]
    assert rows("turned") == ["0.0", "1.0", "nan"]
    assert rows("not_turned") == ["-0.0", "2.0"]
    assert rows("top") == ["-0.0", "0.0", "1.0", "2.0", "nan"]
    assert rows("not_top") == []
    opened.close()
