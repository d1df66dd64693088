"""Steps that happen as a whole even when the user presses Ctrl-C in between."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, cast

# Without the conversions to and from enumerations, which take longer than the rest.
_signal = getattr(signal.signal, "__wrapped__", signal.signal)
_getsignal = getattr(signal.getsignal, "__wrapped__", signal.getsignal)
_INTERRUPT = int(signal.SIGINT)


class Uninterrupted:
    """Holds an interrupt back until the block has ended. Python interrupts its main thread only."""

    def __enter__(self) -> None:
        self._frames: list[tuple[int, FrameType | None]] = []
        self._before: object = None
        if threading.current_thread() is threading.main_thread():
            before = _getsignal(_INTERRUPT)
            if callable(before):  # not where interrupts are ignored, or are not Python's affair
                _signal(_INTERRUPT, lambda number, frame: self._frames.append((number, frame)))
                self._before = before

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self._before
        if before is not None:
            _signal(_INTERRUPT, cast(Any, before))
            if self._frames:
                before(*self._frames[0])  # type: ignore[operator]
