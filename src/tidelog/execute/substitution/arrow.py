"""Rows to and from Arrow tables, in the layout of `program.arrow`."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tidelog.execute.substitution.relation import Row, restore, store
from tidelog.program.arrow import arrow_schema, is_text
from tidelog.program.model import Relation


def rows_of(relation: Relation, table: pa.Table) -> Iterable[Row]:
    """The rows of a table."""
    if relation.arity == 0:  # the hidden column is there only to have rows
        return [()] * table.num_rows
    columns = []
    for i, column in enumerate(relation.columns):
        values = table.column(i).to_pylist()
        if is_text(column.type):
            values = [int(value) for value in values]
        columns.append([store(value) for value in values])
    return zip(*columns, strict=True)


def table_of(relation: Relation, rows: Iterable[Row]) -> pa.Table:
    """A table of the rows."""
    schema = arrow_schema(relation)
    if relation.arity == 0:
        return pa.table([pa.array([True for _ in rows], pa.bool_())], schema=schema)
    kept = list(rows)
    columns = []
    for i, column in enumerate(relation.columns):
        values = [restore(row[i]) for row in kept]
        texts = [str(value) for value in values] if is_text(column.type) else values
        columns.append(pa.array(texts, schema.field(i).type))
    return pa.table(columns, schema=schema)
