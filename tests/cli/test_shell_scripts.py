"""Golden scripts: one expected file for every algorithm on every engine.

`scripts/NAME.dat` is carried out on `NAME.dl` and must print `NAME.expected`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shells import Ended, shell

SCRIPTS = Path(__file__).parents[1] / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.dl"))
ALGORITHMS = ("recompute", "counting", "dred", "fbf", "elastic", "ranked", "dbsp", "auto")
ENGINES = ("substitution", "local")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("engine", ENGINES)
def test_script(name: str, algorithm: str, engine: str) -> None:
    script = (SCRIPTS / f"{name}.dat").read_text(encoding="utf-8")
    expected = (SCRIPTS / f"{name}.expected").read_text(encoding="utf-8")
    ended = shell(SCRIPTS / f"{name}.dl", script, "--algorithm", algorithm, "--engine", engine)
    assert (ended.code, ended.errors) == (0, "")
    assert ended.output == expected


def test_no_file_is_left_over() -> None:
    wanted = {f"{name}.{ending}" for name in NAMES for ending in ("dl", "dat", "expected")}
    assert {path.name for path in SCRIPTS.iterdir()} == wanted


@pytest.mark.parametrize("policy", ["auto", "incremental", "full"])
def test_policies_print_the_same(policy: str) -> None:
    script = (SCRIPTS / "closure.dat").read_text(encoding="utf-8")
    ended = shell(SCRIPTS / "closure.dl", script, "--policy", policy, "--engine", "substitution")
    assert ended == Ended(0, (SCRIPTS / "closure.expected").read_text(encoding="utf-8"), "")


def test_in_a_process_of_its_own() -> None:
    """As it is used: `tidelog shell closure.dl < closure.dat`."""
    with (SCRIPTS / "closure.dat").open("rb") as script:
        done = subprocess.run(
            [sys.executable, "-m", "tidelog", "shell", "closure.dl", "--engine", "substitution"],
            cwd=SCRIPTS,
            stdin=script,
            capture_output=True,
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (SCRIPTS / "closure.expected").read_bytes()
