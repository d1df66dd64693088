"""Commits on the reference executor: facts, changes, taking things back, starting anew."""

from __future__ import annotations

import math

import pytest

from tests.execute.substitution.opening import (
    FACT,
    changes,
    held,
    keeper,
    numbers,
    relation,
    whole_state,
)
from tests.plan.building import holds, rule
from tests.running import table_of
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Derive, Fixpoint
from tidelog.plan.maintenance import Abandoned, Keeper, Standing, Sweep, Tally
from tidelog.plan.parts import AFTER, BEFORE, I, Mark, having
from tidelog.plan.readings import whole
from tidelog.program.types import DOUBLE, FLOAT, S64
from tidelog.syntax.errors import InternalError

COPY = rule("p x y", holds("e x y"))
LONGER = rule("p x z", holds("p x y"), holds("e y z"), id=1)


def test_it_is_a_keeper() -> None:
    executor: Keeper = SubstitutionExecutor()
    assert executor.name == "substitution"


def test_facts_come_and_go() -> None:
    k = keeper("", e=[(1, 2), (2, 3)])
    k.begin()
    assert k.assert_rows("e", [(2, 3), (3, 4), (3, 4)]) == 1
    assert k.retract_rows("e", [(1, 2), (7, 7)]) == 1
    assert changes(k, "e", 2) == ({(1, 2)}, {(3, 4)})
    assert k.standing("e") == {
        (1, 2): Standing(Mark.HELD | Mark.RETRACTED | Mark.DELETED),
        (2, 3): Standing(FACT),
        (3, 4): Standing(Mark.EXPLICIT | Mark.ASSERTED | Mark.ADDED),
    }
    assert k.size("e") == 2  # as before, until the commit
    k.commit()
    assert k.standing("e") == {(2, 3): Standing(FACT), (3, 4): Standing(FACT)}
    assert k.size("e") == 2


def test_what_comes_and_goes_in_one_commit_is_no_change() -> None:
    k = keeper("", e=[(1, 2)])
    before = k.standing("e")
    k.begin()
    assert k.retract_rows("e", [(1, 2)]) == 1
    assert k.assert_rows("e", [(1, 2)]) == 1  # deleted and inserted again
    assert k.assert_rows("e", [(5, 6)]) == 1
    assert k.retract_rows("e", [(5, 6)]) == 1  # inserted and deleted again
    assert changes(k, "e", 2) == (set(), set())
    assert k.standing("e") == before
    k.commit()
    assert k.standing("e") == before


def test_facts_of_a_derived_relation_wait_for_its_rules() -> None:
    k = keeper("p/2", e=[(1, 2)])
    k.begin()
    k.assert_rows("p", [(8, 9)])
    assert k.standing("p") == {(8, 9): Standing(Mark.EXPLICIT | Mark.ASSERTED)}
    with pytest.raises(InternalError, match=r"p\(8, 9\) is explicit but would not hold"):
        k.commit()
    k.rollback()
    assert k.standing("p") == {}


def test_rows_as_tables_and_floats_as_they_are_stored() -> None:
    k = SubstitutionExecutor()
    made = relation("f", FLOAT, DOUBLE)
    k.create(made)
    k.begin()
    assert k.assert_rows("f", [(0.1, 0.0), (0.1, -0.0), (math.nan, math.nan)]) == 3
    assert k.assert_rows("f", table_of(made, [(0.1, 0.0), (math.nan, math.nan)])) == 0
    k.commit()
    assert k.size("f") == 3


def test_rollback_brings_back_the_whole_state() -> None:
    k = keeper("p/2", e=[(1, 2), (2, 3)])
    k.begin()
    k.renew(["p"])
    k.keep_going(Tally(("p",), (), (whole(COPY, AFTER, AFTER),)))
    k.renewed(["p"])
    k.commit()
    before = whole_state(k, "e", "p")
    assert before["p"] == {(1, 2): Standing(Mark.HELD, count=1), (2, 3): Standing(Mark.HELD, count=1)}
    k.begin()
    k.create(relation("new", S64))
    k.drop("e")
    k.create(relation("e", S64))
    k.assert_rows("e", [(7,)])
    k.assert_rows("p", [(1, 2), (4, 4)])
    k.keep_going(Tally(("p",), (whole(rule("p 1 2"), BEFORE, BEFORE),), ()))
    k.renew(["p"])
    k.rollback()
    assert whole_state(k, "e", "p") == before
    assert held(k, "p") == {(1, 2), (2, 3)}
    with pytest.raises(KeyError):
        k.size("new")
    k.begin()  # indexes too: a deleted row is not found again
    k.retract_rows("e", [(2, 3)])
    report = k.keep_going(Tally(("p",), (whole(rule("p 2 y", holds("e 2 y")), BEFORE, BEFORE),), ()))
    assert report.considered == [(0, (2, 3), (2, 3))]
    k.commit()
    assert held(k, "p") == {(1, 2)}
    k.begin()
    assert (
        k.keep_going(Tally(("p",), (), (whole(rule("p 2 y", holds("e 2 y")), AFTER, AFTER),))).instances == {}
    )
    k.rollback()


