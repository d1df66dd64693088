"""Facts written in the program, when there are many.

A fact of plain literals says nothing about types that an earlier one with the same
kinds of literals has not said already. So only the first of each kind goes through
the whole of checking; the others are kept as values, and looked at once more when
all types are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.program.declare import RelationInfo, Relations
from tidelog.program.draft import DConst
from tidelog.program.model import Fact, Value
from tidelog.program.problems import Problems
from tidelog.program.settle import Settled, check_range, in_range
from tidelog.program.types import Type
from tidelog.syntax import ast

# What kinds of columns a literal fits without further thought (see `cells`).
_FITS: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    int: ("int", "bigint", "float"),
    float: ("float",),
    str: ("string",),
}


@dataclass
class _Kept:
    """The plain facts of one relation: place among the rules, syntax, values."""

    info: RelationInfo
    seen: list[set[type]]
    rows: list[tuple[int, ast.Rule, tuple[Value, ...]]] = field(default_factory=list)


class PlainFacts:
    """Facts that need no draft."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.kept: dict[str, _Kept] = {}

    def take(self, index: int, rule: ast.Rule) -> bool:
        """Keep a fact, if it is plain and nothing can be learnt from it."""
        if len(rule.heads) != 1:
            return False
        atom = rule.heads[0]
        info = self.relations.by_name.get(atom.relation)
        if info is None or len(info.columns) != len(atom.args):
            return False
        kept = self.kept.get(atom.relation)
        if kept is None:
            kept = self.kept[atom.relation] = _Kept(info, [set() for _ in info.columns])
        plain = True
        row: list[Value] = []
        for arg, column, seen in zip(atom.args, info.columns, kept.seen, strict=True):
            value = arg.value
            if type(value) is not ast.Const or arg.name is not None:
                return False
            row.append(value.value)
            kind = type(value.value)
            if column.type is not None:
                plain = plain and column.type.kind in _FITS[kind] and in_range(value.value, column.type)
            elif kind not in seen:
                seen.add(kind)
                plain = False
        if plain:
            info.has_fact = True
            kept.rows.append((index, rule, tuple(row)))
        return plain

    def check(self, settled: Settled, problems: Problems) -> None:
        """Report literals that the types found out by now do not hold."""
        for kept in self.kept.values():
            for position, column in enumerate(kept.info.columns):
                if column.type is not None or column.cell.find().broken:
                    continue
                type = settled.type(column.cell)
                for _, rule, row in kept.rows:
                    if not in_range(row[position], type):
                        span = rule.heads[0].args[position].span
                        check_range(DConst(row[position], column.cell, span), type, problems)

    def facts(self, settled: Settled) -> list[tuple[int, Fact]]:
        """The facts kept, with their places among the rules."""
        found: list[tuple[int, Fact]] = []
        for name, kept in self.kept.items():
            types = [c.type if c.type is not None else settled.type(c.cell) for c in kept.info.columns]
            floats = any(t.kind == "float" for t in types)
            for index, rule, row in kept.rows:
                made = _as_floats(row, types, settled) if floats else row
                found.append((index, Fact(name, made, rule.span)))
        return found


def _as_floats(row: tuple[Value, ...], types: list[Type], settled: Settled) -> tuple[Value, ...]:
    return tuple(settled.value(value, type) for value, type in zip(row, types, strict=True))
