"""What is wrong with a script, with its place in it.

Codes: TL0701 a command that cannot be read, TL0702 a fact that does not fit its relation,
TL0703 a command that needs a transaction, or none, TL0704 a command of DDlog that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidelog.syntax.errors import Diagnostic, Label, ProgramError, TidelogError
from tidelog.syntax.source import Span


class ScriptError(TidelogError):
    """A command is wrong, or failed; `diagnostic` is None when the message came from elsewhere."""

    def __init__(self, problem: Diagnostic | str) -> None:
        self.diagnostic = problem if isinstance(problem, Diagnostic) else None
        super().__init__(problem.render() if isinstance(problem, Diagnostic) else problem)


def placed(error: TidelogError, place: object) -> ScriptError:
    """An error that came of carrying out a command, with the place of the command."""
    if isinstance(error, ScriptError):
        return error
    heading, *rest = str(error).split("\n")
    return ScriptError("\n".join([heading, f"  --> {place}", *rest]))


def moved(error: ProgramError, places: Mapping[str, Span]) -> ProgramError:
    """Problems with rules, shown where these stand in the script: a text begins where its span does."""

    def span(old: Span) -> Span:
        to = places.get(old.source.text)
        if to is None:
            return old  # of the program that the rule came into
        return Span(to.source, to.start + old.start, to.start + old.end)

    def problem(old: Diagnostic) -> Diagnostic:
        others = tuple(Label(span(label.span), label.text) for label in old.others)
        return replace(old, span=None if old.span is None else span(old.span), others=others)

    return ProgramError([problem(old) for old in error.diagnostics])
