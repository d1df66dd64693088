"""Measurements in processes of their own, stopped when they take too long or too much memory.

A child says what it begins and what it has done, one JSON object to a line. The limit of
time is for each single thing that it begins, so what was done before a stop is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread
from typing import IO, Any

from benchmarks.measure import memory
from benchmarks.workloads import ROOT

Event = dict[str, Any]
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Limits:
    """What a child may take: seconds for one thing, megabytes resident in all."""

    seconds: float
    megabytes: float


def begin(what: str) -> None:
    """In a child: something begins, and its time is limited."""
    print(json.dumps({"event": "begin", "what": what}), flush=True)


def done(what: str, **figures: object) -> None:
    """In a child: something is done; here is what came of it."""
    print(json.dumps({"event": "done", "what": what, **figures}), flush=True)


def supervise(
    module: str, arguments: Sequence[str], limits: Limits, seen: Callable[[Event], None]
) -> str | None:
    """Run `python -m module arguments`; `seen` gets what is done. The limit that stopped it, or None.

    A child that fails is seen as an event with a problem.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as complaints:
        child = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        try:
            stopped = _follow(child, limits, seen)
        finally:
            child.kill()
            child.wait()
        if stopped is None and child.returncode != 0:
            complaints.seek(0)
            said = [line for line in complaints.read().splitlines() if line.strip()]
            problem = said[-1] if said else f"exit code {child.returncode}"
            seen({"event": "done", "what": "failure", "problems": [problem]})
    return stopped


def _follow(child: subprocess.Popen[str], limits: Limits, seen: Callable[[Event], None]) -> str | None:
    assert child.stdout is not None
    lines: Queue[str | None] = Queue()
    Thread(target=_pass_on, args=(child.stdout, lines), daemon=True).start()
    under_way, since = "", time.monotonic()
    while True:
        try:
            line = lines.get(timeout=LOOK_SECONDS)
        except Empty:
            if under_way and time.monotonic() - since > limits.seconds:
                return f"{under_way}: over {limits.seconds:g} s"
            if memory("VmRSS", child.pid) > limits.megabytes:
                return f"{under_way or 'preparation'}: over {limits.megabytes:g} MB"
            continue
        if line is None:
            child.wait()
            return None
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        under_way, since = event["what"] if event["event"] == "begin" else "", time.monotonic()
        if event["event"] == "done":
            seen(event)


def _pass_on(stream: IO[str], lines: Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)
