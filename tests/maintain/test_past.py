"""What `auto` remembers of updates, and what it expects of the next one."""

from __future__ import annotations

import pytest

from tidelog.maintain.past import (
    AGAIN,
    ANYWAY_SECONDS,
    COMPARED,
    DROPPED_SECONDS,
    FALLING,
    FASTEST,
    FEW_SHARE,
    FIRST_SHARE,
    FORGIVING,
    GLANCE_SHARE,
    KNOWN_SHARE,
    LEAST_SECONDS,
    MOST_SHARE,
    PROBE_SHARE,
    SLOWEST,
    SPEED,
    WORTH_SHARE,
    Allowance,
    Past,
)


def test_nothing_is_expected_at_first() -> None:
    past = Past(1.0)
    assert past.expected(1, 0) is None
    past.learn(1, 0, 800, 800 / SPEED)
    assert past.expected(1, 0) == pytest.approx(800 / SPEED)
    assert past.expected(9, 0) == pytest.approx(7_200 / SPEED)
    assert past.expected(0, 1) is None


def test_sizes_are_told_apart() -> None:
    past = Past(1.0)
    past.learn(1, 0, 800, 800 / SPEED)
    assert past.knows(1, 0)
    assert not past.knows(100, 0)
    assert past.expected(100, 0) == pytest.approx(80_000 / SPEED)  # as far as one can tell
    past.learn(100, 0, 1_000, 1_000 / SPEED)
    assert past.knows(100, 0)
    assert past.expected(100, 0) == pytest.approx(1_000 / SPEED)
    assert past.expected(1, 0) == pytest.approx(800 / SPEED)
    past.learn(2_000, 0, 9_000_000, 9_000_000 / SPEED)
    past.hope(2_000, 0)
    assert past.expected(100, 0) == pytest.approx(1_000 / SPEED)


def test_commits_that_lose_and_gain_teach_both() -> None:
    past = Past(1.0)
    past.learn(4, 4, 1_000, 1_000 / SPEED)
    assert past.expected(4, 4) == pytest.approx(1_000 / SPEED)
    past.learn(0, 8, 100, 100 / SPEED)
    lost, gained = past.expected(1, 0), past.expected(0, 1)
    assert lost is not None
    assert gained is not None
    assert gained < lost


def test_an_abandoned_update_never_makes_the_next_look_cheaper() -> None:
    past = Past(1.0)
    past.learn(1, 0, 1_000_000, 1_000_000 / SPEED)
    past.learn(1, 0, 1_000, 1_000 / SPEED, at_least=True)
    before = past.expected(1, 0)
    assert before == pytest.approx(1_000_000 / SPEED)
    past.learn(1, 0, 5_000_000, 5_000_000 / SPEED, at_least=True)
    after = past.expected(1, 0)
    assert after is not None
    assert before is not None
    assert after > before


def test_updates_that_are_not_tried_seem_cheaper_in_time() -> None:
    past = Past(1.0)
    past.learn(1, 0, 1_000_000, 1_000_000 / SPEED)
    before = past.expected(1, 0)
    past.hope(1, 0)
    after = past.expected(1, 0)
    assert before is not None
    assert after is not None
    assert after < before


@pytest.mark.parametrize(("seconds", "bound"), [(60.0, SLOWEST), (1e-9, FASTEST)])
def test_a_stalled_machine_does_not_spoil_what_is_expected(seconds: float, bound: float) -> None:
    past = Past(1.0)
    for _ in range(50):
        past.learn(1, 0, 10_000, seconds)
    assert past.expected(1, 0) == pytest.approx(10_000 / bound)
    for _ in range(50):
        past.learn(1, 0, 10_000, 10_000 / SPEED)
    assert past.expected(1, 0) == pytest.approx(10_000 / SPEED, rel=0.1)


