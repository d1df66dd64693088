"""A relation as a Python dictionary, with an index for each set of columns that a rule asks for.

Floats are kept as their eight bytes: a stored value equals itself and nothing
else, whereas the number NaN equals nothing and 0.0 equals -0.0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

from tidelog.program.model import Relation, Value
from tidelog.syntax.errors import InternalError

Stored = Value | bytes
Row = tuple[Stored, ...]


def store(value: Value) -> Stored:
    """The value as relations hold it."""
    if isinstance(value, float):
        return struct.pack(">d", math.nan if math.isnan(value) else value)
    return value


def restore(value: Stored) -> Value:
    """The value that expressions work on."""
    if isinstance(value, bytes):
        number = struct.unpack(">d", value)[0]
        assert isinstance(number, float)
        return number
    return value


class StoredRelation:
    """The tuples of a relation, each with the round of the running fixpoint that first derived it."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.rounds: dict[Row, int] = {}
        self.delta: list[Row] = []
        self._indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def __len__(self) -> int:
        return len(self.rounds)

    def add(self, rows: Iterable[Row], number: int = 0) -> list[Row]:
        """Add rows as derived in round `number`; those that were new."""
        fresh = []
        for row in rows:
            if row not in self.rounds:
                self.rounds[row] = number
                fresh.append(row)
                for columns, index in self._indexes.items():
                    index.setdefault(tuple(row[i] for i in columns), []).append(row)
        return fresh

    def clear(self) -> None:
        """Forget all rows and indexes."""
        self.rounds.clear()
        self._indexes.clear()
        self.delta = []

    def index(self, columns: tuple[int, ...]) -> dict[Row, list[Row]]:
        """The rows by their values in these columns, kept up to date from now on."""
        if not columns:
            raise InternalError("an index without columns")
        if columns not in self._indexes:
            index: dict[Row, list[Row]] = {}
            for row in self.rounds:
                index.setdefault(tuple(row[i] for i in columns), []).append(row)
            self._indexes[columns] = index
        return self._indexes[columns]

    def begin(self) -> None:
        """Begin a fixpoint: everything is DELTA."""
        self.rounds = dict.fromkeys(self.rounds, 0)
        self.delta = list(self.rounds)
