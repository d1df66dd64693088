"""Errors of using a database, beside those of programs and data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from tidelog.syntax.errors import DataError, Diagnostic, ProgramError, TidelogError, UnsupportedError
from tidelog.syntax.source import Span


class _Missing(TidelogError, KeyError):
    """Something that is not there."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)

    def __str__(self) -> str:  # a KeyError would show the message quoted, on one line
        return self.message


class UnknownRelationError(_Missing):
    """A relation that the program does not have; near misses are suggested."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        names = list(known)
        message = f"error[TL0506]: there is no relation {name}"
        if names:
            message += f"\n  = note: the relations are {', '.join(names)}"
        near = get_close_matches(str(name), names, n=3)
        if near:
            message += f"\n  = hint: did you mean {' or '.join(near)}?"
        super().__init__(message)


class UnknownRuleError(_Missing):
    """A rule that the program does not have; rules that look alike are shown."""

    def __init__(self, rule: str, near: Sequence[str]) -> None:
        message = f"error[TL0514]: there is no rule {rule}"
        if near:
            message += "".join(f"\n  = hint: there is {text}" for text in near)
        else:
            message += "\n  = hint: db.rules lists the rules"
        super().__init__(message)


def ended() -> TidelogError:
    """The error of using a transaction that has ended."""
    return TidelogError("error[TL0508]: this transaction has ended; begin another with db.transaction()")


def not_committed() -> TidelogError:
    """The error of asking a transaction that was not committed for what it did."""
    return TidelogError("error[TL0508]: this transaction has not been committed")


def closed() -> TidelogError:
    """The error of using a database that was closed."""
    return TidelogError("error[TL0515]: this database is closed")


def no_rule(span: Span) -> ProgramError:
    """The error of a text of rules in which there is none."""
    hint = "write one, as in: path(x, y) :- edge(x, y)."
    return ProgramError(
        [Diagnostic("TL0003", "expected a rule, and there is none in this text", span, hint=hint)]
    )


def rows_by_relation(what: str, given: object) -> Mapping[str, object]:
    """The rows that `Database.commit` is given, by relation. Raises DataError."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    kind = type(given).__name__
    raise DataError(
        f"error[TL0504]: cannot {what}: a mapping from relations to rows is wanted, not {kind}\n"
        f'  = hint: write {what}={{"edge": [(1, 2), (2, 3)]}}'
    )


def no_changes() -> UnsupportedError:
    """The error of asking for changes where nobody finds out about them."""
    return UnsupportedError("error[TL0608]: changes are not kept by a database made with maintained=False")


def no_key(relation: str, columns: Sequence[str]) -> TidelogError:
    """The error of asking by key where there is none."""
    return TidelogError(
        f"error[TL0513]: {relation} has no primary key\n"
        f"  = hint: declare one, as in: input relation {relation}(...) primary key ({', '.join(columns[:1])})"
    )


def no_choice(what: str, given: object, known: Sequence[str]) -> TidelogError:
    """The error of a name that is none of those known."""
    return TidelogError(
        f"error[TL0509]: there is no {what} {given!r}; {_plural(what)} are {', '.join(known)}"
    )


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
