"""Everything that can go wrong, as one tree of exceptions.

    TidelogError                 the base: catch this to catch them all
    ├── ProgramError             the program is wrong (one or more diagnostics)
    ├── DataError                a row or a file of facts is wrong
    ├── EvaluationError          a rule failed on some values (overflow, division by zero, ...)
    ├── ResourceError            there was not enough memory
    ├── UnsupportedError         asked for something this executor does not do
    └── InternalError            our own bug; the message asks for a report

A `Diagnostic` is one problem in a program: a stable code, a message, the span it
points at, further spans that explain it, notes, and a hint where there is one.
`render` turns it into text with the source line and carets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.syntax.source import Span


class TidelogError(Exception):
    """The base of every error Tidelog raises. All of them can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception pickles as a call with its message, which is not what our constructors take.
        return _same_error, (type(self), self.args), self.__dict__


def _same_error(kind: type[TidelogError], args: tuple[object, ...]) -> TidelogError:
    return kind.__new__(kind, *args)


@dataclass(frozen=True)
class Label:
    """A span with a few words on what is there."""

    span: Span
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One problem: `code` is stable (`TL0101`), `message` is one line."""

    code: str
    message: str
    span: Span | None = None
    label: str = ""
    others: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    hint: str | None = None

    def render(self) -> str:
        """The diagnostic as text: heading, excerpts with carets, notes, hint."""
        lines = [f"error[{self.code}]: {self.message}"]
        spans = [*([self.span] if self.span is not None else []), *(other.span for other in self.others)]
        gutter = max((len(str(span.source.position(span.start)[0])) for span in spans), default=0)
        if self.span is not None:
            lines += _excerpt(self.span, self.label, "^", gutter, first=True)
        for other in self.others:
            lines += _excerpt(other.span, other.text, "-", gutter, first=False)
        lines += [f"  = note: {note}" for note in self.notes]
        if self.hint is not None:
            lines.append(f"  = hint: {self.hint}")
        return "\n".join(lines)


SHOWN_PROBLEMS = 20
SHOWN_VALUE = 100
EXCERPT_WIDTH = 120


def _excerpt(span: Span, label: str, mark: str, gutter_width: int, *, first: bool) -> list[str]:
    """The source line of a span with `mark`s under it; a long line is cut around the span."""
    source = span.source
    line_number, column = source.position(span.start)
    text = source.line(line_number)
    begin = column - 1
    width = max(1, min(span.end - span.start, len(text) - begin))
    cut = max(0, begin - EXCERPT_WIDTH // 2) if len(text) > EXCERPT_WIDTH else 0
    shown = text[cut : cut + EXCERPT_WIDTH]
    width = max(1, min(width, EXCERPT_WIDTH - (begin - cut)))
    shown = "".join(c if c.isprintable() else ("\t" if c == "\t" else "\ufffd") for c in shown)
    pad = "".join("\t" if c == "\t" else " " for c in shown[: begin - cut])
    gutter = " " * gutter_width
    arrow = "-->" if first else ":::"
    return [
        f"{gutter}{arrow} {source.name}:{line_number}:{column}",
        f"{gutter} |",
        f"{line_number:>{gutter_width}} | {shown}",
        f"{gutter} | {pad}{mark * width}{' ' + label if label else ''}",
    ]


class ProgramError(TidelogError):
    """The program has problems; `diagnostics` lists them in source order, the message shows the first."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        shown = self.diagnostics
        if len(shown) > SHOWN_PROBLEMS + 1:  # a last one takes no more room than to say that there is one
            more = len(shown) - SHOWN_PROBLEMS
            shown = (*shown[:SHOWN_PROBLEMS], Diagnostic("TL0000", f"{more} more problems, not shown"))
        super().__init__("\n\n".join(d.render() for d in shown))


class DataError(TidelogError):
    """A fact cannot be read: the message names relation, place, column and expected type."""


class EvaluationError(TidelogError):
    """A rule failed while it ran: `rule` is its text, `values` the bindings it failed on."""

    def __init__(self, message: str, rule: str, values: dict[str, object], span: Span | None = None) -> None:
        self.message, self.rule, self.values, self.span = message, rule, values, span
        shown = ", ".join(f"{name} = {_short(value)}" for name, value in values.items())
        place = f"\n  --> {span}" if span is not None else ""
        super().__init__(
            f"error[TL0401]: {message}{place}\n  = note: in the rule {rule}\n"
            f"  = note: with {shown or 'no variables'}"
        )


def _short(value: object) -> str:
    """The value as Python writes it; a long one is cut, and its length told."""
    text = repr(value)
    if len(text) <= SHOWN_VALUE:
        return text
    length = f"{len(value):,} characters" if isinstance(value, str) else f"{len(text):,} digits"
    return f"{text[:SHOWN_VALUE]}... ({length})"


class ResourceError(TidelogError):
    """The machine has not enough of something; what was there before is as it was."""

    def __init__(self, detail: str = "") -> None:
        note = f"\n  = note: {detail}" if detail else ""
        super().__init__(f"error[TL0601]: out of memory{note}")


class UnsupportedError(TidelogError):
    """A feature that this executor or installation does not have; the message says what to do."""


class InternalError(TidelogError):
    """A bug in Tidelog itself."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}\nThis is a bug in Tidelog, not in your program: "
            "please report it with the program that caused it."
        )
