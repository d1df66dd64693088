"""Rows of several relations in common columns, there and back."""

from __future__ import annotations

import json
import math

import pyarrow as pa

from tests.running import rows_of, table_of
from tidelog.execute.spark.stage.layout import SAID, Layout
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type

Row = tuple[Value, ...]


def relation(name: str, *types: Type) -> Relation:
    return Relation(name, tuple(Column(f"col{i}", type) for i, type in enumerate(types)))


ROWS: dict[Relation, list[Row]] = {
    relation("edge", S64, S64): [(1, 2), (-(1 << 63), (1 << 63) - 1)],
    relation("name", S64, STRING): [(1, "ä"), (2, ""), (3, "a\tb\n")],
    relation("wide", U64, BIGINT): [((1 << 64) - 1, -(1 << 200)), (0, 0)],
    relation("real", DOUBLE, FLOAT): [(0.1, 0.5), (math.inf, -math.inf), (-0.0, 0.0)],
    relation("flag", BOOL): [(True,), (False,)],
    relation("fact"): [()],
}


def test_there_and_back() -> None:
    layout = Layout(tuple(ROWS))
    batches = [batch for r, rows in ROWS.items() for batch in layout.batches(r.name, table_of(r, rows))]
    together = pa.Table.from_batches(batches, layout.schema).combine_chunks().to_batches()
    assert len(together) == 1
    found = {name: table for name, table in layout.tables(together[0])}
    assert {name: str(rows_of(r, found[name])) for r in ROWS for name in [r.name]} == {
        r.name: str(rows_of(r, table_of(r, rows))) for r, rows in ROWS.items()
    }


def test_columns_are_shared() -> None:
    layout = Layout([relation("edge", S64, S64), relation("name", S64, STRING), relation("fact")])
    assert layout.names == ["n0", "n1", "s1"]
    assert layout.ddl == "relation int, n0 bigint, n1 bigint, s1 string, said string"


def test_what_a_task_says() -> None:
    layout = Layout([relation("edge", S64, S64)])
    batch = layout.say({"rounds": 3})
    assert batch.schema == layout.schema
    assert batch.column("relation").to_pylist() == [SAID]
    assert json.loads(batch.column("said").to_pylist()[0]) == {"rounds": 3}
