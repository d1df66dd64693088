"""The work directory of this process: tasks leave there what they derive, and Spark reads it when asked.

Each stage has a directory of its own in it. A file goes when no DataFrame can read it any more: Spark's
own plans are asked, for users make DataFrames of ours that we do not know of. That is looked at when
the next stage begins. What is left goes when the process ends. A process that is killed leaves its
directory behind; whoever next works in the same place sees that nobody holds its lock, and removes it.
Where a place is named by a URI there are no locks, and what was left behind stays.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import socket
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from tidelog.execute.spark.here import readable
from tidelog.execute.spark.place import Place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PREFIX = "tidelog-work-"
NEW = ".new"
LOCK = "lock"

Alive = Callable[[], bool]


class WorkDirectory:
    """This process's directory in some place that driver and tasks see."""

    def __init__(self, root: Place) -> None:
        name = f"{PREFIX}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.place = root / name
        self._stages: list[StageDirectory] = []
        self._changing = Lock()
        self._owner = os.getpid()
        self._lock: int | None = None
        if root.is_path:
            root.make()
            remove_abandoned(root)
            # It has its proper name only when it is locked: else it might be taken for abandoned.
            new = self.place.name + NEW
            os.mkdir(new, 0o755)
            self._lock = hold(new)
            os.rename(new, self.place.name)
        else:
            self.place.make()

    @property
    def is_there(self) -> bool:
        """Whether nobody has removed it: that of a session goes with the session's files."""
        return not self.place.is_path or os.path.isdir(self.place.name)

    def begin(self) -> StageDirectory:
        """A directory for a stage; what nobody can read any more is removed."""
        stage = StageDirectory(self.place / secrets.token_hex(8))
        stage.place.make()
        with self._changing:
            for other in self._stages:
                other.sweep()
            self._stages = [stage, *(other for other in self._stages if not other.is_over)]
        return stage

    def remove(self) -> None:
        """Remove everything."""
        if os.getpid() != self._owner:  # a child that was forked
            return
        with suppress(Exception):
            self.place.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class StageDirectory:
    """The files of one stage, and the DataFrames that read them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._read: list[tuple[Alive, Sequence[str]]] = []
        self._is_settled = self.is_over = False

    def frame(self, spark: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
        """Some files as a DataFrame."""
        paths = [(self.place / file).for_spark for file in files]
        frame = spark.read.schema(schema).parquet(*paths)
        self._read.append((alive(frame), files))
        return readable(frame, lambda: self._table(files))

    def _table(self, files: Sequence[str]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        return pa.concat_tables([pq.read_table(pa.BufferReader(self.place.read(file))) for file in files])

    def settle(self) -> None:
        """The stage is over: remove all that no DataFrame reads, such as what failed attempts have left."""
        self._is_settled = True
        with suppress(OSError):
            read = {file for _, files in self._read for file in files}
            for name in self.place.names():
                if name not in read:
                    self._remove(name)
        self.sweep()

    def sweep(self) -> None:
        """Remove files of DataFrames that are gone."""
        if not self._is_settled:
            return
        with suppress(OSError):
            kept = []
            for lives, files in self._read:
                if lives():
                    kept.append((lives, files))
                    continue
                for file in files:
                    self.place.remove(file)
            self._read = kept
            if not kept:
                self.place.clear()
                self.is_over = True

    def _remove(self, name: str) -> None:
        if "." in name:
            self.place.remove(name)
        else:
            (self.place / name).clear()


_mine: dict[Place, WorkDirectory] = {}
_making = Lock()


def work_directory(root: Place) -> WorkDirectory:
    """This process's directory in a place."""
    with _making:
        found = _mine.get(root)
        if found is None or not found.is_there:
            if not _mine:
                atexit.register(_remove_all)
            found = _mine[root] = WorkDirectory(root)
        return found


def _remove_all() -> None:
    while _mine:
        _mine.popitem()[1].remove()


def hold(directory: str) -> int | None:
    """Hold the lock of a directory, as long as this process lives; None if another one does."""
    try:
        import fcntl
    except ImportError:  # there are no such locks on this machine
        return None
    handle = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def remove_abandoned(root: Place) -> None:
    """Remove the directories of processes that are no more."""
    for name in root.names():
        directory = f"{root.name}/{name}"
        if not name.startswith(PREFIX) or name.endswith(NEW) or not os.path.exists(f"{directory}/{LOCK}"):
            continue
        with suppress(OSError):  # it may be somebody else's
            handle = hold(directory)
            if handle is not None:
                shutil.rmtree(directory, ignore_errors=True)
                os.close(handle)


def alive(frame: DataFrame) -> Alive:
    """Tells whether anybody can still read the files of a DataFrame, through it or one made of it."""
    plan = getattr(frame, "_plan", None)
    if plan is not None:  # Spark Connect: a plan refers to those that it is made of
        known = weakref.ref(plan)
        return lambda: known() is not None
    try:
        files = frame._jdf.queryExecution().analyzed().relation().location()
        jvm: Any = frame.sparkSession._jvm
        held = jvm.java.lang.ref.WeakReference(files)
    except Exception:  # another Spark than we know: they stay until the process ends
        return lambda: True

    def lives() -> bool:
        try:
            return not held.refersTo(None)  # to get it would be to hold it, for a second
        except Exception:  # the session has been stopped
            return False

    return lives
