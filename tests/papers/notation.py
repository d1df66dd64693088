"""Facts and rule instances, written as the papers write them.

A fact is `T(a, b)`; words and numbers are the values. Sets of facts are one string with
the facts side by side. A rule instance is `T(a, b), B(a) -> B(b)`, and its negated atoms have `not`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidelog.plan.maintenance import Row
from tidelog.program.model import Atom, Const, Negative, Positive, Rule, Value, Var

Facts = dict[str, list[Row]]

_FACT = re.compile(r"(\w+)\(([^()]*)\)")


def read(text: str) -> Facts:
    """The facts of a text, by relation."""
    found: Facts = {}
    for name, inside in _FACT.findall(text):
        row = tuple(_value(word) for word in inside.split(",") if word.strip())
        found.setdefault(name, []).append(row)
    return found


def _value(word: str) -> Value:
    word = word.strip()
    return int(word) if word.isdigit() else word


def written(relation: str, row: Row) -> str:
    """A fact."""
    return f"{relation}({', '.join(map(str, row))})"


def atoms(text: str) -> set[str]:
    """The facts of a text, each in the one way in which `written` writes it."""
    return {written(name, row) for name, rows in read(text).items() for row in rows}


def named(relations: Mapping[str, Iterable[Row]]) -> set[str]:
    """The facts of several relations."""
    return {written(name, row) for name, rows in relations.items() for row in rows}


def instance(text: str) -> str:
    """A rule instance as `ground` writes it, whatever its spaces."""
    body, head = text.split("->")
    literals = [
        ("not " if sign else "") + written(name, row)
        for sign, name, row in (
            (sign, name, read(f"{name}({inside})")[name][0])
            for sign, name, inside in re.findall(r"(not )?(\w+)\(([^()]*)\)", body)
        )
    ]
    [made] = atoms(head)
    return f"{', '.join(literals)} -> {made}"


def instances(*texts: str) -> list[str]:
    """Several rule instances, in order of the alphabet."""
    return sorted(map(instance, texts))


def shape(text: str) -> str:
    """An instance without its values: `T, B -> B`. The rules of an example have different shapes."""
    return re.sub(r"\([^()]*\)", "", text)


def shape_of(rule: Rule) -> str:
    """The shape of a rule's instances."""
    body = [
        ("not " if isinstance(literal, Negative) else "") + literal.atom.relation
        for literal in rule.body
        if isinstance(literal, Positive | Negative)
    ]
    return f"{', '.join(body)} -> {rule.head.relation}"


def ground(rule: Rule, substitution: Mapping[str, Value]) -> str:
    """An instance of a rule; conditions on values are left out."""

    def atom(a: Atom) -> str:
        row = tuple(
            term.value if isinstance(term, Const) else substitution[term.name]
            for term in a.terms
            if isinstance(term, Const | Var)
        )
        return written(a.relation, row)

    body = [
        ("not " if isinstance(literal, Negative) else "") + atom(literal.atom)
        for literal in rule.body
        if isinstance(literal, Positive | Negative)
    ]
    return f"{', '.join(body)} -> {atom(rule.head)}"
