"""The command for as many cases as one likes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.properties", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_cases_are_run(workers: str) -> None:
    done = run("--cases", "4", "--engine", "substitution", "--algorithm", "fbf(1)", "--workers", workers)
    assert (done.returncode, done.stdout) == (0, "4 cases agree with the oracle (histories)\n"), done.stderr


def test_an_unknown_algorithm_is_named() -> None:
    done = run("--algorithm", "guess")
    assert done.returncode == 2
    assert "invalid choice: 'guess'" in done.stderr
