"""A checked program: what every later stage works on.

Everything here is small and explicit. Names are resolved, types known,
computed arguments have become `Bind`s over fresh variables, aggregates have
become relations of their own. A rule's body has four kinds of literals only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidelog.program.types import Type
from tidelog.syntax.source import Span

Value = bool | int | float | str


@dataclass(frozen=True)
class Column:
    """A named, typed column."""

    name: str
    type: Type


@dataclass(frozen=True)
class Relation:
    """A relation. `made_by` says which rewrite made it; None for the user's own.

    `key` are the columns of its primary key; there is none where it is empty.
    """

    name: str
    columns: tuple[Column, ...]
    is_input: bool = False
    is_output: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    made_by: str | None = None
    input_options: tuple[tuple[str, str], ...] = ()
    output_options: tuple[tuple[str, str], ...] = ()
    printsize: bool = False
    key: tuple[int, ...] = ()

    @property
    def arity(self) -> int:
        """The number of columns (0 is allowed)."""
        return len(self.columns)


# --- expressions -------------------------------------------------------------


@dataclass(frozen=True)
class Var:
    """A variable of a rule."""

    name: str
    type: Type


@dataclass(frozen=True)
class Const:
    """A constant: bool, int, float or str, matching `type`."""

    value: Value
    type: Type

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const)
            and self.type == other.type
            and type(self.value) is type(other.value)
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((self.type, repr(self.value)))


@dataclass(frozen=True)
class Wildcard:
    """`_` in an atom of a body."""


@dataclass(frozen=True)
class Apply:
    """A function of `program.functions` applied to typed arguments.

    Evaluation is strict, but for `if` (condition, then, otherwise), `and`, `or`.
    """

    function: str
    args: tuple[Expr, ...]
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


Expr = Var | Const | Apply
Term = Var | Const | Wildcard


def variables(expr: Expr) -> tuple[Var, ...]:
    """The variables of an expression, each once, in the order in which they first occur."""
    if isinstance(expr, Var):
        return (expr,)
    if isinstance(expr, Const):
        return ()
    return tuple(dict.fromkeys(var for arg in expr.args for var in variables(arg)))


# --- literals and rules ------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """A relation over terms, one for each column."""

    relation: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Positive:
    """The atom must hold."""

    atom: Atom


@dataclass(frozen=True)
class Negative:
    """No tuple matches the atom; its variables are bound elsewhere."""

    atom: Atom


@dataclass(frozen=True)
class Filter:
    """The boolean expression must be true; its variables are bound elsewhere."""

    condition: Expr


@dataclass(frozen=True)
class Bind:
    """`var` takes the value of `expr`; nothing else binds `var`."""

    var: Var
    expr: Expr


Literal = Positive | Negative | Filter | Bind


@dataclass(frozen=True)
class Rule:
    """`head :- body`. Head terms are variables and constants only.

    `id` is unique and stable in a program; `text` is the rule as the user wrote
    it; `made_by` says which rewrite made the rule, None for the user's own.
    """

    id: int
    head: Atom
    body: tuple[Literal, ...]
    text: str = field(compare=False, default="")
    span: Span | None = field(default=None, compare=False, repr=False)
    made_by: str | None = None


class Aggregation(Enum):
    """What an aggregate computes over a group."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"


@dataclass(frozen=True)
class AggregateRule:
    """`head(keys..., result)`: one row for each group of `source` that has rows.

    The group is `source`'s columns `keys`; the aggregate ranges over the (distinct)
    rows of the group and reads column `value` (None for count).
    """

    id: int
    head: str
    source: str
    keys: tuple[int, ...]
    op: Aggregation
    value: int | None
    text: str = field(compare=False, default="")
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Fact:
    """A fact written in the program."""

    relation: str
    row: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Program:
    """A checked, typed program. `relations` keeps the order of declaration."""

    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    aggregates: tuple[AggregateRule, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Stratum:
    """Relations that depend on one another, and the rules that derive them.

    `recursive` rules read a relation of this stratum; `base` rules do not.
    An aggregate is always alone in its stratum.
    """

    index: int
    relations: tuple[str, ...]
    base: tuple[Rule, ...]
    recursive: tuple[Rule, ...]
    aggregate: AggregateRule | None = None
