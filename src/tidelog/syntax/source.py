"""Where text came from: sources and spans.

A `Span` is a half-open range of characters of one `Source`. Every node of the
syntax tree and every rule of a checked program carries one, so that any later
stage can point at the text that caused a problem.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Source:
    """A named text. `name` is a path, or a label such as `<text>`."""

    name: str
    text: str

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line begins."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (counted from 1), without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class Span:
    """The characters `start` (inclusive) to `end` (exclusive) of a source."""

    source: Source = field(repr=False)
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.end]

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"
