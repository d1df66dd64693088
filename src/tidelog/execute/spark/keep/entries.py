"""Tuples on the driver: those that commits touch, with their marks and numbers.

A row is a tuple of cells as they lie in DataFrames; floats are their eight bytes, so that a stored
value equals itself and nothing else. An `Entry` stands before the row of the base (see `relation`),
if that has one; who changes it calls `Near.touch` first, which saves what it was when the commit
began.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from tidelog.execute.spark.cells import arrow_cell_type, encode, representation
from tidelog.plan.parts import AFTER, Mark, Part
from tidelog.program.functions import round_float
from tidelog.program.model import Relation, Value
from tidelog.program.types import BOOL, Type

if TYPE_CHECKING:
    import pyarrow as pa

Cell = Value | bytes | Decimal
Row = tuple[Cell, ...]

FACTS = Mark.EXPLICIT | Mark.ASSERTED | Mark.RETRACTED  # what the user did, whatever rules derive
TURNED = Mark.ADDED | Mark.DELETED

# Marks as numbers: these are looked at for every tuple.
_HELD, _ADDED, _DELETED, _TURNED = int(Mark.HELD), int(Mark.ADDED), int(Mark.DELETED), int(TURNED)


def holding(marks: int, holds: bool) -> int:
    """Marks of a tuple that is in AFTER, or not, without any trace of a detour."""
    held = marks & _HELD
    kept = marks & ~_TURNED
    return kept | ((0 if held else _ADDED) if holds else (_DELETED if held else 0))


class State(NamedTuple):
    """What is known of a tuple at some moment."""

    marks: int = 0
    first: int = 0
    times: int = 0
    trace: tuple[tuple[int, int], ...] = ()


NOTHING = State()


class Entry:
    """A tuple with its marks and numbers; `base` is what the base says of it, None: it has no such row."""

    __slots__ = ("base", "count", "first", "marks", "row", "trace")

    def __init__(self, row: Row, base: State | None) -> None:
        self.row, self.base = row, base
        self.marks, self.first, self.count, self.trace = base or NOTHING

    @property
    def state(self) -> State:
        """All that is known of the tuple."""
        return State(self.marks, self.first, self.count, self.trace)

    @state.setter
    def state(self, state: State) -> None:
        self.marks, self.first, self.count, self.trace = state

    def within(self, part: Part) -> bool:
        """Whether the tuple is in a part."""
        return bool(part.table >> self.marks & 1)


class Near:
    """The entries of a relation, and what those touched since `begin` were then."""

    def __init__(self) -> None:
        self.entries: dict[Row, Entry] = {}
        self.saved: dict[Row, State] = {}
        self.version = 0

    def touch(self, row: Row) -> Entry:
        """The entry of a row that has been loaded, with its state saved; to be changed."""
        entry = self.entries.get(row)
        if entry is None:
            entry = self.entries[row] = Entry(row, None)
        if row not in self.saved:
            self.saved[row] = entry.state
        self.version += 1
        return entry

    def touched(self, part: Part) -> list[Entry]:
        """The entries of a part that differ from what they were when the commit began."""
        entries = self.entries
        return [
            entry
            for row, was in self.saved.items()
            if (entry := entries[row]).within(part) and entry.state != was
        ]

    def hold(self, entry: Entry, holds: bool) -> bool:
        """Make a tuple hold, or not; whether it is new."""
        marks = holding(entry.marks, holds)
        fresh = holds and not entry.within(AFTER)
        if marks != entry.marks:
            self.touch(entry.row).marks = marks
        return fresh

    # --- the end of a commit, and its ways back -----------------------------------------------

    def commit(self) -> None:
        """What is AFTER is held; entries that say what the base says are not needed any more."""
        for row in self.saved:
            entry = self.entries[row]
            if entry.within(AFTER):
                entry.marks = entry.marks & Mark.EXPLICIT | Mark.HELD
            else:
                entry.state = NOTHING
        self.forget()

    def rollback(self) -> None:
        """Everything as it was."""
        for row, was in self.saved.items():
            self.entries[row].state = was
        self.forget()

    def forget(self) -> None:
        """Forget what was saved, and entries that say nothing new."""
        self.entries = {
            row: entry for row, entry in self.entries.items() if entry.state != (entry.base or NOTHING)
        }
        self.saved = {}
        self.version += 1

    def undo(self, derived: bool) -> None:
        """Take back what tasks did; what the user asserted and retracted stays."""
        for row, was in self.saved.items():
            entry = self.entries[row]
            facts = entry.marks & FACTS
            entry.state = was._replace(marks=was.marks & _HELD | facts)
            if not derived:
                entry.marks = holding(entry.marks, bool(entry.marks & Mark.EXPLICIT))
        self.version += 1


# --- rows and tables ---------------------------------------------------------------------------


def rows_of(table: pa.Table, types: Sequence[Type]) -> list[Row]:
    """The rows of a table of cells."""
    columns: list[list[Cell]] = []
    for i, type in enumerate(types):
        cells = table.column(i).to_pylist()
        columns.append([_stored(cell) for cell in cells] if type.kind == "float" else cells)
    return list(zip(*columns, strict=True))


def arrays_of(rows: Sequence[Row], types: Sequence[Type]) -> list[pa.Array]:
    """Rows as columns of cells."""
    import pyarrow as pa

    columns: Iterable[Iterable[Cell]] = zip(*rows, strict=True) if rows else [()] * len(types)
    return [
        pa.array(
            [_restored(cell) for cell in cells] if type.kind == "float" else list(cells),
            arrow_cell_type(type),
        )
        for cells, type in zip(columns, types, strict=True)
    ]


def stored_rows(relation: Relation, rows: Iterable[Sequence[Value]]) -> list[Row]:
    """Rows of values that users know."""
    if not relation.columns:
        return [(True,) for _ in rows]
    columns: list[list[Cell]] = []
    for values, column in zip(zip(*rows, strict=True), relation.columns, strict=False):
        type = column.type
        if type.kind == "float":
            columns.append([_stored(round_float(float(value), type)) for value in values])
        elif representation(type) in ("decimal", "digits"):
            columns.append(encode(values, type).to_pylist())
        else:
            columns.append(list(values))
    return list(zip(*columns, strict=True))


def known_rows(relation: Relation, rows: Iterable[Row]) -> list[tuple[Value, ...]]:
    """Rows with the values that users know."""
    types = [column.type for column in relation.columns]
    return [tuple(_value(cell, type) for cell, type in zip(row, types, strict=False)) for row in rows]


def constant(value: Value, type: Type) -> Cell:
    """A constant of a rule, as a cell."""
    if type.kind == "float":
        return _stored(round_float(float(value), type))
    if representation(type) in ("decimal", "digits"):
        cell: Cell = encode([value], type).to_pylist()[0]
        return cell
    return bool(value) if type == BOOL else value


def _stored(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)


def _restored(cell: Cell) -> float:
    assert isinstance(cell, bytes)
    number: float = struct.unpack(">d", cell)[0]
    return number


def _value(cell: Cell, type: Type) -> Value:
    if type.kind == "float":
        return _restored(cell)
    if type.kind == "int":
        return int(cell)
    assert isinstance(cell, bool | str)
    return cell
