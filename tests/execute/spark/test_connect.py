"""A choice of the tests of Spark over Spark Connect: `pytest --connect` in a process of its own.

A process has classic sessions or those of Connect. All tests that need Spark can be run so; these are
enough to see that each part keeps to the DataFrame API.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_session import missing

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.spark  # one Connect server at a time: all have the same port
CHOSEN = (
    "tests/execute/spark/stage/test_ways.py::test_answers[barrier-mutual]",
    "tests/execute/spark/stage/test_ways.py::test_answers[pivot-left]",
    "tests/execute/spark/stage/test_ways.py::test_answers[single-strings]",
    "tests/execute/spark/test_executor.py::test_sparks_default_settings",
    "tests/session/spark/over_connect.py",
    "tests/session/spark/test_answers.py::test_names_and_types",
    "tests/session/spark/test_feeds.py::test_apply",
)


def test_over_connect(tmp_path: Path) -> None:
    if reason := missing(connect=True):
        pytest.skip(reason)
    options = ["--connect", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *CHOSEN],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert "skipped" not in done.stdout
