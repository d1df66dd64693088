"""The explicit facts of a relation that stay in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.program.model import Relation
from tidelog.session.frames.given import GivenFrame

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.state import Rows


class FrameFacts:
    """The explicit facts of a relation, in Spark. Operations make others; these stay as they are."""

    def __init__(self, held: Rows) -> None:
        self._held = held

    @staticmethod
    def of(relation: Relation, tables: Sequence[pa.Table], given: GivenFrame) -> FrameFacts:
        """Facts that the driver had, in the session of a DataFrame."""
        import pyarrow as pa

        from tidelog.execute.spark.state import Rows, rows_of

        spark = given.frame.sparkSession
        return FrameFacts(
            rows_of(spark, relation, pa.concat_tables(tables)) if tables else Rows(spark, relation)
        )

    @property
    def sources(self) -> tuple[Rows, ...]:
        """What an executor is given."""
        return (self._held,)

    def insert(self, rows: pa.Table | GivenFrame) -> tuple[FrameFacts, int]:
        """With more facts, and how many of the rows had no effect."""
        return self._plus(self._given(rows))

    def delete(self, rows: pa.Table | GivenFrame) -> tuple[FrameFacts, int]:
        """Without some facts, and how many of the rows had no effect."""
        return self._minus(self._given(rows))

    def apply(self, changes: GivenFrame) -> tuple[FrameFacts, int, int]:
        """With some facts and without others, and how many of either had no effect."""
        from tidelog.execute.spark.state import split_changes

        held = self._held
        come, gone = split_changes(changes.computed(held.spark, held.relation))
        facts, deletes = self._minus(gone)
        facts, inserts = facts._plus(come)
        return facts, inserts, deletes

    def _given(self, rows: pa.Table | GivenFrame) -> Rows:
        from tidelog.execute.spark.state import rows_of

        spark, relation = self._held.spark, self._held.relation
        if isinstance(rows, GivenFrame):
            return rows.computed(spark, relation)
        return rows_of(spark, relation, rows)

    def _plus(self, given: Rows) -> tuple[FrameFacts, int]:
        frame = given.read()
        after = self._held if frame is None else self._held.plus(frame)
        return FrameFacts(after), given.size - (after.size - self._held.size)

    def _minus(self, given: Rows) -> tuple[FrameFacts, int]:
        after = self._held.minus(given)
        return FrameFacts(after), given.size - (self._held.size - after.size)
