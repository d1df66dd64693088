"""A few rows, checked where they are: what most commits consist of.

A list of tuples whose values have exactly the types of the columns needs no conversion, and
a table would cost more than the commit. Everything else (dicts, NumPy's numbers, an integer
for a float, anything wrong) is left to `rows`, which converts it or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.io.values import int_text, text_int
from tidelog.program.arrow import is_text
from tidelog.program.functions import BIGINT_BITS
from tidelog.program.model import Column, Value
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Value, ...]

FEW = 500
_BATCH = 1 << 16


class PlainRows:
    """Checks rows of one relation."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._tests = tuple(_test(column.type) for column in columns)
        self._usable = all(kind is not None for kind, _, _ in self._tests)

    def __call__(self, rows: object) -> list[Row] | None:
        """The rows, if they are few and plain; None if they need a closer look."""
        if type(rows) not in (list, tuple) or len(rows) > FEW or not self._usable:  # type: ignore[arg-type]
            return None
        tests, arity = self._tests, len(self._tests)
        row: Any
        value: Any
        for row in rows:  # type: ignore[attr-defined]
            if type(row) is not tuple or len(row) != arity:
                return None
            for value, (kind, low, high) in zip(row, tests, strict=True):
                if value.__class__ is not kind:
                    return None
                if kind is int:
                    if not low <= value <= high:
                        return None
                elif kind is str and not value.isascii() and not _is_text(value):
                    return None
        return list(rows)  # type: ignore[call-overload,no-any-return]


def _test(type: Type) -> tuple[Any, int, int]:
    """The Python type of a column's values, and the bounds of integers."""
    match type.kind:
        case "bool":
            return bool, 0, 0
        case "string":
            return str, 0, 0
        case "int":
            return int, *type.bounds()
        case "bigint":
            return int, -(1 << BIGINT_BITS) + 1, (1 << BIGINT_BITS) - 1
        case "float" if type.bits == 64:
            return float, 0, 0
        case _:  # a float of 32 bits is rounded, and what is unknown is found out
            return None, 0, 0


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def rows_of_table(table: pa.Table, columns: Sequence[Column]) -> Iterator[Row]:
    """The rows of a table in the layout of `program.arrow`, as Python's values."""
    if not columns:
        yield from [()] * table.num_rows
        return
    for batch in table.to_batches(max_chunksize=_BATCH):
        yield from zip(
            *(
                map(text_int, array.to_pylist()) if is_text(column.type) else array.to_pylist()
                for array, column in zip(batch.columns, columns, strict=True)
            ),
            strict=True,
        )


def table_of_values(rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
    """Rows of Python's values, which fit the columns, as a table."""
    from tidelog.io.arrays import table_of

    cells: list[list[Value]] = [[row[i] for row in rows] for i in range(len(columns))]
    for index, column in enumerate(columns):
        if is_text(column.type):
            cells[index] = [int_text(value) for value in cells[index]]  # type: ignore[arg-type]
    return table_of(cells, columns, rows=min(len(rows), 1))
