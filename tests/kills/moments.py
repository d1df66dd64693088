"""When a process is killed: while it starts, at any time after that, or at once after some file has appeared.

Files tell what it is doing: Spark notes the rows of a batch (`offsets`), the database writes what a
commit has changed (`data`) and publishes its manifest (`manifests`), the feed follows (`feed`), Spark notes
that the batch is done (`commits`). What comes between two of these is hit by chance.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from subprocess import Popen
from typing import IO

PLACES = {
    "offsets": "checkpoint/Edge/offsets",
    "data": "store/data/Path",
    "manifests": "store/manifests",
    "feed": "feed/Path",
    "commits": "checkpoint/Edge/commits",
}
KINDS = ("start", "any", *PLACES)
STARTS, LASTS = (0.5, 9.0), (0.0, 4.0)  # seconds from the start, and from when it is ready
LOOK, PATIENCE = 0.002, 20.0


@dataclass(frozen=True)
class Moment:
    """A kind of moment, and how long after it, in seconds, or after how many files."""

    kind: str
    seconds: float
    files: int


def moments(random: Random, count: int) -> list[Moment]:
    """As many of each kind as can be, in any order."""
    kinds = [KINDS[i % len(KINDS)] for i in range(count)]
    random.shuffle(kinds)
    return [_moment(random, kind) for kind in kinds]


def _moment(random: Random, kind: str) -> Moment:
    if kind in PLACES:
        return Moment(kind, random.choice((0.0, 0.0, random.uniform(0, 0.05))), random.randint(1, 3))
    return Moment(kind, random.uniform(*(STARTS if kind == "start" else LASTS)), 0)


def wait_for(moment: Moment, child: Popen[str], directory: Path) -> None:
    """Return at the moment, or when the process has ended, or nothing happens for long."""
    if moment.kind != "start":
        assert child.stdout is not None
        _ready(child.stdout)
    if moment.kind in PLACES:
        place = directory / PLACES[moment.kind]
        seen, new, last = _names(place), 0, time.monotonic()
        while new < moment.files and child.poll() is None and time.monotonic() - last < PATIENCE:
            time.sleep(LOOK)
            fresh = _names(place) - seen
            if fresh:
                seen |= fresh
                new, last = new + len(fresh), time.monotonic()
    time.sleep(moment.seconds)


def _ready(output: IO[str]) -> None:
    """Read until the process says that it is ready, or ends."""
    while (line := output.readline()) and line != "ready\n":
        pass


def _names(place: Path) -> set[str]:
    try:
        return set(os.listdir(place))
    except FileNotFoundError:
        return set()
