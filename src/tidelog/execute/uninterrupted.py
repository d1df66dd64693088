"""Steps that happen as a whole even when the user presses Ctrl-C in between."""

from __future__ import annotations

import signal
import threading
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import Any, Self

# What `signal` is made of, without the conversions to and from enumerations that take longer than the rest.
_plain: Any = import_module("_signal" if find_spec("_signal") else "signal")
_INTERRUPT = int(signal.SIGINT)


class Uninterrupted:
    """Holds an interrupt back until the block has ended, or says that it may come (`poll`).

    Python interrupts its main thread only. Of several interrupts that were held back the first one comes.
    """

    def __enter__(self) -> Self:
        self._frames: list[tuple[int, FrameType | None]] = []
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            before = _plain.getsignal(_INTERRUPT)
            if callable(before):  # not where interrupts are ignored, or are not Python's affair
                _plain.signal(_INTERRUPT, lambda number, frame: self._frames.append((number, frame)))
                self._before = before
        return self

    def poll(self) -> None:
        """Let an interrupt come that was held back: nothing is half done here that cannot be undone."""
        if self._frames:
            frames, self._frames = self._frames, []
            self._before(*frames[0])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self._before
        if before is not None:
            _plain.signal(_INTERRUPT, before)
            if self._frames:
                before(*self._frames[0])
