"""The directory of a store: files that last, a manifest that appears as a whole or not at all, a lock.

On a local disk a file is on the disk before anybody is told of it, a manifest takes its name with a
hard link, which fails where there is one already, and the lock ends with the process that has it, however
that ends. Other file systems (by URI: `s3://`, `gs://`, `hdfs://`) are used through Arrow, as well as they
can do it: an object appears when it is complete, and whether there is one already is looked up
before. There is no lock there; who comes second finds the manifest of the first.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast
from weakref import finalize

from tidelog.session.store.errors import in_use, not_a_store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

LOCK = "lock"
_OBJECTS = ("s3", "gcs", "abfs")  # where a file appears when it is complete
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Files(Protocol):
    """Files by their paths within the store. What fails raises OSError."""

    place: str  # the store, for messages
    spark: str  # the store, for Spark: a URI

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file; it is there for good only after `settle`."""

    def settle(self, paths: Iterable[str]) -> None:
        """Have files and directories outlive a crash of the machine, whoever has written them."""

    def put(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file in place of the one that is there; it changes as a whole, and for good."""

    def publish(self, path: str, data: bytes) -> None:
        """Have a file appear as a whole, for good. Raises FileExistsError where there is one."""

    def read(self, path: str) -> bytes:
        """A file. Raises FileNotFoundError."""

    def opened(self, path: str) -> object:
        """What Arrow reads a Parquet file, or a directory of them, from."""

    def names(self, directory: str) -> list[str]:
        """What is in a directory, in any order; nothing if it is not there."""

    def remove(self, path: str) -> int:
        """Remove a file, or a directory with all that is in it; the bytes that it had."""

    def lock(self) -> None:
        """Have the store alone, until `unlock` or the end of the process. Raises StoreError."""

    def unlock(self) -> None:
        """Let others have it."""


def open_files(place: str | Path) -> Files:
    """The directory of a store, by path or URI. Raises StoreError."""
    text = re.sub("^file:/(?!/)", "file:///", os.fspath(place))  # as Hadoop writes it
    if "://" not in text:
        return LocalFiles(Path(text))
    from pyarrow.fs import FileSystem, LocalFileSystem

    try:
        system, path = FileSystem.from_uri(text)
    except Exception as error:  # of many kinds: each file system has its own
        hint = "give a directory, or a URI that pyarrow.fs.FileSystem.from_uri understands"
        raise not_a_store(text, (str(error).splitlines() or [type(error).__name__])[0], hint) from error
    return LocalFiles(Path(path)) if isinstance(system, LocalFileSystem) else ArrowFiles(system, path, text)


def _beside(path: str) -> str:
    """The name of a file that is not complete."""
    head, slash, name = path.rpartition("/")
    return f"{head}{slash}.{name}"


class LocalFiles:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.place = str(root)
        self.spark = f"file://{self._root}"  # Hadoop takes it as it is, without escapes
        self._unlock: finalize[[int], LocalFiles] | None = None
        self._grown: dict[Path, None] = {}  # directories that have been given new ones

    def _path(self, path: str) -> Path:
        return self._root / path

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file."""
        target = self._path(path)
        self._make(target.parent)
        with target.open("wb") as file:
            fill(file)

    def _make(self, directory: Path) -> None:
        if not directory.is_dir():
            self._make(directory.parent)
            directory.mkdir(exist_ok=True)
            self._grown[directory.parent] = None

    def settle(self, paths: Iterable[str]) -> None:
        """Have the system write to the disk what it still has in memory."""
        directories: dict[Path, None] = {}
        for path in paths:
            target = self._path(path)
            directories[target.parent] = None
            if target.is_dir():  # Spark has made it, and perhaps what it is in
                inside = [*target.rglob("*")]
                above = [target, *filter(Path.is_dir, inside), *target.parents]
                directories.update(dict.fromkeys(d for d in above if d.is_relative_to(self._root)))
                for file in filter(Path.is_file, inside):
                    _sync(file)
            else:
                _sync(target)
        for directory in {**directories, **self._grown}:
            _sync(directory)
        self._grown.clear()

    def put(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write it under another name, then give it its own."""
        beside = _beside(path)
        self.write(beside, fill)
        _sync(self._path(beside))
        os.replace(self._path(beside), self._path(path))
        self.settle([path])

    def publish(self, path: str, data: bytes) -> None:
        """Write it under another name, then give it its own."""
        target, beside = self._path(path), self._path(_beside(path))
        self.write(_beside(path), lambda file: file.write(data))
        _sync(beside)
        try:
            _link(beside, target)
        finally:
            with suppress(OSError):
                beside.unlink()
        try:
            self.settle([path])
        except OSError:
            target.unlink()
            raise

    def read(self, path: str) -> bytes:
        """A file."""
        return self._path(path).read_bytes()

    def opened(self, path: str) -> object:
        """A path."""
        return str(self._path(path))

    def names(self, directory: str) -> list[str]:
        """What is in a directory."""
        try:
            return os.listdir(self._path(directory))
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            if directory:
                return []
            raise not_a_store(self.place, "it is a file") from None

    def remove(self, path: str) -> int:
        """Remove a file or a directory."""
        target = self._path(path)
        if target.is_dir():
            size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
            shutil.rmtree(target)
            return size
        size = target.stat().st_size
        target.unlink()
        return size

    def lock(self) -> None:
        """A lock of the operating system, on a file that says who has it."""
        self._make(self._root)
        path = self._path(LOCK)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            raise in_use(self.place, path.read_text(encoding="utf-8").strip() or "another process") from None
        self._unlock = finalize(self, os.close, descriptor)
        os.truncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())

    def unlock(self) -> None:
        """Close the file, and with it the lock."""
        if self._unlock is not None:
            self._unlock()


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # where directories cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name that must not be taken."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():  # the lock keeps others out meanwhile
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.rename(source, target)


def _lock(descriptor: int) -> None:
    """Lock an open file until it is closed; OSError if somebody else has."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where who comes second finds the manifest of the first
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class ArrowFiles:
    """A directory of any file system that Arrow knows."""

    def __init__(self, system: FileSystem, root: str, uri: str) -> None:
        self._system, self._root = system, root.rstrip("/")
        self.place = uri
        self.spark = uri.rstrip("/")

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file."""
        target = self._path(path)
        self._system.create_dir(target.rpartition("/")[0], recursive=True)
        with self._system.open_output_stream(target) as stream:
            fill(cast("IO[bytes]", stream))

    def settle(self, paths: Iterable[str]) -> None:
        """A file that has been closed is as lasting as the file system makes it."""

    def put(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file, as a whole where the file system has it so."""
        if self._system.type_name in _OBJECTS:
            self.write(path, fill)
        else:
            self.write(_beside(path), fill)
            self._system.move(self._path(_beside(path)), self._path(path))

    def publish(self, path: str, data: bytes) -> None:
        """Write a file if there is none."""
        target = self._path(path)
        if self._kind(target) != "NotFound":
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self.put(path, lambda stream: stream.write(data))

    def _kind(self, target: str) -> str:
        return str(self._system.get_file_info(target).type.name)

    def read(self, path: str) -> bytes:
        """A file."""
        with self._system.open_input_stream(self._path(path)) as stream:
            return bytes(stream.read())

    def opened(self, path: str) -> object:
        """A path, with its file system."""
        return self._path(path), self._system

    def names(self, directory: str) -> list[str]:
        """What is in a directory."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(self._path(directory), allow_not_found=True)
        return [found.base_name for found in self._system.get_file_info(selector)]

    def remove(self, path: str) -> int:
        """Remove a file or a directory."""
        from pyarrow.fs import FileSelector

        target = self._path(path)
        info = self._system.get_file_info(target)
        if info.type.name == "Directory":
            inside = self._system.get_file_info(FileSelector(target, recursive=True))
            self._system.delete_dir(target)
            return sum(found.size or 0 for found in inside)
        self._system.delete_file(target)
        return int(info.size or 0)

    def lock(self) -> None:
        """There is no lock."""

    def unlock(self) -> None:
        """There is no lock."""
