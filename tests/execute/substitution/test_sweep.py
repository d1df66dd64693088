"""Sweep and Redeem, with and without guards, on reachability by hand."""

from __future__ import annotations

import pytest

from tests.execute.substitution.opening import changes, having, held, keeper, numbers
from tests.plan.building import holds, rule
from tests.running import Row
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Derive, Fixpoint, Progress
from tidelog.plan.maintenance import Abandoned, Guard, Proof, Redeem, Supported, Sweep
from tidelog.plan.parts import AFTER, BEFORE, CURRENT, KEPT, QUEUED, A, D, I, Mark
from tidelog.plan.parts import having as part
from tidelog.plan.readings import backward, driven, gained_readings, lost_readings

OWN = frozenset({"r"})
START = rule("r x", holds("s x"))
STEP = rule("r y", holds("r x"), holds("e x y"), id=1)
LEFT = I - (D - A)  # what overdeletion has left


def reach(edges: list[Row], sources: list[Row]) -> SubstitutionExecutor:
    """What is reached from the sources, with ranks."""
    k = keeper("r/1", s=sources, e=edges)
    k.begin()
    k.renew(["r"])
    k.keep_going(Derive((whole_form(START),)))
    k.keep_going(Fixpoint(("r",), delta_forms(STEP, OWN)))
    k.renewed(["r"])
    k.commit()
    return k


def overdelete(guard: Guard | None = None) -> Sweep:
    return Sweep(
        ("r",),
        start=part(Mark.RETRACTED) - part(Mark.EXPLICIT),
        seeds=(*lost_readings(START, OWN), *lost_readings(STEP, OWN)),
        forms=driven(STEP, OWN, CURRENT, LEFT - CURRENT, LEFT, KEPT, BEFORE | AFTER),
        reach=I - D,
        settle=Mark.DELETED,
        guard=guard,
        phase="overdelete",
    )


def rederive(ranks: bool = False) -> Redeem:
    forms = tuple(backward(r, D, OWN, LEFT - D, KEPT, BEFORE | AFTER) for r in (START, STEP))
    return Redeem(("r",), D, part(Mark.EXPLICIT), forms, ranks, phase="rederive")


def insert(ranks: bool = False) -> Sweep:
    return Sweep(
        ("r",),
        start=QUEUED | (part(Mark.ASSERTED) - AFTER),
        seeds=(*gained_readings(START, OWN), *gained_readings(STEP, OWN)),
        forms=driven(STEP, OWN, CURRENT, AFTER, AFTER | CURRENT, AFTER, AFTER),
        reach=~AFTER,
        settle=Mark.ADDED,
        ranks=ranks,
        phase="insert",
    )


# 1 -> 2 -> 3 <-> 4, and 1 -> 5 -> 3.
EDGES: list[Row] = [(1, 2), (2, 3), (3, 4), (4, 3), (1, 5), (5, 3)]


def test_overdelete_rederive_insert() -> None:
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    seen: list[Progress] = []
    report = k.keep_going(overdelete(), seen.append)
    # 2 goes, then 3, then 4; from 4 again to 3, which is being deleted already.
    assert having(k, "r", Mark.DELETED) == {(2,), (3,), (4,)}
    assert report.considered == [
        (1, (2,), (1,), (1, 2)),
        (1, (3,), (2,), (2, 3)),
        (1, (4,), (3,), (3, 4)),
        (1, (3,), (4,), (4, 3)),
    ]
    assert (report.rounds, report.new, report.touched, report.phase) == (3, 3, 3, "overdelete")
    assert seen == [Progress(1, 1), Progress(2, 2), Progress(3, 3)]
    assert report.details == {}
    report = k.keep_going(rederive())
    assert report.considered == [(1, (3,), (5,), (5, 3))]
    assert having(k, "r", Mark.QUEUED) == {(3,)}
    report = k.keep_going(insert())
    assert report.considered == [(1, (4,), (3,), (3, 4)), (1, (3,), (4,), (4, 3))]
    assert having(k, "r", Mark.ADDED) == {(3,), (4,)}
    assert having(k, "r", Mark.QUEUED | Mark.CURRENT) == set()
    assert changes(k, "r", 1) == ({(2,)}, set())  # deleted and added again is no change
    k.commit()
    assert held(k, "r") == {(1,), (3,), (4,), (5,)}


