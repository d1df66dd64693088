"""Names that come near a misspelt one."""

from __future__ import annotations

import pytest

from tidelog.program.problems import did_you_mean, near


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("q", ["a", "b", "Q", "p"], ["Q"]),
        ("ab", ["a", "b", "ac", "abc", "AB"], ["AB"]),
        ("edg", ["edge", "egd", "dog"], ["edge", "egd"]),
        ("parnet", ["parent", "planet", "pa"], ["parent", "planet"]),
        ("string_length", ["string_len", "strlen"], ["string_len"]),
    ],
)
def test_near(name: str, names: list[str], found: list[str]) -> None:
    assert near(name, names) == found


def test_no_hint_for_a_short_name() -> None:
    assert did_you_mean("q", ["a", "b"]) is None
