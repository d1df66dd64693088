"""Infer: a rule evaluated by building and extending substitutions.

From: *Shapiro: back to basics*, section 3.2. A substitution maps variables to
values. Beginning with the empty one, each literal of the body in turn extends the
substitutions found so far: an atom by every fact that it can be made equal to, a
computed variable by its value; negated atoms and conditions keep a substitution or
drop it. A substitution that has come through the whole body makes the head ground.

Facts are looked up by the columns that are bound already, and the literals are
taken in the order that `plan.order` gives; neither changes what is found.

Which facts an atom may match is not decided here: an `Accept` is asked about each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidelog.execute.substitution.relation import Bucket, Entry, Row, Stored, StoredRelation, restore, store
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.order import order_body
from tidelog.plan.parts import Part
from tidelog.plan.terms import definitions, expr_vars, fixed_value
from tidelog.program.functions import FunctionFailure, evaluate
from tidelog.program.model import Atom, Bind, Const, Expr, Filter, Negative, Positive, Rule, Term, Value, Var
from tidelog.syntax.errors import EvaluationError

Values = dict[str, Stored]
Read = Part | Version
Accept = Callable[[Entry, Read], bool]


@dataclass(frozen=True)
class Instance:
    """A rule instance: its head, and the entries that positive literals matched, by position."""

    rule: Rule
    head: Row
    matched: Mapping[int, Entry]
    values: Mapping[str, Stored]


@dataclass(frozen=True)
class Substitution:
    """The values of variables, and the entries matched so far."""

    values: Values
    matched: Mapping[int, Entry]


@dataclass(frozen=True)
class Question:
    """What differs between two evaluations of a plan: who drives, and what atoms may match."""

    accept: Accept
    drivers: Bucket


Step = Callable[[Iterable[Substitution], Question], Iterator[Substitution]]


class Sizes:
    """Statistics for the join order, from what the relations hold now."""

    def __init__(self, relations: Mapping[str, StoredRelation]) -> None:
        self._relations = relations

    def size(self, relation: str, version: Version) -> int:
        """The number of tuples; a delta counts as what it is at the moment."""
        stored = self._relations[relation]
        return len(stored.delta) if version is Version.DELTA else len(stored.entries)

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """A guess: each column is as selective as the others."""
        stored = self._relations[relation]
        unbound = 1 - len(columns) / stored.relation.arity
        return float(len(stored.entries) ** unbound)


def infer(
    rule: Rule, reads: Sequence[Read | None], driver: int | None, relations: Mapping[str, StoredRelation]
) -> Callable[[Question], Iterator[Instance]]:
    """A function that finds the instances of a rule; the literal `driver` matches the drivers only."""
    versions = tuple(Version.DELTA if i == driver else Version.ALL for i in range(len(rule.body)))
    hidden = {fixed[0].name for literal in rule.body if (fixed := fixed_value(literal)) is not None}
    known: set[str] = set()
    steps: list[Step] = []
    for position in order_body(RuleForm(rule, versions), Sizes(relations)):
        read = reads[position]
        match rule.body[position]:
            case Positive(atom):
                assert read is not None
                drives = position == driver
                steps.append(_match(atom, position, read, drives, relations[atom.relation], known))
                known |= {term.name for term in atom.terms if isinstance(term, Var)}
            case Negative(atom):
                assert read is not None
                steps.append(_refuse(atom, read, relations[atom.relation]))
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
    head = values_of(rule.head.terms)

    def instances(question: Question) -> Iterator[Instance]:
        found: Iterable[Substitution] = [Substitution({}, {})]
        for step in steps:
            found = step(found, question)
        return (Instance(rule, head(s.values), s.matched, s.values) for s in found)

    return instances


def values_of(terms: Iterable[Term]) -> Callable[[Mapping[str, Stored]], Row]:
    """A function from a substitution to the values of variables and constants."""
    parts = [
        (term.name, None) if isinstance(term, Var) else ("", store(term.value))
        for term in terms
        if isinstance(term, Var | Const)
    ]
    return lambda values: tuple(values[name] if value is None else value for name, value in parts)


def _match(
    atom: Atom, position: int, read: Read, drives: bool, stored: StoredRelation, known: set[str]
) -> Step:
    """Extend a substitution by every accepted fact that the atom can equal."""
    columns = tuple(i for i, t in enumerate(atom.terms) if isinstance(t, Const) or _is_var(t, known))
    key = values_of(atom.terms[i] for i in columns)
    first: dict[str, int] = {}
    repeated: list[tuple[int, int]] = []
    for i, term in enumerate(atom.terms):
        if isinstance(term, Var) and term.name not in known:
            if term.name in first:
                repeated.append((first[term.name], i))
            else:
                first[term.name] = i
    fresh = tuple(first.items())

    def candidates(values: Values, drivers: Bucket) -> list[Entry]:
        """A copy: facts may be stored while someone is looking at the first instances."""
        if not columns:
            return list(drivers if drives else stored.entries.values())
        wanted = key(values)
        bucket = stored.index(columns).get(wanted, {})
        if not drives:
            return list(bucket)
        if len(bucket) < len(drivers):
            return [entry for entry in bucket if entry in drivers]
        return [entry for entry in drivers if tuple(entry.row[i] for i in columns) == wanted]

    def step(substitutions: Iterable[Substitution], question: Question) -> Iterator[Substitution]:
        for substitution in substitutions:
            for entry in candidates(substitution.values, question.drivers):
                row = entry.row
                if question.accept(entry, read) and all(row[i] == row[j] for i, j in repeated):
                    values = substitution.values.copy()
                    for name, i in fresh:
                        values[name] = row[i]
                    yield Substitution(values, {**substitution.matched, position: entry})

    return step


def _is_var(term: object, known: set[str]) -> bool:
    return isinstance(term, Var) and term.name in known


def matching(atom: Atom, stored: StoredRelation, values: Mapping[str, Stored]) -> list[Entry]:
    """The stored tuples that equal an atom whose variables are all bound; `_` stands for any value."""
    columns = tuple(i for i, term in enumerate(atom.terms) if isinstance(term, Var | Const))
    if not columns:
        return list(stored.entries.values())
    return list(stored.index(columns).get(values_of(atom.terms)(values), ()))


def _refuse(atom: Atom, read: Read, stored: StoredRelation) -> Step:
    """Keep a substitution for which no accepted fact equals the atom."""

    def step(substitutions: Iterable[Substitution], question: Question) -> Iterator[Substitution]:
        for substitution in substitutions:
            found = matching(atom, stored, substitution.values)
            if not any(question.accept(entry, read) for entry in found):
                yield substitution

    return step


def _keep(condition: Expr, rule: Rule, hidden: set[str]) -> Step:
    """Keep a substitution for which the condition is true."""
    value = _evaluator(condition, rule, hidden)

    def step(substitutions: Iterable[Substitution], question: Question) -> Iterator[Substitution]:
        return (s for s in substitutions if value(s.values) is True)

    return step


def _extend(name: str, expr: Expr, rule: Rule, hidden: set[str]) -> Step:
    """Extend a substitution by the value of an expression."""
    value = _evaluator(expr, rule, hidden)

    def step(substitutions: Iterable[Substitution], question: Question) -> Iterator[Substitution]:
        return (Substitution({**s.values, name: value(s.values)}, s.matched) for s in substitutions)

    return step


def _compare(name: str, expr: Expr, rule: Rule, hidden: set[str]) -> Step:
    """Keep a substitution in which the variable already has the value of the expression, as it is stored."""
    value = _evaluator(expr, rule, hidden)

    def step(substitutions: Iterable[Substitution], question: Question) -> Iterator[Substitution]:
        return (s for s in substitutions if s.values[name] == value(s.values))

    return step


def _evaluator(expr: Expr, rule: Rule, hidden: set[str]) -> Callable[[Values], Stored]:
    """A function from a substitution to the value of an expression; its failure names rule and values."""
    names = tuple(dict.fromkeys(expr_vars(expr)))

    def value(bound: Values) -> Stored:
        values: dict[str, Value] = {name: restore(bound[name]) for name in names}
        try:
            return store(evaluate(expr, values))
        except FunctionFailure as failure:
            shown: dict[str, object] = {name: v for name, v in values.items() if name not in hidden}
            raise EvaluationError(str(failure), rule.text, shown, rule.span) from None

    return value
