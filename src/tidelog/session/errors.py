"""Errors of using a database, beside those of programs and data."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from tidelog.syntax.errors import TidelogError


class UnknownRelationError(TidelogError, KeyError):
    """A relation that the program does not have; near misses are suggested."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = list(known)
        message = f"error[TL0506]: there is no relation {name}"
        if names:
            message += f"\n  = note: the relations are {', '.join(names)}"
        near = get_close_matches(str(name), names, n=3)
        if near:
            message += f"\n  = hint: did you mean {' or '.join(near)}?"
        self.message = message
        super().__init__(message)

    def __str__(self) -> str:  # a KeyError would show the message quoted, on one line
        return self.message
