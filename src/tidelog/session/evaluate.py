"""From a checked program and its explicit facts to an engine that holds the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from tidelog.io.arrays import table_of
from tidelog.io.values import accept
from tidelog.maintain.seminaive import StratumReport, materialise
from tidelog.plan.executor import Executor, Progress
from tidelog.program.model import Fact, Program, Relation, Stratum, Value
from tidelog.program.strata import stratify
from tidelog.session.report import Moment, Report, Watch, labels, report_of

if TYPE_CHECKING:
    import pyarrow as pa

Facts = Mapping[str, Sequence["pa.Table"]]


def evaluate(program: Program, facts: Facts, executor: Executor, watch: Watch | None) -> Report:
    """Fill an empty executor with facts and everything that follows from them."""
    started = perf_counter()
    for relation in program.relations.values():
        executor.create(relation)
    for name, tables in facts.items():
        for table in tables:
            executor.insert(name, table)
    loaded = perf_counter()
    return report_of(_materialise(stratify(program), executor, watch), loaded - started)


def _materialise(strata: Sequence[Stratum], executor: Executor, watch: Watch | None) -> list[StratumReport]:
    """Stratum by stratum, so that a watcher also hears of a stratum that has not finished a round."""
    reports: list[StratumReport] = []
    tuples = 0
    for place, stratum in enumerate(strata, 1):

        def tell(stratum: Stratum, progress: Progress, place: int = place, before: int = tuples) -> None:
            if watch is not None:
                total = before + progress.tuples
                watch(Moment(place, len(strata), labels(stratum.relations), progress.round, total))

        tell(stratum, Progress(0, 0))
        reports += materialise([stratum], executor, tell)
        tuples += reports[-1].report.new
    return reports


def fact_tables(facts: Sequence[Fact], relations: Mapping[str, Relation]) -> dict[str, pa.Table]:
    """Facts written in a program, as tables."""
    rows: dict[str, list[tuple[Value, ...]]] = {}
    for fact in facts:
        rows.setdefault(fact.relation, []).append(fact.row)
    tables = {}
    for name, found in rows.items():
        columns = relations[name].columns
        cells = [[accept(row[i], column.type) for row in found] for i, column in enumerate(columns)]
        tables[name] = table_of(cells, columns, rows=min(len(found), 1))
    return tables
