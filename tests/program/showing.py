"""A checked program as lines of text, so that tests can say what they expect in writing."""

from __future__ import annotations

from tidelog.program.check import check
from tidelog.program.model import (
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Literal,
    Positive,
    Program,
    Term,
    Var,
)
from tidelog.program.types import Type
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse


def checked(
    text: str, known: dict[str, tuple[Type, ...]] | None = None, default: Type | None = None
) -> Program:
    return check(parse(text, "p.dl"), known or {}, default=default)


def rules(text: str) -> list[str]:
    """All rules and aggregates by id."""
    program = checked(text)
    lines = {rule.id: f"{atom(rule.head)} :- {', '.join(map(literal, rule.body))}" for rule in program.rules}
    for a in program.aggregates:
        keys = ", ".join(map(str, a.keys))
        value = "" if a.value is None else f" {a.value}"
        lines[a.id] = f"{a.head} := {a.op.value}{value} of {a.source} by ({keys})"
    return [lines[number] for number in sorted(lines)]


def types(program: Program) -> dict[str, str]:
    """The column types of the user's relations."""
    return {
        r.name: " ".join(str(c.type) for c in r.columns) for r in program.relations.values() if not r.made_by
    }


def problems(text: str, known: dict[str, tuple[Type, ...]] | None = None) -> list[str]:
    """`CODE line:column message` of each problem."""
    try:
        checked(text, known)
    except ProgramError as error:
        told = []
        for d in error.diagnostics:
            place = "-" if d.span is None else str(d.span).removeprefix("p.dl:")
            told.append(f"{d.code} {place} {d.message}")
        return told
    return []


def literal(lit: Literal) -> str:
    if isinstance(lit, Filter):
        return expr(lit.condition)
    if isinstance(lit, Bind):
        return f"{lit.var.name} := {expr(lit.expr)}"
    return atom(lit.atom) if isinstance(lit, Positive) else f"not {atom(lit.atom)}"


def atom(a: Atom) -> str:
    return f"{a.relation}({', '.join(map(expr, a.terms))})"


def expr(e: Expr | Term) -> str:
    if isinstance(e, Var):
        return e.name
    if isinstance(e, Const):
        return repr(e.value)
    if isinstance(e, Apply):
        inside = ", ".join(map(expr, e.args))
        return f"cast({inside}, {e.type})" if e.function == "cast" else f"{e.function}({inside})"
    return "_"
