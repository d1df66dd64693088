"""Errors as objects: what they carry, and how much of it they print."""

from __future__ import annotations

import pickle

import pytest

from tidelog.syntax.errors import (
    DataError,
    Diagnostic,
    EvaluationError,
    InternalError,
    Label,
    ProgramError,
    ResourceError,
    TidelogError,
    UnsupportedError,
)
from tidelog.syntax.source import Source, Span

SOURCE = Source("p.dl", "first\n" * 12)
FIRST, LAST = Span(SOURCE, 0, 5), Span(SOURCE, 60, 65)


@pytest.mark.parametrize(
    "error",
    [
        TidelogError("any"),
        ProgramError(
            [Diagnostic("TL0101", "wrong", FIRST, "here", (Label(LAST, "there"),), ("note",), "hint")]
        ),
        DataError("a row"),
        EvaluationError("division by zero", "p(x) :- q(x).", {"x": 7}, FIRST),
        EvaluationError("division by zero", "p(x) :- q(x).", {}),
        ResourceError("10 GB"),
        ResourceError(),
        UnsupportedError("no"),
        InternalError("oh"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickle(error: TidelogError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert repr(vars(again)) == repr(vars(error))  # sources are equal only to themselves


def test_only_the_first_problems_are_printed() -> None:
    error = ProgramError([Diagnostic("TL0101", f"wrong {i}") for i in range(50)])
    assert len(error.diagnostics) == 50
    lines = str(error).split("\n\n")
    assert lines[:20] == [f"error[TL0101]: wrong {i}" for i in range(20)]
    assert lines[20:] == ["error[TL0000]: 30 more problems, not shown"]


def test_excerpts_share_a_gutter() -> None:
    assert Diagnostic("TL0101", "wrong", FIRST, "here", (Label(LAST, "there"),)).render() == (
        "error[TL0101]: wrong\n"
        "  --> p.dl:1:1\n"
        "   |\n"
        " 1 | first\n"
        "   | ^^^^^ here\n"
        "  ::: p.dl:11:1\n"
        "   |\n"
        "11 | first\n"
        "   | ----- there"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a" * 98, f"'{'a' * 98}'"),
        ("a" * 5_000, f"'{'a' * 99}... (5,000 characters)"),
        (10**2_000, f"1{'0' * 99}... (2,001 digits)"),
    ],
)
def test_long_values_are_cut(value: object, shown: str) -> None:
    error = EvaluationError("no", "p(x) :- q(x).", {"x": value})
    assert str(error).endswith(f"  = note: with x = {shown}")
    assert error.values == {"x": value}
