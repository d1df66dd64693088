"""Aggregates become relations.

    r(x, n) :- a(x), n = count : { e(x, y), y > 3 }.

becomes, with the variables that the aggregate shares with the rule as keys,

    r$1$count$in(x, y) :- e(x, y), y > 3.
    r$1$count(x, count) :- group r$1$count$in by x.
    r$1$count$all(x, n) :- r$1$count(x, n).
    r$1$count$all(x, 0) :- a(x), not r$1$count(x, _).
    r(x, n) :- a(x), r$1$count$all(x, n).

An aggregate ranges over the distinct bindings of all variables of its body. Count
and sum of nothing are 0, which is what `$all` adds, unless the rule itself reads a
row of the group; the others are read without it.
Where the body is one plain atom, `$in` is that atom's relation itself. Where the
body does not bind a key, or could fail for keys that the rule never asks for, the
literals of the rule that bind the keys are put in front of it.
DDlog's `group_by` is the same without `$all`: it yields only groups that have rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidelog.program.draft import Body, DAggregate, DExpr, DGroup, DLet, DVar, outer
from tidelog.program.functions import can_fail
from tidelog.program.model import (
    Aggregation,
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Literal,
    Negative,
    Positive,
    Value,
    Var,
    Wildcard,
    variables,
)
from tidelog.program.types import DOUBLE, S64, UNKNOWN, Type
from tidelog.syntax.errors import InternalError
from tidelog.syntax.source import Span

if TYPE_CHECKING:
    from tidelog.program.lower import Lowering

MADE_BY = "aggregate"
PROJECTED = "$only$"  # in the name of a relation made by `program.projections`
_PARTS = {"in": ", values", "all": ", zeros too"}


def label(relation: str) -> str:
    """A relation's name for people: that of one made here says which aggregate of what it is part of."""
    whole, projected, columns = relation.partition(PROJECTED)
    if projected:
        numbers = [str(int(column) + 1) for column in columns.split("_") if column]
        told = f"column{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else "whether any"
        return f"{label(whole)} (only {told})"
    head, *made = relation.split("$")
    return f"{head} ({made[1]}{''.join(_PARTS[part] for part in made[2:])})" if made else relation


def lower_aggregate(
    low: Lowering, aggregate: DAggregate, around: list[Literal], named: Var | None
) -> tuple[list[Literal], Expr]:
    """The literals that read an aggregate's result, and the result.

    `named` is a variable to read it into, if the types agree.
    """
    keys = [low.settled.var(v) for v in outer(aggregate)]
    own, value = _body(low, aggregate.body, aggregate.value, aggregate.op, around)
    missing = [k for k in keys if k.name not in bound_by(own)]
    guard: list[Literal] = []
    if any(_literal_can_fail(literal) for literal in own):
        guard = _binding(low, keys, around)
    elif missing:
        guard = _binding(low, missing, around)
    op = Aggregation(aggregate.op)
    name = _group(low, op, keys, own, guard, value, aggregate.span)
    type = result_type(op, value)
    # A sum of what has no type yet is not 0 yet: a value has a type.
    has_zero = op in (Aggregation.COUNT, Aggregation.SUM) and type != UNKNOWN
    if has_zero and not _never_empty(own, keys, around):
        name = _with_zero(low, name, keys, type, around)
    return _read(low, name, keys, type, low.settled.type(aggregate.cell), named)


def lower_group(low: Lowering, group: DGroup) -> list[Literal]:
    """The literals that read the result of a group_by into its variable."""
    own, value = _body(low, group.body, group.value, group.op, [])
    keys: list[Var] = []
    for key in group.keys:
        if isinstance(key, DVar):
            var = low.settled.var(key.variable)
        else:
            made = low.expr(key)
            var = low.fresh_var(made.type)
            own.append(Bind(var, made))
        if var not in keys:
            keys.append(var)
    op = Aggregation(group.op)
    name = _group(low, op, keys, own, [], value, group.span)
    named = low.settled.var(group.variable)
    atoms, result = _read(low, name, keys, result_type(op, value), named.type, named)
    return atoms if result == named else [*atoms, Bind(named, result)]


def result_type(op: Aggregation, value: Var | None) -> Type:
    """The type in which an aggregate is computed."""
    if op is Aggregation.COUNT or value is None:
        return S64
    return DOUBLE if op is Aggregation.MEAN else value.type


def _body(
    low: Lowering, body: Body, value: DExpr | None, op: str, around: list[Literal]
) -> tuple[list[Literal], Var | None]:
    """An aggregate's body, with its value as a variable of it (none for a count)."""
    if value is None or op == "count":
        return low.body(body, around, every=True), None
    if isinstance(value, DVar):
        return low.body(body, around, every=True), low.settled.var(value.variable)
    low.fresh += 1
    variable = body.scope.find(f"${low.fresh}", value.span)
    variable.cell = value.cell
    extended = Body([*body.literals, DLet(variable, value, value.span)], body.scope)
    return low.body(extended, around, every=True), low.settled.var(variable)


