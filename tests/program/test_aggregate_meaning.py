"""What aggregates mean, against comprehensions over the facts."""

from __future__ import annotations

import math
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import model_of
from tests.program.showing import checked
from tidelog.program.aggregation import aggregate
from tidelog.program.model import Aggregation
from tidelog.program.types import DOUBLE

SMALL = st.integers(0, 3)
PAIRS = st.sets(st.tuples(SMALL, SMALL), max_size=8)
NODES = st.sets(SMALL, min_size=1, max_size=4)

PROGRAM = """
.decl v(x: number)
.decl e(x: number, y: number)
.decl counted(x: number, n: number)
counted(x, n) :- v(x), n = count : { e(x, _) }.
.decl two_steps(x: number, n: number)
two_steps(x, n) :- v(x), n = count : { e(x, y), e(y, _) }.
.decl total(x: number, n: number)
total(x, n) :- v(x), n = 10 + sum y * x : { e(_, y), y < x }.
.decl least(x: number, n: number)
least(x, n) :- v(x), n = min y : { e(x, y), !v(y) }.
.decl all(n: number)
all(n) :- n = sum x : { e(x, _) }.
.decl nested(x: number, n: number)
nested(x, n) :- v(x), n = count : { e(x, y), x <= count : { e(y, _) } }.
.decl outermost(x: number, n: number)
outermost(x, n) :- v(x), n = count : { v(y), 1 < count : { e(y, z), z != x } }.
.decl busiest(x: number)
busiest(x) :- v(x), m = max n : { counted(_, n) }, m = count : { e(x, _) }.
.decl above(x: number, n: number)
above(x, n) :- v(x), m = count : { e(_, _) }, n = count : { e(_, y), y + x > m }.
"""


@settings(max_examples=100, deadline=None)
@given(NODES, PAIRS)
def test_aggregates(v: set[int], e: set[tuple[int, int]]) -> None:
    facts = "".join(f"v({x}).\n" for x in v) + "".join(f"e({x}, {y}).\n" for x, y in e)
    answers = model_of(checked(PROGRAM + facts))
    degree = {x: sum(a == x for a, _ in e) for x in range(4)}
    assert answers["counted"] == {(x, degree[x]) for x in v}
    assert answers["two_steps"] == {(x, sum(degree[b] for a, b in e if a == x)) for x in v}
    assert answers["total"] == {(x, 10 + sum(y * x for _, y in e if y < x)) for x in v}
    assert answers["least"] == {
        (x, y) for x, y in e if x in v and y not in v and y == min(b for a, b in e if a == x and b not in v)
    }
    assert answers["all"] == {(sum(x for x, _ in e),)}
    assert answers["nested"] == {(x, sum(a == x and x <= degree[b] for a, b in e)) for x in v}
    assert answers["outermost"] == {(x, sum(sum(a == y and z != x for a, z in e) > 1 for y in v)) for x in v}
    assert answers["busiest"] == {(x,) for x in v if degree[x] == max(degree[y] for y in v)}
    assert answers["above"] == {(x, sum(y + x > len(e) for _, y in e)) for x in v}


def test_extremes_of_floats_do_not_depend_on_the_order() -> None:
    """-0.0 < 0.0 < ... < NaN."""
    for values in permutations([0.0, -0.0]):
        assert repr(aggregate(Aggregation.MIN, values, DOUBLE)) == "-0.0"
        assert repr(aggregate(Aggregation.MAX, values, DOUBLE)) == "0.0"
    for values in permutations([math.nan, math.inf, -1.0]):
        assert repr(aggregate(Aggregation.MIN, values, DOUBLE)) == "-1.0"
        assert repr(aggregate(Aggregation.MAX, values, DOUBLE)) == "nan"