def test_losses_and_gains_have_costs_of_their_own() -> None:
    past = Past(1.0)
    for _ in range(50):
        past.learn(20, 0, 40_000, 40_000 / SPEED)
        past.learn(0, 20, 40_000, 20_000 / SPEED)
    assert past.expected(20, 0) == pytest.approx(40_000 / SPEED)
    assert past.expected(0, 20) == pytest.approx(20_000 / SPEED)


def test_recomputing_takes_longer_when_there_is_more() -> None:
    past = Past(1.0, tuples=1_000)
    assert past.whole(1_000 + int(SPEED)) == pytest.approx(2.0)
    assert past.whole(10) == 1.0
    unknown = Past(1.0)
    assert unknown.whole(5_000) == 1.0
    assert unknown.whole(5_000 + int(SPEED)) == pytest.approx(2.0)


def test_a_first_evaluation_has_nothing_to_compare() -> None:
    past = Past(1.0, compared=False)
    for _ in range(2):
        assert past.whole(int(COMPARED)) == pytest.approx(2.0)


def test_the_first_update_of_many_changes_may_take_little() -> None:
    past = Past(1.0)
    past.learn(5, 0, 80_000, 80_000 / SPEED)
    assert past.allowed(1.0, past.expected(500, 0), 500, 0) == Allowance(FIRST_SHARE, 1.0)
    past.learn(500, 0, 4_000_000, 4_000_000 / SPEED)
    allowed = past.allowed(1.0, past.expected(500, 0), 500, 0)
    assert allowed is not None
    assert allowed.least == pytest.approx(1.0)
    assert allowed.most == 1.0


@pytest.mark.parametrize(("foreseen", "expected"), [(1.3, 1.3), (0.4, 0.4), (0.1, 0.15), (0.0, 0.15)])
def test_what_was_foreseen_of_an_update_is_expected_of_the_next(foreseen: float, expected: float) -> None:
    past = Past(1.0)
    past.give_up(100, 0, 800_000, 0.1, foreseen, decisive=False)
    assert past.expected(100, 0) == pytest.approx(expected)


def few(past: Past, changes: int = 1) -> float:
    """The seconds that a few changes may take, where recomputing takes one."""
    allowed = past.allowed(1.0, past.expected(changes, 0), changes, 0)
    assert allowed is not None
    assert allowed.most == 0.0
    return allowed.least


def test_few_changes_are_always_tried() -> None:
    past = Past(1.0)
    given = []
    for _ in range(AGAIN):
        given.append(few(past))
        past.give_up(1, 0, int(given[-1] * SPEED), given[-1], 2 * given[-1], decisive=False)
    assert given == pytest.approx([FEW_SHARE - DROPPED_SECONDS, PROBE_SHARE, *[GLANCE_SHARE] * (AGAIN - 2)])
    assert few(past) == pytest.approx(WORTH_SHARE)
    past.learn(1, 0, 100, 100 / SPEED)  # and one that is cheap tells
    assert few(past) == pytest.approx(FEW_SHARE - DROPPED_SECONDS)


@pytest.mark.parametrize("cost", [0.05, 0.1, 0.2, 0.3, 0.34])
def test_changes_that_all_cost_the_same_and_pay_are_updated_in_the_end(cost: float) -> None:
    past = Past(1.0)
    spent = 0.0
    for _ in range(100):
        allowed = few(past)
        if allowed >= cost:
            past.learn(1, 0, int(cost * SPEED), cost)
            spent += cost
        else:
            past.give_up(1, 0, int(1.15 * allowed * SPEED), 1.15 * allowed, 2.3 * allowed, decisive=False)
            spent += 1.0 + 1.15 * allowed
    assert spent < 100 * cost + 2 * AGAIN


def test_hopeless_changes_cost_little_more_than_recomputing() -> None:
    past = Past(1.0)
    spent = 0.0
    for _ in range(80):
        allowed = few(past)
        past.give_up(1, 0, int(allowed * SPEED), allowed, 2 * allowed, decisive=False)
        spent += allowed
    assert spent < 80 * 0.1


