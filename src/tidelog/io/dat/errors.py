"""What is wrong with a script, with its place in it.

Codes: TL0701 a command that cannot be read, TL0702 a fact that does not fit its relation,
TL0703 a command that needs a transaction, or none, TL0704 a command of DDlog that is not there.
"""

from __future__ import annotations

from dataclasses import replace

from tidelog.syntax.errors import (
    Diagnostic,
    EvaluationError,
    InternalError,
    Label,
    ProgramError,
    TidelogError,
)
from tidelog.syntax.source import Span


class ScriptError(TidelogError):
    """A command is wrong, or failed; `diagnostic` is None when the message came from elsewhere."""

    def __init__(self, problem: Diagnostic | str) -> None:
        self.diagnostic = problem if isinstance(problem, Diagnostic) else None
        super().__init__(problem.render() if isinstance(problem, Diagnostic) else problem)


def placed(error: TidelogError, place: object) -> TidelogError:
    """An error that came of carrying out a command, with the place of the command if it tells none."""
    if isinstance(error, ScriptError | ProgramError | InternalError):
        return error
    heading, *rest = str(error).split("\n")
    return ScriptError("\n".join([heading, f"  --> {place}", *rest]))


class RulesOfScript:
    """Where the rules that a script has added stand in it, for problems with them."""

    def __init__(self) -> None:
        self._spans: dict[str, Span] = {}

    def add(self, text: str, span: Span) -> None:
        """Remember a rule, whose text begins where the span does."""
        self._spans[text] = span

    def moved(self, error: TidelogError) -> TidelogError:
        """An error that points at rules, pointing at them in the script."""
        if isinstance(error, ProgramError):
            return ProgramError([self._problem(problem) for problem in error.diagnostics])
        if isinstance(error, EvaluationError) and error.span is not None:
            return TidelogError(str(error).replace(f"--> {error.span}", f"--> {self._span(error.span)}", 1))
        return error

    def _problem(self, old: Diagnostic) -> Diagnostic:
        others = tuple(Label(self._span(label.span), label.text) for label in old.others)
        return replace(old, span=None if old.span is None else self._span(old.span), others=others)

    def _span(self, old: Span) -> Span:
        to = self._spans.get(old.source.text)
        if to is None:
            return old  # of the program that the rule came into
        return Span(to.source, to.start + old.start, to.start + old.end)
