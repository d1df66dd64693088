"""Running a checked program on an executor, and keeping one current, straight through the seam."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tidelog import Database
from tidelog.execute.local.keep.keeper import LocalKeeper
from tidelog.maintain.protocol import Algorithm
from tidelog.maintain.seminaive import materialise
from tidelog.maintain.update import Maintenance, Upkeep
from tidelog.plan.executor import Executor
from tidelog.plan.maintenance import Keeper
from tidelog.program.arrow import arrow_schema, is_text
from tidelog.program.check import check
from tidelog.program.model import Negative, Program, Relation, Value
from tidelog.program.projections import MADE_BY as PROJECTION
from tidelog.program.projections import project_negations
from tidelog.program.strata import stratify
from tidelog.session.maintained import Maintained
from tidelog.syntax.parser import parse

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


# --- maintained ------------------------------------------------------------------


class Pool:
    """All rules that a program may ever have, checked together, so that each has one number for good.

    Negated atoms have no `_`: these have become projections (see `program.projections`).
    """

    def __init__(self, text: str) -> None:
        self.program = project_negations(check(parse(text)))

    def program_of(self, texts: Iterable[str]) -> Program:
        """The program that has these rules only, with what was made for them."""
        wanted = set(texts)
        projections = {r.head.relation: r for r in self.program.rules if r.made_by == PROJECTION}
        rules = [r for r in self.program.rules if r.made_by != PROJECTION and r.text in wanted]
        negated = {lit.atom.relation for r in rules for lit in r.body if isinstance(lit, Negative)}
        rules += [rule for name, rule in projections.items() if name in negated]
        aggregates = [a for a in self.program.aggregates if a.text in wanted]
        return replace(self.program, rules=tuple(rules), aggregates=tuple(aggregates), facts=())


class Kept:
    """Relations on a keeper, brought up to date commit by commit, straight through the seam."""

    def __init__(
        self, pool: Pool, keeper: Keeper, algorithm: str | Algorithm, *, counts: bool = True
    ) -> None:
        self.pool, self.keeper = pool, keeper
        self.maintenance = Maintenance(keeper, algorithm, counts)
        self.facts: set[tuple[str, Row]] = set()
        for relation in pool.program.relations.values():
            keeper.create(relation)

    def commit(
        self, rules: Iterable[str], facts: Iterable[tuple[str, Row]], *, undo: bool = False
    ) -> list[Upkeep]:
        """Go to other rules and other explicit facts; with `undo`, only to come back from there."""
        wanted = set(facts)
        self.maintenance.begin(stratify(self.pool.program_of(rules)))
        changed = set()
        for rows, change in (
            (self.facts - wanted, self.keeper.retract_rows),
            (wanted - self.facts, self.keeper.assert_rows),
        ):
            for relation in {name for name, _ in rows}:
                chosen = [row for name, row in rows if name == relation]
                assert change(relation, chosen) == len(chosen)
                changed.add(relation)
        done = self.maintenance.update(changed)
        if undo:
            self.maintenance.rollback()
        else:
            self.maintenance.commit()
            self.facts = wanted
        return done

    def relations(self) -> dict[str, set[Row]]:
        """Every relation, those made by rewrites of the program included."""
        return {r.name: rows_of(r, self.keeper.table(r.name)) for r in self.pool.program.relations.values()}


def keeper_of(database: Database) -> LocalKeeper:
    """What holds the state of a database that is kept current in this process."""
    backend = database._commits.started()
    assert isinstance(backend, Maintained)
    assert isinstance(backend.maintenance.keeper, LocalKeeper)
    return backend.maintenance.keeper
