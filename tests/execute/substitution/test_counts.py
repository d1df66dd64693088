"""Tally and Regroup by hand."""

from __future__ import annotations

import pytest

from tests.execute.substitution.opening import changes, held, keeper, numbers, whole_state
from tests.plan.building import apply, fails, holds, let, rule, when
from tests.running import Row
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.plan.executor import Group
from tidelog.plan.maintenance import Regroup, Tally
from tidelog.plan.parts import AFTER, BEFORE, Mark
from tidelog.plan.readings import gained_readings, lost_readings, whole
from tidelog.program.model import AggregateRule, Aggregation, Rule
from tidelog.syntax.errors import EvaluationError, InternalError


def tally(*rules: Rule, added: tuple[Rule, ...] = (), removed: tuple[Rule, ...] = ()) -> Tally:
    """The changes of rules that are there before and after, and of others."""
    lost = [form for r in rules for form in lost_readings(r)]
    gained = [form for r in rules for form in gained_readings(r)]
    lost += [whole(r, BEFORE, BEFORE) for r in removed]
    gained += [whole(r, AFTER, AFTER) for r in added]
    return Tally(("h",), tuple(lost), tuple(gained), phase="count")


def started(k: SubstitutionExecutor, *rules: Rule) -> None:
    k.begin()
    k.renew(["h"])
    k.keep_going(tally(added=rules))
    k.renewed(["h"])
    k.commit()


TWO = rule("h x", holds("e x y"), holds("e y z"))


def test_each_instance_counts_once() -> None:
    k = keeper("h/1", e=[(1, 2), (2, 3), (2, 4), (3, 1)])
    started(k, TWO)
    assert numbers(k, "h") == {(1,): (0, 2), (2,): (0, 1), (3,): (0, 1)}
    k.begin()
    k.retract_rows("e", [(2, 3)])
    k.assert_rows("e", [(4, 4)])
    report = k.keep_going(tally(TWO))
    # Lost: 1-2-3 and 2-3-1. Gained: 2-4-4 and 4-4-4, once although both atoms match the new edge.
    assert sorted(report.considered) == [
        (0, (1,), (1, 2), (2, 3)),
        (0, (2,), (2, 3), (3, 1)),
        (0, (2,), (2, 4), (4, 4)),
        (0, (4,), (4, 4), (4, 4)),
    ]
    assert report.details == {"deletion": 2, "insertion": 2}
    assert (report.touched, report.new) == (2, 1)
    assert changes(k, "h", 1) == (set(), {(4,)})
    k.commit()
    assert numbers(k, "h") == {(1,): (0, 1), (2,): (0, 1), (3,): (0, 1), (4,): (0, 1)}


def test_a_tuple_holds_while_it_is_explicit_or_derived() -> None:
    k = keeper("h/1", e=[(1, 2), (2, 3)])
    started(k, TWO)
    k.begin()
    k.assert_rows("h", [(1,), (8,)])
    k.keep_going(tally(TWO))
    assert changes(k, "h", 1) == (set(), {(8,)})
    k.commit()
    k.begin()
    k.retract_rows("h", [(8,)])
    k.retract_rows("e", [(1, 2)])
    k.keep_going(tally(TWO))
    assert changes(k, "h", 1) == ({(8,)}, set())
    k.commit()
    assert numbers(k, "h") == {(1,): (0, 0)}
    assert held(k, "h") == {(1,)}


def test_negated_atoms_drive_and_are_no_part_of_the_instance() -> None:
    r = rule("h x", holds("e x y"), fails("n y"), fails("n x"))
    k = keeper("h/1", e=[(1, 2), (2, 3), (4, 4)], n=[(3,)])
    started(k, r)
    assert held(k, "h") == {(1,), (4,)}
    k.begin()
    k.assert_rows("n", [(4,), (2,)])
    k.retract_rows("n", [(3,)])
    report = k.keep_going(tally(r))
    # 4-4 is lost once, though two negated atoms fail. 2-3 is not gained: 2 is in n now.
    assert sorted(report.considered) == [(0, (1,), (1, 2)), (0, (4,), (4, 4))]
    assert changes(k, "h", 1) == ({(1,), (4,)}, set())
    k.commit()
    k.begin()
    k.retract_rows("n", [(2,), (4,)])
    report = k.keep_going(tally(r))
    assert sorted(report.considered) == [(0, (1,), (1, 2)), (0, (2,), (2, 3)), (0, (4,), (4, 4))]
    k.commit()


