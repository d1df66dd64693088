"""Small programs, commits worked out by hand, every algorithm; `Live` asks the oracle after each commit."""

from __future__ import annotations

from tests.maintain.keeping import Live
from tidelog.maintain.protocol import Algorithm

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def test_edges_come_and_go(algorithm: Algorithm) -> None:
    live = Live(PATHS, algorithm, {"edge": [(1, 2), (2, 3)]})
    assert live.model["path"] == {(1, 2), (2, 3), (1, 3)}
    assert live.commit({"edge": [(3, 4)]}) == {
        "edge": (set(), {(3, 4)}),
        "path": (set(), {(3, 4), (2, 4), (1, 4)}),
    }
    assert live.commit(delete={"edge": [(2, 3)]})["path"] == ({(2, 3), (2, 4), (1, 3), (1, 4)}, set())
    assert live.commit({"edge": [(1, 3)]}, {"edge": [(1, 2)]})["path"] == ({(1, 2)}, {(1, 3), (1, 4)})
    assert live.commit() == {}
    assert live.commit(delete={"edge": [(3, 4), (1, 3)]})["path"] == ({(3, 4), (1, 3), (1, 4)}, set())
    assert live.model["path"] == set()


def test_a_cycle_does_not_hold_itself_up(algorithm: Algorithm) -> None:
    text = """
    .decl source(x: number)
    .decl edge(x: number, y: number)
    .decl reached(x: number)
    .output reached
    reached(x) :- source(x).
    reached(y) :- reached(x), edge(x, y).
    """
    ring = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 3)]
    live = Live(text, algorithm, {"edge": ring, "source": [(1,), (3,)]})
    assert live.commit(delete={"source": [(3,)]}) == {"source": ({(3,)}, set())}
    assert live.commit(delete={"source": [(1,)]})["reached"] == ({(1,), (2,), (3,), (4,)}, set())
    assert live.commit({"source": [(4,)]})["reached"] == (set(), {(1,), (2,), (3,), (4,)})
    assert live.commit(delete={"edge": [(3, 1)]})["reached"] == ({(1,), (2,)}, set())
    assert live.commit(delete={"edge": [(4, 3)]}, insert={"edge": [(4, 1)]})["reached"] == (
        set(),
        {(1,), (2,)},
    )
    assert live.commit(delete={"edge": [(2, 3)]})["reached"] == ({(3,)}, set())


def test_explicit_and_derived(algorithm: Algorithm) -> None:
    """A tuple holds while it is explicit or derived."""
    live = Live(PATHS, algorithm, {"edge": [(1, 2), (2, 3)], "path": [(1, 3), (7, 1)]})
    assert live.model["path"] == {(1, 2), (2, 3), (1, 3), (7, 1), (7, 2), (7, 3)}
    assert live.commit(delete={"path": [(1, 3)]}) == {}  # it is still derived
    assert live.commit(delete={"edge": [(2, 3)]})["path"] == ({(2, 3), (1, 3), (7, 3)}, set())
    assert live.commit({"path": [(1, 2), (2, 3)]})["path"] == (set(), {(2, 3)})
    assert live.commit(delete={"edge": [(1, 2)]})["path"] == ({(7, 2)}, set())  # path(1, 2) is explicit
    assert live.commit({"path": [(2, 1)]}, {"path": [(1, 2), (7, 1)]})["path"] == ({(1, 2), (7, 1)}, {(2, 1)})
    assert live.commit({"path": [(1, 2)], "edge": [(1, 2)]}, {"path": [(2, 1)]})["path"] == (
        {(2, 1)},
        {(1, 2)},
    )


def test_an_explicit_fact_of_a_relation_that_is_not_recursive(algorithm: Algorithm) -> None:
    text = """
    .decl e(x: number, y: number)
    .decl p(x: number)
    .output p
    p(x) :- e(x, _).
    p(y) :- e(_, y).
    """
    live = Live(text, algorithm, {"e": [(1, 2), (1, 3)], "p": [(1,), (9,)]})
    assert live.commit(delete={"e": [(1, 2)]})["p"] == ({(2,)}, set())
    assert live.commit(delete={"p": [(1,), (9,)]})["p"] == ({(9,)}, set())
    assert live.commit(delete={"e": [(1, 3)]}, insert={"p": [(3,)]})["p"] == ({(1,)}, set())
    assert live.commit(delete={"p": [(3,)]})["p"] == ({(3,)}, set())


