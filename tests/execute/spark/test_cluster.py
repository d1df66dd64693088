"""On a standalone cluster: a master and two workers with a core each, all of them processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from benchmarks.standalone import Cluster
from tests.execute.spark.cluster_driver import CHAIN
from tests.spark_session import missing

ROOT = Path(__file__).parents[3]
PATIENCE = 300.0  # seconds
pytestmark = pytest.mark.spark  # it has a Spark of its own, but is in good company there
Line = dict[str, Any]


@contextmanager
def driving(cluster: Cluster, directory: Path) -> Iterator[Iterator[Line]]:
    """What the driver says, while it runs. It is ended when it takes too long."""
    directory.mkdir()
    with (directory / "errors.txt").open("w+", encoding="utf-8") as errors:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.execute.spark.cluster_driver", cluster.url, str(directory)],
            cwd=ROOT, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        watchdog = Timer(PATIENCE, driver.kill)
        watchdog.start()

        def lines() -> Iterator[Line]:
            assert driver.stdout is not None
            yield from map(json.loads, driver.stdout)
            errors.seek(0)
            assert driver.wait() == 0, errors.read()[-3000:]

        try:
            yield lines()
        finally:
            watchdog.cancel()
            driver.kill()
            driver.wait()


def test_a_worker_is_lost_in_the_middle_of_a_fixpoint(tmp_path: Path) -> None:
    """Its executor goes with it; Spark begins again on another, and the answers are the same."""
    if reason := missing():
        pytest.skip(reason)
    with Cluster(tmp_path) as cluster, driving(cluster, tmp_path / "driver") as lines:
        assert next(line["round"] for line in lines if line["round"] > 9) < CHAIN  # tasks are exchanging
        cluster.workers[0].kill()
        cluster.add()
        [last] = [line for line in lines if line["what"] == "done"]
        assert last["found"] == [CHAIN + 1, 0, CHAIN]
        assert "barrier" in last["way"]