def test_what_is_being_deleted_is_not_reached_again() -> None:
    k = reach([(1, 2), (2, 2)], [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    report = k.keep_going(overdelete())
    assert (report.rounds, report.new) == (1, 1)
    assert report.considered == [(1, (2,), (1,), (1, 2)), (1, (2,), (2,), (2, 2))]
    k.rollback()


def test_explicit_tuples_are_where_sweeps_begin_and_come_back() -> None:
    k = reach([(1, 2), (2, 3)], [(1,)])
    k.begin()
    k.assert_rows("r", [(2,), (7,)])
    assert k.keep_going(insert()).new == 1
    assert changes(k, "r", 1) == (set(), {(7,)})
    k.commit()
    k.begin()
    k.retract_rows("s", [(1,)])
    k.retract_rows("r", [(7,)])
    assert k.keep_going(overdelete()).new == 4
    report = k.keep_going(rederive())
    assert (report.new, report.instances) == (1, {})  # 2 is explicit: no instance is looked for
    k.keep_going(insert())
    assert changes(k, "r", 1) == ({(1,), (7,)}, set())
    k.commit()


def test_ranks_of_what_is_put_back() -> None:
    k = reach(EDGES, [(1,)])
    assert numbers(k, "r") == {(1,): (1, 0), (2,): (2, 0), (5,): (2, 0), (3,): (3, 0), (4,): (4, 0)}
    k.begin()
    k.retract_rows("e", [(1, 5), (5, 3)])
    k.assert_rows("e", [(4, 5)])
    for task in (overdelete(), rederive(ranks=True), insert(ranks=True)):
        k.keep_going(task)
    k.commit()
    # 3 by way of 2, which has rank 2; 4 after it; 5 after 4.
    assert numbers(k, "r") == {(1,): (1, 0), (2,): (2, 0), (3,): (3, 0), (4,): (4, 0), (5,): (5, 0)}
    k.begin()
    k.assert_rows("r", [(9,)])
    k.assert_rows("e", [(9, 8)])
    k.keep_going(insert(ranks=True))
    k.commit()
    assert {row: number for row, number in numbers(k, "r").items() if row in ((9,), (8,))} == {
        (9,): (1, 0),
        (8,): (2, 0),
    }


def supported() -> Supported:
    others = LEFT - CURRENT
    return Supported(tuple(backward(r, I, OWN, others, KEPT, BEFORE | AFTER) for r in (START, STEP)))


def test_a_tuple_with_support_from_lower_ranks_stays() -> None:
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    report = k.keep_going(overdelete(supported()))
    # 3 has rank 3 and follows from 5, which has rank 2.
    assert having(k, "r", Mark.DELETED) == {(2,)}
    assert report.considered == [(1, (2,), (1,), (1, 2)), (1, (3,), (2,), (2, 3)), (1, (3,), (5,), (5, 3))]
    assert report.details == {"deletion": 2, "backward": 1}
    k.commit()


def test_a_cycle_is_no_support() -> None:
    """3 follows from 4 as well, but 4 is of a higher rank."""
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(2, 3), (5, 3)])
    report = k.keep_going(overdelete(supported()))
    assert having(k, "r", Mark.DELETED) == {(3,), (4,)}
    assert "backward" not in report.details
    k.rollback()


