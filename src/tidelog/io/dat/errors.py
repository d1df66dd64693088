"""What is wrong with a script, with its place in it.

Codes: TL0701 a command that cannot be read, TL0702 a fact that does not fit its relation,
TL0703 a command that needs a transaction, or none, TL0704 a command of DDlog that is not there.
"""

from __future__ import annotations

from tidelog.syntax.errors import Diagnostic, TidelogError


class ScriptError(TidelogError):
    """A command is wrong, or failed; `diagnostic` is None when the message came from elsewhere."""

    def __init__(self, problem: Diagnostic | str) -> None:
        self.diagnostic = problem if isinstance(problem, Diagnostic) else None
        super().__init__(problem.render() if isinstance(problem, Diagnostic) else problem)
