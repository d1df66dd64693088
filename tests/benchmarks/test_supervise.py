"""Children are followed, and stopped where they go too far; what they did before is kept."""

from __future__ import annotations

import time

import pytest

from benchmarks.supervise import Event, Limits, supervise

AMPLE = Limits(seconds=50, megabytes=10_000)


def follow(behaviour: str, limits: Limits) -> tuple[str | None, list[tuple[object, object]]]:
    events: list[Event] = []
    stopped = supervise("tests.benchmarks.talking", [behaviour], limits, events.append)
    return stopped, [(event["what"], event.get("number", event.get("problems"))) for event in events]


def test_what_is_done_is_seen() -> None:
    assert follow("end", AMPLE) == (None, [("one", 1), ("two", 2)])


@pytest.mark.parametrize(
    ("behaviour", "limits", "reason"),
    [
        ("sleep", Limits(seconds=0.5, megabytes=10_000), "two: over 0.5 s"),
        ("grow", Limits(seconds=50, megabytes=300), "two: over 300 MB"),
    ],
)
def test_limits(behaviour: str, limits: Limits, reason: str) -> None:
    began = time.monotonic()
    assert follow(behaviour, limits) == (reason, [("one", 1)])
    assert time.monotonic() - began < 30


def test_failure_is_a_problem() -> None:
    assert follow("fail", AMPLE) == (None, [("one", 1), ("failure", ["ValueError: no two"])])