def test_nothing_supports_itself() -> None:
    k = reach([(1, 2), (2, 2)], [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    k.keep_going(overdelete(supported()))
    assert having(k, "r", Mark.DELETED) == {(2,)}
    k.rollback()


PROVED, BLOCKED = part(Mark.PROVED), part(Mark.BLOCKED)
PROVING = part(Mark.PROVING)


def proof(depth: int | None = None) -> Proof:
    left = I - (((D | CURRENT) - A) - BLOCKED)
    return Proof(
        base=(backward(START, I, OWN, left, KEPT, BEFORE | AFTER),),
        recursive=(backward(STEP, I, OWN, left, KEPT, BEFORE | AFTER),),
        forward=driven(STEP, OWN, PROVING, PROVED - PROVING, PROVED, KEPT, BEFORE | AFTER),
        depth=depth,
    )


def test_a_tuple_with_a_proof_stays() -> None:
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    report = k.keep_going(overdelete(proof()))
    assert having(k, "r", Mark.DELETED) == {(2,)}
    # Checked: 2 in vain. Then 3, by way of 4 or of 5; 5 by way of 1, which has a proof of its own.
    assert (3,) in having(k, "r", Mark.PROVED)
    assert having(k, "r", Mark.PROVED) <= having(k, "r", Mark.CHECKED) == {(1,), (2,), (3,), (4,), (5,)}
    assert having(k, "r", Mark.PROVED) == {(1,), (3,), (4,), (5,)}
    assert having(k, "r", Mark.PROVING | Mark.BLOCKED) == set()
    assert report.details == {"deletion": 2, "backward": 5, "forward": 4}
    k.commit()
    assert held(k, "r") == {(1,), (3,), (4,), (5,)}


def test_a_cycle_proves_nothing() -> None:
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(2, 3), (5, 3)])
    k.keep_going(overdelete(proof()))
    assert having(k, "r", Mark.DELETED) == {(3,), (4,)}
    assert having(k, "r", Mark.PROVED) == set()
    k.rollback()


def test_without_depth_every_branch_is_given_up() -> None:
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    report = k.keep_going(overdelete(proof(0)))
    assert having(k, "r", Mark.DELETED) == having(k, "r", Mark.BLOCKED) == {(2,), (3,), (4,)}
    assert having(k, "r", Mark.CHECKED) == set()
    assert report.details == {"deletion": 4}
    k.rollback()


@pytest.mark.parametrize(("depth", "kept"), [(2, False), (3, True)])
def test_a_proof_of_limited_depth(depth: int, kept: bool) -> None:
    """1 -> 2 -> 3 and 1 -> 3: a proof of 3 without the short cut needs 2, and 1 for that."""
    k = reach([(1, 2), (2, 3), (1, 3)], [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 3)])
    k.keep_going(overdelete(proof(depth)))
    assert having(k, "r", Mark.DELETED) == (set() if kept else {(3,)})
    # What was given up on makes what needed it blocked too.
    assert having(k, "r", Mark.BLOCKED) == (set() if kept else {(1,), (2,), (3,)})
    k.rollback()


def test_what_is_proved_before_it_is_checked_is_delayed() -> None:
    """1 -> 2 and 1 -> 3, both with another edge from 4, which follows from 1 as well."""
    k = reach([(1, 4), (4, 2), (4, 3), (9, 2), (9, 3)], [(1,), (9,)])
    k.begin()
    k.retract_rows("s", [(9,)])
    report = k.keep_going(overdelete(proof()))
    # Checking 2 proves 1 and 4, and delays 3, which is then proved without going backward.
    assert having(k, "r", Mark.DELAYED) == {(3,)}
    assert having(k, "r", Mark.PROVED) == {(1,), (2,), (3,), (4,)}
    assert having(k, "r", Mark.DELETED) == {(9,)}
    # Backward: 2 from 4, 4 from 1, 1 from s. Forward: to 4, to 2 and 3.
    assert report.details == {"deletion": 3, "backward": 3, "forward": 3}
    k.commit()


def test_deep_proofs() -> None:
    n = 5_000
    k = reach([(i, i + 1) for i in range(n)], [(0,), (n,)])
    k.begin()
    k.retract_rows("s", [(n,)])
    report = k.keep_going(overdelete(proof()))
    assert having(k, "r", Mark.DELETED) == set()
    assert report.details == {"deletion": 1, "backward": n + 1, "forward": n}
    k.commit()
    assert k.size("r") == n + 1


def test_a_budget_counts_guards_too() -> None:
    k = reach(EDGES, [(1,)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    with pytest.raises(Abandoned):
        k.keep_going(overdelete(supported()), budget=2)
    k.undo(["r"])
    assert having(k, "r", ~Mark.HELD) == set()
    k.keep_going(overdelete(supported()), budget=3)
    k.rollback()
