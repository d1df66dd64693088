"""The benchmarks of updates from end to end, on little data: they check every answer themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.workloads import PEERS, ROOT


def bench(name: str, out: Path, *options: str) -> str:
    if not PEERS.exists():
        pytest.skip("needs the shared data, which is not beside this checkout")
    command = [sys.executable, "-m", f"benchmarks.{name}", "--out", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout
    return done.stdout


def test_updates(tmp_path: Path) -> None:
    options = ("--only", "crdt", "--rows", "200", "--sizes", "10", "--engine", "substitution", "--runs", "1")
    bench("updates", tmp_path, *options, "--algorithms", "recompute,dred")
    said = bench("updates", tmp_path, *options, "--algorithms", "auto", "--add")
    stored = json.loads((tmp_path / "updates.json").read_text())
    assert [figures["algorithm"] for figures in stored] == ["recompute", "dred", "auto"]
    impacts = [[event["commit"]["impact"] for event in figures["commits"]] for figures in stored]
    assert impacts[0] == impacts[1] == impacts[2]
    assert impacts[0][::2] == impacts[0][1::2]  # what goes comes back
    assert len(impacts[0]) == 10
    assert min(impacts[0]) > 10
    assert "`auto` against the cheaper of the two, the worst: delete" in said


def test_one_fact(tmp_path: Path) -> None:
    options = ("--only", "OL.cedge", "--algorithms", "ranked,auto", "--commits", "2")
    said = bench("onefact", tmp_path, *options)
    ranked, auto = json.loads((tmp_path / "onefact.json").read_text())
    # Rows 97 and 194 of the file: pairs of nodes that only they connect, found by searches from every node.
    assert ranked["impacts"] == auto["impacts"] == [115, 6]
    assert "times the peer's median, goal 2" in said
