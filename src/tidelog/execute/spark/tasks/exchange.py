"""Messages between the tasks of a run, over Arrow Flight.

Each task has a server and keeps one stream open to every other task. In a *round* it gives one
message for each of them and a number, and gets theirs and the sum of all numbers once every message
is there (`swap`). So a task is never more than a round ahead of another.

A message is bytes of any length. It travels in the metadata of Flight messages, in pieces, because
what gRPC sends at once is limited; a header comes first. Streams are read by the server's threads as
messages come in, so nobody waits for a task that computes in order to send to it.

Every call must carry the run's secret, and streams are all there is to call. A stream that ends
before its time is a task that is gone. A task that fails tells the others why (`fail`); whoever sees
a stream end ends its own in answer, so that closing waits for no computation.
"""

from __future__ import annotations

import hmac
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import flight

from tidelog.syntax.errors import TidelogError

PIECE = 1 << 22  # bytes that are sent at once
TOGETHER = 1 << 16  # bytes up to which a message is one piece with its header
PATIENCE = 60.0  # seconds in which all tasks must have connected
PARTING = 5.0  # seconds that closing waits for tasks that do not answer

Payload: TypeAlias = "bytes | pa.Buffer"

# What reading from a stream or writing to it raises when the other end is not there any more.
GONE = (flight.FlightError, pa.ArrowException, OSError)

_SECRET = "tidelog-secret"  # the name of the header that carries it
_SCHEMA = pa.schema([])
_HEADER = Struct("<qqQ")  # round, number, length of the message
_HELLO, _FAILED = -1, -2  # what is said outside rounds


class PeerError(TidelogError):
    """Another task of the run is gone, or has failed: then `told` is what it said."""

    def __init__(self, task: int, told: str | None = None) -> None:
        self.task, self.told = task, told
        why = "is gone" if told is None else f"has failed: {told}"
        super().__init__(f"error[TL0610]: task {task} of the fixpoint {why}")


class UnreachableError(PeerError):
    """Another task of the run cannot be reached, or could not reach one; `told` says why."""

    def __init__(self, task: int, told: str | None = None) -> None:
        self.task, self.told = task, told or f"nothing is heard of task {task}"
        TidelogError.__init__(
            self,
            f"error[TL0610]: tasks of the fixpoint cannot reach each other: {self.told}\n"
            "  = hint: they listen on free ports of the executors' own addresses; "
            "spark.tidelog.fixpoint=shuffle needs none",
        )


@dataclass(frozen=True)
class _Message:
    round: int
    said: int
    payload: pa.Buffer


class Exchange:
    """One task's end of the streams: a server on a free port of `host`, then streams to the others."""

    def __init__(self, host: str, secret: bytes) -> None:
        self._secret = secret.hex()
        self._changed = threading.Condition()
        # What the server's threads bring, guarded by the condition.
        self._arrived: defaultdict[int, deque[_Message]] = defaultdict(deque)
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._failure: PeerError | None = None
        self._streams: dict[int, _Stream] = {}
        self._closed = False
        place = f"[{host}]" if ":" in host else host
        self._server = _Server(f"grpc://{place}:0", self, self._secret)
        self.address = f"grpc://{place}:{self._server.port}"

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the task's side ------------------------------------------------------------

    def connect(self, addresses: Sequence[str], task: int, patience: float = PATIENCE) -> None:
        """Open streams to all tasks; `addresses` are in their order, `task` is the number of this one.

        Raises UnreachableError if some task cannot do so.
        """
        try:
            for peer, address in enumerate(addresses):
                if peer != task:
                    self._open(peer, address, task)
            self._await(patience)
        except PeerError as error:
            unreachable = UnreachableError(error.task, error.told)
            self.fail(unreachable.told or "")
            raise unreachable from error

    def _open(self, peer: int, address: str, task: int) -> None:
        try:
            stream = _Stream(address, self._secret, task)
        except GONE as error:
            raise PeerError(peer) from error
        with self._changed:
            self._streams[peer] = stream
        self._send(peer, _HELLO, 0, b"")

    def swap(self, round: int, to_each: Sequence[Payload], said: int) -> tuple[list[pa.Buffer | None], int]:
        """Give each task its message and all of them a number; their messages, and the sum of all numbers.

        `to_each` has an entry for each task; the one at this task's own place is not looked at,
        and in the result it is None. Raises PeerError if a task has failed or is gone.
        """
        for peer in self._streams:
            self._send(peer, round, said, to_each[peer])
        messages: list[pa.Buffer | None] = [None] * len(to_each)
        for peer, message in self._await(None).items():
            assert message.round == round, (message.round, round)
            messages[peer] = message.payload
            said += message.said
        return messages, said

    def check(self) -> None:
        """Raise PeerError if a task has failed or is gone."""
        with self._changed:
            self._look()

    def fail(self, told: str) -> None:
        """Tell all tasks that this one has failed: they raise PeerError."""
        for stream in self._streams.values():
            stream.try_to_send(_pieces(_FAILED, 0, told.encode()))

    def close(self) -> None:
        """End all streams and the server; its port and its threads are free afterwards."""
        if self._closed:
            return
        self._closed = True
        # A task that is stopped, not gone, does not answer; what waits for it must not keep us.
        parting = threading.Thread(target=self._part, name="tidelog-parting", daemon=True)
        parting.start()
        parting.join(PARTING)

    def _part(self) -> None:
        for stream in self._streams.values():
            stream.end()
        self._server.shutdown()
        for stream in self._streams.values():
            stream.close()

    def _send(self, peer: int, round: int, said: int, payload: Payload) -> None:
        try:
            self._streams[peer].send(_pieces(round, said, payload))
        except GONE:
            with self._changed:  # it may have said why
                self._changed.wait_for(lambda: self._failure or peer in self._ended, PARTING)
                raise self._failure or PeerError(peer) from None

    def _await(self, patience: float | None) -> dict[int, _Message]:
        """One message of each task, when all are there."""
        with self._changed:
            self._changed.wait_for(self._settled, patience)
            missing = self._look()
            if missing is not None:
                raise PeerError(missing)
            return {peer: self._arrived[peer].popleft() for peer in self._streams}

    def _settled(self) -> bool:
        """Whether there is nothing to wait for."""
        if self._failure is not None:
            return True
        waiting = [peer for peer in self._streams if not self._arrived[peer]]
        return not waiting or not self._ended.isdisjoint(waiting)

    def _look(self) -> int | None:
        """Raise an error that is due; a task whose message is not here yet."""
        if self._failure is not None:
            raise self._failure
        missing = None
        for peer in self._streams:
            if not self._arrived[peer]:
                if peer in self._ended:
                    raise PeerError(peer)
                missing = peer
        return missing

    # --- the server's side ------------------------------------------------------------

    def _receive(self, peer: int, reader: flight.MetadataRecordBatchReader) -> None:
        """Take in what a task sends, until its stream ends."""
        with self._changed:
            if peer in self._begun:
                raise flight.FlightServerError(f"task {peer} has a stream already")
            self._begun.add(peer)
        try:
            while True:
                self._deliver(peer, _read_message(reader))
        except (StopIteration, *GONE):
            pass
        finally:
            with self._changed:
                self._ended.add(peer)
                self._changed.notify_all()
                stream = self._streams.get(peer)
            if stream is not None:
                stream.end()

    def _deliver(self, peer: int, message: _Message) -> None:
        with self._changed:
            if message.round == _FAILED:
                self._failure = self._failure or PeerError(peer, message.payload.to_pybytes().decode())
            else:
                self._arrived[peer].append(message)
            self._changed.notify_all()


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """Takes in streams, and refuses all other calls, as its base does."""

    def __init__(self, location: str, exchange: Exchange, secret: str) -> None:
        self._exchange = exchange
        super().__init__(location, middleware={"door": _Door(secret)})

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """The stream of a task; the descriptor is its number."""
        self._exchange._receive(int(descriptor.command), reader)


