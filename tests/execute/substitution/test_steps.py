"""Steps: traces, and first iterations with counts, by hand."""

from __future__ import annotations

import pytest

from tests.execute.substitution.opening import changes, held, keeper, numbers, traces, whole_state
from tests.plan.building import apply, fails, holds, let, rule
from tests.running import Row
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.plan.maintenance import Abandoned, PhaseReport, Steps
from tidelog.program.model import Rule
from tidelog.syntax.errors import EvaluationError

COPY = rule("p x y", holds("e x y"))
LONGER = rule("p x z", holds("p x y"), holds("e y z"), id=1)
DOUBLED = rule("p x z", holds("p x y"), holds("p y z"), id=2)
BOTH = pytest.mark.parametrize("keep", ["trace", "first"])


def started(k: SubstitutionExecutor, task: Steps) -> PhaseReport:
    """Steps from nothing, as a commit of its own."""
    k.begin()
    k.renew(task.relations)
    report = k.keep_going(task)
    k.renewed(task.relations)
    k.commit()
    return report


def path(keep: str) -> tuple[SubstitutionExecutor, Steps]:
    """1 -> 2 -> 3 -> 4, and a short cut from 1 to 3."""
    k = keeper("p/2", e=[(1, 2), (2, 3), (3, 4), (1, 3)])
    return k, Steps(("p",), (COPY,), (LONGER,), keep=keep)


def test_a_trace_from_nothing() -> None:
    k, task = path("trace")
    report = started(k, task)
    expected: dict[Row, dict[int, int]] = {
        (1, 2): {1: 1}, (2, 3): {1: 1}, (3, 4): {1: 1}, (1, 3): {1: 1, 2: 1}, (2, 4): {2: 1}, (1, 4): {2: 1},
    }  # fmt: skip
    assert traces(k, "p") == expected
    assert report.instances == {0: 4, 1: 3}
    assert report.details == {"insertion": 7}


def test_firsts_from_nothing() -> None:
    k, task = path("first")
    assert started(k, task).instances == {0: 4, 1: 3}
    assert numbers(k, "p") == {
        (1, 2): (1, 1), (2, 3): (1, 1), (3, 4): (1, 1), (1, 3): (1, 1), (2, 4): (2, 1), (1, 4): (2, 1),
    }  # fmt: skip


def test_an_edge_goes_and_comes_back() -> None:
    """(1, 3) is later now, and so is (1, 4); no answer changes."""
    k, task = path("trace")
    started(k, task)
    before = whole_state(k, "e", "p")
    k.begin()
    k.retract_rows("e", [(1, 3)])
    report = k.keep_going(task)
    assert changes(k, "p", 2) == (set(), set())
    k.commit()
    assert traces(k, "p") == {
        (1, 2): {1: 1}, (2, 3): {1: 1}, (3, 4): {1: 1}, (1, 3): {2: 1}, (2, 4): {2: 1}, (1, 4): {3: 1},
    }  # fmt: skip
    assert report.details == {"deletion": 2, "insertion": 1}
    assert report.considered == [
        (0, (1, 3), (1, 3)),
        (1, (1, 4), (1, 3), (3, 4)),
        (1, (1, 4), (1, 3), (3, 4)),
    ]
    assert report.touched == 2
    k.begin()
    k.assert_rows("e", [(1, 3)])
    report = k.keep_going(task)
    k.commit()
    assert report.details == {"deletion": 1, "insertion": 2}
    assert whole_state(k, "e", "p") == before


def test_a_tuple_that_lost_its_first_iteration_is_looked_up_again() -> None:
    k, task = path("first")
    started(k, task)
    before = whole_state(k, "e", "p")
    k.begin()
    k.retract_rows("e", [(1, 3)])
    report = k.keep_going(task)
    assert changes(k, "p", 2) == (set(), set())
    k.commit()
    assert numbers(k, "p") == {
        (1, 2): (1, 1), (2, 3): (1, 1), (3, 4): (1, 1), (1, 3): (2, 1), (2, 4): (2, 1), (1, 4): (3, 1),
    }  # fmt: skip
    assert report.details == {"deletion": 2, "insertion": 1, "rediscovery": 1}
    k.begin()
    k.assert_rows("e", [(1, 3)])
    k.keep_going(task)
    k.commit()
    assert whole_state(k, "e", "p") == before


