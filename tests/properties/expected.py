"""What the oracle says of the states of a history."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from tests.oracle import Model, model_of
from tests.properties.histories import History, Row, State
from tidelog.program.check import check
from tidelog.program.model import Program
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse


class Expected:
    """The oracle's models of a history: one for the beginning, one for each transaction."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._models: dict[State, Model] = {}

    @cached_property
    def models(self) -> list[Model]:
        """Of the relations that users see. Raises ProgramError if the rules are not accepted."""
        return [self._model(state) for state in self.history.states()]

    @property
    def accepted(self) -> bool:
        """Whether the checker accepts all the rules."""
        try:
            return bool(self._program)
        except ProgramError:
            return False

    @cached_property
    def _program(self) -> Program:
        """All rules together, which is quicker than to check the rules of each state."""
        rules = dict.fromkeys(rule for state in self.history.states() for rule in state.rules)
        return check(parse("\n".join((*self.history.declarations, *rules))))

    def _model(self, state: State) -> Model:
        if state not in self._models:
            every, texts = self._program, set(state.rules)
            program = replace(
                every,
                rules=tuple(rule for rule in every.rules if rule.text in texts),
                aggregates=tuple(rule for rule in every.aggregates if rule.text in texts),
            )
            facts: dict[str, list[Row]] = {}
            for relation, row in state.facts:
                facts.setdefault(relation, []).append(row)
            model = model_of(program, facts)
            self._models[state] = {
                name: rows for name, rows in model.items() if program.relations[name].made_by is None
            }
        return self._models[state]
