"""Safety: every variable gets its values from somewhere.

A variable is bound by an atom that is not negated, by `var x = e`, or by a
condition `x = e` where nothing else binds `x` and everything in `e` is bound. This
pass finds out which conditions bind, writes it into the drafts, and reports the
variables that nothing binds: each once, and not those that are only unbound
because another one is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.program.draft import (
    Body,
    DAggregate,
    DApply,
    DAtom,
    DCondition,
    DExpr,
    DGroup,
    DLet,
    DRule,
    DVar,
    Variable,
    aggregates_in,
    expressions,
    free,
    outer,
    parts,
)
from tidelog.program.problems import Problems, did_you_mean, quoted
from tidelog.program.strata import components
from tidelog.syntax.errors import Label
from tidelog.syntax.source import Span


@dataclass(frozen=True)
class Demand:
    """A place that needs a variable to be bound; `code` tells what kind of place."""

    variable: Variable
    span: Span
    code: str


def check_safety(rule: DRule, problems: Problems) -> None:
    """Find what binds the variables of a rule, and report those that nothing does."""
    demands = [
        Demand(arg.variable, arg.span, "TL0301")
        for head in rule.heads
        for arg in head.args
        if isinstance(arg, DVar)
    ]
    _Checker(problems, fact=not rule.syntax.body).body(rule.body, set(), demands)


class _Checker:
    def __init__(self, problems: Problems, fact: bool) -> None:
        self.problems = problems
        self.fact = fact

    def body(self, body: Body, given: set[Variable], demands: list[Demand]) -> None:
        """Check a body; `given` variables have values already, `demands` need them after it."""
        bound = set(given)
        for literal in body.literals:
            if isinstance(literal, DAtom) and not literal.negated:
                bound.update(arg.variable for arg in literal.args if isinstance(arg, DVar))
            elif isinstance(literal, DGroup):
                self._group(literal)
                bound.add(literal.variable)
                bound.update(key.variable for key in literal.keys if isinstance(key, DVar))
        self._lets(body, bound)
        self._bind(body, bound)
        self._report(body, bound, [*demands, *_demands(body)])
        for literal in body.literals:
            for expr in expressions(literal):
                for aggregate in aggregates_in(expr):
                    self._aggregate(aggregate)

    def _aggregate(self, aggregate: DAggregate) -> None:
        demands = _needs(aggregate.value, "TL0303") if aggregate.value is not None else []
        self.body(aggregate.body, set(outer(aggregate)), demands)
        if aggregate.value is not None:
            for inner in aggregates_in(aggregate.value):
                self._aggregate(inner)

    def _group(self, group: DGroup) -> None:
        demands = [d for expr in group.keys for d in _needs(expr, "TL0303")]
        if group.value is not None:
            demands += _needs(group.value, "TL0303")
        self.body(group.body, set(), demands)

    def _lets(self, body: Body, bound: set[Variable]) -> None:
        """`var x` makes a new variable: it cannot be bound elsewhere too."""
        seen: dict[Variable, Span] = {}
        for literal in body.literals:
            if not isinstance(literal, DLet):
                continue
            variable = literal.variable
            if variable in bound or variable in seen:
                self.problems.add(
                    "TL0304",
                    f"`{variable.name}` is bound twice",
                    literal.span,
                    "bound again here",
                    others=[Label(seen.get(variable, variable.span), "bound here")],
                    hint=f"to compare, write `{variable.name} == ...` without `var`",
                )
            seen.setdefault(variable, literal.span)

    def _bind(self, body: Body, bound: set[Variable]) -> None:
        """Let conditions bind, in source order, until no more can."""
        made_by_let = {literal.variable for literal in body.literals if isinstance(literal, DLet)}
        pending = [literal for literal in body.literals if isinstance(literal, DLet | DCondition)]
        while True:
            waiting: list[DLet | DCondition] = []
            for literal in pending:
                if isinstance(literal, DLet):
                    if bound.issuperset(free(literal.value)):
                        bound.add(literal.variable)
                    else:
                        waiting.append(literal)
                    continue
                for variable, value in _sides(literal):
                    if variable in bound or variable in made_by_let:
                        continue
                    if bound.issuperset(free(value)):
                        bound.add(variable)
                        literal.binds, literal.value = variable, value
                        break
                else:
                    waiting.append(literal)
            if len(waiting) == len(pending):
                return
            pending = waiting

    def _report(self, body: Body, bound: set[Variable], demands: list[Demand]) -> None:
        unbound: dict[Variable, list[Demand]] = {}
        for demand in demands:
            if demand.variable not in bound:
                unbound.setdefault(demand.variable, []).append(demand)
        if not unbound:
            return
        names = sorted({v.name for v in bound if not v.name.startswith("$")})
        for group in _roots(body, list(unbound)):
            demands = sorted(unbound[group[0]], key=lambda d: d.code)
            self._unsafe(group, demands, body, names)

    def _unsafe(self, group: list[Variable], demands: list[Demand], body: Body, names: list[str]) -> None:
        name, first = group[0].name, demands[0]
        mutual = [f"{quoted(v.name for v in group)} are only given by one another"] if len(group) > 1 else []
        others = [Label(d.span, "and here") for d in demands[1:3]]
        hidden = body.scope.hidden.get(name)
        binder = (
            f"use `{name}` in an atom of the body that is not negated, or give it a value: `{name} = ...`"
        )
        meant = did_you_mean(name, names) if len(name) > 2 else None
        if hidden is not None:
            self.problems.add(
                "TL0307",
                f"`{name}` is not visible after `group_by`",
                first.span,
                others=[Label(hidden, "bound here, before it"), *others],
                notes=["only the keys and the result of `group_by` go on"],
                hint=f"add `{name}` to the keys",
            )
        elif any(d.code == "TL0308" for d in demands):
            inside = next(d.span for d in demands if d.code == "TL0308")
            self.problems.add(
                "TL0308",
                f"`{name}` is shared with an aggregate, but nothing outside the aggregate binds it",
                first.span,
                others=[Label(inside, "shared with the aggregate here")],
                notes=[
                    "a variable used both inside and outside an aggregate tells its groups apart",
                    *mutual,
                ],
                hint=f"repeat outside the aggregate the atom that `{name}` comes from",
            )
        elif first.code == "TL0301" and self.fact:
            self.problems.add(
                "TL0301",
                f"`{name}` is a variable, but a fact has values only",
                first.span,
                others=others,
                hint=f'if a string is meant, write "{name}"',
            )
        elif first.code == "TL0301":
            message = f"`{name}` is used in the head, but nothing in the body binds it"
            self.problems.add(
                "TL0301", message, first.span, "not bound", others=others, notes=mutual, hint=meant or binder
            )
        elif first.code == "TL0302":
            self.problems.add(
                "TL0302",
                f"`{name}` is used in a negated atom, but nothing binds it",
                first.span,
                "not bound",
                others=others,
                notes=["a negated atom only tests values that other literals bind", *mutual],
                hint=meant or f"bind `{name}` in another atom; if no value at all may match, write `_`",
            )
        else:
            message = f"`{name}` is used in an expression, but nothing binds it"
            self.problems.add(
                "TL0303", message, first.span, "not bound", others=others, notes=mutual, hint=meant or binder
            )


def _sides(literal: DCondition) -> Iterable[tuple[Variable, DExpr]]:
    """The ways in which a condition could bind: `x = e` and `e = x`."""
    expr = literal.expr
    if isinstance(expr, DApply) and expr.function == "eq" and len(expr.args) == 2:
        left, right = expr.args
        if isinstance(left, DVar):
            yield left.variable, right
        if isinstance(right, DVar):
            yield right.variable, left


def _could_bind(literal: object) -> list[tuple[Variable, DExpr]]:
    """The variables that a literal would bind, were those of an expression bound."""
    if isinstance(literal, DLet):
        return [(literal.variable, literal.value)]
    if isinstance(literal, DCondition):
        return [(variable, value) for variable, value in _sides(literal) if variable not in free(value)]
    return []


def _roots(body: Body, unbound: list[Variable]) -> list[list[Variable]]:
    """The unbound variables that are to blame: others are unbound only because these are.

    Each group is one variable, or several that are given by one another.
    """
    number = {variable: str(i) for i, variable in enumerate(unbound)}
    waits: dict[str, list[str]] = {}
    for literal in body.literals:
        for variable, value in _could_bind(literal):
            if variable in number:
                waits.setdefault(number[variable], []).extend(number[v] for v in free(value) if v in number)
    roots = []
    for group in components(number.values(), waits):
        if all(other in group for name in group for other in waits.get(name, ())):
            roots.append([unbound[int(name)] for name in sorted(group, key=int)])
    return roots


def _demands(body: Body) -> list[Demand]:
    """What the literals of a body need, negated atoms first."""
    found: list[Demand] = []
    for literal in body.literals:
        if isinstance(literal, DAtom):
            for arg in literal.args:
                if literal.negated or not isinstance(arg, DVar):
                    found += _needs(arg, "TL0302" if literal.negated else "TL0303")
        elif isinstance(literal, DCondition):
            found += _needs(literal.expr, "TL0303")
        elif isinstance(literal, DLet):
            found += _needs(literal.value, "TL0303" if literal.head is None else "TL0301")
    return sorted(found, key=lambda d: d.code)


def _needs(expr: DExpr, code: str) -> list[Demand]:
    found = []
    for node in parts(expr):
        if isinstance(node, DVar):
            found.append(Demand(node.variable, node.span, code))
        elif isinstance(node, DAggregate):
            found += [Demand(v, span, "TL0308") for v, span in outer(node).items()]
    return found
