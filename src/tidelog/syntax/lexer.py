"""Words: one regular expression, made from the grammar's terminals.

`words(text, at)` yields matches; `KINDS[match.lastindex]` is the terminal, and the
group of that index its text. Space and comments before a word are part of its
match, so that there is one match for each word. Whatever no terminal of the grammar
matches is a `BAD` word of its own kind, which no state of the parser accepts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict, cast

from tidelog.syntax._tables import TABLES


class _Tables(TypedDict):
    symbols: list[str]
    terminals: int
    names: dict[str, str]
    patterns: list[tuple[int, str]]
    keywords: dict[str, int]
    rules: list[tuple[int, int, str, list[int], list[int]]]
    states: list[list[tuple[int, int]]]
    start: int
    end: int


@dataclass(frozen=True)
class Grammar:
    """The tables of `generate.py`, ready for use; `shown` is how a terminal is written."""

    symbols: list[str]
    terminals: int
    shown: dict[int, str]
    keywords: dict[str, int]
    rules: list[tuple[int, int, str, list[int], list[int]]]
    states: list[dict[int, int]]
    start: int
    end: int


_tables = cast(_Tables, json.loads(TABLES.replace("\n", "")))
_number = {name: i for i, name in enumerate(_tables["symbols"])}
GRAMMAR = Grammar(
    _tables["symbols"],
    _tables["terminals"],
    {_number[name]: text for name, text in _tables["names"].items()},
    _tables["keywords"],
    _tables["rules"],
    [dict(row) for row in _tables["states"]],
    _tables["start"],
    _tables["end"],
)

END = _number["$END"]
NAME = _number["NAME"]
WILDCARD = _number["WILDCARD"]
POWER = _number["POWER"]
CARET = _number["CIRCUMFLEX"]

# Kinds of words that the grammar has no place for; numbered after its symbols.
UNCLOSED_STRING, UNCLOSED_COMMENT, UNSUPPORTED, MISTAKE, BAD = range(
    len(GRAMMAR.symbols), len(GRAMMAR.symbols) + 5
)
_STRAY = [
    (UNCLOSED_STRING, r'"[^\n]*+'),
    (UNCLOSED_COMMENT, r"/\*"),
    (
        UNSUPPORTED,
        r"\.(?:type|comp|init|include|limitsize|plan|pragma|functor|override|lattice|once)(?![\w?])(?!\s*=)",
    ),
    (MISTAKE, r":=|=>|<>|===|->"),
]
_SKIPPED = r"(?:\s++|//[^\n]*+|/\*[\s\S]*?\*/)*+"
_kinds = [*_STRAY, *_tables["patterns"], (END, r"\Z"), (BAD, r"[\s\S]")]
# A closed string is tried before an unclosed one, an unclosed comment before `/`.
_kinds.sort(key=lambda entry: entry[0] == UNCLOSED_STRING)
_kinds.sort(key=lambda entry: entry[0] == BAD)

KINDS: list[int] = [-1, *(kind for kind, _ in _kinds)]
_WORD = re.compile(_SKIPPED + "(?:" + "|".join(f"({pattern})" for _, pattern in _kinds) + ")")


def words(text: str, at: int) -> Iterator[re.Match[str]]:
    """The words of `text` from the offset `at` on, the last of kind `END`."""
    return _WORD.finditer(text, at)


# --- where to go on after a mistake ------------------------------------------

# Every alternative begins with a plain character, which makes the search fast.
_ITEM = (
    r'"(?:[^"\\\n]++|\\[^\n])*+"?(?:[\s,]*+"(?:[^"\\\n]++|\\[^\n])*+"?)*+'  # strings, also in a row
    r"|//[^\n]*+"
    r"|/\*(?:[\s\S]*?\*/|[\s\S]*)"
    r"|\.(?=\s|\Z|//|/\*)"
    r"|\.[^\W\d]\w*+\s++[^\W\d]"  # a directive, also a misspelt one
    r"|i(?<![\w?]i)nput[ \t]+relation[ \t]|o(?<![\w?]o)utput[ \t]+relation[ \t]"
    r"|r(?<![\w?]r)elation[ \t]+[^\W\d]"
)


_LINE = r"|\n[ \t]*+(?=\.|[\w?]++[ \t]*+[\w?(]|//|/\*)"
_BOUNDARY = re.compile(_ITEM)
_BOUNDARY_OR_LINE = re.compile(_ITEM + _LINE)


def next_item(text: str, at: int, *, lines: bool = False) -> int:
    """The offset at which the next item may begin: after a rule's `.`, or at a declaration.

    With `lines`, also at a line that looks like the beginning of an item.
    """
    for match in (_BOUNDARY_OR_LINE if lines else _BOUNDARY).finditer(text, at):
        if match[0] == "." or match[0][0] == "\n":
            return match.end()
        if match[0][0] not in '"/':
            return match.start()
    return len(text)
