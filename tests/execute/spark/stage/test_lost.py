"""A long fixpoint that loses a task: Spark runs the stage again, and it goes on from a checkpoint."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from threading import Event, Thread

import pytest

import tidelog
from tidelog.session.report import Moment

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

LONGER = (2_500, 10_000, 40_000)  # rounds; the next number where all was over before a task could be killed
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
        self.over = Event()

    def run(self) -> None:
        while self.killed is None and not self.over.wait(0.02):
            told = list(self.directory.glob("*/*/progress-1.json"))
            if told and list(self.directory.glob("*/*/checkpoints/000002*/1.json")):
                self.killed = json.loads(told[0].read_text())["process"]
                os.kill(self.killed, signal.SIGKILL)


def test_gone_on_from_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    for nodes in LONGER:
        place = tmp_path / str(nodes)
        place.mkdir()
        session = spark.newSession()
        for name, value in {"fixpoint": "barrier", "work": str(place), "checkpoint": "0.1"}.items():
            session.conf.set(f"spark.tidelog.{name}", value)
        moments: list[Moment] = []
        killer = Killer(place)
        killer.start()
        with tidelog.Database(REACH, spark=session, maintained=False, watch=moments.append) as db:
            db.commit(insert={"edge": [(i, i + 1) for i in range(nodes)]})
            assert len(db["reach"]) == nodes + 1
            way = db.report.strata[-1].way
        assert not list(place.glob("*/*/checkpoints"))
        killer.over.set()
        killer.join()
        if "gone on from" in way:
            break
    assert killer.killed is not None
    assert way.startswith("barrier: as set, gone on from round ")
    assert any(moment.round and 0 < moment.tuples < nodes for moment in moments)
