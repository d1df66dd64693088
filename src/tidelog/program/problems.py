"""Collecting problems: the codes, and names that come near a misspelt one.

Checking never stops at the first problem. Each pass adds what it finds to one
`Problems`, and takes care that what it reports does not show up again in another
form: an unknown relation binds its variables all the same, a variable with two
types is reported once, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.syntax.errors import Diagnostic, Label
from tidelog.syntax.source import Span

CODES: dict[str, str] = {
    "TL0101": "unknown relation",
    "TL0102": "wrong number of arguments for a relation",
    "TL0103": "unknown field",
    "TL0104": "field given twice",
    "TL0105": "field missing in a head",
    "TL0106": "relation declared twice",
    "TL0107": "column declared twice",
    "TL0108": "unknown type",
    "TL0109": "unknown function",
    "TL0110": "wrong number of arguments for a function",
    "TL0111": "directive for an unknown relation",
    "TL0112": "`_` where a value is needed",
    "TL0113": "too many `group_by`s in one rule",
    "TL0114": "a primary key that cannot be",
    "TL0201": "a variable with two types",
    "TL0202": "a value of the wrong type in a column",
    "TL0203": "a literal outside the range of its type",
    "TL0204": "a function or operator on values of the wrong type",
    "TL0205": "a condition that is not a boolean",
    "TL0206": "two sides of different types",
    "TL0207": "a cast that cannot be",
    "TL0208": "a constant expression that has no value",
    "TL0301": "a head variable that nothing binds",
    "TL0302": "a variable of a negated atom that nothing binds",
    "TL0303": "a variable of an expression that nothing binds",
    "TL0304": "a variable bound twice",
    "TL0305": "negation in a cycle",
    "TL0306": "aggregation in a cycle",
    "TL0307": "a variable that is hidden by `group_by`",
    "TL0308": "an aggregate's outer variable that nothing binds",
    "TL0309": "an aggregate that is not one",
}


class Problems:
    """The problems found so far."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        span: Span | None,
        label: str = "",
        *,
        others: Iterable[Label | None] = (),
        notes: Iterable[str] = (),
        hint: str | None = None,
    ) -> None:
        """Report a problem."""
        assert code in CODES
        told = tuple(o for o in others if o is not None and o.span != span)
        self.found.append(Diagnostic(code, message, span, label, told, tuple(notes), hint))

    def in_order(self) -> list[Diagnostic]:
        """All of them in source order; those without a place come last."""
        return sorted(self.found, key=lambda d: (d.span is None, d.span.start if d.span else 0, d.code))


def quoted(names: Iterable[str]) -> str:
    """`a`, `b` and `c`."""
    items = [f"`{name}`" for name in names]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def plural(count: int, noun: str) -> str:
    """`1 column`, `2 columns`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def near(name: str, names: Iterable[str]) -> list[str]:
    """Up to three of the names that one might have meant by `name`, nearest first."""
    # Of names with one or two letters all are near each other: there only the case may differ.
    limit = len(name) // 3
    scored = []
    for candidate in names:
        if candidate == name or abs(len(candidate) - len(name)) > limit:
            continue
        if candidate.lower() == name.lower():
            scored.append((0, candidate))
        elif (distance := _distance(name.lower(), candidate.lower(), limit)) <= limit:
            scored.append((distance, candidate))
    return [candidate for _, candidate in sorted(scored)[:3]]


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """A hint that names what comes near, if anything does."""
    found = near(name, names)
    if not found:
        return None
    *rest, last = [f"`{n}`" for n in found]
    return f"did you mean {', '.join(rest)} or {last}?" if rest else f"did you mean {last}?"


def _distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap of neighbours) between two words; past the limit, any number."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            best = min(row[j] + 1, current[-1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            current.append(best)
        if min(current) > limit:
            return limit + 1
        before, row = row, current
    return row[-1]
