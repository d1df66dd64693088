"""A program at one moment: its text, and what facts and earlier commits have settled about it.

A definition never changes; a transaction that adds or removes rules makes another one, and a
rollback forgets that. Facts written in the program are taken out of it when it is first read:
from then on they are facts like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from tidelog.io.plain import PlainRows
from tidelog.program.check import check
from tidelog.program.declare import Earlier, atoms_of
from tidelog.program.lower import rule_text
from tidelog.program.model import (
    Column,
    Fact,
    Positive,
    Program,
    Relation,
    Stratum,
)
from tidelog.program.strata import body_relations, stratify
from tidelog.program.types import UNKNOWN, Type
from tidelog.session.errors import UnknownRuleError
from tidelog.syntax import ast
from tidelog.syntax.errors import Diagnostic, ProgramError
from tidelog.syntax.parser import parse

if TYPE_CHECKING:
    from tidelog.program.identity import Numbers

Types = tuple[Type, ...]
MOST_COMPARED = 2_000  # rules that are compared with the text of one that is not there


@dataclass(eq=False)
class NumberedRule:
    """A rule of the program, with the number it keeps while it is there."""

    id: int
    rule: ast.Rule

    @cached_property
    def canonical(self) -> str:
        """What all ways to write this rule have in common."""
        from tidelog.program.identity import canonical

        return canonical(self.rule)

    @cached_property
    def text(self) -> str:
        """The rule as it was written, on one line."""
        return rule_text(self.rule.span)


@dataclass(frozen=True, eq=False)
class Definition:
    """A checked program; `rules` and `others` are its text.

    `given` has the undeclared relations that have had facts, with their types, and `written` names those
    of them whose facts came with the text. `facts` came with the text too. In a `maintained` program
    negated atoms have no `_`, and relations and rules that wait for types are left out of `live`.
    """

    dialect: ast.Dialect | None
    others: tuple[ast.Item, ...]
    rules: tuple[NumberedRule, ...]
    given: Mapping[str, Types]
    written: frozenset[str]
    facts: tuple[Fact, ...]
    program: Program
    maintained: bool
    numbers: Numbers | None = None  # where numbers of rules go on; None: after those of the program
    next_rule: int = 1

    @staticmethod
    def first(module: ast.Module, *, maintained: bool) -> Definition:
        """The definition of a whole program. Raises ProgramError."""
        program = check(module)
        facts, program = program.facts, replace(program, facts=())
        if maintained:
            program = _projected(program)
        others: list[ast.Item] = []
        rules: list[NumberedRule] = []
        for item in module.items:
            if not isinstance(item, ast.Rule):
                others.append(item)
            elif item.body:
                rules.append(NumberedRule(len(rules) + 1, item))
        declared = _declared(others)
        written = frozenset(fact.relation for fact in facts) - declared
        return Definition(
            module.dialect if module.items else None,
            tuple(others),
            tuple(rules),
            {name: _types(program.relations[name]) for name in sorted(written)},
            written,
            facts,
            program,
            maintained,
            None,
            len(rules) + 1,
        )

    # --- what it has ----------------------------------------------------------------

    @cached_property
    def relations(self) -> Mapping[str, Relation]:
        """The relations that users know."""
        return {name: r for name, r in self.program.relations.items() if r.made_by is None}

    @cached_property
    def declared(self) -> frozenset[str]:
        """The relations that have a declaration."""
        return _declared(self.others)

    @cached_property
    def live(self) -> Program:
        """What there is to evaluate: relations whose types are known, and rules over them.

        A relation that waits for its types has no tuples, and a rule that reads one derives nothing.
        """
        if not self.maintained:
            return self.program
        typed = {name: r for name, r in self.program.relations.items() if UNKNOWN not in _types(r)}
        rules = tuple(r for r in self.program.rules if {r.head.relation, *body_relations(r)} <= typed.keys())
        aggregates = tuple(a for a in self.program.aggregates if {a.head, a.source} <= typed.keys())
        return replace(self.program, relations=typed, rules=rules, aggregates=aggregates)

    @cached_property
    def strata(self) -> tuple[Stratum, ...]:
        """The strata of what there is to evaluate."""
        return stratify(self.live)

    @cached_property
    def checks(self) -> dict[str, PlainRows]:
        """What has been found out about how to check rows; filled by those who ask."""
        return {}

    @cached_property
    def silent(self) -> bool:
        """Whether nothing follows from the program alone: no facts, and each rule reads some tuple."""
        return not self.facts and all(
            any(isinstance(literal, Positive) for literal in rule.body) for rule in self.program.rules
        )

    def types_of(self, names: Iterable[str]) -> dict[str, Types]:
        """The types of relations."""
        return {name: _types(self.relations[name]) for name in names}

    # --- what it becomes --------------------------------------------------------------

    def changed(
        self,
        *,
        rules: Sequence[NumberedRule] | None = None,
        declared: Sequence[ast.Item] = (),
        given: Mapping[str, Types] | None = None,
        dialect: ast.Dialect | None = None,
    ) -> Definition:
        """With other rules, more declarations, and types that facts have shown. Raises ProgramError."""
        from tidelog.program.identity import stabilise, used_numbers

        numbered = self.rules if rules is None else tuple(rules)
        others = (*self.others, *declared)
        known = {**self.given, **(given or {})}
        spoken = self.dialect or dialect or ast.Dialect.SOUFFLE
        span = parse("").span
        module = ast.Module(spoken, (*others, *(rule.rule for rule in numbered)), span)
        settled = {
            name: _types(relation)
            for name, relation in self.relations.items()
            if name not in self.declared and set(_types(relation)) != {UNKNOWN}
        }
        program = check(module, known, earlier=Earlier(settled, self.written))
        if self.maintained:
            program = _projected(program)
        numbers = self.numbers or used_numbers(self.program)
        program, numbers = stabilise(self.program, program, numbers)
        self._check_declared(declared, program)
        known = {name: _types(r) if (r := program.relations.get(name)) else t for name, t in known.items()}
        next_rule = max([self.next_rule, *(rule.id + 1 for rule in numbered)])
        return replace(
            self,
            dialect=self.dialect or dialect,
            others=others,
            rules=numbered,
            given=known,
            program=program,
            numbers=numbers,
            next_rule=next_rule,
        )

    def _check_declared(self, declared: Sequence[ast.Item], program: Program) -> None:
        """A declaration comes too late for a relation that is there with other columns."""
        problems = []
        for item in declared:
            old = self.relations.get(item.name) if isinstance(item, ast.RelationDecl) else None
            if old is not None and old.columns != program.relations[old.name].columns:
                columns = ", ".join(f"{column.name}: {column.type}" for column in old.columns)
                message = f"relation `{old.name}` is there already, and not declared so"
                note = f"it has the columns {columns}"
                problems.append(Diagnostic("TL0516", message, item.span, notes=(note,)))
        if problems:
            raise ProgramError(problems)

    def with_given(self, names: Iterable[str]) -> Definition:
        """With facts in more relations, whose types are known."""
        return self._like(replace(self, given={**self.given, **self.types_of(names)}))

    def without(self, names: Collection[str]) -> Definition:
        """Without relations that nothing speaks of and that hold nothing."""
        if not names:
            return self
        relations = {name: r for name, r in self.program.relations.items() if name not in names}
        return replace(
            self,
            given={name: types for name, types in self.given.items() if name not in names},
            program=replace(self.program, relations=relations),
        )

    def _like(self, other: Definition) -> Definition:
        """The other one, whose program is the same, with what has been worked out for this one."""
        for name in ("relations", "declared", "live", "strata", "checks", "silent"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def may_come(self, relation: object) -> bool:
        """Whether a relation that is not there may be given facts."""
        return not self.declared and isinstance(relation, str) and relation.isidentifier()

    # --- rules by text -----------------------------------------------------------------

    def read(self, text: str, name: str) -> ast.Module:
        """Parse a text that belongs to this program. Raises ProgramError."""
        return parse(text, name, dialect=self.dialect, relations=frozenset(self.relations))

    def facts_of(self, items: Sequence[ast.Item], dialect: ast.Dialect) -> Program:
        """A program of facts and declarations only, read with the types of this one. Raises ProgramError."""
        declared = [item for item in (*self.others, *items) if isinstance(item, ast.RelationDecl)]
        facts = [item for item in items if isinstance(item, ast.Rule) and not item.body]
        known = {n: _types(r) for n, r in self.relations.items() if n not in self.declared}
        module = ast.Module(self.dialect or dialect, (*declared, *facts), parse("").span)
        return check(module, earlier=Earlier(known))


def find_rules(rules: Sequence[NumberedRule], wanted: ast.Rule) -> list[NumberedRule]:
    """The rules that are the same as one that was written. Raises UnknownRuleError."""
    from tidelog.program.identity import canonical

    form = canonical(wanted)
    found = [rule for rule in rules if rule.canonical == form]
    if not found:
        known = {rule.canonical: rule.text for rule in rules[:MOST_COMPARED]}
        near = get_close_matches(form, known, n=3, cutoff=0.5)
        raise UnknownRuleError(rule_text(wanted.span), [known[form] for form in near])
    return found


def find_rule(rules: Sequence[NumberedRule], number: int) -> NumberedRule:
    """The rule of a number. Raises UnknownRuleError."""
    for rule in rules:
        if rule.id == number:
            return rule
    raise UnknownRuleError(f"number {number}", [f"{rule.id}: {rule.text}" for rule in rules[-3:]])


def spoken_of(rules: Iterable[NumberedRule]) -> set[str]:
    """The relations that rules are written with."""
    return {atom.relation for rule in rules for atom in (*rule.rule.heads, *atoms_of(rule.rule.body))}


def columns_with(columns: Sequence[Column], types: Types) -> tuple[Column, ...]:
    """Columns with other types."""
    return tuple(Column(column.name, type) for column, type in zip(columns, types, strict=True))


def _projected(program: Program) -> Program:
    from tidelog.program.projections import project_negations

    return project_negations(program)


def _types(relation: Relation) -> Types:
    return tuple(column.type for column in relation.columns)


def _declared(items: Iterable[ast.Item]) -> frozenset[str]:
    return frozenset(item.name for item in items if isinstance(item, ast.RelationDecl))
