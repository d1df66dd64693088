"""Changes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, overload

from tidelog.io.facts import find_facts, read_facts
from tidelog.io.rows import table_of_rows
from tidelog.program.model import Column, Relation
from tidelog.program.types import UNKNOWN, Type
from tidelog.syntax.errors import TidelogError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

Types = tuple[Type, ...]


class Home(Protocol):
    """What a transaction needs of the database it belongs to."""

    def columns_of(self, relation: str) -> tuple[Column, ...] | None:
        """The columns of a relation one may insert into; None for a new one of an untyped program."""

    @property
    def types_taken(self) -> Mapping[str, Types]:
        """The types that undeclared relations have taken from the facts committed so far."""

    def inputs(self) -> list[Relation]:
        """The relations that facts are read for."""

    def finish(self, transaction: Transaction, *, commit: bool) -> None:
        """End the transaction."""


class Transaction:
    """Facts to be inserted by the next commit. Made by `Database.transaction`; use it in a `with`."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open = True
        self.release: Callable[[], object] = lambda: None  # gives the turn to write back, once
        self.inserted: dict[str, list[pa.Table]] = {}
        # Types that undeclared relations have taken from their facts here.
        self.types: dict[str, Types] = {}

    def insert(self, relation: str, rows: object) -> None:
        """Add rows: an iterable of tuples, lists or dicts, an Arrow table, a pandas or polars DataFrame.

        Raises DataError naming the first wrong rows; the transaction then holds none of
        `rows` and can go on.
        """
        self._check_open()
        columns = self._typed(relation, self._home.columns_of(relation))
        note = None
        if relation in self.types or relation in self._home.types_taken:
            note = f"{relation} is not declared: its first facts gave its columns their types"
        table, found = table_of_rows(relation, columns, rows, note)
        self._add(relation, table, columns, found)

    def load(self, directory: str | Path) -> None:
        """Add the facts of every input relation, each from its file in the directory."""
        self._check_open()
        inputs = self._home.inputs()
        paths = find_facts(inputs, Path(directory))
        for relation in inputs:
            columns = self._typed(relation.name, relation.columns)
            facts = read_facts(replace(relation, columns=columns), paths[relation.name])
            self._add(relation.name, facts.table, columns, facts.columns)

    @overload
    def _typed(self, relation: str, columns: tuple[Column, ...]) -> tuple[Column, ...]: ...

    @overload
    def _typed(self, relation: str, columns: None) -> tuple[Column, ...] | None: ...

    def _typed(self, relation: str, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """The columns with the types that facts given here before have settled."""
        if relation not in self.types:
            return columns
        types = self.types[relation]
        names = [f"c{i}" for i in range(len(types))] if columns is None else [c.name for c in columns]
        return tuple(Column(name, type) for name, type in zip(names, types, strict=True))

    def _add(
        self, relation: str, table: pa.Table, columns: tuple[Column, ...] | None, found: tuple[Column, ...]
    ) -> None:
        if not table.num_rows:
            return
        if columns is None or any(c.type == UNKNOWN for c in columns):
            self.types[relation] = tuple(c.type for c in found)
        self.inserted.setdefault(relation, []).append(table)

    def delete(self, relation: str, rows: object) -> None:
        """Not there yet: raises UnsupportedError."""
        raise _not_yet("delete", "facts can only be inserted")

    def add_rule(self, rule: str) -> None:
        """Not there yet: raises UnsupportedError."""
        raise _not_yet("add_rule", "the rules are those the database was made with")

    def remove_rule(self, rule: str) -> None:
        """Not there yet: raises UnsupportedError."""
        raise _not_yet("remove_rule", "the rules are those the database was made with")

    def commit(self) -> None:
        """Make the changes. When it returns, the answers are current; when it raises, nothing has changed."""
        self._check_open()
        self._open = False
        self._home.finish(self, commit=True)

    def rollback(self) -> None:
        """Forget the changes."""
        self._check_open()
        self._open = False
        self._home.finish(self, commit=False)

    def _check_open(self) -> None:
        if not self._open:
            raise TidelogError(
                "error[TL0508]: this transaction has ended; begin another with db.transaction()"
            )

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._open:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()


def _not_yet(method: str, note: str) -> UnsupportedError:
    return UnsupportedError(
        f"error[TL0608]: {method} is not there yet\n  = note: {note}\n"
        "  = hint: make another Database with what you want it to hold"
    )
