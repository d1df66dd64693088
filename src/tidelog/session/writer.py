"""One writer at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.syntax.errors import TidelogError

PATIENCE = 0.05  # seconds that an interrupt may wait while another thread writes


class Writer:
    """The right to change a database. Another thread waits for it; the same one would wait for ever."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holder: int | None = None

    def take(self) -> bool:
        """Take the right to write, if others give it back soon; whether it is had."""
        if self._lock.acquire(timeout=PATIENCE):
            self._holder = get_ident()
        return self.mine

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have the right to write, once others have given it back, until the block ends."""
        self.check()
        try:
            while not self.mine:
                with Uninterrupted():
                    self.take()
            yield
        finally:
            with Uninterrupted():
                if self.mine:
                    self.end()

    @property
    def mine(self) -> bool:
        """Whether this thread has the right."""
        return self._holder == get_ident()

    def check(self) -> None:
        """Raise the error of waiting for others to write, if this thread has the right itself."""
        if self.mine:
            raise TidelogError("error[TL0508]: a transaction is open: commit it or roll it back first")

    def end(self) -> None:
        """Give it back; where no interrupt comes between."""
        self._holder = None
        self._lock.release()
