"""From drafts to the model: computed arguments, several heads, facts.

    p(x + 1) :- q(x), r(x * 2).    becomes    p($1) :- q(x), r($2), $2 = x * 2, $1 := x + 1.
    p(x), q(x) :- r(x).            becomes    two rules with one body
    p(1 + 2).                      becomes    the fact p(3)

A computed argument matches the tuples that hold its value, negated or not. For floats
that is not `==`: NaN is stored as one value, 0.0 and -0.0 as two.
Aggregates become relations of their own, see `program.aggregates`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tidelog.program import aggregates
from tidelog.program.cells import fixed
from tidelog.program.draft import (
    Body,
    DAggregate,
    DApply,
    DAtom,
    DCondition,
    DConst,
    DExpr,
    DGroup,
    DLet,
    DLiteral,
    DRule,
    DVar,
    DWild,
    Variable,
    aggregates_in,
    expressions,
    outer,
)
from tidelog.program.functions import can_fail
from tidelog.program.model import (
    AggregateRule,
    Aggregation,
    Apply,
    Atom,
    Bind,
    Column,
    Const,
    Expr,
    Fact,
    Filter,
    Literal,
    Negative,
    Positive,
    Relation,
    Rule,
    Term,
    Value,
    Var,
    Wildcard,
    variables,
)
from tidelog.program.settle import Settled
from tidelog.program.types import BOOL, STRING, Type
from tidelog.syntax.errors import InternalError
from tidelog.syntax.source import Span

_BLANK = re.compile(r'("(?:\\.|[^"\\])*")|(?:\s|//[^\n]*|/\*.*?\*/)+', re.DOTALL)


class Lowering:
    """Collects the relations, rules and facts of the model."""

    def __init__(self, settled: Settled, component: Mapping[str, int]) -> None:
        self.settled = settled
        self.component = component  # relations that depend on one another have the same number
        self.made: dict[str, Relation] = {}
        self.rules: list[Rule] = []
        self.aggregates: list[AggregateRule] = []
        self.facts: list[Fact] = []
        self.next_id = 0
        self.fresh = 0
        self.head = ""
        self.text = ""
        self.span: Span | None = None
        self.results: dict[DAggregate, Expr] = {}
        self.constants: dict[Variable, Const] = {}

    def rule(self, rule: DRule) -> None:
        """Lower a rule or fact."""
        self.fresh, self.head = rule.fresh, rule.heads[0].relation
        self.span, self.text = rule.syntax.span, rule_text(rule.syntax.span)
        self.results, self.constants = {}, {}
        for literal in rule.body.literals:
            if isinstance(literal, DLet) and literal.head is not None:
                constant = self.settled.constant(literal.value)
                if constant is not None:
                    self.constants[literal.variable] = constant
        body = self.body(rule.body, [], every=False)
        computed = {
            literal.variable.name: literal.head
            for literal in rule.body.literals
            if isinstance(literal, DLet) and literal.head is not None
        }
        for index, head in enumerate(rule.heads):
            terms = tuple(self.term(arg) for arg in head.args)
            if not body:
                self._fact(head, terms)
                continue
            own = [
                literal
                for literal in body
                if not isinstance(literal, Bind) or computed.get(literal.var.name, index) == index
            ]
            self.add_rule(Atom(head.relation, terms), own, None)

    def _fact(self, head: DAtom, terms: Sequence[Term]) -> None:
        row: list[Value] = []
        for term in terms:
            if not isinstance(term, Const):
                raise InternalError("a fact has a variable")
            row.append(term.value)
        self.facts.append(Fact(head.relation, tuple(row), self.span))

    def take_facts(self) -> list[Fact]:
        """The facts made since this was last asked."""
        taken, self.facts = self.facts, []
        return taken

    # --- bodies --------------------------------------------------------------

    def body(self, body: Body, around: list[Literal], *, every: bool) -> list[Literal]:
        """The literals of a body. `around` are those of the bodies it lies in.

        With `every`, each `_` of a positive atom becomes a variable: an aggregate
        ranges over the bindings of all variables, anonymous ones included.
        """
        literals = [part for literal in body.literals for part in self._apart(literal)]
        plain = _bound_plainly(literals)
        slots: list[list[Literal]] = [[] for _ in literals]
        waiting: list[int] = []
        ready: list[Literal] = []
        for index, literal in enumerate(literals):
            if _aggregates(literal):
                waiting.append(index)
            else:
                slots[index] = self.literal(literal, every, plain)
                ready += slots[index]
        while waiting:
            bound = aggregates.bound_by([*ready, *around])
            index = next((i for i in waiting if self._can_group(literals[i], bound)), -1)
            if index < 0:
                raise InternalError("an aggregate waits for a variable that nothing binds")
            waiting.remove(index)
            slots[index] = self._with_aggregates(literals[index], [*ready, *around], every, plain)
            ready += slots[index]
        return [literal for slot in slots for literal in slot]

    def _apart(self, literal: DLiteral) -> list[DLiteral]:
        """An atom and the aggregates among its arguments, whose keys it may bind itself."""
        if not isinstance(literal, DAtom) or literal.negated or not _aggregates(literal):
            return [literal]
        args: list[DExpr] = []
        tests: list[DLiteral] = []
        for arg in literal.args:
            if aggregates_in(arg):
                self.fresh += 1
                var = DVar(Variable(f"${self.fresh}", arg.span, None, arg.cell), arg.span)
                equation = DApply("eq", (var, arg), fixed(BOOL), arg.span)
                tests.append(DCondition(equation, arg.span, stored=True))
                args.append(var)
            else:
                args.append(arg)
        return [DAtom(literal.relation, tuple(args), literal.span, literal.name_span), *tests]

    def _can_group(self, literal: DLiteral, bound: set[str]) -> bool:
        return all(v.name in bound for aggregate in _aggregates(literal) for v in outer(aggregate))

    def _with_aggregates(
        self, literal: DLiteral, around: list[Literal], every: bool, plain: set[str]
    ) -> list[Literal]:
        """A literal that holds aggregates: it first reads their relations."""
        read: list[Literal] = []
        for aggregate in _aggregates(literal):
            target = _target(literal, aggregate)
            if target is not None:
                named = self.settled.var(target)
                atoms, result = aggregates.lower_aggregate(self, aggregate, around, named)
                if result == named:  # `x = count : {...}` reads the result straight into x
                    return [*read, *atoms]
            else:
                atoms, result = aggregates.lower_aggregate(self, aggregate, around, None)
            read += atoms
            self.results[aggregate] = result
        return [*read, *self.literal(literal, every, plain)]

    def literal(self, literal: DLiteral, every: bool, plain: set[str]) -> list[Literal]:
        """One literal, with what its computed arguments need beside it."""
        if isinstance(literal, DAtom):
            return self._atom(literal, every, plain)
        if isinstance(literal, DLet):
            if literal.variable in self.constants:
                return []
            return [Bind(self.settled.var(literal.variable), self.expr(literal.value))]
        if isinstance(literal, DCondition):
            if literal.binds is not None and literal.value is not None:
                return [Bind(self.settled.var(literal.binds), self.expr(literal.value))]
            condition = self.expr(literal.expr)
            if literal.stored and isinstance(condition, Apply):
                condition = _equal_as_stored(condition)
            return [Filter(condition)]
        return aggregates.lower_group(self, literal)

    def _atom(self, atom: DAtom, every: bool, plain: set[str]) -> list[Literal]:
        terms: list[Term] = []
        before: list[Literal] = []
        after: list[Literal] = []
        for arg in atom.args:
            if isinstance(arg, DWild):
                wild = every and not atom.negated
                terms.append(self.fresh_var(self.settled.type(arg.cell)) if wild else Wildcard())
            elif isinstance(arg, DVar | DConst):
                terms.append(self.term(arg))
            else:
                constant = self.settled.constant(arg)
                if constant is not None:
                    terms.append(constant)
                    continue
                value = self.expr(arg)
                var = self.fresh_var(value.type)
                terms.append(var)
                joins = value.type.kind == "float" and not can_fail(value)
                if atom.negated or (joins and {v.name for v in variables(value)} <= plain):
                    before.append(Bind(var, value))
                else:
                    after.append(Filter(_equal_as_stored(Apply("eq", (var, value), BOOL, arg.span))))
        made = Atom(atom.relation, tuple(terms))
        return [*before, Negative(made) if atom.negated else Positive(made), *after]

    def term(self, arg: DExpr) -> Var | Const:
        """A variable or constant as a term."""
        if isinstance(arg, DConst):
            return self.settled.const(arg)
        if isinstance(arg, DVar):
            return self.constants.get(arg.variable) or self.settled.var(arg.variable)
        raise InternalError("a computed argument was left in an atom")

    def expr(self, expr: DExpr) -> Expr:
        """An expression, with aggregates replaced by their results."""
        return self.settled.expr(expr, self.results)

    def recursive(self, relation: str) -> bool:
        """Whether a relation depends on the head of the rule being lowered."""
        return self.component.get(relation, -1) == self.component.get(self.head, -2)

    # --- making things -------------------------------------------------------

    def fresh_var(self, type: Type) -> Var:
        """A variable that no user can write."""
        self.fresh += 1
        return Var(f"${self.fresh}", type)

    def relation(self, name: str, columns: Sequence[tuple[str, Type]], made_by: str) -> Relation:
        """Make a relation."""
        made = Relation(name, tuple(Column(n, t) for n, t in columns), span=self.span, made_by=made_by)
        self.made[name] = made
        return made

    def add_rule(self, head: Atom, body: Sequence[Literal], made_by: str | None) -> None:
        """Add a rule of the user's rule being lowered."""
        self.rules.append(Rule(self._id(), head, tuple(body), self.text, self.span, made_by))

    def add_aggregate(
        self, head: str, source: str, keys: tuple[int, ...], op: Aggregation, value: int | None, span: Span
    ) -> None:
        """Add an aggregate."""
        rule = AggregateRule(self._id(), head, source, keys, op, value, self.text, span)
        self.aggregates.append(rule)

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id


