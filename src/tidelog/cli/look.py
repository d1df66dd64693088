"""`tidelog check` and `tidelog plan`: a program looked at, not run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.plan.executor import Version
from tidelog.plan.order import Assumed
from tidelog.plan.printer import print_strata
from tidelog.program.check import check
from tidelog.program.model import Program
from tidelog.program.strata import stratify
from tidelog.program.types import UNKNOWN
from tidelog.syntax.parser import read

if TYPE_CHECKING:
    import pyarrow as pa


def check_program(path: Path) -> str:
    """A line on what the program has; raises ProgramError with everything wrong with it."""
    return f"{path}: {counts(check(read(path)))}, no problems"


def counts(program: Program) -> str:
    """How much a program has of everything."""
    own = sum(relation.made_by is None for relation in program.relations.values())
    rules = sum(rule.made_by is None for rule in program.rules)
    numbers = (
        _count(own, "relation"),
        _count(rules, "rule"),
        _count(len(program.facts), "fact"),
        _count(len(stratify(program)), "stratum", "strata"),
    )
    return ", ".join(numbers)


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def plan_program(path: Path, facts: Path | None) -> str:
    """The plans of a program; with facts, joins are ordered by what the facts are like."""
    module = read(path)
    program = check(module)
    if facts is None:
        return print_strata(program, stratify(program)).rstrip()
    from tidelog.cli.startup import keep_pandas_out
    from tidelog.io.facts import find_facts, read_facts

    keep_pandas_out()

    inputs = [r for r in program.relations.values() if r.is_input]
    paths = find_facts(inputs, facts)
    found = [read_facts(relation, paths[relation.name]) for relation in inputs]
    known = {
        f.relation: tuple(c.type for c in f.columns)
        for f, relation in zip(found, inputs, strict=True)
        if f.table.num_rows and any(c.type == UNKNOWN for c in relation.columns)
    }
    program = check(module, known)
    statistics = TableStatistics({f.relation: f.table for f in found})
    return print_strata(program, stratify(program), statistics).rstrip()


class TableStatistics:
    """Statistics of input tables; of what is derived only a guess, as large as the largest input."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables
        self._distinct: dict[tuple[str, tuple[int, ...]], int] = {}
        sizes = [self._count(name, tuple(range(t.num_columns))) for name, t in tables.items()]
        self._guess = Assumed(max([*sizes, 1]))

    def size(self, relation: str, version: Version) -> int:
        """The number of distinct rows."""
        if relation not in self._tables:
            return self._guess.size(relation, version)
        return self._count(relation, tuple(range(self._tables[relation].num_columns)))

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """Rows for each distinct value of the columns."""
        if relation not in self._tables:
            return self._guess.fanout(relation, columns)
        rows = self.size(relation, Version.ALL)
        return rows / max(1, self._count(relation, columns)) if columns else float(rows)

    def _count(self, relation: str, columns: tuple[int, ...]) -> int:
        """The number of distinct values of some columns."""
        key = (relation, columns)
        if key not in self._distinct:
            table = self._tables[relation].select(list(columns))
            groups = table.group_by(table.column_names).aggregate([])
            self._distinct[key] = groups.num_rows if table.num_rows else 0
        return self._distinct[key]