def _group(
    low: Lowering,
    op: Aggregation,
    keys: Sequence[Var],
    own: list[Literal],
    guard: list[Literal],
    value: Var | None,
    span: Span,
) -> str:
    """Make the relation `(keys, result)`, and the one it is computed from where it needs one."""
    number = 1 + len(low.aggregates)
    name = f"{low.head}${number}${op.value}"
    columns = list(keys)
    if op not in (Aggregation.MIN, Aggregation.MAX):  # these do not mind what else is bound
        columns += [v for v in _atom_vars(own) if v not in columns]
    if value is not None and value not in columns:
        columns.append(value)
    source = f"{name}$in"
    plain = own[0].atom if len(own) == 1 and not guard and isinstance(own[0], Positive) else None
    if (
        plain is not None
        and all(isinstance(t, Var) for t in plain.terms)
        and len({*plain.terms}) == len(plain.terms)
    ):
        source = plain.relation
        columns = [t for t in plain.terms if isinstance(t, Var)]
    else:
        low.relation(source, _columns(columns), MADE_BY)
        low.add_rule(Atom(source, tuple(columns)), [*guard, *own], MADE_BY)
    low.relation(name, [*_columns(keys), ("$result", result_type(op, value))], MADE_BY)
    positions = tuple(columns.index(k) for k in keys)
    low.add_aggregate(name, source, positions, op, None if value is None else columns.index(value), span)
    return name


def _with_zero(low: Lowering, name: str, keys: list[Var], type: Type, around: list[Literal]) -> str:
    """Make `$all`: the groups that have rows, and 0 for the keys of the rule that have none."""
    every = f"{name}$all"
    result = low.fresh_var(type)
    low.relation(every, [*_columns(keys), ("$result", type)], MADE_BY)
    low.add_rule(Atom(every, (*keys, result)), [Positive(Atom(name, (*keys, result)))], MADE_BY)
    zero: Value = 0.0 if type.kind == "float" else 0
    low.add_rule(
        Atom(every, (*keys, Const(zero, type))),
        [*_binding(low, keys, around), Negative(Atom(name, (*keys, Wildcard())))],
        MADE_BY,
    )
    return every


def _never_empty(own: list[Literal], keys: Sequence[Var], around: list[Literal]) -> bool:
    """Whether the rule itself asks for a row of the group: `e(x, _), n = count : { e(x, _) }`."""
    if len(own) != 1 or not isinstance(own[0], Positive) or not keys:
        return False
    atom = own[0].atom
    others = [t for t in atom.terms if t not in keys]
    if len(set(others)) < len(others) or not all(isinstance(t, Var) for t in others):
        return False
    return any(
        isinstance(lit, Positive)
        and lit.atom.relation == atom.relation
        and all(mine not in keys or mine == its for mine, its in zip(atom.terms, lit.atom.terms, strict=True))
        for lit in around
    )


def _read(
    low: Lowering, name: str, keys: Sequence[Var], type: Type, wanted: Type, named: Var | None
) -> tuple[list[Literal], Expr]:
    result = named if named is not None and type == wanted else low.fresh_var(type)
    atom = Positive(Atom(name, (*keys, result)))
    return [atom], result if type == wanted else Apply("cast", (result,), wanted)


def _columns(variables: Iterable[Var]) -> list[tuple[str, Type]]:
    return [(v.name, v.type) for v in variables]


# --- what binds what ----------------------------------------------------------


def _names(expr: Expr) -> set[str]:
    return {var.name for var in variables(expr)}


def _atom_vars(literals: Iterable[Literal]) -> list[Var]:
    """The variables of positive atoms, in order."""
    found: dict[Var, None] = {}
    for literal in literals:
        if isinstance(literal, Positive):
            found.update((t, None) for t in literal.atom.terms if isinstance(t, Var))
    return list(found)


def bound_by(literals: Sequence[Literal]) -> set[str]:
    """The names of the variables that literals bind among themselves."""
    bound = {v.name for v in _atom_vars(literals)}
    binds = [literal for literal in literals if isinstance(literal, Bind)]
    while binds:
        waiting = [b for b in binds if not _names(b.expr) <= bound]
        if len(waiting) == len(binds):
            break
        bound |= {b.var.name for b in binds if b not in waiting}
        binds = waiting
    return bound


def _literal_can_fail(literal: Literal) -> bool:
    if isinstance(literal, Bind):
        return can_fail(literal.expr)
    return isinstance(literal, Filter) and can_fail(literal.condition)


def _binding(low: Lowering, keys: Sequence[Var], literals: list[Literal]) -> list[Literal]:
    """Literals, as few as possible, that bind the keys to every value they can have.

    Atoms that depend on the rule's own head come last: an aggregate over them could
    not be stratified.

    More values than they can have do no harm, unless something fails on one of
    them: so if what binds a key can fail, all the literals come along.
    """
    chosen: list[Literal] = []
    need = {k.name for k in keys}
    covered: set[str] = set()
    while need:
        useful = [
            (not low.recursive(lit.atom.relation), len(need & {v.name for v in _atom_vars([lit])}), lit)
            for lit in literals
            if isinstance(lit, Positive) and need & {v.name for v in _atom_vars([lit])}
        ]
        best = max(useful, key=lambda entry: entry[:2])[2] if useful else None
        found = {v.name for v in _atom_vars([best])} if best is not None else set()
        if best is not None:
            chosen.append(best)
        else:
            bind = next((lit for lit in literals if isinstance(lit, Bind) and lit.var.name in need), None)
            if bind is None:
                raise InternalError("nothing binds a key of an aggregate")
            chosen.append(bind)
            found = {bind.var.name}
            need |= _names(bind.expr) - covered
        covered |= found
        need -= covered
    if any(_literal_can_fail(literal) for literal in chosen):
        return literals
    tests = [
        lit
        for lit in literals
        if isinstance(lit, Filter) and not can_fail(lit.condition) and _names(lit.condition) <= covered
    ]
    return [lit for lit in literals if lit in chosen or lit in tests]