def test_what_is_gone_is_in_no_index() -> None:
    k = keeper("", e=[(1, 2), (1, 3)])
    stored = k._relations["e"]
    assert {key: len(bucket) for key, bucket in stored.index((0,)).items()} == {(1,): 2}
    k.begin()
    k.retract_rows("e", [(1, 2), (1, 3)])
    k.assert_rows("e", [(4, 4)])
    k.commit()
    assert {key: len(bucket) for key, bucket in stored.index((0,)).items()} == {(4,): 1}
    k.begin()
    k.assert_rows("e", [(5, 5)])
    k.rollback()
    assert list(stored.index((0,))) == [(4,)]


def test_undo_leaves_assertions() -> None:
    k = keeper("p/2", e=[(1, 2)])
    k.begin()
    k.assert_rows("p", [(5, 6)])
    asserted = k.standing("p")
    k.keep_going(Tally(("p",), (), (whole(COPY, AFTER, AFTER),)))
    assert changes(k, "p", 2) == (set(), {(1, 2), (5, 6)})
    k.undo(["p"])
    assert k.standing("p") == asserted == {(5, 6): Standing(Mark.EXPLICIT | Mark.ASSERTED)}
    k.renew(["p"])
    k.undo(["p"])
    assert k.standing("p") == asserted
    k.undo(["e"])  # a relation without rules holds what is explicit
    assert k.standing("e") == {(1, 2): Standing(FACT)}
    k.rollback()


def closure(k: SubstitutionExecutor) -> None:
    """A closure, started anew."""
    k.renew(["p"])
    k.keep_going(Derive((whole_form(COPY),)))
    k.keep_going(Fixpoint(("p",), delta_forms(LONGER, {"p"})))
    k.renewed(["p"])


def test_a_relation_is_renewed() -> None:
    k = keeper("p/2", e=[(1, 2), (2, 3), (3, 4)], p=[(0, 1)])
    k.begin()
    closure(k)
    k.commit()
    # Ranks: what is there before the fixpoint has 1, what round r finds r + 1.
    assert numbers(k, "p") == {
        (0, 1): (1, 0), (1, 2): (1, 0), (2, 3): (1, 0), (3, 4): (1, 0),
        (0, 2): (2, 0), (1, 3): (2, 0), (2, 4): (2, 0), (0, 3): (3, 0), (1, 4): (3, 0), (0, 4): (4, 0),
    }  # fmt: skip
    k.begin()
    k.retract_rows("e", [(1, 2)])
    k.retract_rows("p", [(0, 1)])
    k.assert_rows("p", [(2, 4), (1, 4)])
    k.assert_rows("e", [(4, 5)])
    closure(k)
    assert changes(k, "p", 2) == (
        {(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3)},
        {(4, 5), (3, 5), (2, 5), (1, 5)},
    )
    # (2, 3) and (3, 4) are as they were; (2, 4) and (1, 4) are explicit now, and of rank 1.
    assert k.keep_going(Sweep(("p",), BEFORE & AFTER, (), (), I, Mark.CHECKED)).new == 2
    k.commit()
    assert {row: known.marks for row, known in k.standing("p").items() if row != (1, 4)} == {
        (2, 4): FACT, (2, 3): Mark.HELD, (3, 4): Mark.HELD,
        (4, 5): Mark.HELD, (3, 5): Mark.HELD, (2, 5): Mark.HELD, (1, 5): Mark.HELD,
    }  # fmt: skip


def test_other_relations_are_read_as_they_are_now() -> None:
    k = keeper("p/2", e=[(1, 2), (2, 3)])
    k.begin()
    k.retract_rows("e", [(1, 2)])
    k.assert_rows("e", [(5, 6)])
    k.renew(["p"])
    k.keep_going(Derive((whole_form(COPY),)))
    assert k.size("p") == 0  # as before, while it is being renewed
    k.renewed(["p"])
    assert changes(k, "p", 2) == (set(), {(2, 3), (5, 6)})
    k.commit()


def test_relations_that_rules_stop_and_begin_to_derive() -> None:
    k = keeper("p/2", e=[(1, 2)])
    k.begin()
    k.assert_rows("p", [(3, 4)])
    k.derives([])
    assert changes(k, "p", 2) == (set(), {(3, 4)})
    k.derives(["p"])
    assert changes(k, "p", 2) == (set(), set())
    k.derives([])
    k.commit()
    assert held(k, "p") == {(3, 4)}


def test_a_budget() -> None:
    k = keeper("p/2", e=[(1, 2), (2, 3), (3, 4)])
    task = Tally(("p",), (), (whole(COPY, AFTER, AFTER),))
    k.begin()
    with pytest.raises(Abandoned):
        k.keep_going(task, budget=2)
    k.undo(["p"])
    assert k.standing("p") == {}
    assert k.keep_going(task, budget=3).instances == {0: 3}
    k.rollback()


def test_a_commit_with_work_left_is_our_mistake() -> None:
    k = keeper("", e=[(1, 2)])
    with pytest.raises(InternalError, match="no commit is under way"):
        k.commit()
    k.begin()
    with pytest.raises(InternalError, match="a commit is under way already"):
        k.begin()
    k.retract_rows("e", [(1, 2)])
    k.keep_going(Sweep(("e",), having(Mark.RETRACTED), (), (), I, Mark.QUEUED))
    with pytest.raises(InternalError, match=r"e\(1, 2\) was not finished"):
        k.commit()
    k.rollback()
    k.begin()
    k.renew(["e"])
    with pytest.raises(InternalError, match="e is still being renewed"):
        k.commit()
