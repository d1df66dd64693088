"""A pipeline that is ended by SIGTERM, as services are."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pytest

PROGRAM = """
.decl flight(origin: symbol, destination: symbol)
.input flight
.decl reach(origin: symbol, destination: symbol)
.output reach
reach(x, y) :- flight(x, y).
"""
PIPELINE = """
program: reach.dl
sources:
  flight: {format: csv, path: data, options: {header: true}}
store: state
trigger: {continuous: 1 second}
spark: {master: "local[2]"}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> subprocess.Popen[str]:
    """A continuous pipeline that has been started, in a process group of its own."""
    (tmp_path / "reach.dl").write_text(PROGRAM)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/1.csv").write_text("origin,destination\nOslo,Bergen\n")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "tidelog", "run", "p.yaml"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        start_new_session=True,
    )


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java 17 or later")
def test_java_hears_of_it_too(pipeline: subprocess.Popen[str], tmp_path: Path) -> None:
    assert pipeline.stderr is not None
    for line in pipeline.stderr:
        if line == "version 1 of state\n":
            break
    os.killpg(pipeline.pid, signal.SIGTERM)
    said = pipeline.communicate(timeout=120)[1]
    assert (pipeline.returncode, said) == (0, "stopped at version 1\n")
    assert list((tmp_path / "tmp").glob("tidelog-*")) == []


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java 17 or later")
def test_while_spark_is_starting(pipeline: subprocess.Popen[str], tmp_path: Path) -> None:
    while pipeline.poll() is None and not list((tmp_path / "tmp").glob("tidelog-*/*")):
        sleep(0.05)
    pipeline.send_signal(signal.SIGTERM)
    said = pipeline.communicate(timeout=120)[1]
    assert (pipeline.returncode, said) == (0, "stopped\n")
    assert list((tmp_path / "tmp").glob("tidelog-*")) == []
    assert not (tmp_path / "state").exists()