NEGATION = """
.decl edge(x: number, y: number)
.decl closed(x: number)
.decl node(x: number)
.decl open_(x: number, y: number)
.decl path(x: number, y: number)
.decl cut(x: number, y: number)
.output cut
node(x) :- edge(x, _).
node(y) :- edge(_, y).
open_(x, y) :- edge(x, y), !closed(y).
path(x, y) :- open_(x, y).
path(x, z) :- path(x, y), path(y, z), !closed(x).
cut(x, y) :- node(x), node(y), !path(x, y).
"""


def test_negation_makes_additions_delete(algorithm: Algorithm) -> None:
    live = Live(NEGATION, algorithm, {"edge": [(1, 2), (2, 3)], "closed": []})
    assert live.model["path"] == {(1, 2), (2, 3), (1, 3)}
    changes = live.commit({"closed": [(2,)]})
    assert changes["path"] == ({(1, 2), (1, 3)}, set())
    assert changes["cut"] == (set(), {(1, 2), (1, 3)})
    changes = live.commit({"closed": [(1,)], "edge": [(3, 1), (1, 3)]}, {"closed": [(2,)]})
    assert changes["path"] == (set(), {(1, 2), (1, 3)})  # from the closed 1 nothing is joined on
    changes = live.commit({"closed": [(3,)]}, {"closed": [(1,)]})
    # edges into 3 are gone; 3 -> 1 is open, but joins nothing on
    assert changes["path"] == ({(2, 3), (1, 3)}, {(3, 1)})
    assert live.commit(delete={"closed": [(3,)]})["path"] == (
        set(),
        {(1, 3), (2, 3), (2, 1), (1, 1), (2, 2), (3, 3), (3, 2)},
    )


def test_negated_atoms_with_wildcards(algorithm: Algorithm) -> None:
    text = """
    .decl e(x: number, y: number)
    .decl leaf(x: number)
    .decl up(x: number, y: number)
    .output up
    leaf(y) :- e(_, y), !e(y, _).
    up(x, x) :- leaf(x).
    up(x, y) :- e(x, z), up(z, y).
    """
    live = Live(text, algorithm, {"e": [(1, 2), (2, 3), (2, 4)]})
    assert live.commit({"e": [(3, 5), (3, 6)]})["leaf"] == ({(3,)}, {(5,), (6,)})
    assert live.commit(delete={"e": [(3, 5)]})["leaf"] == ({(5,)}, set())
    assert live.commit(delete={"e": [(3, 6)]})["leaf"] == ({(6,)}, {(3,)})


MUTUAL = """
.decl n(x: number)
.decl s(x: number, y: number)
.decl even(x: number)
.decl odd(x: number)
.output even
even(x) :- n(x).
odd(y) :- even(x), s(x, y).
even(y) :- odd(x), s(x, y).
"""


def test_mutual_recursion(algorithm: Algorithm) -> None:
    live = Live(MUTUAL, algorithm, {"n": [(0,)], "s": [(i, i + 1) for i in range(5)]})
    assert live.model["odd"] == {(1,), (3,), (5,)}
    changes = live.commit({"s": [(5, 3)]})  # a ring of three: everything from 3 on is both
    assert changes["even"] == (set(), {(3,), (5,)})
    assert changes["odd"] == (set(), {(4,)})
    changes = live.commit({"s": [(1, 3)]}, {"s": [(2, 3)]})  # 3 is now reached as an even one first
    assert changes == {"s": ({(2, 3)}, {(1, 3)})}
    changes = live.commit(delete={"s": [(5, 3)]})
    assert changes["even"] == ({(4,)}, set())
    assert changes["odd"] == ({(3,), (5,)}, set())
    assert live.commit(delete={"n": [(0,)]})["even"][1] == set()
    assert live.model["even"] == live.model["odd"] == set()


