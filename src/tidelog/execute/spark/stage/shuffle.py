"""A fixpoint in shuffle rounds: for where tasks cannot all run at once, or cannot reach each other.

A round is a Spark job with a task for each share of the fixpoint. It takes in the messages that the round
before has sent it, runs to its own fixpoint, and yields messages; Spark's shuffle brings them to
the shares that they are for. The round in which nobody sends anything is the last.

What a share has made of earlier rounds stays in the memory of Python workers (`tasks.held`), so that a
round costs what is new in it. That is only a cache: Spark holds all messages so far, and a share that is
found nowhere, or has missed some rounds, is fed with those. The messages of how many rounds tasks are fed
with at first follows from how far behind shares were before: of one, as long as workers live and are found.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.checkpoint import checkpointed
from tidelog.execute.spark.stage import turn
from tidelog.execute.spark.stage.feed import in_tasks, together
from tidelog.execute.spark.stage.work import failure_said
from tidelog.execute.spark.tasks.turns import Turns
from tidelog.plan.executor import Progress, TaskReport, Watch
from tidelog.syntax.errors import InternalError

if TYPE_CHECKING:
    from tidelog.execute.spark.stage.layout import Layout
    from tidelog.execute.spark.stage.output import Outlet
    from tidelog.plan.placement import Distribution
    from tidelog.program.model import Rule

LOG = logging.getLogger("tidelog")
FAN = 16  # DataFrames of messages that become one
TRIES = 3
LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"  # what Spark calls it


def in_rounds(
    rows: DataFrame,
    layout: Layout,
    outlet: Outlet,
    distribution: Distribution,
    rules: Sequence[Rule],
    tasks: int,
    watch: Watch,
) -> DataFrame:
    """What tasks will yield after the last round; `rows` are what the fixpoint begins with."""
    turns = Turns(secrets.token_hex(8), secrets.token_bytes(32), distribution, tasks)
    log = Log(tasks)
    log.add(0, _dealt(rows, layout, turns))
    round, window, more = 0, 1, True
    while more:
        done = _round(log, turns, rules, round, max(0, round + 1 - window))
        watch(Progress(round + 1, done.new))
        window = done.lag + 2 if done.lag else max(1, window // 2)
        more = done.rows > 0
        round += more
    return in_tasks(log.since(0), turn.finish(turns, rules, round, outlet), outlet.ddl)


def again(run: Callable[[], TaskReport]) -> TaskReport:
    """Run a fixpoint, and anew if Spark has lost messages of it with an executor."""
    for _ in range(TRIES - 1):
        try:
            return run()
        except Exception as error:
            if LOST not in str(error):
                raise
            LOG.warning("an executor is gone, and messages of a fixpoint with it: it begins anew")
    return run()


def _dealt(rows: DataFrame, layout: Layout, turns: Turns) -> DataFrame:
    """The messages of round 0, and a row for each share."""
    dealt = in_tasks(rows, turn.deal(layout, turns.distribution, turns.tasks), turn.DDL)
    everyone = rows.sparkSession.range(turns.tasks).selectExpr(
        "int(id) target", "0 round", "binary(null) message", "string(null) said"
    )
    return checkpointed(everyone.unionAll(dealt))


@dataclass
class _Done:
    """What a round did: rows sent, tuples found so far, how many rounds a share was behind at most."""

    rows: int = 0
    new: int = 0
    lag: int = 0


def _round(log: Log, turns: Turns, rules: Sequence[Rule], round: int, since: int) -> _Done:
    """Let each share take in the messages of a round. Those that lack more are fed once more, with that."""
    done = _Done()
    frames: list[DataFrame] = []
    waiting = frozenset(range(turns.tasks))
    while waiting:
        fed = log.since(since, waiting)
        sent = in_tasks(fed, turn.turn(turns, rules, round, since), turn.DDL)
        frame = checkpointed(sent, eager=False)
        told = _said(frame)
        failed = failure_said(told)
        if failed is not None:
            raise failed
        if {share["task"] for share in told} != waiting:
            raise InternalError(f"shares {sorted(waiting)} of a fixpoint were fed, {told} answered")
        frames.append(frame)
        for share in told:
            done.rows += share.get("rows", 0)
            done.new += share.get("new", 0)
            done.lag = max(done.lag, round - share["taken"])
        behind = {share["task"]: share["taken"] for share in told if not share["done"]}
        # Whoever is asked now may be somebody else, and further behind. The third time, nothing is missing.
        since = min(behind.values(), default=0) if len(frames) == 1 else 0
        waiting = frozenset(behind)
    log.add(round + 1, together(frames))
    return done


def _said(frame: DataFrame) -> list[dict[str, Any]]:
    """What the shares told. This computes the DataFrame."""
    return [json.loads(row[0]) for row in frame.filter(F.col("said").isNotNull()).select("said").collect()]


class Log:
    """All messages of a run, in few DataFrames that are larger the older they are."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._parts: list[_Part] = []

    def add(self, round: int, frame: DataFrame) -> None:
        """Add the messages of a round."""
        last = self._parts[-FAN:]
        while len(last) == FAN and last[0].level == last[-1].level:
            messages = together([part.frame for part in last]).filter(F.col("message").isNotNull())
            whole = checkpointed(messages.coalesce(self._tasks))
            self._parts[-FAN:] = [_Part(last[0].level + 1, last[-1].round, whole)]
            last = self._parts[-FAN:]
        self._parts.append(_Part(0, round, frame))

    def since(self, round: int, targets: Collection[int] | None = None) -> DataFrame:
        """The messages of a round and all later ones, for some shares or all, each with its share."""
        frame = together([part.frame for part in self._parts if part.round >= round])
        wanted = F.col("round") >= F.lit(round)
        if targets is not None and len(targets) < self._tasks:
            wanted &= F.col("target").isin(sorted(targets))
        return frame.filter(wanted).repartitionById(self._tasks, F.col("target"))


@dataclass(frozen=True)
class _Part:
    """Messages of some rounds, up to `round`."""

    level: int
    round: int
    frame: DataFrame
