"""The text of a script, as far as it has come and is still needed.

Lines are asked for only when the command being read needs them, so that a command is
carried out before the next one is waited for. What lies before the command is forgotten,
but for the number of its lines: a script may go on for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from tidelog.io.dat.errors import ScriptError
from tidelog.syntax.errors import Diagnostic
from tidelog.syntax.source import Source, Span

_SPACE = re.compile(r"(?:[ \t\r\n\f\v]++|#[^\n]*+)*+")
_BLANK = frozenset(("", " ", "\t", "\r", "\n", "\f", "\v", "#"))


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column of a script, both counted from 1."""

    script: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.script}:{self.line}:{self.column}"


@dataclass(frozen=True, eq=False)
class Excerpt(Source):
    """Some lines of a script, numbered as there."""

    first: int

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset in these lines."""
        line, column = super().position(offset)
        return line + self.first - 1, column

    def line(self, number: int) -> str:
        """The text of a line of the script."""
        return super().line(number - self.first + 1)


class Script:
    """Text that comes in lines. `text[at:]` has not been read yet; `at` is for readers to move."""

    def __init__(self, lines: Iterator[str], name: str = "<stdin>") -> None:
        self.name = name
        self.text = ""
        self.at = 0
        self.start = 0  # where the command begins that was read last
        self._lines = lines
        self._line = 1  # the number of the line that `text` begins with

    def more(self, needed: str = "") -> bool:
        """Take in another line, and others until one has the character `needed`; False at the end."""
        taken = []
        for line in self._lines:
            taken.append(line)
            if needed in line:
                break
        if taken:
            self.text = "".join([self.text, *taken])
        return bool(taken)

    def forget(self) -> None:
        """Let go of the lines that have been read."""
        start = self.text.rfind("\n", 0, self.at) + 1
        if start:
            self._line += self.text.count("\n", 0, start)
            self.text, self.at = self.text[start:], self.at - start
        self.start = self.at

    def drop(self) -> None:
        """Let go of all that has come so far, read or not."""
        self.at = len(self.text)
        if self.text and not self.text.endswith("\n"):
            self.text, self.at = self.text + "\n", self.at + 1
        self.forget()

    def skip(self) -> bool:
        """Go to the next word, past space and comments; False at the end of the script."""
        while True:
            if self.text[self.at : self.at + 1] not in _BLANK:
                return True
            match = _SPACE.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self.text):
                return True
            if not self.more():
                return False

    def accept(self, word: str) -> bool:
        """Go past punctuation if it comes next."""
        if self.skip() and self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past what the pattern matches next, if it does."""
        found = pattern.match(self.text, self.at) if self.skip() else None
        if found is not None:
            self.at = found.end()
        return found

    def span(self, start: int, end: int) -> Span:
        """A span of the text, which outlives it; only while the command is being dealt with."""
        return Span(Excerpt(self.name, self.text, self._line), start, end)

    def place(self, at: int) -> Place:
        """Line and column of an offset of the text."""
        column = at - self.text.rfind("\n", 0, at)
        return Place(self.name, self._line + self.text.count("\n", 0, at), column)

    def refuse(
        self, message: str, start: int, end: int, label: str = "", hint: str | None = None
    ) -> NoReturn:
        """Raise the error of a command that cannot be read."""
        raise ScriptError(Diagnostic("TL0701", message, self.span(start, end), label, hint=hint))

    def refuse_next(self, expected: str, hint: str | None = None) -> NoReturn:
        """Raise the error of something that is not what was expected here."""
        if not self.skip():
            end = len(self.text.rstrip())
            self.refuse(f"the script ends where {expected} was expected", end, end, hint=hint)
        word = _WORD.match(self.text, self.at)
        assert word is not None
        self.refuse(f"expected {expected}, found {_shown(word[0])}", word.start(), word.end(), hint=hint)


_WORD = re.compile(r'"[^"\n]*+"?|[\w.?:]++|<-|[\s\S]')


def _shown(word: str) -> str:
    return f"`{word}`" if len(word) <= 40 else f"`{word[:37]}...`"
