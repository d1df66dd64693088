"""Aggregates that Python workers compute; like `cells`, without anything of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from tidelog.execute.spark.cells import decode, encode
from tidelog.program.aggregation import aggregate
from tidelog.program.functions import FunctionFailure, round_float
from tidelog.program.model import Aggregation, Value
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa


def aggregate_lists(op: Aggregation, source: Type, result: Type, columns: Sequence[pa.Array]) -> pa.Array:
    """The aggregate of each list of values in the one column; None where it does not fit its type."""
    (lists,) = columns
    flat = cast("list[Value]", decode(lists.flatten(), source))  # relations hold no nulls
    found: list[Value | None] = []
    end = 0
    for values in lists:
        start, end = end, end + len(values)
        try:
            found.append(aggregate(op, flat[start:end], result))
        except FunctionFailure:
            found.append(None)
    return encode(found, result)


def mean_of_sums(result: Type, columns: Sequence[pa.Array]) -> pa.Array:
    """The means of integers, from a column of exact sums and one of counts."""
    pairs = zip(*(column.to_pylist() for column in columns), strict=True)
    # Python divides integers as if exactly and rounds once; these sums are no larger than a double can be.
    return encode([round_float(int(total) / count, result) for total, count in pairs], result)
