"""One writer at a time."""

from __future__ import annotations

from threading import Lock, get_ident

from tidelog.syntax.errors import TidelogError


class Writer:
    """The right to change a database. Another thread waits for it; the same one would wait for ever."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holder: int | None = None

    def begin(self) -> None:
        """Take the right to write."""
        self.check()
        self._lock.acquire()
        self._holder = get_ident()

    def check(self) -> None:
        """Raise the error of waiting for others to write, if this thread has the right itself."""
        if self._holder == get_ident():
            raise TidelogError("error[TL0508]: a transaction is open: commit it or roll it back first")

    def end(self) -> None:
        """Give it back."""
        self._holder = None
        self._lock.release()
