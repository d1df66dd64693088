"""Shares that stay in a worker process between the rounds that Spark runs.

In each round Spark runs a task for each share (`stage.shuffle`), in any worker that is free. What a share
has made of earlier rounds stays in the worker that had it first; tasks in other workers of the machine
ask that one, over a local socket. It is a cache, and may be gone at any time: a task that finds no
share, or one that has missed a round, says so, and is given the messages of those rounds again.

A share does the same whenever it is asked for the same round: a task may run twice. It also does the
same whoever is asked: a share that comes late has settled over the messages of earlier rounds, and so has
derived and sent what others did, before it takes those of the round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from tidelog.execute.spark.tasks.share import Share
from tidelog.plan.executor import TaskReport

if TYPE_CHECKING:
    import pyarrow as pa

IDLE = 600.0  # seconds after which nobody is expected to ask for a share any more

Messages = Mapping[int, Sequence["pa.Buffer"]]  # by the round that sent them; 0: what there is to begin with
Key = tuple[str, int]  # a run, and the number of a share in it


@dataclass(frozen=True)
class Sent:
    """What a share sends after a round: messages with the shares they are for; `rows` are in them in all."""

    messages: tuple[tuple[int, bytes], ...]
    rows: int
    new: int  # tuples that the share has found so far


class GoneError(Exception):
    """The share is there no more."""


class FailedError(Exception):
    """The share has failed, in another process; what it said (`share.words_of`)."""


class Holder(Protocol):
    """A share, here or in another process. All raise GoneError when it is there no more."""

    def taken(self) -> int:
        """How many rounds of messages it has taken in."""

    def advance(self, round: int, messages: Messages) -> Sent:
        """Take in the messages of a round, and of those before it that it has missed.

        If it has done so before, it gives what it gave then.
        """

    def answers(self) -> Iterator[tuple[str, pa.Table]]:
        """What the share has found."""

    def report(self) -> TaskReport:
        """What the share has done."""

    def end(self) -> None:
        """The share is not needed any more."""

    def leave(self) -> None:
        """Nothing more will be asked here and now."""


class Held:
    """A share in this process. Several threads may ask for it."""

    def __init__(self, share: Share) -> None:
        self.used = time.monotonic()
        self.closed = False
        self._share = share
        self._taken = 0
        self._sent = Sent((), 0, 0)
        self._lock = Lock()
        self._when_ended: Callable[[], None] = lambda: None

    @contextmanager
    def _mine(self) -> Iterator[Share]:
        """The share, for this thread alone."""
        with self._lock:
            if self.closed:
                raise GoneError
            self.used = time.monotonic()
            try:
                yield self._share
            except BaseException:  # what it has derived may be half of what it should have
                self._free()
                raise

    def taken(self) -> int:
        """How many rounds of messages it has taken in."""
        with self._mine():
            return self._taken

    def advance(self, round: int, messages: Messages) -> Sent:
        """Take in the messages of a round, and of those before it that it has missed.

        If it has done so before, it gives what it gave then.
        """
        with self._mine() as share:
            if self._taken < round:
                for missed in range(self._taken, round):
                    _take(share, messages[missed], first=missed == 0)
                share.settle()
                share.discard()
            if self._taken <= round:
                _take(share, messages[round], first=round == 0)
                share.settle()
                pieces = list(share.outgoing())
                rows = sum(count for _, _, count in pieces)
                self._sent = Sent(tuple((peer, m) for peer, m, _ in pieces), rows, share.report().new)
                self._taken = round + 1
            return self._sent

    def answers(self) -> Iterator[tuple[str, pa.Table]]:
        """What the share has found."""
        with self._mine() as share:
            yield from share.answers()

    def report(self) -> TaskReport:
        """What the share has done."""
        with self._mine() as share:
            return share.report()

    def leave(self) -> None:
        """Nothing more will be asked here and now."""

    def end(self) -> None:
        """The share is not needed any more."""
        with self._lock:
            self._free()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Say what else is to be done when the share has ended."""
        self._when_ended = call

    def _free(self) -> None:
        if not self.closed:
            self.closed = True
            self._share.close()
            self._when_ended()


def _take(share: Share, messages: Sequence[pa.Buffer], *, first: bool) -> None:
    for message in messages:
        share.take(message)
    if first:
        share.begin()


class Shelf:
    """The shares that a process holds."""

    def __init__(self) -> None:
        self._held: dict[Key, Held] = {}

    def find(self, key: Key) -> Held | None:
        """A share that is here."""
        held = self._held.get(key)
        return None if held is None or held.closed else held

    def put(self, key: Key, held: Held) -> None:
        """Keep a share until it is closed."""
        self._held[key] = held

    def tidy(self) -> None:
        """Forget shares that are closed, and those whose run has failed: nobody has asked in a long time."""
        for key, held in list(self._held.items()):
            if held.closed or time.monotonic() - held.used > IDLE:
                held.end()
                del self._held[key]


SHELF = Shelf()  # this process's own
