"""Fixpoints in shuffle rounds: what is kept between rounds, and what happens when it is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from tests.oracle import model_of
from tests.running import Row, run, table_of
from tidelog.maintain.seminaive import materialise
from tidelog.plan.executor import Progress, TaskReport
from tidelog.program.check import check
from tidelog.program.strata import stratify
from tidelog.syntax.parser import parse

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tidelog.execute.spark.executor import SparkExecutor
from tidelog.execute.spark.stage import shuffle
from tidelog.execute.spark.stage.output import Outlet
from tidelog.execute.spark.stage.shuffle import Log
from tidelog.execute.spark.stage.work import Work, explained
from tidelog.execute.spark.tasks.exchange import UnreachableError

PATH = """
    .decl edge(x: number, y: number)
    .input edge
    .decl path(x: number, y: number)
    .output path
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
"""
CHAIN: dict[str, list[Row]] = {"edge": [(i, i + 1) for i in range(12)]}


class Rounds:
    """Runs the chain in shuffle rounds, and watches what rounds are fed with."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session = spark.newSession()
        self.session.conf.set("spark.tidelog.fixpoint", "shuffle")
        self.fed: list[
            tuple[int, int, int]
        ] = []  # the round, the first round that is fed, to how many shares
        whole = Log.since

        def since(log: Log, round: int, targets: Iterable[int] | None = None) -> object:
            self.fed.append((log._parts[-1].round, round, 2 if targets is None else len(list(targets))))
            return whole(log, round, targets)  # type: ignore[arg-type]

        monkeypatch.setattr(Log, "since", since)

    def agrees(self) -> list[tuple[int, int, int]]:
        """The answers are right; what rounds were fed with, but for the last, which is for the answers."""
        program = check(parse(PATH))
        assert run(program, SparkExecutor(self.session), CHAIN).relations == model_of(program, CHAIN)
        return self.fed[:-1]


@pytest.fixture
def rounds(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    return Rounds(spark, monkeypatch)


def test_a_round_is_fed_with_what_is_new(rounds: Rounds) -> None:
    fed = rounds.agrees()
    assert len(fed) > 4
    assert fed == [(round, round, 2) for round in range(len(fed))]


def losing() -> Work:
    """Work that ends all shares of the workers that do it."""

    def lose(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tidelog.execute.spark.tasks.held import SHELF

        for held in list(SHELF._held.values()):
            held.end()
        yield from batches

    return lose


def test_shares_that_are_lost_are_made_again(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers forget them after round 3: they are fed once more, with all messages."""

    def forget(progress: Progress) -> None:
        if progress.round == 3:
            rounds.session.range(0, 8, 1, 8).mapInArrow(losing(), "id bigint").collect()

    whole = shuffle.in_rounds
    monkeypatch.setattr(
        "tidelog.execute.spark.stage.fixpoint.in_rounds", lambda *given: whole(*given[:-1], forget)
    )
    fed = rounds.agrees()
    assert (3, 3, 2) in fed
    again = [(since, shares) for round, since, shares in fed if round == 3][1:]
    assert again and again[0][0] == 0


def test_messages_are_kept_in_few_frames(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "FAN", 3)
    log = Log(2)
    for round in range(20):
        log.add(round, spark.sql(f"select 0 target, {round} round, binary('x') message, 'told' said"))
    assert len(log._parts) <= 3 * 2 + 2
    rows = log.since(5).collect()
    assert sorted(row["round"] for row in rows) == list(range(5, 20))


def test_messages_that_spark_has_lost() -> None:
    """It begins anew, but not for ever, and not because of anything else."""
    failures = [RuntimeError("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_1_2 not found!")] * 2
    tried: list[int] = []

    def attempt() -> TaskReport:
        tried.append(1)
        if len(tried) <= len(failures):
            raise failures[len(tried) - 1]
        return TaskReport(7)

    assert shuffle.again(attempt).rounds == 7
    failures.append(failures[0])
    tried.clear()
    with pytest.raises(RuntimeError, match="not found"):
        shuffle.again(attempt)
    failures[:] = [RuntimeError("no space left")]
    tried.clear()
    with pytest.raises(RuntimeError, match="no space left"):
        shuffle.again(attempt)


TWICE = PATH.replace("edge(y, z).", "path(y, z).")


def deaf(layout: object, outlet: Outlet, *_: object) -> Work:
    """Work of tasks that do not hear each other."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        raise UnreachableError(1)
        yield

    return lambda batches: explained(outlet, (), work(batches))


def test_tasks_that_cannot_reach_each_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidelog.execute.spark.stage.work.shared", deaf)
    session = spark.newSession()
    session.conf.set("spark.tidelog.small", "0")
    program = check(parse(TWICE))
    executor = SparkExecutor(session)
    for relation in program.relations.values():
        executor.create(relation)
    executor.insert("edge", table_of(program.relations["edge"], CHAIN["edge"]))
    ways = [found.report.way for found in materialise(stratify(program), executor)]
    assert ways[-1] == "shuffle: tasks cannot reach each other"
    assert executor.size("path") == 12 * 13 // 2
    assert "TL0610" in caplog.text
    session.conf.set("spark.tidelog.fixpoint", "barrier")
    with pytest.raises(UnreachableError, match="cannot reach each other: nothing is heard of task 1"):
        run(program, SparkExecutor(session), CHAIN)
