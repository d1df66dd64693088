"""A relation with a ledger, as the keeper handles it: attaching, setting aside, comparing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidelog.execute.local import layout as local
from tidelog.execute.local import memory, rounds
from tidelog.execute.local.keep import ending, renewal, rowmap
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep import ledger as ledgers
from tidelog.execute.local.memory import Cells, Words
from tidelog.execute.local.relation import CONTENT, StoredRelation
from tidelog.plan.parts import Mark
from tidelog.syntax.errors import UnsupportedError

Rows = npt.NDArray[np.int64]
ARRAYS = (at.MARKS, at.NUMBERS, at.TRACES, at.OLD_MARKS, at.OLD_NUMBERS, at.OLD_TRACES, at.MAP)
BLOCKS = (
    *(*ARRAYS, at.TOUCHED_ROWS, at.QUEUE, at.NOW, at.TRACE_POOL),
    *(at.DRIVEN, at.PENDING, at.FORMER, at.CANDIDATES),
)


class Ledger:
    """What maintenance knows of a relation's rows; see `ledger` for how it works."""

    def __init__(self, stored: StoredRelation, explicit: int = 0, *, new: bool = False) -> None:
        """The rows there are become held (or gained, if `new`); the first `explicit` are explicit."""
        self.stored = stored
        self.record: Words = np.zeros(at.LEDGER_WORDS, np.int64)
        self.address = int(self.record.ctypes.data)
        if not ledgers.make_room(stored.address, self.address):
            raise MemoryError
        stored.record[local.LEDGER] = self.address
        (renewal.fill_new if new else renewal.fill_marks)(stored.address, explicit)

    def free(self) -> None:
        """Give the memory back; an interrupt in the middle may lose some."""
        blocks = [int(self.record[block]) for block in BLOCKS]
        self.record[:] = 0
        if self.stored.record[local.LEDGER] == self.address:
            self.stored.record[local.LEDGER] = 0
        for block in blocks:
            memory.free(block)

    def __del__(self) -> None:
        if hasattr(self, "address"):  # not if it was never made
            self.free()

    @property
    def touched(self) -> int:
        """The number of rows that the commit has touched."""
        return int(self.record[at.TOUCHED_ROWS + at.LIST_COUNT])

    @property
    def marks(self) -> npt.NDArray[np.uint16]:
        """The marks of all rows."""
        address, count = int(self.record[at.MARKS]), len(self.stored)
        return memory.array_at(address, count, np.uint16) & np.uint16(at.ALL_MARKS)

    def marks_of(self, rows: Rows) -> npt.NDArray[np.uint16]:
        """The marks of some rows."""
        count = int(rows.max(initial=-1)) + 1
        marks = memory.array_at(int(self.record[at.MARKS]), count, np.uint16)
        return marks[rows] & np.uint16(at.ALL_MARKS)

    @property
    def numbers(self) -> Words:
        """The numbers of all rows: first iteration and count."""
        if not self.record[at.NUMBERS]:
            return np.zeros(len(self.stored), np.int64)
        return memory.array_at(int(self.record[at.NUMBERS]), len(self.stored), np.int64)

    def keep_numbers(self) -> None:
        """Have numbers for rows from now on."""
        if not self.record[at.NUMBERS]:
            self._have(at.NUMBERS, at.OLD_NUMBERS, 8)

    def swap_numbers(self, others: memory.Owned, count: int) -> None:
        """Have other numbers for the first rows, and let `others` have those that these had."""
        others.resize(8 * max(1, int(self.record[at.ROOM])))
        memory.array_at(others.address, len(self.stored), np.int64)[count:] = self.numbers[count:]
        self.record[at.NUMBERS], others.address = others.address, int(self.record[at.NUMBERS])

    def keep_traces(self) -> None:
        """Have traces for rows from now on."""
        if not self.record[at.TRACES]:
            self._have(at.TRACES, at.OLD_TRACES, 4)

    def _have(self, field: int, old: int, size: int) -> None:
        """Make an array for all rows and one for those touched, or none."""
        rows, touched = int(self.record[at.ROOM]), int(self.record[at.TOUCHED_ROWS + at.LIST_CAPACITY])
        arrays = tuple(memory.allocate_zeroed(size * max(1, n)) for n in (rows, touched))
        if not all(arrays):
            for array in arrays:
                memory.free(array)
            raise MemoryError
        self.record[field], self.record[old] = arrays

    def keep_scratch(self) -> None:
        """Have the arrays that a fixpoint in step works with."""
        for field, size in ((at.DRIVEN, 4), (at.PENDING, 4), (at.FORMER, 8)):
            if not self.record[field]:
                self.record[field] = memory.allocate_sparse(size * max(1, int(self.record[at.ROOM])))
                if not self.record[field]:
                    raise MemoryError
                if field == at.FORMER:
                    ending.fill_former(self.address)

    def clear_scratch(self) -> None:
        """Leave nothing in them, also after a fixpoint that was given up."""
        ending.clear_scratch(self.address)

    def take_over(self, old: Ledger, rows: Rows) -> None:
        """Know of the rows what another ledger knows of some of its own; its traces move here."""
        marks = memory.array_at(int(self.record[at.MARKS]), len(rows), np.uint16)
        marks[:] = old.marks_of(rows)
        if old.record[at.NUMBERS]:
            self.keep_numbers()
            self.numbers[:] = memory.array_at(
                int(old.record[at.NUMBERS]), int(rows.max(initial=-1)) + 1, np.int64
            )[rows]
        if old.record[at.TRACES]:
            self.keep_traces()
            heads = memory.array_at(int(old.record[at.TRACES]), int(rows.max(initial=-1)) + 1, np.uint32)
            memory.array_at(int(self.record[at.TRACES]), len(rows), np.uint32)[:] = heads[rows]
            for field in (at.TRACE_POOL, at.TRACE_USED, at.TRACE_CAPACITY, at.TRACE_FREE):
                self.record[field], old.record[field] = old.record[field], 0

    @property
    def bytes(self) -> dict[str, int]:
        """Memory in use between commits."""
        rows, record = len(self.stored), self.record
        return {
            "marks": 2 * rows,
            "numbers": 8 * rows if record[at.NUMBERS] else 0,
            "traces": (4 * rows + 16 * int(record[at.TRACE_USED])) if record[at.TRACES] else 0,
            "map": 4 * (int(record[at.MAP_MASK]) + 1) if record[at.MAP] else 0,
        }

    def need_map(self, room: int = 0) -> None:
        """Be able to find rows by their tuples; `room` is how many there may be soon."""
        record = self.record
        if record[at.MAP] and record[at.MAP_UPTO] == self.stored.record[local.COUNT]:
            return
        if not rowmap.extend_map(self.stored.address, room):
            raise MemoryError

    def changes(self) -> tuple[int, int]:
        """How many rows are lost, and how many gained."""
        if not self.touched:
            return 0, 0
        lost, gained = ending.count_changes(self.address)
        return int(lost), int(gained)

    def changed_rows(self) -> tuple[Rows, Rows]:
        """The rows that are lost, and those that are gained."""
        lost, gained = self.changes()
        rows = np.empty(lost, np.int64), np.empty(gained, np.int64)
        if lost or gained:
            ending.list_changes(self.address, *rows)
        return rows

    def held(self) -> npt.NDArray[np.bool_]:
        """For each row, whether it is in the answers before the commit."""
        held: npt.NDArray[np.bool_] = (self.marks & np.uint16(Mark.HELD)) != 0
        return held


