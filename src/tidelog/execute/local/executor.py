"""The local executor: relations in this process, rules as kernels over packed rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local import rounds
from tidelog.execute.local.codes import Codes
from tidelog.execute.local.fixpoint import Run
from tidelog.execute.local.groups import group
from tidelog.execute.local.memory import Cells, is_compiled, keep_memory
from tidelog.execute.local.relation import StoredRelation
from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.plan.executor import (
    Derive,
    Fixpoint,
    Group,
    Progress,
    RuleForm,
    Task,
    TaskReport,
    Watch,
    unwatched,
)
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa


LOG = logging.getLogger("tidelog")
WORTH_SHARING = 50_000  # below this, handing out work costs more than it saves


def polling(watch: Watch, held: Uninterrupted) -> Watch:
    """Tell of progress, and then let an interrupt come that was held back."""

    def told(progress: Progress) -> None:
        watch(progress)
        held.poll()

    return told


class LocalExecutor:
    """Holds relations as packed rows and runs tasks with compiled kernels."""

    name = "local"

    def __init__(self, threads: int = 1, share_from: int = WORTH_SHARING) -> None:
        """A round is shared among threads if the one before considered `share_from` rule instances."""
        _say_that_it_takes_time()
        keep_memory()
        self.threads, self.share_from = max(1, threads), share_from
        self.codes = Codes()
        self.relations: dict[str, StoredRelation] = {}
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""
        self.relations[relation.name] = StoredRelation(relation, self.threads)

    def clear(self, relation: str) -> None:
        """Empty a relation."""
        self.create(self.relations[relation].relation)

    def insert(self, relation: str, rows: pa.Table) -> int:
        """Add rows; the number that were new."""
        stored = self.relations[relation]
        with Uninterrupted():
            columns = [
                self.codes.from_arrow(rows.column(i), column.type)
                for i, column in enumerate(stored.relation.columns)
            ]
            return stored.insert(columns, rows.num_rows)

    def run(self, task: Task, watch: Watch = unwatched) -> TaskReport:
        """Run a task; an interrupt comes when `watch` is told of progress, and never in between."""
        with Uninterrupted() as held:
            return self._carry_out(task, polling(watch, held))

    def _carry_out(self, task: Task, watch: Watch) -> TaskReport:
        match task:
            case Derive(forms):
                heads = tuple(dict.fromkeys(form.rule.head.relation for form in forms))
                return self._run(forms, heads).once(watch)
            case Fixpoint(relations, forms):
                return self._run(forms, relations).fixpoint(watch)
            case Group(rule):
                started = time.perf_counter()
                new = group(rule, self.relations[rule.source], self.relations[rule.head], self.codes)
                watch(Progress(1, new))
                return TaskReport(1, new, seconds=time.perf_counter() - started)

    def _run(self, forms: Sequence[RuleForm], derived: Sequence[str]) -> Run:
        return Run(forms, derived, self.relations, self.codes, self._pool, self.threads, self.share_from)

    def size(self, relation: str) -> int:
        """The number of tuples."""
        return len(self.relations[relation])

    def table(self, relation: str) -> pa.Table:
        """All tuples, in the order they were derived."""
        stored = self.relations[relation]
        return self.to_table(stored.relation, stored.cells)

    def to_table(self, relation: Relation, cells: Cells) -> pa.Table:
        """Rows of cells as a table."""
        import pyarrow as pa

        schema = arrow_schema(relation)
        if not relation.arity:
            return pa.table([pa.array(np.ones(len(cells), np.bool_))], schema=schema)
        arrays = [
            self.codes.to_arrow(np.ascontiguousarray(cells[:, i]), column.type)
            for i, column in enumerate(relation.columns)
        ]
        return pa.table(arrays, schema=schema)

    def memory(self) -> dict[str, int]:
        """Bytes in use by rows, sets and indexes of all relations."""
        total = {"rows": 0, "set": 0, "indexes": 0}
        for stored in self.relations.values():
            for part, size in stored.bytes.items():
                total[part] += size
        return total

    def close(self) -> None:
        """Give the memory back."""
        if self._pool is not None:
            self._pool.shutdown()
        for stored in self.relations.values():
            stored.free()
        self.relations = {}


@cache
def _say_that_it_takes_time() -> None:
    if not is_compiled(rounds.run_rounds):
        LOG.warning("compiling the kernels of the local engine: once per installation, up to a minute")
