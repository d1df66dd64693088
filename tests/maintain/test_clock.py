"""The clock of `auto`: what it foresees of an update, and when it ends one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.maintain import clock
from tidelog.maintain.past import Allowance
from tidelog.plan.executor import Progress, unwatched
from tidelog.plan.maintenance import Abandoned


class Times:
    """A clock by hand, and what it is told: (seconds, share of the changes taken up)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, allowance: Allowance) -> None:
        self.now = 0.0
        monkeypatch.setattr(clock, "thread_time", lambda: self.now)
        keeper: Any = SimpleNamespace(patience=0.0, preparing=0.0)
        self.clock = clock.Clock(keeper, unwatched, allowance)

    def tell(self, *moments: tuple[float, float]) -> float:
        for self.now, share in moments:
            self.clock(Progress(0, 0, share))
        return self.clock.foreseen()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch, Allowance(0.0, 1e9))


def test_after_the_first_portion_changes_share_nothing(patient: Times) -> None:
    assert patient.tell((0.5, 1 / 8)) == pytest.approx(0.5 * 8)


def test_portions_that_share_their_work_promise_more_of_it(patient: Times) -> None:
    assert patient.tell((0.5, 1 / 8), (1.0, 1 / 4), (1.5, 1 / 2), (1.8, 1 / 2)) == pytest.approx(1.8 * 1.2)


def test_the_last_portion_is_like_the_one_before_it(patient: Times) -> None:
    assert patient.tell((1.0, 1 / 4), (1.0, 1 / 2), (3.0, 1.0), (4.0, 1.0)) == pytest.approx(3.0 * 3)


def test_what_is_late_will_be_later(patient: Times) -> None:
    assert patient.tell((1.0, 1 / 2), (2.0, 1.0), (2.5, 1.0)) == pytest.approx(4.0)
    assert patient.tell((5.0, 1.0)) == pytest.approx(6.0)


def test_one_dear_change_is_not_taken_for_a_rule(patient: Times) -> None:
    assert patient.tell((0.1, 1 / 8), (1.0, 1 / 4), (9.0, 1 / 4)) == pytest.approx(36.0)


def test_a_new_phase_is_foreseen_by_itself(patient: Times) -> None:
    patient.tell((1.0, 1 / 2), (2.0, 1.0), (3.0, 1.0))
    assert patient.tell((3.1, 1 / 4)) == pytest.approx(3.0 + 0.1 * 4)


def test_few_changes_have_no_more_time_for_a_new_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch, Allowance(0.1))
    times.tell((0.08, 1.0), (0.09, 1 / 8))
    with pytest.raises(Abandoned):
        times.tell((0.11, 1 / 8))


def test_it_ends_what_has_too_much_left(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch, Allowance(0.1, 1.0))
    times.tell((0.09, 1 / 16))  # 1.35 are left, but that is too early to tell
    times.tell((0.12, 1 / 8), (0.2, 1 / 4), (0.36, 1 / 4))  # 0.36 x 1.8 x 1.8 in all: 0.81 are left
    with pytest.raises(Abandoned):
        times.tell((0.39, 1 / 4))  # 0.39 x 1.95 x 1.95: 1.09 are left


def test_the_longer_it_takes_the_less_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch, Allowance(0.1, 1.0))
    times.tell((0.2, 1 / 2), (0.45, 1.0), (0.9, 1.0), (1.2, 1.0))  # 0.3 late, 0.3 left
    with pytest.raises(Abandoned):
        times.tell((1.3, 1.0))  # 0.4 left and 0.65 weary


def test_without_portions_the_time_is_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch, Allowance(0.1))
    times.tell((0.05, 1.0), (0.1, 1.0))
    with pytest.raises(Abandoned):
        times.tell((0.11, 1.0))


@pytest.mark.parametrize(("patience", "worked", "took"), [(0.0, 2.0, 2.0), (0.0, 9.0, 3.0), (20.0, 2.0, 3.0)])
def test_a_stopwatch_goes_by_the_work_of_this_process_unless_it_is_done_elsewhere(
    monkeypatch: pytest.MonkeyPatch, patience: float, worked: float, took: float
) -> None:
    now = {"perf_counter": 5.0, "process_time": 1.0}
    for name in now:
        monkeypatch.setattr(clock, name, lambda name=name: now[name])
    keeper: Any = SimpleNamespace(patience=patience)
    stopwatch = clock.Stopwatch(keeper)
    now["perf_counter"] += 3.0
    now["process_time"] += worked
    assert stopwatch.seconds() == took
