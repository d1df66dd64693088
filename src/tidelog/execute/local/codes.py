"""Values as 32-bit codes, and back.

Every cell of a row is a 32-bit code, and two values of a type are equal exactly when
their codes are:

| type                         | code                                                       |
|------------------------------|------------------------------------------------------------|
| bool                         | 0 or 1                                                     |
| integers in [-2^30, 2^30)    | the low 31 bits of the value itself                        |
| other integers up to 64 bits | 2^31 + number in the table of wide words                   |
| float, double                | 2^31 + number in the table of wide words (of its bits)     |
| larger integers              | 2^31 + number in the table of big integers                 |
| string; array, struct        | number in the table of strings                             |

Tables only grow. A column has one type, so tables may share numbers.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from tidelog.execute.local.memory import Cells, Words
from tidelog.program.arrow import arrow_type, is_text
from tidelog.program.model import Value
from tidelog.program.types import Type
from tidelog.syntax.errors import UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

WIDE = 1 << 31
SMALL = 1 << 30
MAX_NUMBER = WIDE - 2  # the largest code would make a row that looks like an empty slot
CANONICAL_NAN = 0x7FF8000000000000

Column = npt.NDArray[Any]


def float_bits(value: float) -> int:
    """The 64 bits of a float as a signed integer; every NaN has the same ones."""
    if math.isnan(value):
        return CANONICAL_NAN
    return cast(int, struct.unpack("<q", struct.pack("<d", value))[0])


class Codes:
    """The tables behind the codes of one database."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._string_list: list[str] = []
        self._bigs: dict[int, int] = {}
        self._big_list: list[int] = []
        self._wides: dict[int, int] = {}
        self._use_wide_table(np.zeros(1024, np.int64))

    def _use_wide_table(self, table: Words) -> None:
        """Have a table of wide words; `wide_address` is where it is, until it grows."""
        self._wide_table = table
        self.wide_address = int(table.ctypes.data)

    # --- single values ---

    def code(self, value: Value, type: Type) -> int:
        """The code of a value."""
        if type.kind == "bool":
            return int(bool(value))
        if type.kind == "float":
            return WIDE | self._wide(float_bits(float(value)))
        if isinstance(value, str):
            return self._string(value)
        whole = int(value)
        if whole >= 1 << 63 and not is_text(type):
            whole -= 1 << 64  # u64: the same bits, read as signed
        if -SMALL <= whole < SMALL:
            return whole & 0x7FFFFFFF
        return WIDE | (self._big(whole) if is_text(type) else self._wide(whole))

    def value(self, code: int, type: Type) -> Value:
        """The value of a code."""
        if type.kind == "bool":
            return bool(code)
        if type.kind == "float":
            bits = int(self._wide_table[code & ~WIDE])
            return cast(float, struct.unpack("<d", struct.pack("<q", bits))[0])
        if type.kind not in ("int", "bigint"):
            return self._string_list[code]
        if code < WIDE:
            whole = code - (1 << 31) if code >= SMALL else code
        elif is_text(type):
            return self._big_list[code & ~WIDE]
        else:
            whole = int(self._wide_table[code & ~WIDE])
        return whole + (1 << 64) if whole < 0 and not type.signed and type.kind == "int" else whole

    def _string(self, value: str) -> int:
        code = self._strings.get(value)
        if code is None:
            code = self._strings[value] = _checked(len(self._string_list))
            self._string_list.append(value)
        return code

    def _big(self, value: int) -> int:
        number = self._bigs.get(value)
        if number is None:
            number = self._bigs[value] = _checked(len(self._big_list))
            self._big_list.append(value)
        return number

    def _wide(self, bits: int) -> int:
        number = self._wides.get(bits)
        if number is None:
            number = self._wides[bits] = _checked(len(self._wides))
            if number == len(self._wide_table):
                self._use_wide_table(np.concatenate([self._wide_table, np.zeros_like(self._wide_table)]))
            self._wide_table[number] = bits
        return number

    # --- whole columns: int64 bits, float64 or objects, according to the type ---

    def decode(self, cells: Cells, type: Type) -> Column:
        """The values of a column of codes: see `encode` for the kinds of array."""
        if type.kind == "bool":
            return cells.astype(np.int64)
        if type.kind == "float":
            bits: Column = self._wide_table[cells & np.uint32(WIDE - 1)]
            return bits.view(np.float64)
        if type.kind not in ("int", "bigint"):
            return _objects(self._string_list)[cells]
        if is_text(type):
            return _objects([self.value(int(c), type) for c in cells])
        small = (cells.astype(np.int64) << 33) >> 33
        wide = cells >= WIDE
        if wide.any():
            small[wide] = self._wide_table[cells[wide] & np.uint32(WIDE - 1)]
        return small

    def encode(self, values: Column, type: Type) -> Cells:
        """The codes of a column: int64 (bool, integers up to 64 bits: their bits), float64, or objects."""
        if type.kind == "bool":
            return values.astype(np.uint32)
        if type.kind == "float":
            bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
            bits[np.isnan(values)] = CANONICAL_NAN
            return self._encode_wide(bits)
        if values.dtype == np.object_:
            distinct: dict[object, int] = {}
            codes = np.empty(len(values), np.uint32)
            for i, value in enumerate(values):
                code = distinct.get(value)
                if code is None:
                    code = distinct[value] = self.code(cast(Value, value), type)
                codes[i] = code
            return codes
        small = (values & 0x7FFFFFFF).astype(np.uint32)
        wide = (values < -SMALL) | (values >= SMALL)
        if wide.any():
            small[wide] = self._encode_wide(values[wide])
        return small

    def _encode_wide(self, bits: npt.NDArray[np.int64]) -> Cells:
        distinct, inverse = np.unique(bits, return_inverse=True)
        codes = np.array([WIDE | self._wide(b) for b in distinct.tolist()], np.uint32)
        return codes[inverse] if len(codes) else np.empty(0, np.uint32)

    # --- Arrow ---

    def from_arrow(self, column: pa.ChunkedArray, type: Type) -> Cells:
        """The codes of an Arrow column of the type's layout."""
        if type.is_string_inside or is_text(type):
            return self._from_text(column, type)
        values = column.to_numpy()
        if type.kind == "float":
            return self.encode(values.astype(np.float64), type)
        if values.dtype == np.uint64:
            return self.encode(values.view(np.int64), type)
        return self.encode(values.astype(np.int64), type)

    def _from_text(self, column: pa.ChunkedArray, type: Type) -> Cells:
        import pyarrow as pa

        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        texts = encoded.dictionary.to_pylist()
        if is_text(type):
            codes = np.array([self.code(int(t), type) for t in texts], np.uint32)
        else:
            codes = np.array([self._string(t) for t in texts], np.uint32)
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        return codes[indices] if len(codes) else np.empty(0, np.uint32)

    def to_arrow(self, cells: Cells, type: Type) -> pa.Array:
        """The Arrow column of a column of codes."""
        import pyarrow as pa

        if type.is_string_inside:
            distinct, inverse = np.unique(cells, return_inverse=True)
            texts = pa.array([self._string_list[c] for c in distinct.tolist()], pa.string())
            return texts.take(pa.array(inverse)) if len(texts) else texts
        if is_text(type):
            return pa.array([str(self.value(c, type)) for c in cells.tolist()], pa.string())
        values = self.decode(cells, type)
        if type.kind == "bool":
            return pa.array(values.astype(np.bool_))
        target = arrow_type(type)
        if type.kind == "int" and not type.signed:
            values = values.view(np.uint64)
        return pa.array(values.astype(target.to_pandas_dtype()), target)


def _objects(values: list[str] | list[Value] | list[int]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array


def _checked(number: int) -> int:
    if number > MAX_NUMBER:
        raise UnsupportedError(
            f"error[TL0606]: more than {MAX_NUMBER:,} distinct strings or wide numbers in one database: "
            "the local engine can number no more"
        )
    return number
