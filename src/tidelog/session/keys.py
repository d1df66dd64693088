"""Rows by their primary keys.

For each relation with a key there is a dictionary of its explicit rows. A transaction works on
it directly, because what it asks for has to count what it did before; every change is written
down, so that it can be taken back. It is written down before it is made, and crossed out after it
has been taken back: an interrupt in between does no harm, as taking it back twice is the same as once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidelog.io.errors import MOST_SHOWN, data_error
from tidelog.io.nested import outward_row
from tidelog.io.plain import Row
from tidelog.io.values import shown
from tidelog.program.model import Relation, Value

Key = tuple[object, ...]


class KeyedRows:
    """The rows of one relation, by key."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self._rows: dict[Key, Row] = {}
        self._floats = tuple(i for i, c in enumerate(relation.columns) if c.type.kind == "float")

    def key(self, row: Sequence[Value]) -> Key:
        """The key of a row."""
        return self.as_key([row[i] for i in self.relation.key])

    def as_key(self, values: Sequence[Value]) -> Key:
        """Values of the key's columns as the dictionary has them."""
        return tuple(values) if not self._floats else tuple(map(_stored, values))

    def get(self, key: Key) -> Row | None:
        """The row of a key."""
        return self._rows.get(key)

    def same(self, one: Row, other: Row) -> bool:
        """Whether two rows are stored as one."""
        return one == other if not self._floats else [*map(_stored, one)] == [*map(_stored, other)]

    def put(self, key: Key, row: Row | None) -> None:
        """Set or remove the row of a key."""
        self._rows.pop(key, None)
        if row is not None:
            self._rows[key] = row

    def all(self) -> list[Key]:
        """All keys there are."""
        return list(self._rows)


class Keys:
    """All relations with keys, and what the open transaction has changed in them."""

    def __init__(self) -> None:
        self._relations: dict[str, KeyedRows] = {}
        self._journal: list[Callable[[], object]] = []

    def of(self, relation: Relation) -> KeyedRows:
        """The rows of a relation that has a key."""
        found = self._relations.get(relation.name)
        if found is None:
            self._journal.append(lambda: self._relations.pop(relation.name, None))
            found = self._relations[relation.name] = KeyedRows(relation)
        return found

    def put(self, rows: KeyedRows, key: Key, row: Row | None) -> Row | None:
        """Set or remove a row, so that it can be undone; the row that was there."""
        before = rows.get(key)
        self._journal.append(lambda: rows.put(key, before))
        rows.put(key, row)
        return before

    def insert(self, relation: Relation, rows: Iterable[Row]) -> None:
        """Add rows. Raises DataError, with nothing changed, where another row has the key."""
        keyed, mark = self.of(relation), len(self._journal)
        clashes: list[str] = []
        for number, row in enumerate(rows, 1):
            key = keyed.key(row)
            other = keyed.get(key)
            if other is None:
                self.put(keyed, key, row)
            elif not keyed.same(other, row):
                clashes.append(
                    f"  --> row {number}: {_text(row, relation)} has the key of {_text(other, relation)}"
                )
                if len(clashes) == MOST_SHOWN:
                    break
        if clashes:
            self.undo(mark)
            names = ", ".join(relation.columns[i].name for i in relation.key)
            raise data_error(
                "TL0511",
                f"cannot insert into {relation.name}: two rows with the same primary key ({names})",
                clashes,
                hint="insert_or_update replaces the row that is there",
            )

    def delete(self, relation: Relation, rows: Iterable[Row]) -> None:
        """Remove rows; those that are not there are passed over."""
        keyed = self.of(relation)
        for row in rows:
            key = keyed.key(row)
            other = keyed.get(key)
            if other is not None and keyed.same(other, row):
                self.put(keyed, key, None)

    def clear(self, relation: Relation) -> None:
        """Remove all rows."""
        keyed = self.of(relation)
        for key in keyed.all():
            self.put(keyed, key, None)

    def mark(self) -> int:
        """A moment that `undo` can go back to."""
        return len(self._journal)

    def undo(self, mark: int = 0) -> None:
        """Take back what was done since a moment, or since the last commit."""
        while len(self._journal) > mark:
            self._journal[-1]()
            self._journal.pop()

    def keep(self) -> None:
        """What was done stands."""
        self._journal.clear()


def _stored(value: object) -> object:
    """A float as what tells it from others: NaN is one value, 0.0 and -0.0 are two."""
    return ("float", value.hex()) if isinstance(value, float) else value


def _text(row: Row, relation: Relation) -> str:
    row = outward_row(row, relation.columns)
    return f"({', '.join(map(shown, row))}{',' if len(row) == 1 else ''})"