@BOTH
def test_tuples_that_only_derive_each_other_go(keep: str) -> None:
    """1 -> 2 <-> 3, reached from 1: without 1 the cycle does not hold itself up."""
    k = keeper("r/1", s=[(1,)], e=[(1, 2), (2, 3), (3, 2)])
    start, step = rule("r x", holds("s x")), rule("r y", holds("r x"), holds("e x y"), id=1)
    task = Steps(("r",), (start,), (step,), keep=keep)
    started(k, task)
    if keep == "trace":
        assert traces(k, "r") == {(1,): {1: 1}, (2,): {2: 1, 4: 1}, (3,): {3: 1}}
    else:
        assert numbers(k, "r") == {(1,): (1, 1), (2,): (2, 1), (3,): (3, 1)}
    k.begin()
    k.retract_rows("s", [(1,)])
    report = k.keep_going(task)
    assert changes(k, "r", 1) == ({(1,), (2,), (3,)}, set())
    assert report.details == {"deletion": 4}
    assert report.rounds == 4  # though the new run's first iteration is empty
    k.commit()
    assert k.standing("r") == {}


@BOTH
def test_explicit_facts_may_be_derivable(keep: str) -> None:
    k, task = path(keep)
    started(k, task)
    before = whole_state(k, "p")
    k.begin()
    k.assert_rows("p", [(1, 4), (1, 2), (9, 1)])
    k.keep_going(task)
    assert changes(k, "p", 2) == (set(), {(9, 1), (9, 2), (9, 3), (9, 4)})
    k.commit()
    if keep == "trace":
        assert traces(k, "p") == {
            (1, 2): {1: 2}, (2, 3): {1: 1}, (3, 4): {1: 1}, (1, 3): {1: 1, 2: 1}, (2, 4): {2: 1},
            (1, 4): {1: 1, 2: 1}, (9, 1): {1: 1}, (9, 2): {2: 1}, (9, 3): {2: 1, 3: 1}, (9, 4): {3: 1},
        }  # fmt: skip
    else:
        assert numbers(k, "p") == {
            (1, 2): (1, 2), (2, 3): (1, 1), (3, 4): (1, 1), (1, 3): (1, 1), (2, 4): (2, 1),
            (1, 4): (1, 1), (9, 1): (1, 1), (9, 2): (2, 1), (9, 3): (2, 1), (9, 4): (3, 1),
        }  # fmt: skip
    k.begin()
    k.retract_rows("p", [(1, 4), (1, 2), (9, 1)])
    k.keep_going(task)
    assert changes(k, "p", 2) == ({(9, 1), (9, 2), (9, 3), (9, 4)}, set())
    k.commit()
    assert whole_state(k, "p") == before


@BOTH
def test_negation_makes_additions_delete(keep: str) -> None:
    k = keeper("r/1", s=[(1,)], e=[(1, 2), (2, 3), (1, 4), (4, 3)], n=[(4,)])
    start = rule("r x", holds("s x"))
    step = rule("r y", holds("r x"), holds("e x y"), fails("n y"), id=1)
    task = Steps(("r",), (start,), (step,), keep=keep)
    started(k, task)
    assert held(k, "r") == {(1,), (2,), (3,)}
    k.begin()
    k.assert_rows("n", [(2,)])
    report = k.keep_going(task)
    assert changes(k, "r", 1) == ({(2,), (3,)}, set())
    assert report.considered == [(1, (2,), (1,), (1, 2)), (1, (3,), (2,), (2, 3))]
    k.commit()
    k.begin()
    k.retract_rows("n", [(4,), (2,)])
    report = k.keep_going(task)
    assert changes(k, "r", 1) == (set(), {(2,), (3,), (4,)})
    assert report.details == {"insertion": 4}
    k.commit()
    assert numbers(k, "r")[(3,)][0] == 3


@BOTH
def test_a_tuple_meets_one_of_a_later_iteration(keep: str) -> None:
    """Two atoms of the stratum: what is new early is joined with what is there late."""
    chain: list[Row] = [(i, i + 1) for i in range(1, 6)]
    k = keeper("p/2", e=chain)
    task = Steps(("p",), (COPY,), (DOUBLED,), keep=keep)
    assert started(k, task).instances == {0: 5, 2: 20}
    k.begin()
    k.assert_rows("e", [(0, 1)])
    report = k.keep_going(task)
    assert changes(k, "p", 2) == (set(), {(0, i) for i in range(1, 7)})
    # One instance for each 0 < y < z, and the edge.
    assert report.details == {"insertion": 16}
    assert len(set(report.considered)) == 16
    k.commit()
    firsts = {row: first for row, (first, _) in numbers(k, "p").items()}
    assert {i: firsts[(0, i)] for i in range(1, 7)} == {1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 6: 4}
    if keep == "trace":
        # A path of 5 or 6 edges is there from iteration 4 on, one of 3 or 4 from 3 on: by way of 2, 3 or 4
        # from 0 to 6 it is iteration 4, by way of 1 or 5 it is iteration 5.
        assert traces(k, "p")[(0, 6)] == {4: 3, 5: 2}
    k.begin()
    k.retract_rows("e", [(0, 1)])
    report = k.keep_going(task)
    assert report.details == {"deletion": 16}
    assert changes(k, "p", 2) == ({(0, i) for i in range(1, 7)}, set())
    k.commit()


