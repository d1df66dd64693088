"""SIGTERM, which is how a service is ended: what was begun is ended too, and its files go."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from types import TracebackType
from typing import Any

TERMINATED = 143


class Stopping:
    """Around work that SIGTERM interrupts as Ctrl-C does. Java may hear of it too, and end before us."""

    def __init__(self) -> None:
        self.asked = self._held = False

    def __enter__(self) -> Stopping:
        self._before = signal.signal(signal.SIGTERM, self._ask)
        logging.getLogger().addFilter(self._worth_saying)
        told = self._told = BaseServer.handle_error

        def tell(server: BaseServer, request: Any, address: Any) -> None:
            """Of a server of PySpark's, all but that Java hung up."""
            if not self._expected(sys.exception()):
                told(server, request, address)

        BaseServer.handle_error = tell  # type: ignore[assignment, method-assign]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGTERM, self._before)
        logging.getLogger().removeFilter(self._worth_saying)
        BaseServer.handle_error = self._told  # type: ignore[method-assign]

    def _worth_saying(self, record: logging.LogRecord) -> bool:
        """All but that PySpark was interrupted while it waited for Java, or that Java has gone."""
        return not (record.exc_info and self._expected(record.exc_info[1]))

    def _ask(self, *_: object) -> None:
        if not self.asked:  # what is being ended is not interrupted again
            self.asked = True
            if not self._held:
                raise KeyboardInterrupt

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Around what can only be ended when it is whole."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self.asked:
                raise KeyboardInterrupt

    def explains(self, error: BaseException) -> bool:
        """Whether an error is the interrupt, or comes of a Java that was ending, or gone, after SIGTERM."""
        if isinstance(error, KeyboardInterrupt):
            return True
        return self.asked and any(_of_java(cause) for cause in _causes(error))

    def _expected(self, error: BaseException | None) -> bool:
        """Whether an error is what stopping brings with it."""
        return self.asked and error is not None and self.explains(error)


def _of_java(error: BaseException) -> bool:
    """Whether an error is about reaching Java, or is what Java said: Spark may have been stopped there."""
    said = type(error).__module__.partition(".")[0] in ("py4j", "pyspark")
    return said or isinstance(error, ConnectionError | EOFError)


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
