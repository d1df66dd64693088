"""What can go wrong with a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.syntax.errors import TidelogError


class StoreError(TidelogError):
    """A store cannot be opened, read or written; what was committed before is as it was."""


def store_error(code: str, what: str, notes: Iterable[str] = (), hint: str | None = None) -> StoreError:
    """An error with its code, notes and hint."""
    lines = [f"error[{code}]: {what}", *(f"  = note: {note}" for note in notes)]
    return StoreError("\n".join([*lines, f"  = hint: {hint}"] if hint else lines))


def no_store() -> StoreError:
    """The error of asking a database without a store for versions."""
    return store_error(
        "TL0801",
        "this database has no store, and so no versions but the current one",
        hint='tidelog.Database(program, store="directory") keeps them',
    )


def not_a_store(place: str, why: str, hint: str | None = None) -> StoreError:
    """The error of a place where there is no store and none can be made."""
    return store_error("TL0801", f"{place} is not a store", [why], hint)


def damaged(path: str, why: str) -> StoreError:
    """The error of a file that is not what it was written as."""
    hint = "put the file back from a copy of the store; versions that do not need it can still be read"
    return store_error("TL0802", f"the store is damaged: {path}", [why], hint)


def in_use(place: str, holder: str) -> StoreError:
    """The error of a store that another process, or another database of this one, has open."""
    return store_error(
        "TL0803",
        f"the store {place} is in use by {holder}",
        hint="close that database first",
    )


def overtaken(path: str, version: int) -> StoreError:
    """The error of a commit whose version somebody else has published."""
    return store_error(
        "TL0804",
        f"version {version} is there already: somebody else has committed to this store",
        [f"{path} exists", "nothing has been changed"],
        "open the database again, and repeat the transaction",
    )


def not_written(place: str, error: Exception) -> StoreError:
    """The error of a commit that could not be written."""
    return store_error(
        "TL0805", f"cannot write to the store {place}", [said(error), "nothing has been changed"]
    )


def uncertain(version: int) -> StoreError:
    """The error of a commit that has failed when it was in the store already."""
    return store_error(
        "TL0805",
        f"version {version} may be in the store or not, and this database is closed",
        hint="open the database again: it goes on with what is there",
    )


def no_version(version: object, known: Sequence[int]) -> StoreError:
    """The error of a version that cannot be read, because it never was or is no more."""
    there = f"versions {known[0]} to {known[-1]} can be read" if known else "there are none"
    gone = isinstance(version, int) and known and 0 <= version < known[0]
    what = "has been removed by vacuum" if gone else "is not there"
    return store_error("TL0806", f"version {version} {what}", [there])


def other_declarations(notes: Sequence[str]) -> StoreError:
    """The error of a program that cannot go on with what a store has."""
    return store_error(
        "TL0807",
        "this program does not go with the one in the store",
        notes,
        "declare these as they were, or begin another store",
    )


def said(error: Exception) -> str:
    """What an error of the system says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
