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