@BOTH
def test_what_stays_in_its_iteration_is_not_considered(keep: str) -> None:
    """Without the short cut (1, 3) comes later; what follows from it and (3, 5) comes when it did."""
    k = keeper("p/2", e=[(1, 2), (2, 3), (1, 3), (3, 4), (4, 5), (5, 6)])
    task = Steps(("p",), (COPY,), (DOUBLED,), keep=keep)
    started(k, task)
    before = whole_state(k, "e", "p")
    k.begin()
    k.retract_rows("e", [(1, 3)])
    report = k.keep_going(task)
    k.commit()
    # Three instances move: (1, 4) by way of 3, (1, 5) and (1, 6) by way of 4. With "first", (1, 3) is looked
    # up again by way of 2, (1, 4) by way of 2, and (1, 6) by way of 2, 3 and 5.
    again = {"rediscovery": 5} if keep == "first" else {}
    assert report.details == {"deletion": 4, "insertion": 3, **again}
    firsts = {row: first for row, (first, _) in numbers(k, "p").items()}
    assert [firsts[(1, i)] for i in range(2, 7)] == [1, 2, 3, 3, 4]
    if keep == "first":
        assert [numbers(k, "p")[(1, i)][1] for i in range(2, 7)] == [1, 1, 2, 1, 4]
    k.begin()
    k.assert_rows("e", [(1, 3)])
    k.keep_going(task)
    k.commit()
    assert whole_state(k, "e", "p") == before


@BOTH
@pytest.mark.parametrize("late", [COPY, LONGER], ids=["base", "recursive"])
def test_rules_come_and_go(keep: str, late: Rule) -> None:
    k, full = path(keep)
    base = tuple(r for r in (COPY,) if r != late)
    recursive = tuple(r for r in (LONGER,) if r != late)
    started(k, Steps(("p",), base, recursive, keep=keep))
    without = whole_state(k, "p")
    k.begin()
    report = k.keep_going(Steps(("p",), base, recursive, added=(late,), keep=keep))
    assert set(report.details) == {"insertion"}
    k.commit()
    assert len(held(k, "p")) == 6
    other, _ = path(keep)
    started(other, full)
    assert whole_state(k, "p") == whole_state(other, "p")
    k.begin()
    report = k.keep_going(Steps(("p",), base, recursive, removed=(late,), keep=keep))
    assert sum(report.details.values()) == (7 if late == COPY else 3)
    k.commit()
    assert whole_state(k, "p") == without


@BOTH
def test_what_is_in_neither_run_does_not_fail(keep: str) -> None:
    """q(6) goes in the commit in which a(6, 0) comes: 6 is never divided by 0."""
    k = keeper("q/1", a=[(6, 2)], q=[(6,)])
    step = rule("q z", holds("q x"), holds("a x d"), let("z", apply("div", "x", "d")), id=1)
    task = Steps(("q",), (), (step,), keep=keep)
    started(k, task)
    assert held(k, "q") == {(6,), (3,)}
    k.begin()
    k.retract_rows("q", [(6,)])
    k.assert_rows("a", [(6, 0)])
    k.keep_going(task)
    assert changes(k, "q", 1) == ({(6,), (3,)}, set())
    k.rollback()
    k.begin()
    k.assert_rows("a", [(6, 0)])
    with pytest.raises(EvaluationError, match="division by zero"):
        k.keep_going(task)
    k.rollback()
    assert held(k, "q") == {(6,), (3,)}


def test_what_comes_and_goes_is_not_considered() -> None:
    k, task = path("trace")
    started(k, task)
    k.begin()
    k.retract_rows("e", [(1, 3)])
    k.assert_rows("e", [(1, 3)])
    report = k.keep_going(task)
    assert (report.instances, report.touched) == ({}, 0)
    k.rollback()


def test_a_budget_is_for_the_instances_that_differ() -> None:
    k, task = path("trace")
    started(k, task)
    before = whole_state(k, "p")
    k.begin()
    k.retract_rows("e", [(1, 3)])
    with pytest.raises(Abandoned):
        k.keep_going(task, budget=2)
    k.undo(["p"])
    assert whole_state(k, "p") == before
    k.keep_going(task, budget=3)
    k.rollback()


@BOTH
def test_a_long_chain(keep: str) -> None:
    n = 2_000
    k = keeper("r/1", s=[(0,)], e=[(i, i + 1) for i in range(n)])
    start, step = rule("r x", holds("s x")), rule("r y", holds("r x"), holds("e x y"), id=1)
    task = Steps(("r",), (start,), (step,), keep=keep)
    started(k, task)
    assert k.standing("r")[(n,)].first == n + 1
    k.begin()
    k.retract_rows("e", [(n - 2, n - 1)])
    assert k.keep_going(task).instances == {1: 2}  # nothing of the iterations before
    assert changes(k, "r", 1) == ({(n - 1,), (n,)}, set())
    k.commit()
