"""Steps that happen as a whole even when the user presses Ctrl-C, or a time limit runs out, in between."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import Any, Self

# What `signal` is made of, without the conversions to and from enumerations that take longer than the rest.
_plain: Any = import_module("_signal" if find_spec("_signal") else "signal")
_NAMES = ("SIGINT", "SIGALRM", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_HELD = tuple(int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name))

Handler = Callable[[int, FrameType | None], object]


class Uninterrupted:
    """Holds signals back until the block has ended, or says that they may come (`poll`).

    Python handles signals in its main thread only, between any two steps of it, and handlers may raise. Held
    back are those that usually do, where Python handles them. Each comes once, however often it was sent.
    """

    def __enter__(self) -> Self:
        self._before: list[tuple[int, Handler]] = []
        self._came: dict[int, FrameType | None] = {}
        if threading.current_thread() is threading.main_thread():
            try:
                for number in _HELD:
                    before = _plain.getsignal(number)
                    if callable(before):  # not where it is ignored, or is not Python's affair
                        self._before.append((number, before))
                        _plain.signal(number, self._hold)
            except BaseException:  # one has come that was not held back yet
                self.__exit__(None, None, None)
                raise
        return self

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._came.setdefault(number, frame)

    def poll(self) -> None:
        """Let signals come that were held back: nothing is half done here that cannot be undone."""
        if self._came:
            self._deliver(dict(self._before))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self._before
        if before:
            try:
                _restore(before)
            finally:  # even if one came that is not held back any more
                _restore(before)
                if self._came:
                    self._deliver(dict(before))

    def _deliver(self, handlers: dict[int, Handler]) -> None:
        """Have what came handled, all of it, even where handlers raise."""
        number, frame = next(iter(self._came.items()))
        del self._came[number]
        try:
            handlers[number](number, frame)
        finally:
            if self._came:
                self._deliver(handlers)


def _restore(handlers: list[tuple[int, Handler]]) -> None:
    for number, handler in handlers:
        _plain.signal(number, handler)