class Aside:
    """The content of a relation that has been set aside, to be compared with and put back."""

    FIELDS = (
        local.ROWS, local.COUNT, local.CAPACITY, local.DELTA_LO, local.DELTA_HI, local.SLOTS,
        local.MASK, local.LIMIT, local.BLOCK_BITS, local.LEDGER, local.USED,
    )  # fmt: skip

    def __init__(self, stored: StoredRelation, ledger: Ledger, held: int) -> None:
        """Know what the content is; `held` rows are expected in its place."""
        self.stored, self.ledger, self.held = stored, ledger, held
        self.record = stored.record.copy()
        self.address = int(self.record.ctypes.data)
        self.indexes = {key: index.record.copy() for key, index in stored.indexes.items()}

    def take(self) -> None:
        """Set the content aside: the relation is empty and has no ledger."""
        stored, record = self.stored, self.stored.record
        share = min(1.0, self.held / max(1, len(stored)))
        record[list(self.FIELDS)] = 0
        record[local.BLOCK_BITS] = self.record[local.BLOCK_BITS]
        if not rounds.begin_anew(stored.address, self.held, int(share * self.record[local.USED])):
            raise MemoryError
        for index in stored.indexes.values():
            index.be_empty(share)
        stored.rest_indexes()

    @property
    def cells(self) -> Cells:
        """The rows set aside."""
        count, width = int(self.record[local.COUNT]), 2 * self.stored.words
        return memory.cells_at(int(self.record[local.ROWS]), count * width).reshape(count, width)

    @property
    def held_cells(self) -> Cells:
        """Those of them that are in the answers before the commit."""
        cells = self.cells
        marks = self.ledger.marks_of(np.arange(len(cells)))
        held: Cells = cells[(marks & np.uint16(Mark.HELD)) != 0]
        return held

    def put_back(self, now: Ledger | None) -> None:
        """The relation is what it was; `now` is the ledger of what replaced it.

        Where it has been put back before, or has only partly been taken, nothing is given back twice.
        """
        stored, record = self.stored, self.stored.record
        resting = stored.list_resting()
        blocks = {int(record[field]) for field in (local.ROWS, local.SLOTS)}
        record[list(self.FIELDS)] = self.record[list(self.FIELDS)]
        for key, index in stored.indexes.items():
            old = self.indexes.get(key)
            if old is None and key in resting:
                continue
            blocks |= {int(index.record[field]) for field in (local.INDEX_SLOTS, local.POOL)}
            if old is None:
                index.be_empty()
            else:
                index.record[list(CONTENT)] = old[list(CONTENT)]
                blocks -= {int(old[field]) for field in (local.INDEX_SLOTS, local.POOL)}
        stored.rest_indexes(self.indexes)
        stored.drop_outputs()
        if now is not None:
            now.free()
        for block in blocks - {int(self.record[field]) for field in (local.ROWS, local.SLOTS)}:
            memory.free(block)

    def discard(self) -> None:
        """Give the memory back."""
        for field in (local.ROWS, local.SLOTS):
            memory.free(int(self.record[field]))
        for index in self.indexes.values():
            memory.free(int(index[local.INDEX_SLOTS]))
            memory.free(int(index[local.POOL]))
        self.ledger.free()


def check_rows(number: int, relation: str) -> int:
    """A number of rows that a kernel gave; raises what its negative ones stand for."""
    if number == ledgers.NO_NUMBERS:
        raise UnsupportedError(
            f"error[TL0605]: more than {rounds.MAX_ROWS:,} rows in {relation}: "
            "the local engine can number no more"
        )
    if number < 0:
        raise MemoryError(f"no memory for more rows of {relation}")
    return number
