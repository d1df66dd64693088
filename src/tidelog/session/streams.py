"""Streams of Spark that a database follows: each micro-batch is one commit, and is committed once.

Spark numbers the batches of a stream, and notes in its checkpoint which ones are done. After a crash it
brings the last one again. The number of a batch, and when it was planned, are committed together with
its rows, so one that is brought again is passed over; and a checkpoint that does not go with the store is
found out, because the numbers do not follow each other or the last one is of another batch.

Over Spark Connect the function that is given batches runs in a process of the server, where there is no
database: streams need a classic session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread, get_ident
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.io.errors import data_error, said
from tidelog.session.batches import Batch
from tidelog.session.frames.given import is_frame, no_frames
from tidelog.session.transaction import Transaction
from tidelog.session.writer import Writer
from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import DataFrame
    from tidelog.session.feeds import Feed

CHANGE_TYPE = "_change_type"
WORDS = ("availableNow", "once")
_STOPS_OTHERS = "spark.sql.streaming.stopActiveRunOnRestart"
_STARTING = Lock()

Into = str | Callable[[Transaction, Any], object]
Trigger = str | Mapping[str, object]


class StreamError(TidelogError):
    """A stream cannot begin or go on."""


class Home(Protocol):
    """What a stream needs of the database that follows it."""

    @property
    def engine(self) -> str:
        """What evaluates rules."""

    def transaction(self, *, batch: Batch | None = None) -> Transaction:
        """Begin a transaction."""

    def committed(self, stream: str) -> Batch | None:
        """The last batch of a stream that has been committed."""


class Stream:
    """A stream that a database follows. It can do what Spark's `StreamingQuery` can, which is its `query`.

    What goes wrong with a batch is raised by `awaitTermination` and `processAllAvailable`, as a commit would
    raise it; `error` has it too.
    """

    def __init__(
        self, home: Home, writer: Writer, name: str | None, into: Into, feed: Feed | None, *, stored: bool
    ) -> None:
        self.name = name or (into if isinstance(into, str) else into.__name__)
        self.error: BaseException | None = None
        self.query: Any = None
        self._home, self._writer, self._stored = home, writer, stored
        self._into, self._feed = into, feed
        self._begun, self._turn = Event(), Lock()
        self._thread: int | None = None  # that of the batch under way
        self._stopping = False

    # --- batches -------------------------------------------------------------------

    def begin(self, frame: DataFrame, checkpoint: str | Path | None, trigger: Trigger | None) -> None:
        """Have Spark bring batches. Raises StreamError if it does not."""
        try:
            writer = frame.writeStream.queryName(self.name).foreachBatch(self._take)
            if checkpoint is not None:
                writer = writer.option("checkpointLocation", str(checkpoint))
            how = _trigger(trigger)
            with _alone(frame):
                self.query = (writer.trigger(**how) if how else writer).start()
        except Exception as error:
            raise _failed(f"Spark does not start the stream {self.name}", error) from error
        try:
            self._check_last(frame.sparkSession)
        except BaseException:
            self._stopping = True
            raise
        finally:
            self._begun.set()
            if self._stopping:
                self.query.stop()

    def _check_last(self, session: Any) -> None:
        """Raise StreamError if Spark takes batches for done that the store has not: it is an older copy."""
        if not self._stored:
            return
        stream, done = str(self.query.id), _last_done(self.query, session)
        last = self._home.committed(stream)
        if done is not None and (last is None or last.number < done):
            raise _out_of_step(self.name, Batch(stream, done + 1), last)

    def _take(self, batch: DataFrame, number: int) -> None:
        """Called by Spark, in a thread of its own."""
        self._begun.wait()
        with self._turn:
            if self._stopping:  # what is not committed must not return: Spark would take it as done
                raise StreamError(f"the stream {self.name} was stopped before batch {number}")
            self._thread = get_ident()
            try:
                self._commit(batch, number)
            except BaseException as error:
                self.error = error
                raise
            finally:
                self._thread = None

    def _commit(self, batch: DataFrame, number: int) -> None:
        stream = str(self.query.id)  # Spark gives each checkpoint one
        brought = Batch(stream, number, _planned(self.query, batch, number))
        last = self._home.committed(stream)
        if last is None or last.number != number:
            expected = 0 if last is None else last.number + 1
            if number != expected and (last is not None or self._stored):
                raise _out_of_step(self.name, brought, last)
            with self._home.transaction(batch=brought) as tx:
                into(tx, self._into, batch)
        elif last.planned not in (None, brought.planned):
            raise _out_of_step(self.name, brought, last)
        if self._feed is not None:
            self._feed.catch_up()

    # --- what Spark's can do ---------------------------------------------------------

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        """Wait until the stream ends, or so many seconds; then, whether it has ended."""
        ended = self._heard(self.query.awaitTermination, timeout, stopped=True)
        return None if timeout is None else bool(ended)

    def processAllAvailable(self) -> None:
        """Wait until everything that there is by now has been committed."""
        self._heard(self.query.processAllAvailable)

    def exception(self) -> BaseException | None:
        """What has ended the stream, if something has."""
        if self.error is not None or self._stopping:
            return self.error
        found: BaseException | None = self.query.exception()
        return found

    def stop(self) -> None:
        """End the stream, after the batch that is under way. It can be followed again from its checkpoint."""
        if self._thread == get_ident():  # asked for by a subscriber: its commit ends first
            Thread(target=self.stop, name=f"stop {self.name}").start()
            return
        self._writer.check()  # a batch that waits for this thread's transaction would never end
        with self._turn:
            self._stopping = True
        self.query.stop()

    def _heard(self, call: Callable[..., object], *arguments: object, stopped: object = None) -> object:
        """What a call says; where it raises because of what was raised here, that."""
        try:
            return call(*arguments)
        except Exception as error:
            if self.error is not None:
                raise self.error from error
            if self._stopping:
                return stopped
            raise _failed(f"the stream {self.name} has failed", error) from error

    def __getattr__(self, name: str) -> Any:
        if name == "query" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.query, name)

    def __repr__(self) -> str:
        return f"<tidelog stream {self.name}{'' if self.query.isActive else ', ended'}>"


def into(tx: Transaction, relation: Into, batch: DataFrame) -> None:
    """Have a transaction take a batch."""
    if callable(relation):
        relation(tx, batch)
    elif CHANGE_TYPE in batch.columns:
        tx.apply(relation, batch)
    else:
        tx.insert(relation, batch)


def check_frame(home: Home, frame: object, relation: Into) -> None:
    """Raise the error of something that cannot be followed as a stream, before it begins."""
    if home.engine != "spark" or not is_frame(frame):
        what = "only a streaming Spark DataFrame can be followed, by a database on Spark"
        raise no_frames(what, "tidelog.Database(program, spark=session)")
    found: Any = frame
    if type(found).__module__.startswith("pyspark.sql.connect"):
        raise no_frames(
            "a stream cannot be followed over Spark Connect: what is given its batches runs on the server",
            "use a classic session: SparkSession.builder.master(...), or spark-submit",
        )
    if not found.isStreaming:
        raise data_error(
            "TL0504",
            "this DataFrame is not a stream",
            hint="tx.insert and tx.apply take it; spark.readStream makes one that is",
        )
    if isinstance(relation, str):
        with home.transaction() as tx:
            into(tx, relation, found.sparkSession.createDataFrame([], found.schema))
            tx.rollback()


def _trigger(given: Trigger | None) -> dict[str, Any]:
    if isinstance(given, str):
        return {given: True} if given in WORDS else {"processingTime": given}
    return dict(given or {})


@contextmanager
def _alone(frame: DataFrame) -> Iterator[None]:
    """Have Spark refuse a stream whose checkpoint another one uses, which it would stop otherwise."""
    conf = frame.sparkSession.conf
    with _STARTING:
        before = conf.get(_STOPS_OTHERS, None)
        conf.set(_STOPS_OTHERS, "false")
        try:
            yield
        finally:
            if before is None:
                conf.unset(_STOPS_OTHERS)
            else:
                conf.set(_STOPS_OTHERS, before)


def _in_checkpoint(query: Any, session: Any, name: str) -> tuple[Any, Any]:
    """A path in the checkpoint of a stream, and the file system that it is of."""
    root = query._jsq.streamingQuery().resolvedCheckpointRoot()
    path = session._jvm.org.apache.hadoop.fs.Path(root, name)
    return path, path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())


def _last_done(query: Any, session: Any) -> int | None:
    """The last batch that Spark takes for done, as its checkpoint has it."""
    path, system = _in_checkpoint(query, session, "commits")
    if not system.exists(path):
        return None
    names = [str(file.getPath().getName()) for file in system.listStatus(path)]
    return max((int(name) for name in names if name.isdecimal()), default=None)


def _planned(query: Any, batch: DataFrame, number: int) -> int:
    """When Spark planned a batch, in milliseconds, as its checkpoint has it."""
    path, system = _in_checkpoint(query, batch.sparkSession, f"offsets/{number}")
    file = system.open(path)
    try:
        text = bytes(file.readAllBytes()).decode()
    finally:
        file.close()
    return int(json.loads(text.splitlines()[1])["batchTimestampMs"])  # after the version of the file


def _failed(what: str, error: Exception) -> StreamError:
    java: Any = getattr(error, "java_exception", None)  # of what PySpark has no exception for
    note = said(error) if java is None else str(java.getMessage()).partition("\n")[0]
    return StreamError(f"error[TL0810]: {what}\n  = note: {note}")


def _out_of_step(name: str, brought: Batch, last: Batch | None) -> StreamError:
    number = brought.number
    if last is None:
        had = "has had none of them"
    elif last.number == number:
        had = "has had another one of that number"
    else:
        had = f"has had those up to {last.number}"
    return StreamError(
        f"error[TL0811]: the checkpoint of the stream {name} does not go with the store\n"
        f"  = note: the checkpoint goes on with batch {number}, and the store {had}\n"
        "  = note: nothing has been changed\n"
        "  = hint: give the checkpoint and the store that were used together, or a new checkpoint: "
        "then the stream is read from its beginning"
    )
