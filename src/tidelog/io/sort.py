"""Tables in the order of their values: whatever shows answers shows them sorted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.io.nested import order_key, value_of
from tidelog.io.values import text_int
from tidelog.program.arrow import is_text
from tidelog.program.model import Column
from tidelog.program.types import Type


def sorted_table(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows in order, by columns from the left.

    Big integers are compared as numbers, arrays and structs part by part; -0.0 is before 0.0, NaN last.
    """
    if table.num_rows < 2 or not columns:
        return table
    table = table.combine_chunks()
    packed = _sorted_packed(table)
    if packed is not None:
        return packed
    keys = table
    for index, column in enumerate(columns):
        if is_text(column.type) or column.type.is_nested:
            keys = keys.set_column(index, column.name, _ranks(table.column(index), column.type))
        elif column.type.kind == "float":
            keys = keys.set_column(index, column.name, _float_keys(table.column(index)))
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    return table.take(order)


def _float_keys(floats: pa.ChunkedArray) -> pa.Array:
    """Integers in the order of the stored values, where -0.0 and 0.0 are different and NaN is one value."""
    values = floats.to_numpy().astype(np.float64)
    bits = values.view(np.int64)
    # The bits of negative numbers grow with their magnitude: turned around, but for the sign.
    keys = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    keys[np.isnan(values)] = 2**63 - 1
    return pa.array(keys)


def _ranks(texts: pa.ChunkedArray, type: Type) -> pa.Array:
    """For each text of a value, the place of the value among all of them."""
    encoded = texts.combine_chunks().dictionary_encode()
    values = [order_key(_value(t, type)) for t in encoded.dictionary.to_pylist()]
    ranks = np.empty(len(values), np.int64)
    ranks[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    return pa.array(ranks).take(encoded.indices)


def _value(text: str, type: Type) -> Any:
    return value_of(text, type) if type.is_nested else text_int(text)


def _sorted_packed(table: pa.Table) -> pa.Table | None:
    """Rows of small integers sorted as one 64-bit number each, several times faster; None for others."""
    if not all(pa.types.is_integer(t) for t in table.schema.types):
        return None
    bounds = [pc.min_max(column).as_py() for column in table.columns]
    widths = [bound["max"] - bound["min"] + 1 for bound in bounds]
    if math.prod(widths) >= 1 << 64:
        return None
    # Modulo 2**64, so that signed and unsigned columns need no cases of their own.
    lows = [np.uint64(bound["min"] % (1 << 64)) for bound in bounds]
    key = np.zeros(table.num_rows, np.uint64)
    for column, low, width in zip(table.columns, lows, widths, strict=True):
        values = column.to_numpy()
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)
        key = key * np.uint64(width) + (wide - low)
    key.sort()
    arrays = []
    for low, width, field in zip(lows[::-1], widths[::-1], list(table.schema)[::-1], strict=True):
        key, digit = np.divmod(key, np.uint64(width))
        arrays.append(pa.array((digit + low).astype(field.type.to_pandas_dtype())))
    return pa.table(arrays[::-1], schema=table.schema)