def _aggregates(literal: DLiteral) -> list[DAggregate]:
    if isinstance(literal, DGroup):
        return []
    return [a for expr in expressions(literal) for a in aggregates_in(expr)]


def _bound_plainly(literals: Sequence[DLiteral]) -> set[str]:
    """The variables of positive atoms that compute nothing, and so need not wait for anything."""
    atoms = [lit for lit in literals if isinstance(lit, DAtom) and not lit.negated]
    simple = [a for a in atoms if all(isinstance(arg, DVar | DConst | DWild) for arg in a.args)]
    return {arg.variable.name for atom in simple for arg in atom.args if isinstance(arg, DVar)}


def _equal_as_stored(equation: Apply) -> Apply:
    """`x == e` as an atom means it; the text of a float tells apart what is stored apart."""
    left, right = equation.args
    if left.type.kind != "float":
        return equation
    texts = tuple(Apply("to_string", (side,), STRING, equation.span) for side in (left, right))
    return Apply("eq", texts, BOOL, equation.span)


def _target(literal: DLiteral, aggregate: DAggregate) -> Variable | None:
    """The variable that a literal binds to nothing but an aggregate's result."""
    if isinstance(literal, DLet) and literal.value is aggregate:
        return literal.variable
    if isinstance(literal, DCondition) and literal.value is aggregate:
        return literal.binds
    return None


def rule_text(span: Span) -> str:
    """A rule as it was written, on one line and without comments."""
    return _BLANK.sub(lambda m: m[1] or " ", span.text).strip()