def test_nonlinear_recursion(algorithm: Algorithm) -> None:
    text = PATHS.replace("path(x, y), edge(y, z)", "path(x, y), path(y, z)")
    live = Live(text, algorithm, {"edge": [(i, i + 1) for i in range(6)]})
    live.commit({"edge": [(2, 5), (5, 2)]})
    live.commit(delete={"edge": [(3, 4)]})
    live.commit(delete={"edge": [(2, 5), (5, 2)]}, insert={"edge": [(3, 5)]})
    assert live.commit(delete={"edge": [(2, 3)]})["path"] == (
        {(x, y) for x in (0, 1, 2) for y in (3, 5, 6)},
        set(),
    )


RULES = """
.decl a(x: number, y: number)
.decl b(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number)
.decl r(x: number)
.output r
p(x, y) :- a(x, y).
p(x, y) :- b(x, y).
p(x, z) :- p(x, y), p(y, z).
q(x) :- p(x, x).
q(y) :- q(x), a(x, y).
r(x) :- a(x, _), !q(x).
p(x, x) :- r(x), b(x, _).
"""
BASE_B, CLOSURE, STEP = "p(x, y) :- b(x, y).", "p(x, z) :- p(x, y), p(y, z).", "q(y) :- q(x), a(x, y)."
FEEDBACK = "p(x, x) :- r(x), b(x, _)."


def test_rules_come_and_go(algorithm: Algorithm) -> None:
    facts = {"a": [(1, 2), (2, 3), (4, 1)], "b": [(3, 1), (3, 3), (5, 1)]}
    live = Live(RULES.replace(FEEDBACK, ""), algorithm, facts, without=[BASE_B, CLOSURE, STEP])
    assert live.model["p"] == {(1, 2), (2, 3), (4, 1)}
    assert live.commit(add=[CLOSURE])["p"] == (set(), {(1, 3), (4, 2), (4, 3)})
    changes = live.commit(add=[BASE_B], insert={"a": [(3, 4)]})
    assert changes["p"][0] == set()
    assert live.model["p"] == {(x, y) for x in range(1, 6) for y in range(1, 5)}
    assert changes["r"] == ({(1,), (2,), (4,)}, set())
    assert live.commit(add=[STEP]) == {}
    # b alone still has 5 -> 1, 3 -> 1 and 3 -> 3; a has the ring 1 -> 2 -> 3 -> 4 -> 1.
    assert live.commit(remove=[BASE_B])["p"] == ({(5, y) for y in range(1, 5)}, set())
    assert live.commit(remove=[CLOSURE], add=[BASE_B])["p"][1] == {(5, 1)}
    assert live.model["q"] == {(3,), (4,), (1,), (2,)}
    assert live.commit(remove=[STEP])["q"] == ({(1,), (2,), (4,)}, set())
    assert live.commit(add=[CLOSURE, STEP], delete={"b": [(3, 3)]}, insert={"q": [(8,)]})["q"] == (
        set(),
        {(1,), (2,), (4,), (8,)},
    )


def test_the_last_rule_of_a_relation_goes(algorithm: Algorithm) -> None:
    """What is explicit stays, and the relation is a plain one until a rule comes again."""
    live = Live(PATHS, algorithm, {"edge": [(1, 2), (2, 3)], "path": [(1, 2), (5, 6)]})
    both = ["path(x, y) :- edge(x, y).", "path(x, z) :- path(x, y), edge(y, z)."]
    assert live.commit(remove=both)["path"] == ({(2, 3), (1, 3)}, set())
    assert live.commit({"path": [(6, 1)]}, {"path": [(5, 6)]})["path"] == ({(5, 6)}, {(6, 1)})
    assert live.commit(add=both[1:])["path"] == (set(), {(6, 2), (6, 3), (1, 3)})
    assert live.commit(delete={"path": [(6, 1)]})["path"] == ({(6, 1), (6, 2), (6, 3)}, set())
    assert live.commit(add=both[:1])["path"] == (set(), {(2, 3)})
    assert live.commit(remove=both, delete={"path": [(1, 2)]})["path"] == ({(1, 2), (1, 3), (2, 3)}, set())
    assert live.commit(add=both)["path"] == (set(), {(1, 2), (1, 3), (2, 3)})


