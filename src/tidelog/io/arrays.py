"""Arrow columns: building them from cells, checking what Arrow's readers leave unchecked, inferring types."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.io.nested import by_name
from tidelog.io.values import parse_text
from tidelog.program.arrow import arrow_schema, is_text
from tidelog.program.functions import BIGINT_BITS
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import (
    BIGINT,
    BOOL,
    DOUBLE,
    S64,
    STRING,
    UNKNOWN,
    Type,
    array_of,
    struct_of,
)

_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_BIGINT_DIGITS = int(BIGINT_BITS * math.log10(2))
_CANONICAL = r"^(0|-?[1-9][0-9]*)$"


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The schema of columns, by the rules of `program.arrow`."""
    return arrow_schema(Relation("", tuple(columns)))


def table_of(cells: Sequence[list[Value]], columns: Sequence[Column], *, rows: int = 0) -> pa.Table:
    """A table of cells, column by column; `rows` counts the rows where there are no columns."""
    schema = schema_of(columns)
    if not columns:
        return pa.table([pa.array([True] * rows, pa.bool_())], schema=schema)
    arrays = [pa.array(column, type) for column, type in zip(cells, schema.types, strict=True)]
    return pa.table(arrays, schema=schema)


def column_fits(array: pa.ChunkedArray, type: Type, *, hexadecimal: bool = False) -> bool:
    """Whether a column of the right Arrow type holds only values of the type, written in the one right way.

    `hexadecimal` says that it may have been read from hexadecimal text, which Arrow
    wraps around: a negative number may then have been a large positive one.
    """
    if len(array) == 0:
        return True
    if type.is_nested:  # whose texts have to be read
        return False
    if is_text(type):
        if not pc.all(pc.match_substring_regex(array, _CANONICAL)).as_py():
            return False
        # So many digits always fit, as 38 do into 127 bits and a sign; the rest is for the exact path.
        digits = _BIGINT_DIGITS if type.kind == "bigint" else 38 if type.signed and type.bits == 128 else 0
        return bool(pc.max(pc.binary_length(array)).as_py() <= digits)
    if type.kind == "int":
        if type.bits == array.type.bit_width and not hexadecimal:  # Arrow's type has the same bounds
            return True
        low, high = type.bounds()
        extremes = pc.min_max(array).as_py()
        return (
            low <= extremes["min"] and extremes["max"] <= high and not (hexadecimal and extremes["min"] < 0)
        )
    if type.kind == "float":  # a finite number too large for the type is read as infinite
        return not pc.any(pc.is_inf(array)).as_py()
    return True


class TooLong(Exception):
    """A column of integers, some longer than a bigint may be."""

    def __init__(self, column: Column) -> None:
        self.column = column
        super().__init__(f"column {column.name} holds integers of more than {BIGINT_BITS:,} bits")


def settle(table: pa.Table, columns: Sequence[Column]) -> tuple[pa.Table, tuple[Type, ...]]:
    """The table with its columns of unknown type given one, from all their values.

    It is s64 where all are integers (bigint where some are too long for that), else double
    where all are numbers, else string.
    """
    types = []
    for index, column in enumerate(columns):
        if column.type != UNKNOWN:
            types.append(column.type)
            continue
        try:
            type, array = _infer(table.column(index))
        except ValueError as error:
            raise TooLong(column) from error
        table = table.set_column(index, pa.field(column.name, array.type, nullable=False), array)
        types.append(type)
    settled = [Column(c.name, t) for c, t in zip(columns, types, strict=True)]
    return table.cast(schema_of(settled)), tuple(types)


def _infer(array: pa.ChunkedArray) -> tuple[Type, pa.ChunkedArray]:
    if len(array) == 0:
        return UNKNOWN, array
    if pc.all(pc.match_substring_regex(array, _INTEGER)).as_py():
        plain = pc.replace_substring_regex(array, r"^\+", "")
        try:
            return S64, plain.cast(pa.int64())
        except pa.ArrowInvalid:  # too long for 64 bits: as a double it would lose digits
            return BIGINT, pa.chunked_array([[parse_text(v, BIGINT) for v in plain.to_pylist()]], pa.string())
    if pc.all(pc.match_substring_regex(array, _NUMBER)).as_py():
        return DOUBLE, pc.replace_substring_regex(array, r"^\+", "").cast(pa.float64())
    return STRING, array


def infer_values(values: Sequence[object]) -> Type:
    """The type of a column of Python values. Of mixed values it is the first one's: the others then fail."""
    if {type(v) for v in values} == {int, float}:
        return DOUBLE
    first = next(iter(values), None)
    if first.__class__.__module__ == "numpy":
        values = [getattr(value, "tolist", lambda value=value: value)() for value in values]
        first = values[0]
    if isinstance(first, bool):
        return BOOL
    if isinstance(first, float):
        return DOUBLE
    if isinstance(first, str):
        return STRING
    if isinstance(first, int):
        low, high = S64.bounds()
        return S64 if all(low <= v <= high for v in values if isinstance(v, int)) else BIGINT
    if (named := by_name(first)) is not None:
        structs = [fields for value in values if (fields := by_name(value)) is not None]
        inferred = [(name, infer_values([s[name] for s in structs if name in s])) for name in named]
        return struct_of(*inferred) if all(isinstance(name, str) for name in named) else UNKNOWN
    if isinstance(first, list | tuple):
        return array_of(infer_values([e for v in values if isinstance(v, list | tuple) for e in v]))
    return UNKNOWN
