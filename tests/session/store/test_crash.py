"""A process is killed at any step of a commit: there is the version before or the new one, all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.session.store.crashing import MOMENTS, VERSION

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs os.fork")


def found(directory: Path, what: str) -> list[tuple[int, str]]:
    """What a process that has children killed finds after each."""
    command = [sys.executable, "-m", "tests.session.store.crashing", str(directory), what]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [(int(version), how) for version, how in map(str.split, done.stdout.splitlines())]


def test_killed_at_every_step(tmp_path: Path) -> None:
    lines = found(tmp_path, "steps")
    versions = [version for version, _ in lines]
    assert {how for _, how in lines} == {"whole"}
    assert set(versions) == {VERSION, VERSION + 1}
    assert versions == sorted(versions), "once it is published, it is there"
    assert len(versions) > 20


def test_killed_at_any_moment(tmp_path: Path) -> None:
    lines = found(tmp_path, "moments")
    assert {how for _, how in lines} == {"whole"}
    assert len(lines) == MOMENTS
    assert lines[-1][0] > MOMENTS
