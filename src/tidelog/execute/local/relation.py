"""A relation of the local executor: rows, their set, and indexes made on demand."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from tidelog.execute.local import filling, memory, probes, rounds, tupleset
from tidelog.execute.local import layout as at
from tidelog.execute.local.keep.layout import MARKS
from tidelog.execute.local.memory import Cells, Words
from tidelog.plan.parts import Mark
from tidelog.program.model import Relation
from tidelog.syntax.errors import UnsupportedError

MAX_CARRIED = 3  # an index entry is two words at most
FIRST_SLOTS = 16  # of an index
CONTENT = (
    *(at.INDEX_SLOTS, at.INDEX_SIZE, at.KEYS, at.POOL, at.POOL_USED, at.POOL_CAPACITY, at.UPTO),
    *range(at.FREE, at.INDEX_WORDS),
)  # the fields of an index that change


class Index:
    """An index of a relation on some of its columns; see `index` for how it works."""

    def __init__(self, relation: StoredRelation, key: tuple[int, ...]) -> None:
        self.key = key
        rest = tuple(c for c in range(relation.arity) if c not in key)
        self.carried = rest if len(rest) <= MAX_CARRIED else ()
        self.from_row = len(rest) > MAX_CARRIED
        self._key_columns = np.array(key, np.int64)
        self._carried_columns = np.array((*self.carried, 0), np.int64)
        self.record: Words = np.zeros(at.INDEX_WORDS, np.int64)
        self.address = int(self.record.ctypes.data)
        slot_words = 2 if len(key) == 1 else 2 + (len(key) + 1) // 2
        record = self.record
        record[at.RELATION] = relation.address
        record[at.KEY_COUNT] = len(key)
        record[at.KEY_COLUMNS] = self._key_columns.ctypes.data
        record[at.CARRIED_COUNT] = len(self.carried)
        record[at.CARRIED_COLUMNS] = self._carried_columns.ctypes.data
        record[at.ENTRY_WORDS] = (2 + len(self.carried)) // 2
        record[at.SLOT_WORDS] = slot_words
        self._scratch = np.zeros(slot_words, np.int64)
        record[at.SCRATCH] = self._scratch.ctypes.data
        self.be_empty()

    def be_empty(self, share: float = 0.0) -> None:
        """Have no entries, but expect a share of what there was, which is somebody else's now."""
        record = self.record
        slots = memory.allocate_zeroed(8 * int(record[at.SLOT_WORDS]) * FIRST_SLOTS)
        if not slots:
            raise MemoryError
        record[at.EXPECTED_SLOTS] = 4 * int(share * record[at.INDEX_SIZE] / 4)
        record[at.EXPECTED_ENTRIES] = int(share * record[at.POOL_USED])
        record[list(CONTENT)] = 0
        record[at.INDEX_SLOTS], record[at.INDEX_SIZE] = slots, FIRST_SLOTS

    @property
    def keys(self) -> int:
        """The number of distinct keys."""
        return int(self.record[at.KEYS])

    @property
    def bytes(self) -> int:
        """Memory in use: the table, and the part of the pool that was ever used."""
        slots = 8 * int(self.record[at.SLOT_WORDS]) * int(self.record[at.INDEX_SIZE])
        return slots + 8 * int(self.record[at.ENTRY_WORDS]) * int(self.record[at.POOL_USED])

    def free(self) -> None:
        """Give the memory back."""
        memory.free(int(self.record[at.INDEX_SLOTS]))
        memory.free(int(self.record[at.POOL]))


