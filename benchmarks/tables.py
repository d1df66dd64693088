"""Tables for the terminal that are Markdown too, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(heading: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table, columns aligned: the first `left` to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (heading, *rows)) for i in range(len(heading))]
    rule = [("-" * width) if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = []
    for row in (heading, rule, *rows):
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def seconds(number: float | None) -> str:
    """Seconds, with about three digits that count."""
    return "" if number is None else f"{number:.{_digits(number)}f}"


def milliseconds(number: float | None) -> str:
    """Seconds as milliseconds."""
    return "" if number is None else seconds(number * 1000)


def ratio(number: float | None) -> str:
    """How many times as much."""
    return (
        ""
        if number is None
        else f"{number:.{max(2, _digits(number) - 1)}f}"
        if number < 100
        else f"{number:,.0f}"
    )


def count(number: int | float | None) -> str:
    """A whole number."""
    return "" if number is None else f"{number:,.0f}"


def _digits(number: float) -> int:
    return 1 if number >= 100 else 2 if number >= 1 else 3 if number >= 0.1 else 4 if number >= 0.001 else 5
