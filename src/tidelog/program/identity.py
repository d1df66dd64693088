"""What stays the same when a program changes: which rule is which, from one commit to the next.

Users name a rule by its text. Two texts are the same rule if they differ only in white space, in
what the variables are called and in the style of writing: `canonical` is what they share.

Every change of a program is checked as a whole, and checking numbers rules and hidden relations
anew. `stabilise` gives what was there before its old number and its old name back; the rest
gets numbers that were never used. A rule is the same if it comes from the same text and was lowered
to the same literals; types do not count, as a column takes its type before it has tuples.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from tidelog.program.aggregates import MADE_BY, PROJECTED
from tidelog.program.model import (
    AggregateRule,
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Literal,
    Negative,
    Positive,
    Program,
    Relation,
    Rule,
    Term,
    Var,
)
from tidelog.syntax import ast
from tidelog.syntax.printer import print_rule
from tidelog.syntax.source import Span

# --- rules as users write them -----------------------------------------------------


def canonical(rule: ast.Rule) -> str:
    """The text of a rule, with its variables named by the order in which they occur."""
    return print_rule(_renamed(rule, {}))


def _renamed(node: Any, names: dict[str, str]) -> Any:
    """The tree with other names for variables; they go by `v1`, `v2` and so on."""
    if isinstance(node, tuple):
        return tuple(_renamed(child, names) for child in node)
    if not is_dataclass(node) or isinstance(node, Span | type):
        return node
    changed = {f.name: _renamed(getattr(node, f.name), names) for f in fields(node) if f.name != "span"}
    if isinstance(node, ast.Var | ast.Let | ast.GroupBy):
        changed["name"] = names.setdefault(node.name, f"v{len(names) + 1}")
    return replace(node, **changed)


# --- rules as they are evaluated -----------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """The next numbers for rules and for aggregates, none of which has been used."""

    rule: int = 1
    aggregate: int = 1


_AGGREGATE = re.compile(r"(?P<head>[^$]*)\$(?P<number>\d+)(?P<rest>\$.*)")


def used_numbers(program: Program) -> Numbers:
    """What comes after the numbers of a program."""
    ids = [*(rule.id for rule in program.rules), *(rule.id for rule in program.aggregates)]
    found = [m for name in program.relations if (m := _AGGREGATE.fullmatch(name))]
    return Numbers(1 + max(ids, default=0), 1 + max((int(m["number"]) for m in found), default=0))


def stabilise(old: Program, new: Program, numbers: Numbers) -> tuple[Program, Numbers]:
    """The new program with the numbers and names of the old one wherever that goes."""
    names, aggregate = _stable_names(old, new, numbers.aggregate)
    renamed = _with_names(new, names)
    ids: defaultdict[object, list[int]] = defaultdict(list)
    before: list[Rule | AggregateRule] = [*old.rules, *old.aggregates]
    for rule in before:
        ids[_identity(rule)].append(rule.id)
    next_id = numbers.rule

    def number(rule: Rule | AggregateRule) -> int:
        nonlocal next_id
        same = ids[_identity(rule)]
        if same:
            return same.pop(0)
        next_id += 1
        return next_id - 1

    rules = tuple(replace(rule, id=number(rule)) for rule in renamed.rules)
    aggregates = tuple(replace(rule, id=number(rule)) for rule in renamed.aggregates)
    return replace(renamed, rules=rules, aggregates=aggregates), Numbers(next_id, aggregate)


def _stable_names(old: Program, new: Program, next_number: int) -> tuple[dict[str, str], int]:
    """New names for the relations that aggregates made, by the names they have now."""
    before, names = _made_by_rule(old), {}
    for span, now in _made_by_rule(new).items():
        earlier = before.get(span, {})
        same = [rests for rests, _ in earlier.values()] == [rests for rests, _ in now.values()]
        for position, (_, members) in enumerate(now.values()):
            if same:
                number = list(earlier)[position]
            else:
                number, next_number = next_number, next_number + 1
            for name in members:
                found = _AGGREGATE.fullmatch(name)
                assert found is not None
                names[name] = f"{found['head']}${number}{found['rest']}"
    for name in new.relations:  # the projections of these relations go with them
        whole, projected, columns = name.partition(PROJECTED)
        if projected and whole in names:
            names[name] = names[whole] + projected + columns
    return names, next_number


def _made_by_rule(program: Program) -> dict[Span | None, dict[int, tuple[list[str], list[str]]]]:
    """For each rule that has aggregates: by their numbers, what was made for each, as kinds and as names."""
    made: dict[Span | None, dict[int, tuple[list[str], list[str]]]] = {}
    for relation in program.relations.values():
        if relation.made_by == MADE_BY:
            found = _AGGREGATE.fullmatch(relation.name)
            assert found is not None
            aggregates = made.setdefault(relation.span, {})
            kinds, names = aggregates.setdefault(int(found["number"]), ([], []))
            kinds.append(found["rest"])
            names.append(relation.name)
    return made


def _with_names(program: Program, names: Mapping[str, str]) -> Program:
    if all(name == old for old, name in names.items()):
        return program

    def atom(a: Atom) -> Atom:
        return replace(a, relation=names.get(a.relation, a.relation))

    def literal(part: Literal) -> Literal:
        return replace(part, atom=atom(part.atom)) if isinstance(part, Positive | Negative) else part

    relations: dict[str, Relation] = {}
    for name, relation in program.relations.items():
        relations[names.get(name, name)] = replace(relation, name=names.get(name, name))
    rules = [replace(r, head=atom(r.head), body=tuple(map(literal, r.body))) for r in program.rules]
    aggregates = [
        replace(a, head=names.get(a.head, a.head), source=names.get(a.source, a.source))
        for a in program.aggregates
    ]
    return replace(program, relations=relations, rules=tuple(rules), aggregates=tuple(aggregates))


def _identity(rule: Rule | AggregateRule) -> object:
    """What two rules have in common that are the same rule."""
    if isinstance(rule, AggregateRule):
        return (rule.head, rule.source, rule.keys, rule.op, rule.value, rule.span)
    return (_atom(rule.head), tuple(map(_literal, rule.body)), rule.made_by, rule.span)


def _literal(literal: Literal) -> object:
    match literal:
        case Positive(atom) | Negative(atom):
            return (type(literal), _atom(atom))
        case Filter(condition):
            return _expr(condition)
        case Bind(var, expr):
            return (var.name, _expr(expr))


def _atom(atom: Atom) -> object:
    return (atom.relation, _terms(atom.terms))


def _terms(terms: Iterable[Term]) -> object:
    return tuple(None if not isinstance(term, Var | Const) else _expr(term) for term in terms)


def _expr(expr: Expr) -> object:
    match expr:
        case Var(name):
            return name
        case Const(value):
            return (type(value), repr(value))
        case Apply(function, args):
            return (function, *map(_expr, args))
