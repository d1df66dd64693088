"""Plain facts, read quickly.

Programs with a hundred thousand facts such as `edge(1, "a").` are common, and the
parser's tables are a slow way to read them. One regular expression finds a fact
whose arguments are simple constants; anything else is left to the grammar, which
reads these facts too, to the same nodes.
"""

from __future__ import annotations

import re

from tidelog.syntax.ast import Argument, Atom, Const, Rule
from tidelog.syntax.build import Builder
from tidelog.syntax.source import Span

_CONSTANT = r'-?[0-9]{1,18}(?:\.[0-9]{1,18})?|"[^"\\\n]*+"'
_FACT = re.compile(
    rf"\s*+((?!_\()[^\W\d]\w*+)\((?:{_CONSTANT})(?:,[ ]?(?:{_CONSTANT})){{0,99}}+\)\.(?=\s|\Z)"
)
_ARGUMENT = re.compile(_CONSTANT)


def is_plain(text: str, at: int) -> bool:
    """Whether a plain fact stands at the offset."""
    return _FACT.match(text, at) is not None


def read_facts(builder: Builder, at: int) -> int:
    """Read the plain facts from an offset on; the offset after the last of them."""
    source, text, items = builder.source, builder.source.text, builder.items
    while (match := _FACT.match(text, at)) is not None:
        at = match.end()
        name = match[1]
        start, after_name = match.span(1)
        arguments = []
        for argument in _ARGUMENT.finditer(text, after_name + 1, at - 2):
            word = argument[0]
            value = word[1:-1] if word[0] == '"' else float(word) if "." in word else int(word)
            span = Span(source, *argument.span())
            arguments.append(Argument(None, Const(value, span), span))
        atom = Atom(name, tuple(arguments), Span(source, start, at - 1), Span(source, start, after_name))
        builder.define(name)
        items.append(Rule((atom,), (), Span(source, start, at)))
    return at
