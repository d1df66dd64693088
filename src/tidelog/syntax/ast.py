"""The syntax tree: one tree for both ways of writing.

Spans never take part in equality, so that *parse -> print -> parse* can be
compared with `==`. Names are kept as written; nothing is resolved here. What
the dialects write differently is one node: `!r(x)` and `not R(x)` are
`Negation`; `x = y` and `x == y` are `Binary("==", ...)`; `number` and `s64` are
the type name `s64`; `symbol` is `string`; `<>`-free operators are canonical
(see `BINARY_OPERATORS`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidelog.syntax.source import Span


class Dialect(Enum):
    """How a program is written. It decides how it is printed, not what it means."""

    DDLOG = "ddlog"
    SOUFFLE = "souffle"


class Role(Enum):
    """What a relation is for, as its declaration says (`.input` directives come apart)."""

    INTERNAL = "internal"
    INPUT = "input"
    OUTPUT = "output"


# Canonical binary operators, loosest first. `++` joins strings.
BINARY_OPERATORS: tuple[tuple[str, ...], ...] = (
    ("or",),
    ("and",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("+", "-", "++"),
    ("*", "/", "%"),
)
UNARY_OPERATORS = ("-", "not", "~")


# --- expressions -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A variable."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: any value."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A literal: bool, int, float or str. `1` is an int, `1.0` a float."""

    value: bool | int | float | str
    span: Span = field(compare=False, repr=False)

    def __eq__(self, other: object) -> bool:  # 1, 1.0 and True are different constants
        if not isinstance(other, Const):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Unary:
    """An operator of `UNARY_OPERATORS` before its operand."""

    op: str
    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator of `BINARY_OPERATORS` between two operands."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to arguments, the name as written."""

    function: str
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`if (c) a else b`."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """`e as T` (DDlog), `as(e, T)` (Soufflé)."""

    operand: Expr
    type: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum x : { body }`: `op` is count, sum, min, max or mean; count has no value."""

    op: str
    value: Expr | None
    body: tuple[Literal, ...]
    span: Span = field(compare=False, repr=False)


Expr = Var | Wildcard | Const | Unary | Binary | Call | Conditional | Cast | Aggregate


# --- literals ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an atom; `name` is set when it is given by field name (`.to = y`)."""

    name: str | None
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation applied to arguments: all positional or all by name."""

    relation: str
    args: tuple[Argument, ...]
    span: Span = field(compare=False, repr=False)
    name_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Positive:
    """The atom must hold."""

    atom: Atom
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """The atom must not hold."""

    atom: Atom
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A boolean expression; `x == e` also binds `x` where nothing else does."""

    expr: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """`var x = e`."""

    name: str
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GroupBy:
    """`var x = v.group_by((k, ...)).op()`: over what stands before it in the body."""

    name: str
    op: str
    value: Expr | None
    keys: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


Literal = Positive | Negation | Condition | Let | GroupBy


# --- items -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a declaration; `type` is a canonical type name (`s64`, `string`, `bit<12>`)."""

    name: str
    type: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a primary key."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RelationDecl:
    """`input relation R(x: t, ...)` or `.decl R(x: t, ...)`; `key` is its primary key, if it has one."""

    name: str
    columns: tuple[Column, ...]
    role: Role
    span: Span = field(compare=False, repr=False)
    name_span: Span = field(compare=False, repr=False)
    key: tuple[KeyColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input R, S(key=value, ...)`: kind is input, output or printsize."""

    kind: str
    relations: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """`h1, h2 :- body.`; a fact has no body."""

    heads: tuple[Atom, ...]
    body: tuple[Literal, ...]
    span: Span = field(compare=False, repr=False)


Item = RelationDecl | Directive | Rule


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed text."""

    dialect: Dialect
    items: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)
