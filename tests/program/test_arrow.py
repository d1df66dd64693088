"""Arrow types of columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidelog.program.arrow import arrow_schema, arrow_type
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64, STRING, UNKNOWN, parse_type


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("bool", pa.bool_()),
        ("s8", pa.int8()),
        ("u16", pa.uint16()),
        ("s32", pa.int32()),
        ("u64", pa.uint64()),
        ("bit<1>", pa.uint8()),
        ("bit<12>", pa.uint16()),
        ("signed<33>", pa.int64()),
        ("u128", pa.string()),
        ("signed<65>", pa.string()),
        ("bigint", pa.string()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
    ],
)
def test_type(name: str, type: pa.DataType) -> None:
    parsed = parse_type(name)
    assert parsed is not None
    assert str(parsed) == name
    assert arrow_type(parsed) == type


def test_unknown() -> None:
    assert arrow_type(UNKNOWN) == pa.string()


def test_schema() -> None:
    relation = Relation("r", (Column("x", S64), Column("y", STRING)))
    assert arrow_schema(relation) == pa.schema(
        [pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string(), nullable=False)]
    )
    assert arrow_schema(Relation("r", ())) == pa.schema([pa.field("_", pa.bool_(), nullable=False)])
