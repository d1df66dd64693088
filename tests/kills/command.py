"""The command: `python -m tests.kills` (what it does is said in `__main__`)."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.kills.check import check, stream_id
from tests.kills.history import INPUTS, History
from tests.kills.moments import Moment, moments, wait_for

ROOT = Path(__file__).parents[2]
PORTION = 3  # files of edges for each life of the process


def main(description: str | None) -> int:
    """The exit code: 1 if something is lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=description)
    parser.add_argument("--kills", type=int, default=50, help="how many")
    parser.add_argument("--seed", type=int, help="of the changes and the moments; a new one, if not given")
    options = parser.parse_args()
    seed = Random().randrange(10**6) if options.seed is None else options.seed
    print(f"{options.kills} kills, --seed {seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        print(run(directory, options.kills, seed))
    except AssertionError as error:
        print(f"wrong: {error}\neverything is left in {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


def run(directory: Path, kills: int, seed: int) -> str:
    """Kill, start again, and check; what happened. Raises AssertionError."""
    (directory / "work").mkdir()
    history, begun = History(seed), time.monotonic()
    left: Counter[str] = Counter()
    for number, moment in enumerate(moments(Random(seed), kills), 1):
        history.write(number * PORTION, directory / "input")
        left.update(killed(moment, directory))
    history.write((kills + 1) * PORTION, directory / "input")
    with (directory / "log").open("a") as log:
        subprocess.run(_command(directory, "drain"), cwd=ROOT, stdout=log, stderr=log, check=False)
    running = time.monotonic() - begun
    try:
        check(directory, history)
    except (AssertionError, OSError) as error:
        raise AssertionError(f"{error}\n{_complaints(directory)}") from error
    files = sum(history.counts().values())
    commits = len(list((directory / "store/manifests").glob("[0-9]*.json"))) - 1
    checking = time.monotonic() - begun - running
    lines = [f"{files} files, {commits} commits, {kills} kills, {running:.0f} s, checked in {checking:.0f} s"]
    return "\n".join([*lines, *(f"{count:4} {what}" for what, count in sorted(left.items()))])


def killed(moment: Moment, directory: Path) -> list[str]:
    """Start the process, kill it at a moment; what that has left."""
    with (directory / "log").open("a") as log:
        child = subprocess.Popen(
            _command(directory),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # a group of its own, with Java
        )
        with child:
            wait_for(moment, child, directory)
            assert child.poll() is None, f"the process ended by itself\n{_complaints(directory)}"
            os.killpg(child.pid, signal.SIGKILL)
    return [f"killed: {moment.kind}", *unfinished(directory)]


def unfinished(directory: Path) -> list[str]:
    """What the process was about to do."""
    manifests = sorted((directory / "store/manifests").glob("[0-9]*.json"))
    if not manifests:
        return ["left: nothing yet"]
    version, batches = (json.loads(manifests[-1].read_text())[key] for key in ("version", "batches"))
    found = []
    if any(path.name[:8] > f"{version:08}" for path in (directory / "store/data").glob("*/[0-9]*")):
        found.append("left: files of a version that was not published")
    for relation in INPUTS:
        done, begun = (_last(directory / "checkpoint" / relation / what) for what in ("commits", "offsets"))
        had = batches.get(stream_id(directory, relation), -1) if begun >= 0 else -1
        if had > done:
            found.append("left: a batch that is committed, and brought again")
        elif begun > had:
            found.append("left: a batch that was begun, and is not committed")
    note = directory / "feed/_feed.json"
    if not note.exists() or json.loads(note.read_text())["version"] < version:
        found.append("left: a version that the feed lacks")
    return found


def _complaints(directory: Path) -> str:
    """What the processes have complained of lately."""
    return (directory / "log").read_text(errors="replace")[-4000:]


def _last(log: Path) -> int:
    """The last batch that Spark has noted."""
    return max((int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit()), default=-1)


def _command(directory: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "tests.kills.child", str(directory), *more]
