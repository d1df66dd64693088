from __future__ import annotations

from tests.plan.building import fails, holds, let, rule
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Version

ALL, OLD, DELTA = Version.ALL, Version.OLD, Version.DELTA


def test_linear_rule_has_one_form() -> None:
    r = rule("tc x z", holds("tc x y"), holds("edge y z"))
    assert [form.reads for form in delta_forms(r, {"tc"})] == [(DELTA, ALL)]


def test_before_the_delta_old_and_after_it_all() -> None:
    # p(x, w) :- p(x, y), e(y, u), q(u, z), not n(z), p(z, w).
    r = rule("p x w", holds("p x y"), holds("e y u"), holds("q u z"), fails("n z"), holds("p z w"))
    assert [form.reads for form in delta_forms(r, {"p", "q"})] == [
        (DELTA, ALL, ALL, ALL, ALL),
        (OLD, ALL, DELTA, ALL, ALL),
        (OLD, ALL, OLD, ALL, DELTA),
    ]


def test_a_rule_that_reads_nothing_of_its_own_has_no_delta_form() -> None:
    r = rule("p x", holds("e x"), let("y", "3"))
    assert delta_forms(r, {"p"}) == ()
    assert whole_form(r).reads == (ALL, ALL)
