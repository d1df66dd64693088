"""Relations with all that is known of their tuples, to be written down, and back.

That is a DataFrame, or a table where all of it is on the driver. Beside the cells there are the columns of
a base: marks, numbers and traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.keep.base import GIVEN, MARKS, Base, numbered_table, plain, states_of
from tidelog.execute.spark.keep.entries import Entry
from tidelog.execute.spark.keep.relation import KeptRelation
from tidelog.execute.spark.state import computed, cut

if TYPE_CHECKING:
    import pyarrow as pa


def state(kept: KeptRelation) -> pa.Table | DataFrame:
    """The tuples held, between commits."""
    frame = kept.folded()[0] if kept.base is not None else None
    if frame is not None:
        return frame
    return numbered_table([entry for entry in kept.near.entries.values() if entry.marks], kept.types)


def restore(kept: KeptRelation, state: pa.Table | DataFrame) -> None:
    """Have a new relation hold what `state` gave, or a DataFrame of explicit facts."""
    if isinstance(state, DataFrame):
        if MARKS in state.columns:
            frame, size = cut(state)  # files may go
            kept.base = Base(frame, size, frame.filter(F.col(MARKS) == F.lit(GIVEN)).count())
        else:
            kept.base = plain(computed(kept.spark, kept.relation, state), GIVEN, 0)
    else:
        for row, known in states_of(state, kept.relation):
            kept.near.entries[row] = entry = Entry(row, None)
            entry.state = known
        if len(kept.near.entries) != state.num_rows:
            raise ValueError(f"{kept.relation.name} has tuples that are there twice")
    kept.held = len(kept.near.entries) + (0 if kept.base is None else kept.base.size)
