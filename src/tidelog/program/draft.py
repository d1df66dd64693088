"""Drafts: rules with names resolved and types still being found out.

`elaborate` makes drafts from syntax, `safety` finds what binds each variable,
`lower` turns them into the checked model once all types are known. Variables are
objects, so that the same name in two scopes is two variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidelog.program.cells import Cell, Origin
from tidelog.syntax import ast
from tidelog.syntax.source import Span


@dataclass(eq=False)
class Scope:
    """The variables of a body; an aggregate's scope lies within that of its rule.

    `names` are the names that occur directly in it: a name that an enclosing scope
    has too means the variable there.
    """

    names: frozenset[str]
    parent: Scope | None = None
    variables: dict[str, Variable] = field(default_factory=dict)
    hidden: dict[str, Span] = field(default_factory=dict)  # names that a group_by ended, and where

    def find(self, name: str, span: Span) -> Variable:
        """The variable of a name."""
        home, scope = self, self.parent
        while scope is not None:
            if name in scope.names:
                home = scope
            scope = scope.parent
        if name not in home.variables:
            home.variables[name] = Variable(name, span, home)
        return home.variables[name]


@dataclass(eq=False)
class Variable:
    """A variable: `span` is its first occurrence, `typed` the use that gave it its type."""

    name: str
    span: Span
    scope: Scope | None
    cell: Cell = field(default_factory=Cell)
    typed: Origin | None = None


# --- expressions -------------------------------------------------------------


@dataclass(eq=False)
class DVar:
    """A use of a variable."""

    variable: Variable
    span: Span

    @property
    def cell(self) -> Cell:
        """The variable's type."""
        return self.variable.cell


@dataclass(eq=False)
class DConst:
    """A literal, its sign included."""

    value: bool | int | float | str
    cell: Cell
    span: Span


@dataclass(eq=False)
class DWild:
    """`_` as an argument of an atom in a body."""

    cell: Cell
    span: Span


@dataclass(eq=False)
class DApply:
    """A function applied; `add` may still turn out to be `concat`."""

    function: str
    args: tuple[DExpr, ...]
    cell: Cell
    span: Span


@dataclass(eq=False)
class DAggregate:
    """`op value : { body }`."""

    op: str
    value: DExpr | None
    body: Body
    cell: Cell
    span: Span


DExpr = DVar | DConst | DWild | DApply | DAggregate


# --- literals ----------------------------------------------------------------


@dataclass(eq=False)
class DAtom:
    """An atom with one argument for each column."""

    relation: str
    args: tuple[DExpr, ...]
    span: Span
    name_span: Span
    negated: bool = False


@dataclass(eq=False)
class DCondition:
    """A boolean expression. `binds` is found out by `safety`.

    A `stored` one is `x == e` for an argument `e` of an atom: the values are equal as they
    are stored, which for floats is not what `==` says.
    """

    expr: DExpr
    span: Span
    binds: Variable | None = None
    value: DExpr | None = None
    stored: bool = False


@dataclass(eq=False)
class DLet:
    """`var x = e`, and what computed arguments of heads become."""

    variable: Variable
    value: DExpr
    span: Span
    head: int | None = None


@dataclass(eq=False)
class DGroup:
    """`var x = v.group_by((k, ...)).op()` with all that stands before it."""

    variable: Variable
    op: str
    value: DExpr | None
    keys: tuple[DExpr, ...]
    body: Body
    cell: Cell
    span: Span


DLiteral = DAtom | DCondition | DLet | DGroup


@dataclass(eq=False)
class Body:
    """Literals of one scope."""

    literals: list[DLiteral]
    scope: Scope


@dataclass(eq=False)
class DRule:
    """A rule with all its heads; head arguments are variables and constants."""

    heads: list[DAtom]
    body: Body
    syntax: ast.Rule
    fresh: int  # the last number of a made variable


# --- walks -------------------------------------------------------------------


def parts(expr: DExpr) -> Iterator[DExpr]:
    """An expression and all in it, left to right, but nothing inside aggregates."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, DApply):
            stack.extend(reversed(node.args))


def free(expr: DExpr) -> dict[Variable, Span]:
    """The variables that must be bound before an expression has a value, and where they stand."""
    found: dict[Variable, Span] = {}
    for node in parts(expr):
        if isinstance(node, DVar):
            found.setdefault(node.variable, node.span)
        elif isinstance(node, DAggregate):
            for variable, span in outer(node).items():
                found.setdefault(variable, span)
    return found


def outer(aggregate: DAggregate) -> dict[Variable, Span]:
    """The variables that an aggregate shares with what is around it, in order."""
    return {
        variable: span
        for variable, span in occurring(aggregate.body, aggregate.value).items()
        if not within(variable.scope, aggregate.body.scope)
    }


def occurring(body: Body, value: DExpr | None) -> dict[Variable, Span]:
    """All variables that occur in an aggregate or a body, those of inner aggregates left out."""
    found: dict[Variable, Span] = {}
    for literal in body.literals:
        for expr in expressions(literal):
            for variable, span in free(expr).items():
                found.setdefault(variable, span)
        if isinstance(literal, DLet | DGroup):
            found.setdefault(literal.variable, literal.span)
    for variable, span in (free(value) if value is not None else {}).items():
        found.setdefault(variable, span)
    return found


def within(scope: Scope | None, enclosing: Scope) -> bool:
    """Whether a scope is the enclosing one or lies inside it."""
    while scope is not None:
        if scope is enclosing:
            return True
        scope = scope.parent
    return False


def expressions(literal: DLiteral) -> list[DExpr]:
    """The expressions of a literal; of a group_by those that are visible after it."""
    if isinstance(literal, DAtom):
        return list(literal.args)
    if isinstance(literal, DCondition):
        return [literal.expr]
    if isinstance(literal, DLet):
        return [literal.value]
    return [key for key in literal.keys if isinstance(key, DVar)]


def aggregates_in(expr: DExpr) -> list[DAggregate]:
    """The aggregates of an expression, outermost ones only."""
    return [node for node in parts(expr) if isinstance(node, DAggregate)]
