"""Running a checked program on an executor, straight through the seam."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidelog.maintain.seminaive import materialise
from tidelog.plan.executor import Executor
from tidelog.program.arrow import arrow_schema, is_text
from tidelog.program.model import Program, Relation, Value
from tidelog.program.strata import stratify

Row = tuple[Value, ...]


@dataclass
class Run:
    """What a run derived: every relation, and the rule instances considered."""

    relations: dict[str, set[Row]]
    instances: dict[int, int]
    rounds: int


def table_of(relation: Relation, rows: Iterable[Row]) -> pa.Table:
    """Rows as the Arrow table that executors take."""
    schema, kept = arrow_schema(relation), list(rows)
    if not relation.columns:
        return pa.table([[True] * len(kept)], schema=schema)
    columns = []
    for i, column in enumerate(relation.columns):
        values: list[object] = [row[i] for row in kept]
        texts = [str(value) for value in values] if is_text(column.type) else values
        columns.append(pa.array(texts, schema.field(i).type))
    return pa.table(columns, schema=schema)


def rows_of(relation: Relation, table: pa.Table) -> set[Row]:
    """The rows of a table that an executor gave; it has each of them once."""
    assert table.schema.equals(arrow_schema(relation)), (relation.name, table.schema)
    if not relation.columns:
        assert table.num_rows <= 1
        return {()} if table.num_rows else set()
    columns = []
    for i, column in enumerate(relation.columns):
        values = table.column(i).to_pylist()
        columns.append([int(value) for value in values] if is_text(column.type) else values)
    rows = set(zip(*columns, strict=True))
    assert len(rows) == table.num_rows, f"{relation.name} has a row twice"
    return rows


def run(program: Program, executor: Executor, facts: Mapping[str, Iterable[Row]] | None = None) -> Run:
    """Materialise a program over its own facts and `facts`; closes the executor."""
    try:
        given: dict[str, list[Row]] = {name: list(rows) for name, rows in (facts or {}).items()}
        for fact in program.facts:
            given.setdefault(fact.relation, []).append(fact.row)
        for relation in program.relations.values():
            executor.create(relation)
            if relation.name in given:
                executor.insert(relation.name, table_of(relation, given[relation.name]))
        reports = materialise(stratify(program), executor)
        instances: dict[int, int] = {}
        for report in reports:
            instances |= report.report.instances
        found = {r.name: rows_of(r, executor.table(r.name)) for r in program.relations.values()}
        for name, rows in found.items():
            assert executor.size(name) == len(rows), name
        return Run(found, instances, sum(report.report.rounds for report in reports))
    finally:
        executor.close()