def test_little_is_not_waited_for_but_never_much_longer_than_for_recomputing() -> None:
    past = Past(0.02)
    assert past.allowed(0.02, None, 2, 0) == Allowance(KNOWN_SHARE * 0.02)
    assert past.allowed(0.07, None, 2, 0) == Allowance(LEAST_SECONDS)
    assert past.allowed(0.001, None, 2, 0) == Allowance(ANYWAY_SECONDS)
    assert past.allowed(0.07, None, 1, 0) == Allowance(FEW_SHARE * 0.07 - DROPPED_SECONDS)
    assert past.allowed(0.06, None, 1, 0) == Allowance(GLANCE_SHARE * 0.06)
    assert past.allowed(1.0, None, 2, 0) == Allowance(FEW_SHARE)
    assert past.allowed(0.02, None, 1, 0) == Allowance(ANYWAY_SECONDS)
    assert past.allowed(0.001, None, 100, 0) == Allowance(ANYWAY_SECONDS, 0.001)


def test_few_changes_take_little_more_than_recomputing_with_the_indexes_they_need() -> None:
    past = Past(1.0, after=0.098)
    assert past.missing
    assert few(past, changes=2) == pytest.approx(MOST_SHARE - 0.098)
    assert past.leaves_time(0.051)
    assert not past.leaves_time(0.053)
    past.missing = False
    assert few(past, changes=2) == pytest.approx(FEW_SHARE)
    past.after = 0.5
    assert not past.leaves_time(0.0)
    past.missing = True
    assert few(past, changes=2) == pytest.approx(GLANCE_SHARE)


def test_few_changes_that_often_take_long_are_given_time() -> None:
    past = Past(1.0)
    past.learn(1, 0, 1_600_000, 0.2)
    assert few(past) == pytest.approx(WORTH_SHARE)


def test_what_failed_is_not_tried_with_more() -> None:
    past = Past(1.0)
    past.give_up(100, 0, 800_000, 0.1, 0.3, decisive=False)
    before = past.expected(500, 0)
    assert before == pytest.approx(1.5)
    assert past.allowed(1.0, before, 500, 0) is None
    past.hope(500, 0)  # so that it is tried some time
    assert past.expected(500, 0) == pytest.approx(FORGIVING * 1.5)
    past.learn(100, 0, 2_400_000, 2_400_000 / SPEED)  # one has come to an end, and cost as much
    assert past.allowed(1.0, past.expected(500, 0), 500, 0) is not None


def test_an_update_that_was_given_much_and_given_up_is_not_tried_for_some_time() -> None:
    past = Past(1.0)
    past.give_up(100, 0, 4_800_000, 0.6, 0.7, decisive=True)
    recomputed = 0
    while past.allowed(1.0, past.expected(100, 0), 100, 0) is None:
        past.hope(100, 0)
        recomputed += 1
    assert 10 <= recomputed <= 20


def test_what_recomputing_has_moved_tells_what_an_update_takes() -> None:
    past = Past(10.0)
    past.guess(1_000, 5_000_000, 50_000_000)
    assert past.expected(0, 1_000) == pytest.approx(4.0)
    assert past.expected(1_000, 0) == pytest.approx(5_000_000 / FALLING)
    past.learn(0, 1_000, 800, 800 / SPEED)
    past.guess(1_000, 45_000_000, 50_000_000)  # an update has been seen: no need to guess
    expected = past.expected(0, 1_000)
    assert expected == pytest.approx(800 / SPEED)


def test_recomputing_that_keeps_indexes_is_not_dearer_for_them() -> None:
    past = Past(1.0, after=0.3)
    past.made_ready(0.3)
    past.learn(100, 0, int(1.2 * SPEED), 1.2)
    assert past.allowed(1.0, past.expected(100, 0), 100, 0) is not None
    past.losing = False
    assert past.allowed(1.0, past.expected(100, 0), 100, 0) is None
    past.made_ready(0.0)  # there was little to be made
    assert past.after == pytest.approx(FORGIVING * 0.3)
