"""Negated atoms with `_` become negated atoms of a projection.

    q(x) :- p(x), not r(x, _).        becomes        r$only$0(x) :- r(x, _).
                                                     q(x) :- p(x), not r$only$0(x).

Where answers are kept current, one tuple more or less in a negated relation then makes its
atom hold or fail by itself. With `_` it would matter whether it was the first or the last
tuple to match, and that is what the count of the projection's tuples says.
"""

from __future__ import annotations

from dataclasses import replace

from tidelog.program.aggregates import PROJECTED
from tidelog.program.model import (
    Atom,
    Column,
    Literal,
    Negative,
    Positive,
    Program,
    Relation,
    Rule,
    Var,
    Wildcard,
)

MADE_BY = "projection"


def project_negations(program: Program) -> Program:
    """The same program, without `_` in negated atoms. New rules take the next ids."""
    made: dict[str, Relation] = {}
    derived: list[Rule] = []
    ids = [*(rule.id for rule in program.rules), *(rule.id for rule in program.aggregates)]
    next_id = 1 + max(ids, default=0)

    def plain(literal: Literal) -> Literal:
        if not isinstance(literal, Negative) or not _has_wildcard(literal.atom):
            return literal
        atom = literal.atom
        kept = [i for i, term in enumerate(atom.terms) if not isinstance(term, Wildcard)]
        name = f"{atom.relation}{PROJECTED}{'_'.join(map(str, kept))}"
        if name not in made:
            columns = program.relations[atom.relation].columns
            made[name] = Relation(name, tuple(columns[i] for i in kept), made_by=MADE_BY)
            derived.append(_projection(next_id + len(derived), name, atom.relation, columns, kept))
        return Negative(Atom(name, tuple(atom.terms[i] for i in kept)))

    rules = [
        replace(rule, body=tuple(map(plain, rule.body))) if any(map(_is_open, rule.body)) else rule
        for rule in program.rules
    ]
    if not made:
        return program
    return replace(program, relations={**program.relations, **made}, rules=(*rules, *derived))


def _projection(id: int, name: str, source: str, columns: tuple[Column, ...], kept: list[int]) -> Rule:
    variables = {i: Var(f"${i}", columns[i].type) for i in kept}
    body = Positive(Atom(source, tuple(variables.get(i, Wildcard()) for i in range(len(columns)))))
    text = f"some {source}({', '.join('x' if i in variables else '_' for i in range(len(columns)))})"
    return Rule(id, Atom(name, tuple(variables.values())), (body,), text, made_by=MADE_BY)


def _has_wildcard(atom: Atom) -> bool:
    return any(isinstance(term, Wildcard) for term in atom.terms)


def _is_open(literal: Literal) -> bool:
    return isinstance(literal, Negative) and _has_wildcard(literal.atom)
