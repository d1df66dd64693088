"""Infer: a rule evaluated by building and extending substitutions.

From: *Shapiro: back to basics*, section 3.2. A substitution maps variables to
values. Beginning with the empty one, each literal of the body in turn extends the
substitutions found so far: an atom by every fact that it can be made equal to, a
computed variable by its value; negated atoms and conditions keep a substitution or
drop it. A substitution that has come through the whole body makes the head ground.

Facts are looked up by the columns that are bound already, and the literals are
taken in the order that `plan.order` gives; neither changes what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tidelog.execute.substitution.relation import Row, Stored, StoredRelation, restore, store
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.order import order_body
from tidelog.plan.terms import definitions, expr_vars, fixed_value
from tidelog.program.functions import FunctionFailure, evaluate
from tidelog.program.model import Atom, Bind, Const, Expr, Filter, Negative, Positive, Rule, Value, Var
from tidelog.syntax.errors import EvaluationError

Substitution = dict[str, Stored]
Step = Callable[[Iterable[Substitution], int], Iterator[Substitution]]


class Sizes:
    """Statistics for the join order, from what the relations hold now."""

    def __init__(self, relations: Mapping[str, StoredRelation]) -> None:
        self._relations = relations

    def size(self, relation: str, version: Version) -> int:
        """The number of tuples; a delta counts as what it is at the moment."""
        stored = self._relations[relation]
        return len(stored.delta) if version is Version.DELTA else len(stored)

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """A guess: each column is as selective as the others."""
        stored = self._relations[relation]
        unbound = 1 - len(columns) / stored.relation.arity
        return float(len(stored) ** unbound)


def infer(form: RuleForm, relations: Mapping[str, StoredRelation]) -> Callable[[int], Iterator[Row]]:
    """A function that, given the number of the round, yields the head row of each instance."""
    rule = form.rule
    hidden = {fixed[0].name for literal in rule.body if (fixed := fixed_value(literal)) is not None}
    known: set[str] = set()
    steps: list[Step] = []
    for position in order_body(form, Sizes(relations)):
        match rule.body[position]:
            case Positive(atom):
                steps.append(_match(atom, form.reads[position], relations[atom.relation], known))
                known |= {term.name for term in atom.terms if isinstance(term, Var)}
            case Negative(atom):
                steps.append(_refuse(atom, relations[atom.relation]))
            case Filter(condition) as literal:
                fresh = [d for d in definitions(literal) if d[0].name not in known]
                if fresh:  # `x == e` before any atom has bound x
                    steps.append(_extend(fresh[0][0].name, fresh[0][1], rule, hidden))
                    known.add(fresh[0][0].name)
                else:
                    steps.append(_keep(condition, rule, hidden))
            case Bind(var, expr):
                steps.append((_compare if var.name in known else _extend)(var.name, expr, rule, hidden))
                known.add(var.name)
    head = _values_of(rule.head.terms)

    def instances(number: int) -> Iterator[Row]:
        found: Iterable[Substitution] = [{}]
        for step in steps:
            found = step(found, number)
        return (head(substitution) for substitution in found)

    return instances


def _values_of(terms: Iterable[object]) -> Callable[[Substitution], Row]:
    """A function from a substitution to the values of variables and constants."""
    parts = [
        (term.name, None) if isinstance(term, Var) else ("", store(term.value))
        for term in terms
        if isinstance(term, Var | Const)
    ]
    return lambda s: tuple(s[name] if value is None else value for name, value in parts)


def _match(atom: Atom, version: Version, stored: StoredRelation, known: set[str]) -> Step:
    """Extend a substitution by every fact of the version that the atom can equal."""
    columns = tuple(i for i, t in enumerate(atom.terms) if isinstance(t, Const) or _is_var(t, known))
    key = _values_of(atom.terms[i] for i in columns)
    first: dict[str, int] = {}
    repeated: list[tuple[int, int]] = []
    for i, term in enumerate(atom.terms):
        if isinstance(term, Var) and term.name not in known:
            if term.name in first:
                repeated.append((first[term.name], i))
            else:
                first[term.name] = i
    fresh = tuple(first.items())

    def candidates(substitution: Substitution, number: int) -> Iterable[Row]:
        if columns:
            rows: Iterable[Row] = stored.index(columns).get(key(substitution), ())
        elif version is Version.DELTA:
            return stored.delta
        else:
            rows = stored.rounds
        if version is Version.DELTA:
            return [row for row in rows if stored.rounds[row] == number - 1]
        if version is Version.OLD:
            return [row for row in rows if stored.rounds[row] < number - 1]
        return rows

    def step(substitutions: Iterable[Substitution], number: int) -> Iterator[Substitution]:
        for substitution in substitutions:
            for row in candidates(substitution, number):
                if all(row[i] == row[j] for i, j in repeated):
                    extended = substitution.copy()
                    for name, i in fresh:
                        extended[name] = row[i]
                    yield extended

    return step


def _is_var(term: object, known: set[str]) -> bool:
    return isinstance(term, Var) and term.name in known


def _refuse(atom: Atom, stored: StoredRelation) -> Step:
    """Keep a substitution for which no fact equals the atom; `_` stands for any value."""
    columns = tuple(i for i, term in enumerate(atom.terms) if isinstance(term, Var | Const))
    key = _values_of(atom.terms)

    def step(substitutions: Iterable[Substitution], number: int) -> Iterator[Substitution]:
        index: dict[Row, list[Row]] = stored.index(columns) if columns else {(): list(stored.rounds)}
        for substitution in substitutions:
            if not index.get(key(substitution)):
                yield substitution

    return step


def _keep(condition: Expr, rule: Rule, hidden: set[str]) -> Step:
    """Keep a substitution for which the condition is true."""
    value = _evaluator(condition, rule, hidden)

    def step(substitutions: Iterable[Substitution], number: int) -> Iterator[Substitution]:
        return (substitution for substitution in substitutions if value(substitution) is True)

    return step


def _extend(name: str, expr: Expr, rule: Rule, hidden: set[str]) -> Step:
    """Extend a substitution by the value of an expression."""
    value = _evaluator(expr, rule, hidden)

    def step(substitutions: Iterable[Substitution], number: int) -> Iterator[Substitution]:
        return ({**substitution, name: value(substitution)} for substitution in substitutions)

    return step


def _compare(name: str, expr: Expr, rule: Rule, hidden: set[str]) -> Step:
    """Keep a substitution in which the variable already has the value of the expression."""
    value = _evaluator(expr, rule, hidden)

    def step(substitutions: Iterable[Substitution], number: int) -> Iterator[Substitution]:
        return (substitution for substitution in substitutions if substitution[name] == value(substitution))

    return step


def _evaluator(expr: Expr, rule: Rule, hidden: set[str]) -> Callable[[Substitution], Stored]:
    """A function from a substitution to the value of an expression; its failure names rule and values."""
    names = tuple(dict.fromkeys(expr_vars(expr)))

    def value(substitution: Substitution) -> Stored:
        values: dict[str, Value] = {name: restore(substitution[name]) for name in names}
        try:
            return store(evaluate(expr, values))
        except FunctionFailure as failure:
            shown: dict[str, object] = {name: v for name, v in values.items() if name not in hidden}
            raise EvaluationError(str(failure), rule.text, shown, rule.span) from None

    return value
