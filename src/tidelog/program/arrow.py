"""How tuples cross the seams: the Arrow schema of a relation.

128-bit integers and bigints travel as their decimal text, because Arrow has no
integer that holds them. A relation without columns carries one hidden column `_`
of `true`, because an Arrow table without columns has no rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tidelog.program.model import Relation
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

HIDDEN_COLUMN = "_"


def is_text(type: Type) -> bool:
    """Whether an integer type travels as decimal text."""
    return type.kind == "bigint" or (type.kind == "int" and type.bits > 64)


@lru_cache(maxsize=1024)
def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type of a column."""
    import pyarrow as pa

    if type.kind == "bool":
        return pa.bool_()
    if type.kind == "float":
        return pa.float32() if type.bits == 32 else pa.float64()
    if type.kind == "int" and not is_text(type):
        width = next(w for w in (8, 16, 32, 64) if type.bits <= w)
        return getattr(pa, f"{'int' if type.signed else 'uint'}{width}")()
    return pa.string()


def arrow_schema(relation: Relation) -> pa.Schema:
    """The schema of a relation's tables: one field for each column, no nulls."""
    import pyarrow as pa

    if not relation.columns:
        return pa.schema([pa.field(HIDDEN_COLUMN, pa.bool_(), nullable=False)])
    return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=False) for c in relation.columns])