class StoredRelation:
    """The rows of a relation as packed cells, append-only, with their set and indexes."""

    def __init__(self, relation: Relation, workers: int) -> None:
        self.relation = relation
        self.arity = relation.arity
        self.words = max(1, (self.arity + 1) // 2)
        self.workers = workers
        self.indexes: dict[tuple[int, ...], Index] = {}
        self._resting: dict[tuple[int, ...], Index] = {}
        self._index_list: Words = np.zeros(1, np.int64)
        self._outputs: Words = np.zeros(at.OUT_WORDS * workers, np.int64)
        self.record: Words = np.zeros(at.RELATION_WORDS, np.int64)
        self.address = int(self.record.ctypes.data)
        record = self.record
        record[at.ARITY] = self.arity
        record[at.WORDS] = self.words
        record[at.LAST_SHIFT] = 32 if self.arity and self.arity % 2 == 0 else 0
        if not tupleset.begin_table(self.address, tupleset.FIRST_SLOTS, tupleset.FIRST_BITS):
            raise MemoryError
        record[at.INDEXES] = self._index_list.ctypes.data
        record[at.OUTPUTS] = self._outputs.ctypes.data

    def __del__(self) -> None:
        if hasattr(self, "record"):  # not if it was never made
            self.free()

    def free(self) -> None:
        """Give the memory back; the relation is not used afterwards."""
        for index in (*self.indexes.values(), *self._resting.values()):
            index.free()
        self.indexes, self._resting = {}, {}
        for field in (at.ROWS, at.SLOTS, at.ROUND_ENDS, at.REPEATS):
            memory.free(int(self.record[field]))
            self.record[field] = 0
        self.record[at.ROUND_COUNT] = self.record[at.ROUND_CAPACITY] = 0
        self.drop_outputs()

    def __len__(self) -> int:
        return int(self.record[at.COUNT])

    @property
    def rows_now(self) -> npt.NDArray[np.int64] | None:
        """The numbers of the rows that hold now; None: all do."""
        ledger = int(self.record[at.LEDGER])
        if not ledger:
            return None
        address = int(memory.array_at(ledger + 8 * MARKS, 1, np.int64)[0])
        marks = memory.array_at(address, len(self), np.uint16)
        held = (marks & (Mark.HELD | Mark.DELETED)) == Mark.HELD
        return np.flatnonzero(held | ((marks & Mark.ADDED) != 0))

    @property
    def holding(self) -> int:
        """How many rows hold now."""
        rows = self.rows_now
        return len(self) if rows is None else len(rows)

    @property
    def cells_now(self) -> Cells:
        """The rows that hold now, as in `cells`."""
        rows = self.rows_now
        return self.cells if rows is None else self.cells[rows]

    @property
    def cells(self) -> Cells:
        """All rows, two cells a word: an array (rows, 2 x words) that is valid until the next insertion."""
        count = len(self)
        return memory.cells_at(int(self.record[at.ROWS]), count * 2 * self.words).reshape(
            count, 2 * self.words
        )

    def index(self, key: tuple[int, ...]) -> Index:
        """The index on these columns, made and filled if it is not there."""
        if key not in self.indexes:
            index = self._resting.get(key) or Index(self, key)
            try:
                self._fill(index)
            except MemoryError:
                self._resting.pop(key, None)
                half = [int(index.record[field]) for field in (at.INDEX_SLOTS, at.POOL)]
                index.be_empty()
                self._resting[key] = index  # it goes on resting
                for block in half:
                    memory.free(block)
                raise
            self._resting.pop(key, None)
            self.indexes[key] = index
            self._list_indexes()
        return self.indexes[key]

    def rest_indexes(self, but: Collection[tuple[int, ...]] = ()) -> None:
        """Let empty indexes, all but some, rest until they are asked for, or `wake_indexes` fills them.

        Filled at once they cost less than with each round of a fixpoint that does not need them, and
        where one recomputing follows another those of updates are never filled.
        """
        self._resting.update((key, index) for key, index in self.indexes.items() if key not in but)
        self.indexes = {key: index for key, index in self.indexes.items() if key in but}
        self._list_indexes()

    def wake_indexes(self) -> None:
        """Fill the indexes that still rest."""
        for key in tuple(self._resting):
            self.index(key)

    def list_resting(self) -> Collection[tuple[int, ...]]:
        """Let resting indexes be there as they are: somebody else fills them. Which these are."""
        resting = self._resting
        self.indexes, self._resting = {**self.indexes, **resting}, {}
        self._list_indexes()
        return resting.keys()

    def _list_indexes(self) -> None:
        addresses = np.array([i.address for i in self.indexes.values()] or [0], np.int64)
        self.record[at.INDEXES] = addresses.ctypes.data  # before the old array goes
        self._index_list = addresses
        self.record[at.INDEX_COUNT] = len(self.indexes)

    def _fill(self, index: Index) -> None:
        if self.record[at.LEDGER]:  # some rows may be linked nowhere
            from tidelog.execute.local.keep import renewal

            done = renewal.fill_index(self.address, index.address)
        else:
            done = filling.extend_index(index.address, len(self))
        if not done:
            raise MemoryError

    def insert(self, columns: list[Cells], count: int) -> int:
        """Insert rows given as columns of cells; the number that were new."""
        packed: Cells = np.zeros((count, 2 * self.words), np.uint32)
        for i, column in enumerate(columns):
            packed[:, i] = column
        fits = probes.insert_into(self.address, packed.ctypes.data, count, int(self.record[at.OUTPUTS]))
        return self.absorb() if fits else self._no_memory()

    def absorb(self) -> int:
        """Append the outputs, bring the indexes up to date, and take all rows as settled."""
        new = rounds.absorb(self.address, self.workers)
        if new == rounds.NO_NUMBERS:
            raise UnsupportedError(
                f"error[TL0605]: more than {rounds.MAX_ROWS:,} rows in {self.relation.name}: "
                "the local engine can number no more"
            )
        if new < 0 or not rounds.extend_indexes(self.address):
            return self._no_memory()
        self.settle()
        self.drop_outputs()
        return int(new)

    def drop_outputs(self) -> None:
        """Give back the workers' buffers, and what a failed round may have left in them."""
        blocks = self._outputs[at.OUT_ROWS :: at.OUT_WORDS].tolist()
        self._outputs[:] = 0
        for block in blocks:
            memory.free(block)

    def lift_limit(self) -> None:
        """Let several workers fill the table further than one would, before they stop to grow it.

        Each may take one slot more than the limit, and one slot must stay empty, or probes never end.
        """
        size = int(self.record[at.MASK]) + 1
        self.record[at.LIMIT] = min(size * tupleset.HARD_LOAD_TENTHS // 10, size - self.workers - 1)

    def restore_limit(self) -> None:
        """The limit of a lone worker."""
        self.record[at.LIMIT] = (int(self.record[at.MASK]) + 1) * tupleset.MAX_LOAD_TENTHS // 10

    def grow(self) -> bool:
        """Make the set's table larger. False: no memory."""
        return bool(tupleset.grow(self.address))

    def settle(self) -> None:
        """No row is DELTA: ALL and OLD are every row."""
        self.record[at.DELTA_LO] = self.record[at.DELTA_HI] = len(self)

    def delta_from(self, row: int) -> None:
        """The rows from this number on are DELTA."""
        self.record[at.DELTA_LO], self.record[at.DELTA_HI] = row, len(self)

    @property
    def round_ends(self) -> Words:
        """How many rows there were after each round of the last fixpoint."""
        count = int(self.record[at.ROUND_COUNT])
        return memory.array_at(int(self.record[at.ROUND_ENDS]), count, np.int64).copy()

    def all_delta(self) -> None:
        """Every row is DELTA, as at the start of a fixpoint."""
        self.record[at.ROUND_COUNT] = 0
        self.record[at.DELTA_LO] = 0
        self.record[at.DELTA_HI] = len(self)

    @property
    def bytes(self) -> dict[str, int]:
        """Memory in use by rows, set and indexes."""
        stride = self.words + (1 if self.record[at.BLOCK_BITS] else 0)
        return {
            "rows": 8 * self.words * len(self),
            "set": 8 * stride * (int(self.record[at.MASK]) + 1),
            "indexes": sum(index.bytes for index in self.indexes.values()),
        }

    def _no_memory(self) -> int:
        raise MemoryError(f"no memory for more rows of {self.relation.name}")
