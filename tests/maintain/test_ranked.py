"""Ranked: what it saves against DRed, counted; and that ranks stay what the argument needs."""

from __future__ import annotations

import random

from tests.maintain.keeping import Live, instances
from tests.running import Row

CHAIN = """
.decl T(x: number, y: number)
.decl B(x: number)
.output B
B(y) :- T(x, y), B(x).
"""
STEP = "B(y) :- T(x, y), B(x)."
N = 20
FACTS: dict[str, list[Row]] = {"T": [(i, i + 1) for i in range(1, N)], "B": [(1,)]}


def test_the_rank_is_the_round() -> None:
    live = Live(CHAIN, "ranked", FACTS)
    assert live.ranks("B") == {(i,): live.ranks("B")[1,] + i - 1 for i in range(1, N + 1)}


def test_an_extra_fact_comes_and_goes() -> None:
    """The update of Proposition 29: B(7) is asserted, which changes nothing, and retracted again.

    DRed deletes B(7) to B(20) and derives them anew. Here B(7) stands on B(6), and that is that.
    """
    for algorithm, deletion, others in (("dred", N - 7, N - 7 + 1), ("ranked", 1, 0)):
        live = Live(CHAIN, algorithm, FACTS)
        ranks = live.ranks("B")
        assert live.commit({"B": [(7,)]}) == {}
        assert instances(live.phases("B")) == 0
        assert live.commit(delete={"B": [(7,)]}) == {}
        first, *rest = live.phases("B").values()
        assert (instances([first]), instances(rest)) == (deletion, others), algorithm
        if algorithm == "ranked":
            assert live.ranks("B") == ranks


def test_what_stood_on_the_fact_takes_new_ranks_once() -> None:
    """B(7) is there from the beginning, so that B(6) ranks above it, until B(7) has once gone."""
    live = Live(CHAIN, "ranked", {**FACTS, "B": [(1,), (7,)]})
    ground = live.ranks("B")[1,]
    assert live.ranks("B")[7,] == ground
    assert live.commit(delete={"B": [(7,)]}) == {}
    assert live.phases("B")["delete"].new == N - 7 + 1
    assert live.ranks("B")[7,] == live.ranks("B")[6,] + 1 == ground + 6
    assert live.ranks("B")[N,] == ground + N - 1
    live.commit({"B": [(7,)]})
    assert live.commit(delete={"B": [(7,)]}) == {}
    assert live.phases("B")["delete"].new == 0


def test_a_tuple_waiting_in_the_queue_holds_others_up_only_until_it_falls() -> None:
    """Both 2 and 3 lose their edges from 1 in one commit; 3 has another from 2."""
    live = Live(CHAIN, "ranked", {"T": [(1, 2), (1, 4), (4, 3), (2, 3), (3, 5)], "B": [(1,)]})
    assert live.ranks("B")[2,] < live.ranks("B")[3,]
    assert live.commit(delete={"T": [(4, 3), (1, 2)]})["B"] == ({(2,), (3,), (5,)}, set())


def test_a_new_fact_holds_up_what_an_old_one_held() -> None:
    """An edge is replaced in one commit: nothing is deleted, and nothing beyond is looked at."""
    live = Live(CHAIN, "ranked", FACTS)
    assert "B" not in live.commit({"T": [(1, 3)]}, {"T": [(2, 3)]})
    assert live.phases("B")["delete"].new == 0
    assert instances(live.phases("B")) == 4  # what may hold B(3) up, what is lost, what does, what is new


def test_what_a_new_fact_holds_up_is_reached_again_when_that_falls() -> None:
    """4 loses 6 and is held up by the new edge from 5; but 5 falls a round later."""
    edges: list[Row] = [(1, 2), (2, 5), (1, 3), (3, 6), (6, 4), (4, 7)]
    live = Live(CHAIN, "ranked", {"T": edges, "B": [(1,)]})
    changes = live.commit({"T": [(5, 4)]}, {"T": [(6, 4), (1, 2)]})
    assert changes["B"] == ({(2,), (5,), (4,), (7,)}, set())
    other = "B(z) :- B(w), T(w, z)."
    live = Live(CHAIN + other, "ranked", {"T": [*edges, (5, 4)], "B": [(1,)]}, without=[other])
    changes = live.commit({}, {"T": [(6, 4), (1, 2)]}, add=[other], remove=[STEP])
    assert changes["B"] == ({(2,), (5,), (4,), (7,)}, set())


def test_a_rule_that_replaces_its_equal_deletes_nothing() -> None:
    other = "B(z) :- B(w), T(w, z)."
    live = Live(CHAIN + other, "ranked", FACTS, without=[other])
    assert live.commit(remove=[STEP], add=[other]) == {}
    assert live.phases("B")["delete"].new == 0
    # Each of the 19 instances is lost, is found to hold, and is new.
    assert instances(live.phases("B")) == 3 * (N - 1)


def test_additions_consider_new_instances_only() -> None:
    live = Live(CHAIN, "ranked", FACTS)
    ranks = live.ranks("B")
    assert live.commit({"T": [(3, 30), (1, 20)], "B": [(5,)]})["B"] == (set(), {(30,)})
    assert instances(live.phases("B")) == 2
    assert {row: rank for row, rank in live.ranks("B").items() if row != (30,)} == ranks


def test_ranks_of_two_strata_are_not_compared() -> None:
    """q(5) ranks low in its own stratum, and p(5), which it stands on, ranks high in another.

    Once they are in one stratum, q(5) must not hold p(5) up.
    """
    text = """
    .decl e(x: number, y: number)
    .decl p(x: number)
    .decl q(x: number)
    .output q
    p(y) :- p(x), e(x, y).
    q(x) :- p(x), e(_, x).
    q(y) :- q(x), q(y), e(y, x).
    p(x) :- q(x).
    """
    back = "p(x) :- q(x)."
    live = Live(text, "ranked", {"e": [(i, i + 1) for i in range(9)], "p": [(0,)]}, without=[back])
    assert live.ranks("q")[5,] < live.ranks("p")[5,]
    assert live.commit(add=[back]) == {}
    assert live.commit(delete={"e": [(4, 5)]})["p"] == ({(5,), (6,), (7,), (8,), (9,)}, set())


def test_each_rank_stands_on_its_own() -> None:
    """(*) of `ranked.py`: what has rank r or lower follows from what has rank r or lower."""
    draw = random.Random(7)
    for _ in range(25):
        nodes = draw.randint(3, 7)

        def edges(count: int, nodes: int = nodes) -> list[Row]:
            return [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(count)]

        live = Live(CHAIN, "ranked", {"T": edges(2 * nodes), "B": [(0,), (1,)]})
        for _ in range(8):
            live.maintenance.algorithm = draw.choice(["ranked", "ranked", "auto", "recompute"])
            flags: list[list[Row]] = [[(draw.randrange(nodes),)] for _ in range(2)]
            live.commit({"T": edges(2), "B": flags[0]}, {"T": edges(4), "B": flags[1]})
            ranks = live.ranks("B")
            for highest in set(ranks.values()):
                lower = {row for row, rank in ranks.items() if rank <= highest}
                reached = set(live.facts["B"])
                while more := {(y,) for x, y in live.facts["T"] if (x,) in reached} & lower - reached:
                    reached |= more
                assert lower <= reached, (ranks, live.facts)
