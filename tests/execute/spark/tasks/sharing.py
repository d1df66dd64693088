"""Fixpoints in shares: in threads of this process, or in processes of their own, over real Flight."""

from __future__ import annotations

import multiprocessing
import secrets
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from tidelog.execute.local.executor import LocalExecutor
from tidelog.execute.local.statistics import StoredStatistics
from tidelog.execute.spark.stage.skew import heavy_keys
from tidelog.execute.spark.tasks.exchange import Exchange
from tidelog.execute.spark.tasks.share import Share
from tidelog.plan.binary import MADE_BY as AUXILIARY
from tidelog.plan.executor import Fixpoint, Task, TaskReport, Watch, unwatched
from tidelog.plan.placement import Distribution, Key, distribute
from tidelog.program.model import Relation

HOST = "127.0.0.1"
PATIENCE = 60.0  # seconds after which a test has failed, not hung

Tables = Mapping[str, pa.Table]


@dataclass
class Outcome:
    """What all shares together found, and what each reported."""

    answers: dict[str, list[pa.Table]] = field(default_factory=dict)
    reports: list[TaskReport] = field(default_factory=list)

    def add(self, answers: Iterable[tuple[str, pa.Table]], report: TaskReport) -> None:
        for name, table in answers:
            self.answers.setdefault(name, []).append(table)
        self.reports.append(report)

    @property
    def instances(self) -> dict[int, int]:
        total: dict[int, int] = {}
        for report in self.reports:
            for rule, count in report.instances.items():
                total[rule] = total.get(rule, 0) + count
        return total

    @property
    def new(self) -> int:
        return sum(report.new for report in self.reports)


def dealt(tables: Tables, task: int, tasks: int) -> list[tuple[str, pa.Table]]:
    """The rows that a task is given, in two pieces a relation: every so many-th, whoever owns them."""
    pieces = []
    for name, table in tables.items():
        mine = table.take(pa.array(range(task, table.num_rows, tasks), pa.int64()))
        half = mine.num_rows // 2
        pieces += [(name, mine.slice(0, half)), (name, mine.slice(half))]
    return pieces


# --- in threads ------------------------------------------------------------------


def connected(tasks: int) -> list[Exchange]:
    """Exchanges that know each other."""
    secret = secrets.token_bytes(32)
    exchanges = [Exchange(HOST, secret) for _ in range(tasks)]
    addresses = [exchange.address for exchange in exchanges]
    everywhere([lambda e=e, i=i: e.connect(addresses, i, PATIENCE) for i, e in enumerate(exchanges)])
    return exchanges


def everywhere(calls: Sequence[Any]) -> list[Any]:
    """What calls give that need each other: each in a thread of its own."""
    with ThreadPoolExecutor(len(calls)) as pool:
        waiting = [pool.submit(call) for call in calls]
        return [future.result(PATIENCE) for future in waiting]


def in_threads(distribution: Distribution, tables: Tables, tasks: int) -> Outcome:
    exchanges: list[Exchange | None] = [*connected(tasks)] if tasks > 1 else [None]
    outcome = Outcome()
    shares = [Share(distribution, task, tasks, exchange) for task, exchange in enumerate(exchanges)]
    for task, share in enumerate(shares):
        for name, piece in dealt(tables, task, tasks):
            share.load(name, piece)
    try:
        reports = everywhere([share.run for share in shares])
        for share, report in zip(shares, reports, strict=True):
            outcome.add(share.answers(), report)
    finally:
        everywhere([exchange.close for exchange in exchanges if exchange is not None] or [int])
        for share in shares:
            share.close()
    return outcome


class SharedExecutor(LocalExecutor):
    """The local executor, but for fixpoints, which are run in shares."""

    def __init__(self, tasks: int, heavy: int = 0) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self.tasks, self.heavy = tasks, heavy  # keys that so many rows have are heavy; 0: none is

    def run(self, task: Task, watch: Watch = unwatched) -> TaskReport:
        if not isinstance(task, Fixpoint):
            return super().run(task, watch)
        distribution = self.distribution(task)
        outcome = self.outcome(distribution)
        self.outcomes.append(outcome)
        for name, tables in outcome.answers.items():
            for table in tables:
                assert self.insert(name, table) == table.num_rows, f"{name} has a row twice"
        rounds = max(report.rounds for report in outcome.reports)
        return TaskReport(rounds, outcome.new, outcome.instances)

    def outcome(self, distribution: Distribution) -> Outcome:
        return in_threads(distribution, self.tables(distribution), self.tasks)

    def distribution(self, task: Fixpoint) -> Distribution:
        rules = tuple(dict.fromkeys(form.rule for form in task.forms))
        relations = {name: stored.relation for name, stored in self.relations.items()}

        def skew(name: str, columns: tuple[int, ...]) -> Mapping[Key, float]:
            if not self.heavy or name not in self.relations:
                return {}
            table = self.table(name)
            return heavy_keys(relations[name], table, columns, table.num_rows, self.heavy)

        return distribute(rules, relations, task.relations, StoredStatistics(self.relations), 0, skew)

    def tables(self, distribution: Distribution) -> dict[str, pa.Table]:
        return {name: self.table(name) for name, r in distribution.relations.items() if is_given(r)}


def is_given(relation: Relation) -> bool:
    return relation.made_by != AUXILIARY


# --- in processes ----------------------------------------------------------------


class Processes:
    """Shares in processes of their own, started but not running yet."""

    def __init__(self, distribution: Distribution, tables: Tables, tasks: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.secret = secrets.token_bytes(32)
        self.ends: list[Connection] = []
        self.processes: list[Any] = []
        for task in range(tasks):
            ours, theirs = spawn.Pipe()
            pieces = dealt(tables, task, tasks)
            process = spawn.Process(target=serve, args=(theirs, self.secret, distribution, task, pieces))
            process.start()
            theirs.close()
            self.ends.append(ours)
            self.processes.append(process)
        self.addresses = [self.hear(task) for task in range(tasks)]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()

    def start(self) -> None:
        for end in self.ends:
            end.send(self.addresses)

    def hear(self, task: int) -> Any:
        assert self.ends[task].poll(PATIENCE), f"task {task} says nothing"
        return self.ends[task].recv()

    def outcome(self) -> Outcome:
        """What they found; an error that one raised is raised here."""
        outcome = Outcome()
        for task in range(len(self.ends)):
            answers, report = self.hear(task)
            if isinstance(report, BaseException):
                raise report
            outcome.add(answers, report)
        return outcome


def serve(end: Connection, secret: bytes, distribution: Distribution, task: int, pieces: Any) -> None:
    """A share in this process: says its address, is told all addresses, says what it found."""
    with Exchange(HOST, secret) as exchange:
        end.send(exchange.address)
        addresses = end.recv()
        share = Share(distribution, task, len(addresses), exchange)
        try:
            exchange.connect(addresses, task)
            for name, piece in pieces:
                share.load(name, piece)
            report = share.run()
            end.send((list(share.answers()), report))
        except Exception as error:
            end.send(([], error))
        finally:
            share.close()
