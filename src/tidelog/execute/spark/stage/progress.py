"""How far a running stage has come: tasks write it down in the stage's directory, and the driver looks.

Neither ever fails the run. Where there is no work directory, nothing is told before the stage is over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from tidelog.execute.spark.place import Place
from tidelog.plan.executor import Progress, Watch

EVERY = 0.5  # seconds
EVERY_REMOTELY = 5.0  # on a file system that is a service
PREFIX = "progress-"


class Teller:
    """Writes down, now and then, how far a task has come. It can watch a local executor."""

    def __init__(self, place: Place | None, task: int) -> None:
        self.place, self.task = place, task
        self._next = monotonic() + _pause(place) if place is not None else float("inf")

    def __call__(self, progress: Progress) -> None:
        """Write it down, if it is time."""
        if self.place is None or monotonic() < self._next:
            return
        try:
            told = {"round": progress.round, "tuples": progress.tuples, "process": os.getpid()}
            self.place.write(f"{PREFIX}{self.task}.json", told)
            self._next = monotonic() + _pause(self.place)
        except OSError:  # then nobody is told
            self._next = float("inf")


@contextmanager
def watched(place: Place, watch: Watch) -> Iterator[None]:
    """Meanwhile, a watcher hears of what tasks write down, in a thread of its own."""
    over = Event()

    def look() -> None:
        last = None
        while not over.wait(_pause(place)):
            try:
                found = [place.load(name) for name in place.names() if name.startswith(PREFIX)]
                told = [one for one in found if one is not None]
                if told and told != last:
                    rounds, tuples = max(one["round"] for one in told), sum(one["tuples"] for one in told)
                    watch(Progress(rounds, tuples))
                    last = told
            except Exception:  # of a watcher, or of the file system
                return

    thread = Thread(target=look, name="tidelog-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _pause(place: Place | None) -> float:
    return EVERY if place is None or place.is_path else EVERY_REMOTELY
