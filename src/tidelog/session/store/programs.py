"""A definition as text and back, and what tells two programs apart.

The text of a definition has its declarations, and its rules with their numbers. Beside it stands the
*source*: the program that the database was last opened with. When it is opened with another one,
what differs between the two sources is what the user has changed; rules that came by transactions are in
neither and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.program.check import check
from tidelog.program.declare import Earlier, atoms_of
from tidelog.program.identity import canonical
from tidelog.program.model import Relation
from tidelog.program.projections import project_negations
from tidelog.program.types import UNKNOWN, Type, parse_type
from tidelog.session.definition import Definition, NumberedRule
from tidelog.session.store.errors import other_declarations
from tidelog.session.store.manifest import FORMAT, sealed, unsealed
from tidelog.syntax import ast
from tidelog.syntax.build import TESTS
from tidelog.syntax.parser import parse
from tidelog.syntax.printer import print_module


@dataclass(frozen=True)
class StoredProgram:
    """The program of a version, as its file has it."""

    body: Mapping[str, Any]

    @staticmethod
    def of(definition: Definition, source: str) -> StoredProgram:
        """The program of a definition, which was opened as `source`."""
        dialect = definition.dialect or ast.Dialect.SOUFFLE
        declarations = print_module(ast.Module(dialect, definition.others, parse("").span))
        return StoredProgram(
            {
                "format": FORMAT,
                "dialect": definition.dialect.value if definition.dialect else None,
                "declarations": declarations,
                "rules": [_rule(rule) for rule in definition.rules],
                "next_rule": definition.next_rule,
                "given": {name: [str(type) for type in types] for name, types in definition.given.items()},
                "written": sorted(definition.written),
                "source": source,
            }
        )

    @staticmethod
    def read(text: str) -> StoredProgram:
        """The program of a file. Raises ValueError, which says what is wrong."""
        return StoredProgram(unsealed(text))

    def text(self) -> str:
        """The program as a file has it."""
        return sealed(self.body)

    @property
    def source(self) -> str:
        """What the database was last opened with."""
        return str(self.body["source"])

    @property
    def rules(self) -> list[tuple[int, str]]:
        """The rules with their numbers, each on one line."""
        return [(rule["id"], " ".join(rule["text"].split())) for rule in self.body["rules"]]

    @property
    def declarations(self) -> str:
        """The declarations."""
        return str(self.body["declarations"])

    def definition(self, relations: Mapping[str, Relation], *, maintained: bool) -> Definition:
        """The definition; `relations` have the types that its undeclared relations had."""
        body = self.body
        dialect = ast.Dialect(body["dialect"]) if body["dialect"] else None
        others = parse(body["declarations"], "<store>", dialect=dialect).items
        rules = tuple(_read_rule(rule, dialect) for rule in body["rules"])
        declared = {item.name for item in others if isinstance(item, ast.RelationDecl)}
        given = {name: tuple(map(_type, types)) for name, types in body["given"].items()}
        settled = {
            name: types
            for name, relation in relations.items()
            if name not in declared
            and set(types := tuple(column.type for column in relation.columns)) != {UNKNOWN}
        }
        items = (*others, *(rule.rule for rule in rules))
        module = ast.Module(dialect or ast.Dialect.SOUFFLE, items, parse("").span)
        written = frozenset(body["written"])
        program = check(module, given, earlier=Earlier(settled, written))
        return Definition(
            dialect,
            others,
            rules,
            given,
            written,
            (),
            project_negations(program) if maintained else program,
            maintained,
            None,
            body["next_rule"],
        )


def _rule(rule: NumberedRule) -> dict[str, object]:
    made: dict[str, object] = {"id": rule.id, "text": rule.rule.span.text}
    atoms = {atom.relation for atom in (*rule.rule.heads, *atoms_of(rule.rule.body))}
    if atoms & TESTS.keys():  # relations that could be taken for tests
        made["relations"] = sorted(atoms & TESTS.keys())
    return made


def _read_rule(made: Mapping[str, Any], dialect: ast.Dialect | None) -> NumberedRule:
    relations = frozenset(made.get("relations", ()))
    module = parse(made["text"], f"<rule {made['id']}>", dialect=dialect, relations=relations)
    (item,) = module.items
    assert isinstance(item, ast.Rule)
    return NumberedRule(made["id"], item)


def _type(name: str) -> Type:
    return parse_type(name) or UNKNOWN


# --- what tells two programs apart ------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """What a program has that the one before has not, as texts, and the rules and facts it has no more."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


def difference(before: str, after: ast.Module) -> Difference:
    """What a user has changed in a program. Raises StoreError where declarations do not agree."""
    old = parse(before)
    known, now = _items(old), _items(after)
    problems = []
    declared = {item.name: item for item in after.items if isinstance(item, ast.RelationDecl)}
    for key, item in known.items():
        if isinstance(item, ast.Rule) or key in now:
            continue
        text = " ".join(item.span.text.split())
        other = declared.get(item.name) if isinstance(item, ast.RelationDecl) else None
        ours = "is not there" if other is None else f"is now {' '.join(other.span.text.split())}"
        problems.append(f"the store has {text}, which {ours}")
    if problems:
        raise other_declarations(problems)
    return Difference(
        tuple(item.span.text for key, item in now.items() if key not in known),
        tuple(item.span.text for key, item in known.items() if key not in now),
    )


def _items(module: ast.Module) -> dict[object, ast.Item]:
    """The items of a program by what makes them what they are."""
    return {canonical(item) if isinstance(item, ast.Rule) else item: item for item in module.items}
