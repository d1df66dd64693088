"""A long fixpoint that loses a task: Spark runs the stage again, and it goes on from a checkpoint."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest

import tidelog
from tidelog.session.report import Moment

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

NODES = 2500
REACH = """
.decl edge(x: number, y: number)
.decl reach(x: number)
reach(0).
reach(y) :- reach(x), edge(x, y).
"""


class Killer(Thread):
    """Ends the process of a task, once there is a checkpoint."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.directory = directory
        self.killed: int | None = None

    def run(self) -> None:
        until = time.monotonic() + 60
        while self.killed is None and time.monotonic() < until:
            time.sleep(0.02)
            told = list(self.directory.glob("*/*/progress-1.json"))
            if told and list(self.directory.glob("*/*/checkpoints/000002*/1.json")):
                self.killed = json.loads(told[0].read_text())["process"]
                os.kill(self.killed, signal.SIGKILL)


def test_gone_on_from_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    for name, value in {"fixpoint": "barrier", "work": str(tmp_path), "checkpoint": "0.1"}.items():
        session.conf.set(f"spark.tidelog.{name}", value)
    moments: list[Moment] = []
    killer = Killer(tmp_path)
    killer.start()
    with tidelog.Database(REACH, spark=session, maintained=False, watch=moments.append) as db:
        db.commit(insert={"edge": [(i, i + 1) for i in range(NODES)]})
        assert len(db["reach"]) == NODES + 1
        way = db.report.strata[-1].way
    assert killer.killed is not None
    assert way.startswith("barrier: as set, gone on from round ")
    assert any(moment.round and 0 < moment.tuples < NODES for moment in moments)
    assert not list(tmp_path.glob("*/*/checkpoints"))
