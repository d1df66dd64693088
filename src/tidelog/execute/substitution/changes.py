"""Rows given and taken in a commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.execute.substitution.relation import Row, store
from tidelog.program.functions import round_float
from tidelog.program.model import Relation, Value

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Changes:
    """What a commit takes from a relation and adds to it."""

    deleted: pa.Table
    inserted: pa.Table

    @classmethod
    def of(cls, relation: Relation, deleted: Iterable[Row], inserted: Iterable[Row]) -> Changes:
        """The changes of a relation, from stored rows."""
        from tidelog.execute.substitution.arrow import table_of

        return cls(table_of(relation, deleted), table_of(relation, inserted))


def stored_rows(relation: Relation, rows: Sequence[tuple[Value, ...]] | pa.Table) -> Iterable[Row]:
    """Rows given as an Arrow table or as Python values, as they are stored."""
    if isinstance(rows, Sequence):
        kinds = [column.type if column.type.kind == "float" else None for column in relation.columns]
        return [
            tuple(
                store(value if kind is None else round_float(float(value), kind))
                for value, kind in zip(row, kinds, strict=True)
            )
            for row in rows
        ]
    from tidelog.execute.substitution.arrow import rows_of

    return rows_of(relation, rows)
