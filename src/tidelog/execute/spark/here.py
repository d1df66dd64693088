"""DataFrames whose rows this process can read without asking Spark: what it gave, and files that it sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Read = Callable[[], "pa.Table"]

_known: WeakKeyDictionary[DataFrame, Read] = WeakKeyDictionary()


def readable(frame: DataFrame, read: Read) -> DataFrame:
    """Remember how the rows of a DataFrame can be read."""
    _known[frame] = read
    return frame


def way_to_read(frame: DataFrame) -> Read | None:
    """How the rows of a DataFrame can be read; None if Spark has to be asked."""
    return _known.get(frame)
