"""`tidelog shell` called in this process, with streams of its own."""

from __future__ import annotations

import io
import logging
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas  # noqa: F401  (the command keeps it out, which must not change other tests)
import pytest

from tidelog.cli.main import app


@dataclass(frozen=True)
class Ended:
    """How a session ended and what it printed."""

    code: object
    output: str
    errors: str


def shell(program: Path, script: str | bytes, *args: str) -> Ended:
    """Run a script to its end."""
    data = script.encode() if isinstance(script, str) else script
    streams = [io.TextIOWrapper(io.BytesIO(given), encoding="utf-8") for given in (data, b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "meta_path", [*sys.meta_path])
        patch.setattr(logging.getLogger("tidelog"), "level", logging.WARNING)  # put back at the end
        with pytest.raises(SystemExit) as ended:
            app(["shell", str(program), *args], prog_name="tidelog")
    printed = []
    for stream in streams[1:]:
        stream.flush()
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        printed.append(buffer.getvalue().decode())
    return Ended(ended.value.code or 0, *printed)
