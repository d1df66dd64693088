"""What the oracle says of the states of a history."""

from __future__ import annotations

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
        self._programs: dict[tuple[str, ...], Program] = {}
        self._models: dict[State, Model] = {}

    @cached_property
    def models(self) -> list[Model]:
        """Of the relations that users see. Raises ProgramError if a set of rules is not accepted."""
        return [self._model(state) for state in self.history.states()]

    @property
    def accepted(self) -> bool:
        """Whether the checker accepts every state of the history."""
        try:
            return bool(self.models)
        except ProgramError:
            return False

    def _model(self, state: State) -> Model:
        if state not in self._models:
            program = self._programs.get(state.rules)
            if program is None:
                program = check(parse("\n".join((*self.history.declarations, *state.rules))))
                self._programs[state.rules] = program
            facts: dict[str, list[Row]] = {}
            for relation, row in state.facts:
                facts.setdefault(relation, []).append(row)
            model = model_of(program, facts)
            self._models[state] = {
                name: rows for name, rows in model.items() if program.relations[name].made_by is None
            }
        return self._models[state]
