"""A database whose commits are measured: time, rule instances, tuples touched, what changed.

The time of a commit is what a user sees: the whole `with db.transaction()`. What is
checked beside it is not timed: the changes of each commit are added up (sizes and checksums of
every derived relation), and what they add up to is compared with what the database holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median_high
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from benchmarks.facts import Tables, checksum
from benchmarks.measure import forget_peak, memory

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.plan.maintenance import Delta

ALGORITHMS = ("recompute", "counting", "dred", "fbf", "elastic", "ranked", "dbsp", "auto")
WORD = 1 << 64
WARM_ROWS = 200

# Size and checksum of each derived relation.
Answers = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Change:
    """Facts to delete and to insert, in one commit."""

    delete: Mapping[str, pa.Table] = field(default_factory=dict)
    insert: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def reverse(self) -> Change:
        return Change(self.insert, self.delete)


@dataclass(frozen=True)
class Commit:
    """What a commit cost and did.

    `busy` are the seconds that this process had on processors; `impact` counts the derived tuples that came
    or went; `why` says why recursive strata were brought up to date as they were.
    """

    seconds: float
    busy: float
    instances: int
    touched: int
    impact: int
    why: str
    answers: Answers

    def figures(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def commit_of(figures: Mapping[str, Any]) -> Commit:
    """The reverse of `Commit.figures`, after a way through JSON."""
    known = {name: figures[name] for name in Commit.__dataclass_fields__}
    known["answers"] = {name: (size, total) for name, (size, total) in figures["answers"].items()}
    return Commit(**known)


class Live:
    """A database under measurement."""

    def __init__(self, program: str, algorithm: str, engine: str = "local", threads: int = 1) -> None:
        import tidelog

        self.db = tidelog.Database(program, algorithm=algorithm, engine=engine, threads=threads)
        heads = {rule.head.relation for rule in self.db.program.rules}
        self.derived = tuple(name for name in self.db.relations if name in heads)
        self.algorithm = algorithm
        self.peak = 0.0  # MB, of all commits so far; what is checked after them does not count
        self.answers: Answers = dict.fromkeys(self.derived, (0, 0))

    def commit(self, change: Change) -> Commit:
        forget_peak()
        began, busy = perf_counter(), process_time()
        with self.db.transaction() as tx:
            for name, rows in change.delete.items():
                tx.delete(name, rows)
            for name, rows in change.insert.items():
                tx.insert(name, rows)
        took, busy = perf_counter() - began, process_time() - busy
        self.peak = max(self.peak, memory("VmHWM"))
        impact = 0
        for name in self.derived:
            changes = tx.changes[name]
            impact += len(changes)
            # Not `to_arrow`, which sorts: with millions of changes that takes longer than the commit.
            if changes._delta is not None:
                self.answers[name] = _changed(self.answers[name], changes._delta)
        report = self.db.report
        whys = dict.fromkeys(line.why for line in report.strata if line.algorithm == self.algorithm)
        counted = (report.instances, report.touched, impact)
        return Commit(took, busy, *counted, "; ".join(whys), dict(self.answers))

    def problems(self, *, whole: bool) -> list[str]:
        """Where the database does not hold what its changes add up to; `whole`: every tuple is looked at."""
        found = []
        for name, (size, total) in self.answers.items():
            held = self.db[name]
            if len(held) != size:
                found.append(f"{name} holds {len(held):,} tuples, its changes add up to {size:,}")
            elif whole and checksum(held._fetch()) != total:  # not `to_arrow`, which sorts
                found.append(f"{name} holds other tuples than its changes add up to")
        return found

    def close(self) -> None:
        self.db.close()


def _changed(answer: tuple[int, int], delta: Delta) -> tuple[int, int]:
    """The size and checksum of a relation after changes."""
    size, total = answer
    size += delta.inserted.num_rows - delta.deleted.num_rows
    total += checksum(delta.inserted) - checksum(delta.deleted)
    return size, total % WORD


def warm(program: str, algorithm: str, engine: str, threads: int, tables: Tables) -> None:
    """Run every kind of commit once on a few rows, so that kernels are in memory."""
    few = {name: table.slice(0, WARM_ROWS) for name, table in tables.items()}
    some = Change(delete={name: table.slice(0, (table.num_rows + 1) // 2) for name, table in few.items()})
    one = Change(delete={name: table.slice(0, 1) for name, table in few.items()})
    live = Live(program, algorithm, engine, threads)
    live.commit(Change(insert=few))
    chosen = ("ranked", "recompute") if algorithm == "auto" else ()
    for way in (algorithm, *chosen):
        live.db.algorithm = way
        for change in (some, one):
            live.commit(change)
            live.commit(change.reverse)
    live.close()


def middle(numbers: Sequence[float]) -> float | None:
    """The median, if there is one: of an even number, the higher of the two, as in `PEERS.md`."""
    return median_high(numbers) if numbers else None


def most(numbers: Sequence[float]) -> float | None:
    """The largest, if there is one."""
    return max(numbers, default=None)