class _Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets in whoever knows the secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def start_call(self, info: flight.CallInfo, headers: dict[str, list[Any]]) -> None:
        """Called before each call, whichever it is."""
        given = headers.get(_SECRET, [""])
        if len(given) != 1 or not hmac.compare_digest(str(given[0]).encode(), self._secret):
            raise flight.FlightUnauthenticatedError("this is a private endpoint")


class _Stream:
    """A stream to another task. Two threads may want it: the task's, and one that ends it."""

    def __init__(self, address: str, secret: str, task: int) -> None:
        self._lock = threading.Lock()
        self._open = True
        self._client = flight.connect(address)
        options = flight.FlightCallOptions(headers=[(_SECRET.encode(), secret.encode())])
        descriptor = flight.FlightDescriptor.for_command(str(task))
        self._writer, _ = self._client.do_put(descriptor, _SCHEMA, options)

    def send(self, pieces: Sequence[Payload]) -> None:
        """Send a message that is in pieces."""
        with self._lock:
            if not self._open:
                raise OSError("the stream has ended")
            for piece in pieces:
                self._writer.write_metadata(piece)

    def try_to_send(self, pieces: Sequence[Payload]) -> None:
        """Send a message if there is still anybody to hear it."""
        with suppress(*GONE):
            self.send(pieces)

    def end(self) -> None:
        """Say that nothing more will come."""
        with self._lock:
            if self._open:
                self._open = False
                with suppress(*GONE):
                    self._writer.done_writing()

    def close(self) -> None:
        """Give everything back."""
        with suppress(*GONE):
            self._writer.close()
        self._client.close()


def _pieces(round: int, said: int, payload: Payload) -> list[Payload]:
    """A message as it is sent: a header and what follows it."""
    whole = pa.py_buffer(payload)
    header = _HEADER.pack(round, said, whole.size)
    if whole.size <= TOGETHER:
        return [header + whole.to_pybytes()]
    return [header, *(whole.slice(at, min(PIECE, whole.size - at)) for at in range(0, whole.size, PIECE))]


def _read_message(reader: flight.MetadataRecordBatchReader) -> _Message:
    """The next message of a stream."""
    first = reader.read_chunk().app_metadata
    round, said, length = _HEADER.unpack_from(first)
    pieces = [first.slice(_HEADER.size)]
    there = pieces[0].size
    while there < length:
        pieces.append(reader.read_chunk().app_metadata)
        there += pieces[-1].size
    if len(pieces) == 1:
        return _Message(round, said, pieces[0])
    return _Message(round, said, pa.py_buffer(b"".join(pieces)))
