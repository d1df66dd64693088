"""Which task owns a row: a hash of the values in some of its columns, the same in every process.

Most codes differ from task to task, so it is values that are hashed. Small integers and booleans are
their own codes everywhere, other integers of up to 64 bits and floats are hashed by their bits, whole
columns at once; strings and larger integers once for each code, which is then remembered. Every NaN
has the same bits; 0.0 and -0.0 have different ones.

`Placing` follows the rule of a copy (`plan.placement`): by key, but for heavy keys by the whole row, or
everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from tidelog.execute.local.codes import WIDE, Codes
from tidelog.execute.local.memory import Cells
from tidelog.plan.placement import Copy, Key
from tidelog.program.arrow import is_text
from tidelog.program.model import Relation
from tidelog.program.types import Type

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.uint16]

MOST_TASKS = 1 << 16
FEW = 8  # tasks up to which rows are sought for each of them, instead of sorted
AT_ONCE = 1 << 16  # rows: what is computed along the way stays in the processor's cache
# Odd numbers without a pattern: the first bits of the golden ratio and of e.
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xB7E151628AED2A6B)
_HALF = np.uint64(32)


class Owners:
    """Finds the owners of rows among `tasks` tasks."""

    def __init__(self, tasks: int, codes: Codes) -> None:
        if not 1 <= tasks <= MOST_TASKS:
            raise ValueError(f"{tasks} tasks")
        self.tasks = tasks
        self.codes = codes
        self._strings = _Remembered()
        self._large = _Remembered()

    def of(self, cells: Cells, columns: Sequence[int], types: Sequence[Type]) -> Numbers:
        """The owner of each row of cells by the values in `columns`, whose types are `types`.

        Rows spread by no column have one owner together.
        """
        found: Numbers = np.zeros(len(cells), np.uint16)
        if columns and self.tasks > 1:
            for start in range(0, len(cells), AT_ONCE):
                part = slice(start, start + AT_ONCE)
                hashes = self._hashes(cells[part, columns[0]], types[0])
                for column, type in zip(columns[1:], types[1:], strict=True):
                    hashes = _mixed(hashes * _FIRST + self._hashes(cells[part, column], type))
                found[part] = ((hashes >> _HALF) * np.uint64(self.tasks)) >> _HALF
        return found

    def _hashes(self, cells: Cells, type: Type) -> Hashes:
        if type.is_string_inside:
            return self._strings.hashes(cells, self.codes, type)
        bits = cells.astype(np.uint64)
        wide = cells >= WIDE
        if not wide.any():
            return _mixed(bits)
        if is_text(type):
            hashes = _mixed(bits)
            hashes[wide] = self._large.hashes(cells[wide], self.codes, type)
            return hashes
        bits[wide] = self.codes.decode(cells[wide], type).view(np.uint64) ^ _SECOND  # unlike any code
        return _mixed(bits)


class Placing:
    """Where the rows of a copy of a relation go."""

    def __init__(self, copy: Copy, relation: Relation, owners: Owners) -> None:
        self._owners, self._copy = owners, copy
        self._types = tuple(column.type for column in relation.columns)
        self._columns = copy.columns or ()
        self._spread = self._codes(copy.spread)
        self._everywhere = self._codes(copy.everywhere)

    def _codes(self, keys: Collection[Key]) -> Cells:
        """Keys as rows of codes."""
        types = [self._types[i] for i in self._columns]
        rows = [[self._owners.codes.code(v, t) for v, t in zip(key, types, strict=True)] for key in keys]
        return np.array(rows, np.uint32).reshape(len(keys), len(types))

    def parts(self, cells: Cells) -> list[Cells]:
        """The rows that each task is to have."""
        tasks = self._owners.tasks
        if tasks == 1:
            return [cells]
        if self._copy.columns is None:
            return [cells.copy()] * tasks
        copied = self._among(cells, self._everywhere)
        if copied is not None:
            everyone, cells = _rows(cells, np.flatnonzero(copied)), _rows(cells, np.flatnonzero(~copied))
        owners = self._of(cells, self._columns)
        spread = self._among(cells, self._spread)
        if spread is not None:
            places = np.flatnonzero(spread)
            owners[places] = self._of(_rows(cells, places), tuple(range(len(self._types))))
        parts = _parted(cells, owners, tasks)
        return parts if copied is None else [np.concatenate([part, everyone]) for part in parts]

    def _of(self, cells: Cells, columns: Sequence[int]) -> Numbers:
        return self._owners.of(cells, columns, [self._types[i] for i in columns])

    def _among(self, cells: Cells, keys: Cells) -> npt.NDArray[np.bool_] | None:
        """Which rows have one of some keys; None if none has."""
        if not len(keys):
            return None
        found: npt.NDArray[np.bool_] = np.isin(cells[:, self._columns[0]], keys[:, 0])
        if len(self._columns) > 1:
            places = np.flatnonzero(found)
            rows = cells[places][:, self._columns]
            found[places] = (rows[:, None, :] == keys[None, :, :]).all(axis=2).any(axis=1)
        return found if found.any() else None


def _parted(cells: Cells, owners: Numbers, tasks: int) -> list[Cells]:
    """Rows by owner."""
    if tasks <= FEW:
        places = [np.flatnonzero(owners == task) for task in range(tasks)]
    else:
        ends = np.cumsum(np.bincount(owners, minlength=tasks))
        places = np.split(np.argsort(owners, kind="stable"), ends[:-1])
    return [_rows(cells, rows) for rows in places]


def _rows(cells: Cells, places: npt.NDArray[np.int64]) -> Cells:
    """Some rows. They are moved as words: numpy is many times faster at that."""
    rows: Cells = cells.view(np.uint64).take(places, axis=0).view(np.uint32)
    return rows


class _Remembered:
    """The hashes of values that are hashed one by one, by the numbers of their codes."""

    def __init__(self) -> None:
        self._known: npt.NDArray[np.bool_] = np.zeros(1024, np.bool_)
        self._hashes: Hashes = np.zeros(1024, np.uint64)

    def hashes(self, cells: Cells, codes: Codes, type: Type) -> Hashes:
        numbers = cells & np.uint32(WIDE - 1)
        most = int(numbers.max(initial=0))
        if most >= len(self._known):
            more = max(most + 1 - len(self._known), len(self._known))
            self._known = np.concatenate([self._known, np.zeros(more, np.bool_)])
            self._hashes = np.concatenate([self._hashes, np.zeros(more, np.uint64)])
        unknown = ~self._known[numbers]
        if unknown.any():
            for code in np.unique(cells[unknown]).tolist():
                text = str(codes.value(code, type)).encode("utf-8", "surrogatepass")
                digest = blake2b(text, digest_size=8).digest()
                self._hashes[code & (WIDE - 1)] = int.from_bytes(digest, "little")
            self._known[numbers] = True
        found: Hashes = self._hashes[numbers]
        return found


def _mixed(bits: Hashes) -> Hashes:
    """Bits multiplied and folded, so that all of them have a say in the upper half."""
    bits = bits * _FIRST
    bits ^= bits >> _HALF
    bits *= _SECOND
    return bits
