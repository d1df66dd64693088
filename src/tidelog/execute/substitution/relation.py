"""A relation as a Python dictionary, with an index for each set of columns that a rule asks for.

Floats are kept as their eight bytes: a stored value equals itself and nothing
else, whereas the number NaN equals nothing and 0.0 equals -0.0.

Each stored tuple (an `Entry`) carries its marks and numbers. Whoever changes an entry
`touch`es it first; while a commit is under way this saves what the entry was when the commit
began, so that changes can be listed, and taken back, without looking at other entries.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import NamedTuple

from tidelog.plan.parts import AFTER, Mark, Part
from tidelog.program.model import Relation, Value
from tidelog.syntax.errors import InternalError

Stored = Value | bytes
Row = tuple[Stored, ...]

FACTS = Mark.EXPLICIT | Mark.ASSERTED | Mark.RETRACTED  # what the user did, whatever rules derive


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


class State(NamedTuple):
    """What is known of a tuple at some moment. One that is not stored is as one without marks."""

    marks: int = 0
    first: int = 0
    times: int = 0  # the count; tuples have a method of that name
    trace: tuple[tuple[int, int], ...] = ()


class Entry:
    """A stored tuple. `round` is the round of the running fixpoint that derived it."""

    __slots__ = ("count", "first", "marks", "relation", "round", "row", "trace")

    def __init__(self, relation: StoredRelation, row: Row) -> None:
        self.relation = relation
        self.row = row
        self.marks = 0
        self.first = 0
        self.count = 0
        self.trace: dict[int, int] = {}
        self.round = 0

    @property
    def state(self) -> State:
        """A copy of all that is known of the tuple."""
        return State(self.marks, self.first, self.count, tuple(sorted(self.trace.items())))

    @state.setter
    def state(self, state: State) -> None:
        self.marks, self.first, self.count = state.marks, state.first, state.times
        self.trace = dict(state.trace)

    def within(self, part: Part) -> bool:
        """Whether the tuple is in a part."""
        return bool(part.table >> self.marks & 1)

    def touch(self) -> Entry:
        """To be called before any change."""
        self.relation.touch(self.row)
        return self

    def hold(self, holds: bool) -> None:
        """Mark a tuple so that it is in AFTER, or not, without any trace of a detour."""
        held = self.marks & Mark.HELD
        marks = self.marks & ~(Mark.ADDED | Mark.DELETED)
        marks |= (0 if held else Mark.ADDED) if holds else (Mark.DELETED if held else 0)
        if marks != self.marks:
            self.touch().marks = marks


Bucket = dict[Entry, None]


class Contents:
    """What a relation holds. Relations that are being renewed have two of these."""

    def __init__(self) -> None:
        self.entries: dict[Row, Entry] = {}
        self.indexes: dict[tuple[int, ...], dict[Row, Bucket]] = {}
        self.saved: dict[Row, State] = {}  # touched since `begin`, as they were then


class StoredRelation:
    """The tuples of a relation."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.derived = False  # whether rules derive into it
        self.committing = False
        self.contents = Contents()
        self.aside: Contents | None = None  # while the relation is renewed: what it held
        self.delta: Bucket = {}  # of a running fixpoint
        self.log: dict[Entry, State] = {}  # touched since the running task began, as they were then

    @property
    def name(self) -> str:
        """The relation's name."""
        return self.relation.name

    @property
    def entries(self) -> dict[Row, Entry]:
        """The stored tuples, whatever their marks."""
        return self.contents.entries

    def __len__(self) -> int:
        """The number of tuples that are held: those that were there when the commit began."""
        contents = self.aside or self.contents
        return len(contents.entries) - sum(not state.marks for state in contents.saved.values())

    def held(self) -> list[Row]:
        """The tuples that are held."""
        entries = (self.aside or self.contents).entries
        return [row for row, entry in entries.items() if entry.marks & Mark.HELD]

    def touch(self, row: Row) -> Entry:
        """The entry of a row, stored now if it was not, with its state saved; to be changed.

        It is saved first: an interrupt may come at any step, and then a rollback.
        """
        contents = self.contents
        entry = contents.entries.get(row) or Entry(self, row)
        if self.committing and row not in contents.saved:
            contents.saved[row] = entry.state
        if row not in contents.entries:
            contents.entries[row] = entry
            for columns, index in contents.indexes.items():
                index.setdefault(tuple(row[i] for i in columns), {})[entry] = None
        if self.committing and entry not in self.log:
            self.log[entry] = entry.state
        return entry

    def touched(self, part: Part) -> list[Entry]:
        """The entries of a part that differ from what they were when the commit began."""
        entries, saved = self.contents.entries, self.contents.saved
        return [
            entries[row]
            for row, was in saved.items()
            if entries[row].within(part) and entries[row].state != was
        ]

    def add(self, rows: Iterable[Row], number: int = 0) -> Bucket:
        """Make rows hold, as derived in round `number`; those that were new."""
        fresh: Bucket = {}
        for row in rows:
            entry = self.entries.get(row)
            if entry is None or not entry.within(AFTER):
                entry = self.touch(row)
                entry.round = number
                if self.committing:
                    entry.hold(True)
                else:
                    entry.marks |= Mark.HELD
                fresh[entry] = None
        return fresh

    def index(self, columns: tuple[int, ...]) -> dict[Row, Bucket]:
        """The entries by their values in these columns, kept up to date from now on."""
        if not columns:
            raise InternalError("an index without columns")
        indexes = self.contents.indexes
        if columns not in indexes:
            index: dict[Row, Bucket] = {}
            for row, entry in self.entries.items():
                index.setdefault(tuple(row[i] for i in columns), {})[entry] = None
            indexes[columns] = index
        return indexes[columns]

    # --- commits -----------------------------------------------------------------

    def begin(self) -> None:
        """Begin a commit."""
        self.committing = True

    def commit(self) -> None:
        """What is AFTER becomes what is held; all other marks go."""
        contents = self.contents
        for row in contents.saved:
            entry = contents.entries[row]
            entry.marks = (entry.marks & Mark.EXPLICIT) | Mark.HELD if entry.within(AFTER) else 0
            if not entry.marks:
                self._forget(entry)
        self._end()

    def rollback(self) -> None:
        """Everything as it was at `begin`."""
        self.contents, self.aside = self.aside or self.contents, None
        for row, was in self.contents.saved.items():
            entry = self.entries.get(row)
            if entry is not None:
                entry.state = was
                if not was.marks:
                    self._forget(entry)
        self._end()

    def _end(self) -> None:
        self.contents.saved = {}
        self.log = {}
        self.committing = False

    def _forget(self, entry: Entry) -> None:
        del self.entries[entry.row]
        for columns, index in self.contents.indexes.items():
            key = tuple(entry.row[i] for i in columns)
            entries = index.get(key, {})
            entries.pop(entry, None)
            if not entries:
                index.pop(key, None)

    def undo(self) -> None:
        """Take back what tasks have done since `begin`; what the user asserted and retracted stays."""
        self.contents, self.aside = self.aside or self.contents, None
        for row, was in self.contents.saved.items():
            entry = self.entries[row]
            facts = entry.marks & FACTS
            entry.state = was
            entry.marks = was.marks & Mark.HELD | facts
            if not self.derived:
                entry.hold(bool(entry.marks & Mark.EXPLICIT))

    def renew(self) -> None:
        """Set all tuples aside and begin with the explicit ones, as if all were newly asserted."""
        if self.aside is not None:
            raise InternalError(f"{self.name} is being renewed already")
        self.aside, self.contents = self.contents, Contents()
        for row, old in self.aside.entries.items():
            if old.marks & Mark.EXPLICIT:
                entry = self.touch(row)
                entry.marks = Mark.EXPLICIT | Mark.ASSERTED | Mark.ADDED

    def renewed(self) -> None:
        """Bring back what was set aside, with the numbers of now and marks for what differs."""
        if self.aside is None:
            raise InternalError(f"{self.name} is not being renewed")
        now, self.contents, self.aside = self.contents, self.aside, None
        for row, entry in list(self.entries.items()):
            new = now.entries.get(row)
            holds = new is not None and new.within(AFTER)
            state = new.state if new is not None and holds else State()
            entry.touch().state = state._replace(marks=entry.marks & (FACTS | Mark.HELD))
            entry.hold(holds)
            was = self.contents.saved[row]
            if was.marks and entry.state == was:  # as if it had never been touched
                del self.contents.saved[row]
        for row, new in now.entries.items():
            if row not in self.entries and new.within(AFTER):
                entry = self.touch(row)
                entry.state = new.state._replace(marks=int(Mark.ADDED))
