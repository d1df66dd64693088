"""What `auto` remembers of updates, and what it expects of the next one."""

from __future__ import annotations

import pytest

from tidelog.maintain.auto import FASTEST, SLOWEST, SPEED, Past


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
    past.hope(2_000)
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
    past.hope(1)
    after = past.expected(1, 0)
    assert before is not None
    assert after is not None
    assert after < before


@pytest.mark.parametrize(("seconds", "bound"), [(60.0, SLOWEST), (1e-9, FASTEST)])
def test_a_stalled_machine_does_not_spoil_the_speed(seconds: float, bound: float) -> None:
    past = Past(1.0)
    for _ in range(50):
        past.learn(1, 0, 10_000, seconds)
    assert past.speed(1, 0) == pytest.approx(bound)
    for _ in range(50):
        past.learn(1, 0, 10_000, 10_000 / SPEED)
    assert past.speed(1, 0) == pytest.approx(SPEED, rel=0.1)


def test_few_tuples_do_not_tell_the_speed() -> None:
    past = Past(1.0)
    past.learn(1, 0, 10, 1.0)
    assert past.speed(1, 0) == SPEED


def test_losses_and_gains_have_speeds_of_their_own() -> None:
    past = Past(1.0)
    for _ in range(50):
        past.learn(20, 0, 40_000, 40_000 / SPEED)
        past.learn(0, 20, 40_000, 20_000 / SPEED)
    assert past.expected(20, 0) == pytest.approx(40_000 / SPEED)
    assert past.expected(0, 20) == pytest.approx(20_000 / SPEED)
    assert past.speed(0, 20) == pytest.approx(2 * SPEED)


def test_recomputing_takes_longer_when_there_is_more() -> None:
    past = Past(1.0, tuples=1_000)
    assert past.whole(1_000 + int(SPEED)) == pytest.approx(2.0)
    assert past.whole(10) == 1.0
    unknown = Past(1.0)
    assert unknown.whole(5_000) == 1.0
    assert unknown.whole(5_000 + int(SPEED)) == pytest.approx(2.0)
