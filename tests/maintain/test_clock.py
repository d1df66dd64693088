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


def test_at_first_changes_are_taken_to_cost_alike(patient: Times) -> None:
    assert patient.tell((0.5, 1 / 8)) == pytest.approx(4.0)


def test_portions_that_share_their_work_promise_more_of_it(patient: Times) -> None:
    assert patient.tell((0.5, 1 / 8), (1.0, 1 / 4), (1.5, 1 / 2), (1.8, 1 / 2)) == pytest.approx(1.8 * 1.2)
    assert patient.tell((2.0, 1.0)) == pytest.approx(2.0)


def test_it_never_takes_more_than_twice_as_long_for_twice_as_many(patient: Times) -> None:
    assert patient.tell((0.1, 1 / 4), (1.0, 1 / 2), (9.0, 1 / 2)) == pytest.approx(18.0)


def test_a_new_phase_is_foreseen_by_itself(patient: Times) -> None:
    patient.tell((1.0, 1 / 2), (2.0, 1.0), (3.0, 1.0))
    assert patient.tell((3.1, 1 / 4)) == pytest.approx(3.0 + 0.1 * 4)


def test_it_ends_what_is_foreseen_to_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch, Allowance(0.1, 1.0))
    times.tell((0.09, 1 / 16))  # would be 1.44, but that is too early to tell
    times.tell((0.12, 1 / 8))
    times.tell((0.2, 1 / 4))
    with pytest.raises(Abandoned):
        times.tell((0.3, 1 / 4))  # 0.3 after 0.2, so 0.3 x 1.5 x 1.5 is still bearable; 0.36 is not
        times.tell((0.36, 1 / 4))


def test_without_portions_the_time_is_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch, Allowance(0.1))
    times.tell((0.05, 1.0), (0.1, 1.0))
    with pytest.raises(Abandoned):
        times.tell((0.11, 1.0))
