"""The relations of a program: from declarations, directives, facts given, and use.

A program that declares nothing is *untyped*: its relations come into being when
they are first mentioned, with columns c0, c1, ... whose types are found out. In a
program with declarations an undeclared name is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidelog.program.cells import Cell, Origin, broken, fixed
from tidelog.program.names import SIGNATURES
from tidelog.program.problems import Problems, did_you_mean, quoted
from tidelog.program.types import UNKNOWN, Type, parse_type
from tidelog.syntax import ast
from tidelog.syntax.dialect import named_types
from tidelog.syntax.errors import Label
from tidelog.syntax.source import Span

TYPE_NAMES = (
    *("bool", "bigint", "float", "double", "string", "number", "unsigned", "symbol"),
    *(f"{sign}{bits}" for sign in "su" for bits in (8, 16, 32, 64, 128)),
)


MOST_COMPARED = 50_000  # names compared with unknown ones: a generated program can have thousands of both


@dataclass(eq=False)
class ColumnInfo:
    """A column: declared ones have a type and a span, others a cell that uses share."""

    name: str
    type: Type | None
    cell: Cell
    span: Span | None = None


@dataclass(eq=False)
class RelationInfo:
    """A relation; `span` is its declaration, or its first use where there is none."""

    name: str
    columns: list[ColumnInfo]
    span: Span | None
    declared: bool
    is_input: bool = False
    is_output: bool = False
    printsize: bool = False
    input_options: dict[str, str] = field(default_factory=dict)
    output_options: dict[str, str] = field(default_factory=dict)
    rule_span: Span | None = None  # of a head that derives into it
    has_fact: bool = False
    key: tuple[int, ...] = ()
    key_span: Span | None = None

    def cell(self, index: int) -> Cell:
        """The type of a column for one use. A use that is wrong must not spoil a declared column."""
        column = self.columns[index]
        if column.type is None:
            return column.cell
        return fixed(column.type, self.origin(index))

    def origin(self, index: int) -> Origin | None:
        """Where a declared column got its type."""
        column = self.columns[index]
        if column.span is None or column.type is None:
            return column.cell.find().origin
        return Origin(column.span, f"`{column.name}` is declared {column.type} here")

    def place(self, text: str) -> Label | None:
        """The declaration, or the first use, with a word on it."""
        return Label(self.span, text) if self.span is not None else None


@dataclass(frozen=True)
class Earlier:
    """What earlier commits have settled about relations that are not declared.

    A column keeps the type it has once had. Relations `with_facts` had their facts in the program.
    """

    types: Mapping[str, tuple[Type, ...]] = field(default_factory=dict)
    with_facts: frozenset[str] = frozenset()


class Relations:
    """All relations by name, in order of declaration and then of mention."""

    def __init__(self, problems: Problems, earlier: Earlier) -> None:
        self.problems = problems
        self.earlier = earlier
        self.by_name: dict[str, RelationInfo] = {}
        self.typed = False
        self.unknown: dict[str, list[Span]] = {}

    def as_call(self, atom: ast.Atom, dialect: ast.Dialect) -> ast.Call | None:
        """`contains(x, y)` reads like an atom: it is a condition unless a relation has that name."""
        signature = SIGNATURES[dialect].get(atom.relation)
        if signature is None or signature.result != "bool" or atom.relation in self.by_name:
            return None
        if any(a.name is not None for a in atom.args):
            return None
        return ast.Call(atom.relation, tuple(a.value for a in atom.args), atom.span)

    def mention(self, atom: ast.Atom) -> RelationInfo | None:
        """The relation of an atom; None when there is none, which is noted for `report_unknown`."""
        info = self.by_name.get(atom.relation)
        if info is None and self.typed:
            self.unknown.setdefault(atom.relation, []).append(atom.name_span)
        elif info is None:
            types = self.earlier.types.get(atom.relation)
            if types is None:
                columns = [ColumnInfo(f"c{i}", None, Cell()) for i in range(len(atom.args))]
            else:
                columns = _settled_columns(atom.relation, types, "so far")
            info = RelationInfo(atom.relation, columns, atom.name_span, declared=False)
            info.has_fact = atom.relation in self.earlier.with_facts
            self.by_name[atom.relation] = info
        return info

    def report_unknown(self) -> None:
        """One problem for each unknown name, however often it is used."""
        work = 0
        for name, spans in self.unknown.items():
            work += len(self.by_name)
            hint = did_you_mean(name, self.by_name) if work < MOST_COMPARED else None
            self.problems.add(
                "TL0101",
                f"unknown relation `{name}`",
                spans[0],
                "not declared",
                others=[Label(span, "and here") for span in spans[1:3]],
                notes=[f"used in {len(spans)} places"] if len(spans) > 3 else [],
                hint=hint or "declare it: in a program with declarations every relation has one",
            )

    def report_derived_keys(self) -> None:
        """A primary key is for facts that are given: rules would not keep to it."""
        for info in self.by_name.values():
            if info.key and info.rule_span:
                self.problems.add(
                    "TL0114",
                    f"`{info.name}` has a primary key, but rules derive into it",
                    info.rule_span,
                    "derived here",
                    others=[Label(info.key_span, "the key")] if info.key_span else [],
                    hint="a key is for facts that are given: derive into another relation",
                )

    def settle_roles(self) -> None:
        """What undeclared relations are for: never derived is an input, derived is an output."""
        any_output = any(info.is_output or info.printsize for info in self.by_name.values())
        for info in self.by_name.values():
            if not info.declared:
                info.is_input = info.is_input or not (info.rule_span is not None or info.has_fact)
                info.is_output = info.is_output or (info.rule_span is not None and not any_output)


def _settled_columns(name: str, types: Iterable[Type], where: str) -> list[ColumnInfo]:
    return [
        ColumnInfo(f"c{i}", None, fixed(t, _told(f"column c{i} of `{name}` is {t} {where}", t)))
        for i, t in enumerate(types)
    ]


def _told(text: str, type: Type) -> Origin | None:
    return None if type == UNKNOWN else Origin(None, text)


def declare(
    module: ast.Module,
    known: Mapping[str, tuple[Type, ...]],
    problems: Problems,
    earlier: Earlier,
) -> Relations:
    """Collect the relations that declarations, directives and facts given make known."""
    relations = Relations(problems, earlier)
    for item in module.items:
        if isinstance(item, ast.RelationDecl):
            _declare_relation(item, relations, problems)
    relations.typed = bool(relations.by_name)
    for name, types in known.items():
        if name not in relations.by_name:
            columns = _settled_columns(name, types, "in its facts")
            written = name in earlier.with_facts
            relations.by_name[name] = RelationInfo(name, columns, None, declared=False, has_fact=written)
    if not relations.typed:
        _mention_all(module, relations)
    for item in module.items:
        if isinstance(item, ast.Directive):
            _apply_directive(item, relations, problems)
    return relations


def _declare_relation(decl: ast.RelationDecl, relations: Relations, problems: Problems) -> None:
    first = relations.by_name.get(decl.name)
    if first is not None:
        problems.add(
            "TL0106",
            f"relation `{decl.name}` is declared twice",
            decl.name_span,
            "declared again here",
            others=[first.place("first declared here")],
        )
        return
    columns: list[ColumnInfo] = []
    seen: dict[str, Span] = {}
    for column in decl.columns:
        if column.name in seen:
            problems.add(
                "TL0107",
                f"relation `{decl.name}` has two columns `{column.name}`",
                column.span,
                "declared again here",
                others=[Label(seen[column.name], "first declared here")],
            )
        seen.setdefault(column.name, column.span)
        type = parse_type(column.type)
        if type is None:
            unknown_type(column.type, type_span(column.span), problems)
        columns.append(ColumnInfo(column.name, type, broken() if type is None else Cell(), column.span))
    info = RelationInfo(decl.name, columns, decl.name_span, declared=True)
    info.is_input, info.is_output = decl.role is ast.Role.INPUT, decl.role is ast.Role.OUTPUT
    _declare_key(decl, info, problems)
    relations.by_name[decl.name] = info


def _declare_key(decl: ast.RelationDecl, info: RelationInfo, problems: Problems) -> None:
    names = [column.name for column in info.columns]
    seen: dict[str, Span] = {}
    for column in decl.key:
        if column.name not in names:
            problems.add(
                "TL0114",
                f"`{decl.name}` has no column `{column.name}`",
                column.span,
                others=[info.place("declared here")],
                hint=did_you_mean(column.name, names) or f"the columns are {quoted(names)}",
            )
        elif column.name in seen:
            problems.add(
                "TL0114",
                f"`{column.name}` is twice in the primary key of `{decl.name}`",
                column.span,
                others=[Label(seen[column.name], "first given here")],
            )
        seen.setdefault(column.name, column.span)
    info.key = tuple(names.index(name) for name in seen if name in names)
    info.key_span = decl.key[0].span if decl.key else None


def unknown_type(name: str, span: Span, problems: Problems) -> None:
    """Report a type that there is not; of one made of others, the part that is wrong."""
    wrong = next((part for part in named_types(name) if parse_type(part) is None), None)
    if wrong is None:
        problems.add("TL0108", f"two fields of the struct `{name}` have the same name", span)
        return
    hint = did_you_mean(wrong, TYPE_NAMES) or _type_hint(wrong)
    problems.add("TL0108", f"unknown type `{wrong}`", span, hint=hint)


def _type_hint(name: str) -> str:
    """What to write instead of a type that is not there."""
    if name.startswith(("bit<", "signed<")):
        return "integers have 1 to 128 bits; `bigint` has as many as it needs"
    return (
        "types are bool, s8 ... s128, u8 ... u128, bit<N>, signed<N>, bigint, float, double and string, "
        "arrays as in [s64], structs as in {x: s64, y: string}"
    )


def type_span(column: Span) -> Span:
    """The type's part of a column's span `x: t`."""
    found = re.search(r":\s*", column.text)
    return Span(column.source, column.start + found.end(), column.end) if found else column


def _mention_all(module: ast.Module, relations: Relations) -> None:
    """In an untyped program, make every relation before directives look for it."""
    rules = [item for item in module.items if isinstance(item, ast.Rule)]
    derived = {head.relation for rule in rules for head in rule.heads}
    for rule in rules:
        for head in rule.heads:
            relations.mention(head)
        for atom in atoms_of(rule.body):
            if atom.relation in derived or relations.as_call(atom, module.dialect) is None:
                relations.mention(atom)


def atoms_of(body: tuple[ast.Literal, ...]) -> list[ast.Atom]:
    """All atoms of a body, those in aggregates too, in order."""
    found: list[ast.Atom] = []
    stack: list[object] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Positive | ast.Negation):
            found.append(node.atom)
            stack.extend(reversed([a.value for a in node.atom.args]))
        else:
            stack.extend(reversed(children(node)))
    return found


def children(node: object) -> list[object]:
    """What stands directly in a literal or an expression."""
    match node:
        case ast.Condition(expr=expr):
            return [expr]
        case ast.Let(value=value):
            return [value]
        case ast.GroupBy(value=value, keys=keys):
            return [*([value] if value is not None else []), *keys]
        case ast.Positive(atom=atom) | ast.Negation(atom=atom):
            return [a.value for a in atom.args]
        case ast.Unary(operand=operand) | ast.Cast(operand=operand):
            return [operand]
        case ast.Binary(left=left, right=right):
            return [left, right]
        case ast.Call(args=args):
            return list(args)
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            return [condition, then, otherwise]
        case ast.Aggregate(value=value, body=body):
            return [*([value] if value is not None else []), *body]
    return []


def direct_names(nodes: Iterable[object]) -> set[str]:
    """The variables that occur directly in literals or expressions: not those inside aggregates."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Var | ast.Let | ast.GroupBy):
            found.add(node.name)
        if not isinstance(node, ast.Aggregate):
            stack.extend(children(node))
    return found


def _apply_directive(item: ast.Directive, relations: Relations, problems: Problems) -> None:
    for name in item.relations:
        info = relations.by_name.get(name)
        if info is None:
            problems.add(
                "TL0111",
                f"`.{item.kind}` for the unknown relation `{name}`",
                word_span(item.span, name),
                "not declared",
                hint=did_you_mean(name, relations.by_name),
            )
        elif item.kind == "input":
            info.is_input = True
            info.input_options.update(item.options)
        elif item.kind == "output":
            info.is_output = True
            info.output_options.update(item.options)
        else:
            info.printsize = True


def word_span(span: Span, word: str) -> Span:
    """Where a word stands in a span."""
    found = re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", span.text)
    return Span(span.source, span.start + found.start(), span.start + found.end()) if found else span