def test_rules_come_and_go() -> None:
    k = keeper("h/1", e=[(1, 2), (2, 3)])
    started(k, TWO)
    other = rule("h y", holds("e x y"), id=1)
    before = whole_state(k, "h")
    k.begin()
    k.assert_rows("e", [(3, 1)])
    k.keep_going(tally(TWO, added=(other,)))
    assert changes(k, "h", 1) == (set(), {(2,), (3,)})
    k.commit()
    assert numbers(k, "h") == {(1,): (0, 2), (2,): (0, 2), (3,): (0, 2)}
    k.begin()
    k.retract_rows("e", [(3, 1)])
    k.keep_going(tally(TWO, removed=(other,)))
    k.commit()
    assert whole_state(k, "h") == before


def test_what_is_in_neither_state_does_not_fail() -> None:
    """a(0) comes in the commit in which b(6) goes: 6 is never divided by 0."""
    r = rule("h z", holds("b x"), holds("a y"), let("z", apply("div", "x", "y")), when("ne", "z", "0"))
    k = keeper("h/1", a=[(2,)], b=[(6,)])
    started(k, r)
    k.begin()
    k.retract_rows("b", [(6,)])
    k.assert_rows("a", [(0,)])
    k.keep_going(tally(r))
    assert changes(k, "h", 1) == ({(3,)}, set())
    k.commit()
    k.begin()
    k.assert_rows("b", [(6,)])
    with pytest.raises(EvaluationError, match="division by zero"):
        k.keep_going(tally(r))
    k.rollback()


def test_a_wrong_count_is_our_mistake() -> None:
    k = keeper("h/1", e=[(1, 2)])
    k.begin()
    with pytest.raises(InternalError, match=r"h\(1,\) has lost more than it had"):
        k.keep_going(tally(removed=(rule("h x", holds("e x _")),)))
    k.rollback()


TOTAL = AggregateRule(5, "t", "s", (0,), Aggregation.SUM, 1, text="total")


def grouped(rows: list[Row], rule: AggregateRule = TOTAL, arity: int = 2) -> SubstitutionExecutor:
    k = keeper(f"t/{arity}", s=rows)
    k.begin()
    k.renew(["t"])
    k.keep_going(Group(rule))
    k.renewed(["t"])
    k.commit()
    return k


def test_only_groups_that_change_are_looked_at() -> None:
    k = grouped([(1, 10), (1, 5), (2, 7), (3, 1), (4, 2)])
    assert held(k, "t") == {(1, 15), (2, 7), (3, 1), (4, 2)}
    k.begin()
    k.retract_rows("s", [(1, 5), (3, 1), (4, 2)])
    k.assert_rows("s", [(6, 6), (4, 2)])
    report = k.keep_going(Regroup(TOTAL, phase="group"))
    assert report.details == {"groups": 3}  # 1, 3 and 6; nothing has changed for 4
    assert (report.touched, report.phase) == (4, "group")
    assert changes(k, "t", 2) == ({(1, 15), (3, 1)}, {(1, 10), (6, 6)})
    k.commit()
    assert held(k, "t") == {(1, 10), (2, 7), (4, 2), (6, 6)}


def test_a_group_whose_value_stays_is_no_change() -> None:
    k = grouped([(1, 10), (1, 5)])
    before = k.standing("t")
    k.begin()
    k.retract_rows("s", [(1, 5)])
    k.assert_rows("s", [(1, 2), (1, 3)])
    report = k.keep_going(Regroup(TOTAL))
    assert (report.details, report.touched) == ({"groups": 1}, 0)
    assert changes(k, "t", 2) == (set(), set())
    k.commit()
    assert k.standing("t") == before


def test_one_group_for_all() -> None:
    count = AggregateRule(5, "t", "s", (), Aggregation.COUNT, None)
    k = grouped([(1, 10), (1, 5)], count, arity=1)
    assert held(k, "t") == {(2,)}
    k.begin()
    k.retract_rows("s", [(1, 10), (1, 5)])
    k.keep_going(Regroup(count))
    assert changes(k, "t", 1) == ({(2,)}, set())
    k.commit()
    assert held(k, "t") == set()


def test_a_group_that_does_not_fit() -> None:
    k = grouped([(1, 2**62), (2, 5)])
    k.begin()
    k.assert_rows("s", [(1, 2**62 + 1)])
    with pytest.raises(EvaluationError, match=r"integer overflow(.|\n)*with c0 = 1"):
        k.keep_going(Regroup(TOTAL))
    k.rollback()
    assert held(k, "t") == {(1, 2**62), (2, 5)}
    assert all(known.marks == Mark.HELD for known in k.standing("t").values())
