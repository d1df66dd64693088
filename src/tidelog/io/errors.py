"""Messages about facts, in one form.

    error[TL0501]: cannot read the facts of edge: 2 malformed rows
      --> data/edge.facts:3: column 2 (to): 'abc' is not an s64
      --> data/edge.facts:7: 3 columns instead of 2 (from: s64, to: s64)
      = note: ...

Codes: TL0501 malformed rows of a file, TL0502 no facts file, TL0503 a file that cannot
be read or written, TL0504 wrong rows given from Python, TL0505 facts that disagree with
the types earlier facts gave, TL0506 an unknown relation, TL0507 a wrong option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidelog.io.values import shown
from tidelog.program.model import Column
from tidelog.syntax.errors import DataError

MOST_SHOWN = 10
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .*")


class Problems:
    """The wrong rows found so far; enough of them end the search."""

    def __init__(self, heading: str, code: str, what: str) -> None:
        self.heading, self.code, self.what = heading, code, what
        self.found: list[str] = []
        self.notes: list[str] = []
        self.hint: str | None = None

    def add(self, place: str, text: str) -> None:
        """Note a wrong row; raises when there are enough to show."""
        self.found.append(f"  --> {place}: {text}")
        if len(self.found) == MOST_SHOWN:
            raise self.error(cut=True)

    def raise_if_any(self) -> None:
        """Raise what was found, if anything was."""
        if self.found:
            raise self.error()

    def error(self, *, cut: bool = False) -> DataError:
        """The error of everything found."""
        count = len(self.found)
        rows = f"{count} {self.what} row{'s' if count > 1 else ''}"
        notes = [*self.notes, *(["what follows was not looked at: there may be more"] if cut else [])]
        return data_error(
            self.code, f"{self.heading}: {'at least ' if cut else ''}{rows}", self.found, notes, self.hint
        )


def data_error(
    code: str, message: str, lines: Sequence[str] = (), notes: Sequence[str] = (), hint: str | None = None
) -> DataError:
    """A DataError in the common form."""
    parts = [f"error[{code}]: {message}", *lines, *(f"  = note: {note}" for note in notes)]
    if hint is not None:
        parts.append(f"  = hint: {hint}")
    return DataError("\n".join(parts))


def column_place(index: int, column: Column) -> str:
    """A column for a message: its number, counted from 1, and its name."""
    return f"column {index + 1} ({column.name})"


def wrong_value(index: int, column: Column, value: object, reason: str) -> str:
    """A sentence about a value that does not fit its column."""
    return f"{column_place(index, column)}: {shown(value)} {reason}"


def wrong_arity(count: int, columns: Sequence[Column]) -> str:
    """A sentence about a row that is too short or too long."""
    expected = ", ".join(f"{c.name}: {c.type}" for c in columns)
    return f"{count} column{'s' if count != 1 else ''} instead of {len(columns)} ({expected})"


def some_match(count: int, columns: Sequence[Column]) -> str:
    """A sentence about names of which some are those of columns: to go by position would be a guess."""
    return f"the names match {count} of {len(columns)} columns only"


def said(error: Exception) -> str:
    """The line of a Spark error that tells most: one that begins with the name of a condition."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    found = (_CONDITION.search(line) for line in lines)
    return next((named[0] for named in found if named), lines[0])
