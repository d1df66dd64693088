"""Which style a program is written in, and what it calls the types.

A quick look over the text, before it is parsed: `^` and `float` mean different
things in the two styles, so the style has to be known first.
"""

from __future__ import annotations

import re

from tidelog.syntax.ast import Dialect
from tidelog.syntax.errors import Diagnostic, Label
from tidelog.syntax.source import Source, Span

# Every alternative begins with a plain character, which makes the search fast.
_SIGN = re.compile(
    r'"(?:[^"\\\n]++|\\[^\n])*+"?(?:[\s,]*+"(?:[^"\\\n]++|\\[^\n])*+"?)*+'  # strings, also in a row
    r"|//[^\n]*+"
    r"|/\*(?:[\s\S]*?\*/|[\s\S]*)"
    r"|\.(?:decl|input|output|printsize|type|comp|init|include|functor|pragma)(?![\w?])(?!\s*=)"
    r"|r(?<![\w?]r)elation(?=[ \t]+[^\W\d])"
    r"|==|n(?<![\w?]n)ot(?![\w?])|v(?<![\w?]v)ar(?=\s)"
)


def recognise(source: Source) -> tuple[Dialect, list[Diagnostic]]:
    """The style of the declarations; a problem where both styles are used."""
    first: dict[str, Span] = {}  # the first sign of each kind: '.', 'r', or something milder
    for match in _SIGN.finditer(source.text):
        letter = match[0][0]
        if letter not in '"/' and letter not in first:
            first[letter] = Span(source, match.start(), match.end())
            if "." in first and "r" in first:
                break
    souffle, ddlog = first.get("."), first.get("r")
    if souffle is not None and ddlog is not None:
        earlier, later = sorted((souffle, ddlog), key=lambda span: span.start)
        problem = Diagnostic(
            "TL0002",
            "declarations of both styles in one program",
            later,
            "here the other style begins",
            (Label(earlier, "the program began in this style"),),
            hint="write all declarations either as '.decl r(x: number)' or as 'relation R(x: s64)'",
        )
        return (Dialect.SOUFFLE if earlier is souffle else Dialect.DDLOG), [problem]
    if souffle is not None:
        return Dialect.SOUFFLE, []
    return (Dialect.DDLOG if first else Dialect.SOUFFLE), []


_SOUFFLE_NAMES = {"number": "s64", "unsigned": "u64", "symbol": "string", "float": "double"}
_WRITTEN_NAMES = {canonical: written for written, canonical in _SOUFFLE_NAMES.items()}
_COMMON_NAMES = {name: _SOUFFLE_NAMES[name] for name in ("number", "unsigned", "symbol")}
# The words of a type that are names of types: of a struct `{x: s64}`, not the names of its fields.
_TYPE_WORDS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\w?<>]++(?!:)')
_SIZED = re.compile(r"(bit|signed)\s*<\s*([0-9]{1,9})\s*>\Z")


def canonical_type(word: str, dialect: Dialect) -> str:
    """The canonical name of a type: `number` is `s64`, `bit<32>` is `u32`. Unknown names stay."""
    if match := _SIZED.match(word):
        bits = int(match[2])
        if bits in (8, 16, 32, 64, 128):
            return f"{'s' if match[1] == 'signed' else 'u'}{bits}"
        return f"{match[1]}<{bits}>"
    return (_SOUFFLE_NAMES if dialect is Dialect.SOUFFLE else _COMMON_NAMES).get(word, word)


def named_types(name: str) -> list[str]:
    """The types that a canonical type name is made of: of `{x: [s64]}` it is `s64`."""
    return [word for word in _TYPE_WORDS.findall(name) if word[0] != '"']


def written_type(name: str, dialect: Dialect) -> str:
    """A canonical type name as the dialect's users write it."""
    if dialect is not Dialect.SOUFFLE:
        return name
    return _TYPE_WORDS.sub(lambda word: _WRITTEN_NAMES.get(word[0], word[0]), name)
