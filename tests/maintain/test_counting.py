"""Counting and elastic: an update leaves the numbers that a run from nothing would have."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from tests import oracle
from tests.maintain.keeping import Live, instances
from tests.running import Row
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.protocol import Algorithm

PROGRAM = """
.decl e(x: number, y: number)
.decl stop(x: number)
.decl p(x: number, y: number)
.decl q(x: number)
.output q
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), p(y, z), !stop(y).
p(x, y) :- q(x), e(y, x).
q(x) :- p(x, x), !stop(x).
"""
RULES = ["p(x, z) :- p(x, y), p(y, z), !stop(y).", "p(x, y) :- q(x), e(y, x).", "p(x, y) :- e(x, y)."]


def numbers(live: Live) -> dict[str, dict[Row, tuple[int, int, Mapping[int, int]]]]:
    return {
        name: {
            row: (known.first, known.count, dict(known.trace))
            for row, known in live.keeper.standing(name).items()
            if row in live.model[name]
        }
        for name in ("p", "q")
    }


@pytest.mark.parametrize("name", ["counting", "elastic"])
def test_the_numbers_are_those_of_a_run_from_nothing(name: str) -> None:
    """Theorem 12 (a) of maintenance-revisited, Theorem 3.5 of elastic; with negation and rule changes."""
    draw = random.Random(3)
    for _ in range(12):
        nodes = draw.randint(3, 5)

        def edges(count: int, nodes: int = nodes) -> list[Row]:
            return [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(count)]

        absent: set[str] = set()
        live = Live(PROGRAM, name, {"e": edges(nodes), "p": edges(1)})
        for _ in range(6):
            turned = set(draw.sample(RULES, draw.choice([0, 0, 1, 2])))
            stops: list[list[Row]] = [[(draw.randrange(nodes),)] for _ in range(2)]
            live.commit(
                {"e": edges(2), "stop": stops[0], "p": edges(1)},
                {"e": edges(3), "stop": stops[1], "p": edges(2)},
                add=turned & absent,
                remove=turned - absent,
            )
            absent ^= turned
            if "p(x, y) :- q(x), e(y, x)." not in absent:  # else the strata are not the same
                assert numbers(live) == numbers(Live(PROGRAM, name, live.facts, without=absent))


def test_counts_are_optimal() -> None:
    """Proposition 27: what is considered is what holds before or after, but not both; each once."""
    text = """
    .decl e(x: number, y: number)
    .decl stop(x: number)
    .decl two(x: number, y: number)
    .decl far(x: number)
    .output far
    two(x, z) :- e(x, y), e(y, z), !stop(y).
    two(x, x) :- e(x, _).
    far(y) :- two(x, y), !stop(x), x != y.
    """
    draw = random.Random(11)
    live = Live(text, "dred", {"e": [(draw.randrange(6), draw.randrange(6)) for _ in range(14)]})
    rules = ["two(x, x) :- e(x, _).", "far(y) :- two(x, y), !stop(x), x != y."]
    for turn in range(12):
        program, before = live.program, live.model
        live.commit(
            {"e": [(draw.randrange(6), draw.randrange(6)) for _ in range(2)], "stop": [(draw.randrange(6),)]},
            {"e": [(draw.randrange(6), draw.randrange(6)) for _ in range(3)], "stop": [(draw.randrange(6),)]},
            remove=rules[turn // 4 : turn // 4 + 1] if turn % 4 == 1 else [],
            add=rules[turn // 4 : turn // 4 + 1] if turn % 4 == 3 else [],
        )
        best = oracle.optimum(program, before, live.program, live.model)
        considered = [c for report in live.reports for phase in report.phases for c in phase.considered]
        assert len(considered) == len(set(considered))
        assert set(considered) == best


CHAIN = """
.decl T(x: number, y: number)
.decl B(x: number)
.output B
B(y) :- T(x, y), B(x).
"""


def chain(algorithm: str | Algorithm, n: int = 50) -> Live:
    return Live(CHAIN, algorithm, {"T": [(i, i + 1) for i in range(n)], "B": [(0,)]})


def test_elastic_switches_when_an_update_costs_more_than_its_share() -> None:
    elastic = Elastic(share=0.2, least=0)
    live = chain(elastic)
    assert elastic.bootstraps == {("B",): 50}
    live.commit(delete={"T": [(45, 46)]})  # five instances are lost
    assert list(live.phases("B")) == ["update"]
    assert live.reports[-1].why == "update"
    live.commit(delete={"T": [(10, 11)]})  # 35 instances are lost
    assert list(live.phases("B")) == ["update abandoned", "bootstrap"]
    assert [sum(report.instances.values()) for report in live.phases("B").values()] == [11, 10]
    assert live.reports[-1].why == "bootstrap: the update was abandoned, having looked at more than 10 tuples"
    assert elastic.bootstraps == {("B",): 10}
    assert {row: (s.first, s.count) for row, s in live.keeper.standing("B").items()} == {
        (i,): (i + 1, 1) for i in range(11)
    }
    live.commit({"T": [(10, 98), (98, 99)]})  # two more, which is 0.2 of 10
    assert list(live.phases("B")) == ["update"]
    live.commit({"T": [(3, 96), (96, 97), (97, 2)]})
    assert list(live.phases("B")) == ["update abandoned", "bootstrap"]


def test_elastic_lets_every_update_consider_a_few() -> None:
    elastic = Elastic(share=0.0)
    live = chain(elastic)
    live.commit(delete={"T": [(0, 1)]})
    assert list(live.phases("B")) == ["update"]
    assert instances(live.phases("B")) == 50