def test_strata_grow_together_and_fall_apart(algorithm: Algorithm) -> None:
    text = """
    .decl e(x: number, y: number)
    .decl p(x: number, y: number)
    .decl q(x: number, y: number)
    .output q
    p(x, y) :- e(x, y).
    p(x, z) :- p(x, y), e(y, z).
    q(x, y) :- p(x, y), e(y, x).
    q(x, z) :- q(x, y), q(y, z).
    p(y, x) :- q(x, y).
    """
    back = "p(y, x) :- q(x, y)."
    chain = [(i, i + 1) for i in range(5)]
    live = Live(text, algorithm, {"e": [*chain, (5, 2), (9, 9)], "p": [(7, 8)]}, without=[back])
    live.commit({"e": [(8, 7), (7, 9)]})
    live.commit(add=[back])
    live.commit(delete={"e": [(2, 3)]}, insert={"e": [(4, 1)]})
    live.commit(delete={"p": [(7, 8)]})
    live.commit(insert={"e": [(2, 3)]}, delete={"e": [(4, 1)]})
    live.commit(remove=[back])
    live.commit(delete={"e": [(5, 2), (9, 9)]}, insert={"e": [(3, 2)]})
    live.commit(add=[back], delete={"e": [(0, 1)]})
    live.commit(delete={"e": [(3, 2)]})
    live.commit(delete={"e": [(8, 7)]}, remove=["q(x, z) :- q(x, y), q(y, z)."])
    live.commit(delete={"e": [(3, 4)]}, remove=["p(x, z) :- p(x, y), e(y, z)."])
    live.commit(insert={"e": [(4, 3), (3, 4)]})


def test_a_relation_becomes_recursive_and_stops_being_so(algorithm: Algorithm) -> None:
    closure = "path(x, z) :- path(x, y), edge(y, z)."
    edges = [(1, 2), (2, 3), (3, 1), (3, 4)]
    live = Live(PATHS, algorithm, {"edge": edges, "path": [(4, 3)]}, without=[closure])
    assert live.commit(add=[closure])["path"][0] == set()
    live.commit(delete={"edge": [(3, 1)]})
    live.commit({"edge": [(4, 1)]})
    assert live.commit(remove=[closure])["path"][1] == set()
    assert live.commit(delete={"edge": [(1, 2)]})["path"] == ({(1, 2)}, set())
    assert live.commit({"edge": [(1, 2), (4, 3)]}, {"path": [(4, 3)]})["path"] == (set(), {(1, 2)})
    assert live.commit(delete={"edge": [(4, 3)]})["path"] == ({(4, 3)}, set())


AGGREGATES = """
.decl item(p: number, c: number)
.decl price(x: number, v: number)
.decl part(p: number, c: number)
.decl parts(p: number, n: number)
.decl least(p: number, v: number)
.decl dear(p: number)
.output parts
.output dear
part(p, c) :- item(p, c).
part(p, d) :- part(p, c), item(c, d).
parts(p, n) :- item(p, _), n = count : { part(p, _) }.
least(p, v) :- item(p, _), v = min w : { part(p, c), price(c, w) }.
dear(p) :- least(p, v), v > 10.
dear(p) :- dear(c), item(p, c).
"""


