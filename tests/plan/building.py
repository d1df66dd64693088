"""Rules for planning tests, written briefly: words are variables, `_` and numbers are themselves."""

from __future__ import annotations

from tidelog.program.model import (
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Literal,
    Negative,
    Positive,
    Rule,
    Term,
    Var,
    Wildcard,
)
from tidelog.program.types import BOOL, S64, Type


def var(name: str, type: Type = S64) -> Var:
    return Var(name, type)


def term(word: str) -> Term:
    if word == "_":
        return Wildcard()
    return Const(int(word), S64) if word.lstrip("-").isdigit() else Var(word, S64)


def atom(text: str) -> Atom:
    """`edge x y` is edge(x, y)."""
    relation, *words = text.split()
    return Atom(relation, tuple(term(word) for word in words))


def holds(text: str) -> Positive:
    return Positive(atom(text))


def fails(text: str) -> Negative:
    return Negative(atom(text))


def expr(text: str | Expr) -> Expr:
    if not isinstance(text, str):
        return text
    found = term(text)
    assert not isinstance(found, Wildcard)
    return found


def apply(function: str, *args: str | Expr, type: Type = S64) -> Apply:
    return Apply(function, tuple(expr(arg) for arg in args), type)


def when(function: str, *args: str | Expr) -> Filter:
    return Filter(apply(function, *args, type=BOOL))


def let(name: str, value: str | Expr) -> Bind:
    return Bind(var(name), expr(value))


def rule(head: str, *body: Literal, id: int = 0) -> Rule:
    return Rule(id, atom(head), body, text=head)
