"""A directory that the driver and all tasks see, on a file system that Arrow knows.

It is named by an absolute path, which has to mean the same on every machine, or by a URI such as
`s3://bucket/directory`. Tasks and the driver both use this module, so it imports nothing of Spark.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs

_URI = re.compile("[a-zA-Z][a-zA-Z0-9+.-]+:/")


@dataclass(frozen=True)
class Place:
    """A directory; it may not be there yet."""

    name: str

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.name.rstrip('/')}/{name}")

    @property
    def is_path(self) -> bool:
        """Whether it is named by a path."""
        return not _URI.match(self.name)

    @property
    def for_spark(self) -> str:
        """Its name as Spark takes it, which may take a bare path for HDFS."""
        return f"file:{literally(self.name)}" if self.is_path else literally(self.name)

    def make(self) -> None:
        """Let it be there."""
        files, path = _resolved(self.name)
        files.create_dir(path, recursive=True)

    def open(self, name: str) -> pa.NativeFile:
        """A new file in it, to write to."""
        files, path = _resolved(self.name)
        return files.open_output_stream(f"{path}/{name}")

    def read(self, name: str) -> pa.Buffer:
        """What is in a file."""
        files, path = _resolved(self.name)
        with files.open_input_file(f"{path}/{name}") as file:
            return file.read_buffer()

    def write(self, name: str, told: object) -> None:
        """Write a small file of JSON: it is there as a whole or not at all."""
        files, path = _resolved(self.name)
        new = f"{path}/.{name}-{secrets.token_hex(4)}"
        with files.open_output_stream(new) as file:
            file.write(json.dumps(told).encode())
        files.move(new, f"{path}/{name}")

    def load(self, name: str) -> Any:
        """What `write` wrote; None if there is no such file."""
        try:
            return json.loads(self.read(name).to_pybytes())
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """The names of what is in it; nothing if it is not there."""
        from pyarrow import fs

        files, path = _resolved(self.name)
        found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        files, path = _resolved(self.name)
        with suppress(FileNotFoundError):
            files.delete_file(f"{path}/{name}")

    def clear(self) -> None:
        """Remove it, with all that is in it, if it is there."""
        files, path = _resolved(self.name)
        with suppress(FileNotFoundError):
            files.delete_dir(path)


def literally(path: str) -> str:
    """A path for Spark to read, which would see patterns in it."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def place_of(text: str) -> Place:
    """The place that a user names."""
    text = re.sub("^file:/+", "/", text)
    if _URI.match(text):
        try:
            _resolved(text)
        except Exception as error:
            raise TidelogError(f"error[TL0614]: {text} cannot be a work directory: {error}") from error
        return Place(text)
    return Place(os.path.abspath(text))


@lru_cache(64)
def _resolved(name: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs

    if not _URI.match(name):
        return fs.LocalFileSystem(), name
    found, path = fs.FileSystem.from_uri(re.sub("^s3[an]:", "s3:", name))
    return found, path.rstrip("/")