def test_aggregates_over_recursion_and_under_it(algorithm: Algorithm) -> None:
    facts = {"item": [(1, 2), (1, 3), (2, 4)], "price": [(2, 30), (3, 5), (4, 20)]}
    live = Live(AGGREGATES, algorithm, facts)
    assert live.model["parts"] == {(1, 3), (2, 1)}
    assert live.model["least"] == {(1, 5), (2, 20)}
    assert live.model["dear"] == {(2,), (1,)}
    changes = live.commit(delete={"item": [(1, 3)]})
    assert changes["parts"] == ({(1, 3)}, {(1, 2)})
    assert changes["least"] == ({(1, 5)}, {(1, 20)})
    changes = live.commit({"price": [(4, 3)], "item": [(3, 1)]}, {"price": [(4, 20)]})
    assert changes["dear"] == ({(1,), (2,)}, set())
    assert changes["parts"] == (set(), {(3, 3)})
    changes = live.commit(delete={"item": [(2, 4)]})
    assert changes["parts"] == ({(1, 2), (2, 1), (3, 3)}, {(1, 1), (3, 2)})
    assert changes["dear"] == (set(), {(1,), (3,)})
    assert "least" not in live.commit({"price": [(2, 31)]})  # another is less
    assert live.commit(delete={"price": [(2, 30)]})["least"] == ({(1, 30), (3, 30)}, {(1, 31), (3, 31)})


def test_constants_and_repeated_variables(algorithm: Algorithm) -> None:
    text = """
    .decl e(x: number, y: number, z: number)
    .decl p(x: number, y: number)
    .output p
    p(x, 0) :- e(x, x, 1).
    p(0, y) :- p(y, 0), e(_, y, y).
    p(x, y) :- p(x, x), p(0, y), e(x, y, 2).
    p(y, y) :- p(0, y), p(y, z), y != z.
    """
    live = Live(text, algorithm, {"e": [(1, 1, 1), (2, 1, 1), (1, 2, 2), (3, 3, 1)]})
    assert live.model["p"] == {(1, 0), (3, 0), (0, 1), (1, 1)}
    assert live.commit({"e": [(1, 3, 2), (5, 3, 3), (2, 2, 1)]})["p"] == (
        set(),
        {(2, 0), (0, 2), (0, 3), (2, 2), (3, 3), (1, 2), (1, 3)},
    )
    assert live.commit(delete={"e": [(1, 1, 1), (5, 3, 3)]})["p"] == (
        {(1, 0), (0, 1), (1, 1), (1, 2), (1, 3), (0, 3), (3, 3)},
        set(),
    )
    assert live.commit(delete={"e": [(2, 2, 1)]}, insert={"e": [(1, 1, 1)]})["p"] == (
        {(2, 0), (0, 2), (2, 2)},
        {(1, 0), (0, 1), (1, 1)},
    )


def test_rollback(algorithm: Algorithm) -> None:
    """A commit that is rolled back leaves marks, numbers and what the driver knows as they were."""
    live = Live(PATHS, algorithm, {"edge": [(1, 2), (2, 3), (3, 1)], "path": [(9, 1)]})
    live.commit(delete={"edge": [(3, 1)]})
    before = {name: dict(live.keeper.standing(name)) for name in live.model}
    facts = {name: set(rows) for name, rows in live.facts.items()}
    closure = "path(x, z) :- path(x, y), edge(y, z)."
    live.begin({"edge": [(3, 4)], "path": [(4, 4)]}, {"edge": [(1, 2)]}, remove=[closure])
    live.maintenance.rollback()
    live.facts, live._absent = facts, set()
    assert {name: dict(live.keeper.standing(name)) for name in live.model} == before
    live.agrees()
    assert live.commit({"edge": [(3, 4)]})["path"] == (set(), {(3, 4), (2, 4), (1, 4), (9, 4)})


def test_algorithms_take_turns() -> None:
    """The algorithm may change from commit to commit; the state is never mistaken for another's."""
    names = ["dred", "ranked", "elastic", "counting", "recompute", "fbf", "ranked", "dbsp", "auto", "dbsp"]
    live = Live(MUTUAL, "counting", {"n": [(0,)], "s": [(i, i + 1) for i in range(6)]})
    for turn, name in enumerate(names * 2):
        live.maintenance.algorithm = name
        live.commit({"s": [(6, turn % 7)], "n": [(turn % 5,)]})
        live.commit(delete={"s": [(turn % 3, turn % 3 + 1)]})
        live.commit({"s": [(turn % 3, turn % 3 + 1)]}, {"n": [(turn % 5,)], "s": [(6, turn % 7)]})
