"""The rules that a transaction adds and removes, in order, until it is committed."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Protocol, SupportsIndex

from tidelog.io.plain import Row
from tidelog.session.definition import (
    Definition,
    NumberedRule,
    Types,
    find_rule,
    find_rules,
    spoken_of,
)
from tidelog.session.errors import UnknownRuleError, no_rule
from tidelog.syntax import ast
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse


class TakeFacts(Protocol):
    """What happens to facts that are written among rules."""

    def __call__(self, relation: str, rows: list[Row], *, insert: bool) -> None:
        """Insert or delete them."""


Moment = tuple[list[NumberedRule] | None, list[ast.Item], ast.Dialect | None, int]


class RuleChanges:
    """A definition's rules, with changes."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._rules: list[NumberedRule] | None = None  # None: as they were
        self._declared: list[ast.Item] = []
        self._dialect = definition.dialect
        self._next = definition.next_rule
        self._pending: tuple[Mapping[str, Types], Definition | None] | None = None

    # --- changing -----------------------------------------------------------------

    def add(self, text: str, take_facts: TakeFacts) -> tuple[int, ...]:
        """Add the rules and declarations of a text; the numbers of the rules."""
        module = self._read(text)
        rules = list(self._current())
        known = {rule.canonical: rule for rule in rules}
        removed = {rule.canonical: rule for rule in self._definition.rules} if self._rules is not None else {}
        numbers = []
        for item in module.items:
            if not isinstance(item, ast.Rule):
                self._declared.append(item)
            elif item.body:
                made = NumberedRule(self._next, item)
                same = known.get(made.canonical)
                if same is None:
                    # A rule that was removed here before is simply there again.
                    made = removed.get(made.canonical, made)
                    self._next += made.id == self._next
                    known[made.canonical] = made
                    rules.append(made)
                numbers.append((same or made).id)
        if len(rules) > len(self._current()):
            self._rules = rules
        self._dialect, self._pending = self._dialect or module.dialect, None
        self._facts(module, take_facts, insert=True)
        return tuple(numbers)

    def remove(self, text: str, take_facts: TakeFacts) -> None:
        """Remove the rules of a text."""
        module = self._read(text)
        rules = list(self._current())
        for item in module.items:
            if not isinstance(item, ast.Rule):
                raise UnknownRuleError(item.span.text, [])
            if item.body:
                gone = find_rules(rules, item)
                rules = [rule for rule in rules if rule not in gone]
        if len(rules) < len(self._current()):
            self._rules, self._pending = rules, None
        self._facts(module, take_facts, insert=False)

    def remove_number(self, number: SupportsIndex) -> None:
        """Remove the rule of a number."""
        if isinstance(number, bool):
            raise TypeError("a rule is removed by its text or its number, not by bool")
        gone = find_rule(self._current(), index(number))
        self._rules, self._pending = [rule for rule in self._current() if rule is not gone], None

    def _facts(self, module: ast.Module, take_facts: TakeFacts, *, insert: bool) -> None:
        facts = [item for item in module.items if isinstance(item, ast.Rule) and not item.body]
        if facts:
            definition = self._definition
            program = definition.facts_of((*self._declared, *facts), self._dialect or module.dialect)
            for fact in program.facts:
                take_facts(fact.relation, [fact.row], insert=insert)

    def _read(self, text: str) -> ast.Module:
        if not isinstance(text, str):
            raise TypeError(f"a rule is text, not {type(text).__name__}")
        names = frozenset(self._definition.relations)
        module = parse(text, "<rule>", dialect=self._dialect, relations=names)
        if not module.items:
            raise no_rule(module.span)
        return module

    def moment(self) -> Moment:
        """Where things stand, for `back_to`."""
        return self._rules, list(self._declared), self._dialect, self._next

    def back_to(self, moment: Moment) -> None:
        """Forget what was done since a moment."""
        self._rules, self._declared, self._dialect, self._next = moment
        self._pending = None

    # --- what comes of it -----------------------------------------------------------

    def _current(self) -> list[NumberedRule] | tuple[NumberedRule, ...]:
        return self._definition.rules if self._rules is None else self._rules

    @property
    def any(self) -> bool:
        """Whether anything is to change."""
        return self._rules is not None or bool(self._declared)

    def forgettable(self) -> set[str]:
        """The relations of removed rules: they go with them if nothing else speaks of them."""
        if self._rules is None:
            return set()
        kept = spoken_of(self._rules)
        left = set(self._rules)
        gone = spoken_of(rule for rule in self._definition.rules if rule not in left)
        return {name for name in gone - kept if name in self._definition.given}

    def definition(self, types: Mapping[str, Types]) -> Definition:
        """The definition with the changes made here, and types that facts have shown. Raises ProgramError."""
        if self._pending is None or self._pending[1] is None or self._pending[0] != types:
            made = self._definition.changed(
                rules=self._rules, declared=self._declared, given=types, dialect=self._dialect
            )
            self._pending = (dict(types), made)
        made_before = self._pending[1]
        assert made_before is not None
        return made_before

    def pending(self, types: Mapping[str, Types]) -> Definition | None:
        """The same, for looking up columns: None where nothing changes, or while it does not go together."""
        if not self.any:
            return None
        if self._pending is not None and self._pending[0] == types:
            return self._pending[1]
        try:
            return self.definition(types)
        except ProgramError:
            self._pending = (dict(types), None)
            return None
