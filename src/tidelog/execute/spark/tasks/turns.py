"""A share's turn in rounds whose messages somebody else carries: find the share, or make it, and ask it.

A turn is given the messages of all rounds from `since` on. The share may be in this process, in
another one of this machine, or nowhere; then it can be made if `since` is 0. A share that dies while it is
asked is as good as one that was not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.execute.spark.tasks import neighbours
from tidelog.execute.spark.tasks.held import SHELF, FailedError, GoneError, Held, Holder, Messages, Sent
from tidelog.execute.spark.tasks.share import Share, understood
from tidelog.plan.executor import TaskReport
from tidelog.plan.placement import Distribution

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE = 20  # shares that die one after the other


@dataclass(frozen=True)
class Turns:
    """The run that shares belong to."""

    run: str
    secret: bytes
    distribution: Distribution
    tasks: int

    def turn(self, task: int, round: int, since: int, messages: Messages) -> tuple[int, Sent | None]:
        """The first round that a share had not taken in yet, and what it sends now.

        If that round is before `since` it cannot go on, and sends nothing.
        """
        with self._understood():
            for holder in self._found(task, make=since == 0):
                with suppress(GoneError):
                    taken = holder.taken()
                    if taken < since:
                        return taken, None
                    return taken, holder.advance(round, _from(taken, messages))
        return 0, None

    def report(self, task: int, round: int, messages: Messages) -> TaskReport:
        """What a share has done after the last round; `messages` are those of all rounds."""
        with self._understood():
            for holder in self._found(task, make=True):
                with suppress(GoneError):
                    holder.advance(round, _from(holder.taken(), messages))
                    return holder.report()
        raise AssertionError

    def answers(self, task: int, round: int, messages: Messages) -> Iterator[tuple[str, pa.Table]]:
        """What a share has found after the last round; then it ends. `messages` are those of all rounds."""
        with self._understood():
            for holder in self._found(task, make=True):
                begun = False
                try:
                    holder.advance(round, _from(holder.taken(), messages))
                    for found in holder.answers():
                        begun = True
                        yield found
                    holder.end()
                    return
                except GoneError:
                    if begun:  # Spark runs the task again
                        raise RuntimeError(f"share {task} of a fixpoint was lost") from None

    def _found(self, task: int, *, make: bool) -> Iterator[Holder]:
        """The share; and again, as long as it is lost when it is asked."""
        for _ in range(PATIENCE):
            holder = self._find(task, make=make)
            if holder is not None:
                try:
                    yield holder
                finally:
                    holder.leave()
            elif not make:
                return
        raise RuntimeError(f"share {task} of a fixpoint was lost {PATIENCE} times")

    def _find(self, task: int, *, make: bool) -> Holder | None:
        SHELF.tidy()
        key = (self.run, task)
        found = SHELF.find(key) or neighbours.find(key, self.secret)
        if found is not None or not make:
            return found
        held = Held(Share(self.distribution, task, self.tasks))
        if not neighbours.offer(key, held, self.secret):
            held.end()
            return None
        SHELF.put(key, held)
        return held

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Let what failed in another process be as if it had failed here."""
        try:
            yield
        except FailedError as error:
            told = str(error)
            failed = understood(told, self.distribution)
            if failed is None and told.startswith(MemoryError.__name__):
                raise MemoryError(told) from None
            raise failed or error from None


def _from(round: int, messages: Messages) -> Messages:
    """The messages of a round and those after it."""
    return {number: of_round for number, of_round in messages.items() if number >= round}
