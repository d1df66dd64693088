"""Small questions about literals that several planning steps ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidelog.program.model import Apply, Atom, Bind, Const, Expr, Filter, Literal, Term, Var, variables


def expr_vars(expr: Expr) -> Iterator[str]:
    """The names of the variables of an expression, in the order in which they first occur."""
    return (var.name for var in variables(expr))


def atom_vars(atom: Atom) -> frozenset[str]:
    """The names of the variables of an atom."""
    return frozenset(term.name for term in atom.terms if isinstance(term, Var))


def needs(literal: Literal) -> frozenset[str]:
    """The variables that must be bound before a literal other than a positive atom."""
    match literal:
        case Filter(condition):
            return frozenset(expr_vars(condition))
        case Bind(_, expr):
            return frozenset(expr_vars(expr))
        case _:
            return atom_vars(literal.atom)


def fixed_value(literal: Literal) -> tuple[Var, Const] | None:
    """The variable and constant of `x = 1`, however it is written.

    A filter `x == 1.5` does not fix its variable: floats compare as numbers
    (0.0 == -0.0) but are stored, and joined, as themselves.
    """
    match literal:
        case Bind(var, Const() as const):
            return var, const
        case Filter(
            Apply("eq", (Var() as var, Const() as const)) | Apply("eq", (Const() as const, Var() as var))
        ):
            return None if var.type.kind == "float" else (var, const)
        case _:
            return None


def definitions(literal: Literal) -> tuple[tuple[Var, Expr], ...]:
    """The variables that a literal can compute, each with its expression.

    `x == e` computes `x` where nothing has bound it yet, and compares where something
    has. Not so for floats: a join takes them as they are stored, `==` compares them
    as numbers.
    """
    match literal:
        case Bind(var, expr):
            return ((var, expr),)
        case Filter(Apply("eq", (left, right))):
            sides = ((left, right), (right, left))
            return tuple(
                (var, expr)
                for var, expr in sides
                if isinstance(var, Var) and var.type.kind != "float" and var.name not in expr_vars(expr)
            )
        case _:
            return ()


def substitute(expr: Expr, values: Mapping[str, Const]) -> Expr:
    """The expression with the variables of `values` replaced by constants."""
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    if isinstance(expr, Apply) and values:
        return Apply(expr.function, tuple(substitute(arg, values) for arg in expr.args), expr.type, expr.span)
    return expr


def substitute_term(term: Term, values: Mapping[str, Const]) -> Term:
    """The term, or the constant that stands for it."""
    return values.get(term.name, term) if isinstance(term, Var) else term
