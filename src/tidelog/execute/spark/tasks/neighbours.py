"""Shares that other worker processes of this machine hold (`held`).

Who holds a share listens on a local socket, in a directory that only this user can look into, and
answers those who know the run's secret. Nothing of it leaves the machine, and no port is needed.
Where there are no such sockets, a share is only found by tasks in its own process.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidelog.execute.spark.tasks.held import FailedError, GoneError, Held, Key, Messages, Sent
from tidelog.execute.spark.tasks.share import words_of
from tidelog.plan.executor import TaskReport

if TYPE_CHECKING:
    import pyarrow as pa

OLD = 86_400.0  # seconds after which a socket is one that was left behind
# What a socket raises when the other process is not there, or not any more.
GONE = (OSError, EOFError, AuthenticationError)


def _address(key: Key) -> str:
    """Where the socket of a share is, in all processes of this user. OSError if there can be none."""
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("no local sockets here")
    place = Path(tempfile.gettempdir()) / f"tidelog-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise OSError(f"{place} is not private")
    run, task = key
    return str(place / f"{run}-{task}")


def offer(key: Key, held: Held, secret: bytes) -> bool:
    """Let other processes ask for a share; False if one of them already has such a share."""
    try:
        address = _address(key)
        _tidy(Path(address).parent)
        listener = Listener(address, "AF_UNIX", backlog=16, authkey=secret)
    except OSError:
        return find(key, secret) is None
    threading.Thread(target=_serve, args=(listener, held), name="tidelog-share", daemon=True).start()
    held.when_ended(lambda: _wake(address))
    return True


def _wake(address: str) -> None:
    """Let a thread that waits for others see that there is nothing to wait for."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as door:
        door.settimeout(1.0)
        door.connect(address)


def _tidy(place: Path) -> None:
    """Remove what processes that were killed have left behind."""
    for path in place.iterdir():
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > OLD:
                path.unlink()


def find(key: Key, secret: bytes) -> Neighbour | None:
    """A share that another process holds."""
    try:
        return Neighbour(Client(_address(key), "AF_UNIX", authkey=secret))
    except GONE:
        return None


class Neighbour:
    """A share in another process, as `Held` is one in this."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def taken(self) -> int:
        """How many rounds of messages it has taken in."""
        self._say({"do": "taken"})
        return int(self._hear()["taken"])

    def advance(self, round: int, messages: Messages) -> Sent:
        """Take in the messages of a round, and of those before it that it has missed.

        If it has done so before, it gives what it gave then.
        """
        counts = [(number, len(of_round)) for number, of_round in messages.items()]
        self._say({"do": "advance", "round": round, "counts": counts})
        for of_round in messages.values():
            for message in of_round:
                self._give(message)
        told = self._hear()
        return Sent(tuple((peer, self._get()) for peer in told["to"]), told["rows"], told["new"])

    def answers(self) -> Iterator[tuple[str, pa.Table]]:
        """What the share has found."""
        import pyarrow as pa

        self._say({"do": "answers"})
        while name := self._hear()["relation"]:
            yield name, pa.ipc.open_stream(self._get()).read_all()

    def report(self) -> TaskReport:
        """What the share has done."""
        self._say({"do": "report"})
        told = self._hear()
        return TaskReport(told["rounds"], told["new"], {int(r): n for r, n in told["instances"].items()})

    def end(self) -> None:
        """The share is not needed any more."""
        with suppress(GoneError):
            self._say({"do": "end"})
            self._hear()

    def leave(self) -> None:
        """Nothing more will be asked here and now."""
        self._connection.close()

    # What is said is JSON; messages and rows follow as bytes.

    def _say(self, what: dict[str, Any]) -> None:
        self._give(json.dumps(what).encode())

    def _give(self, piece: bytes | pa.Buffer) -> None:
        try:
            self._connection.send_bytes(piece)
        except GONE:
            raise GoneError from None

    def _hear(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._get())
        if "failed" in told:
            raise FailedError(told["failed"])
        return told

    def _get(self) -> bytes:
        try:
            return self._connection.recv_bytes()
        except GONE:
            raise GoneError from None


# --- the side of the process that has the share ---------------------------------------


def _serve(listener: Listener, held: Held) -> None:
    """Answer one process after the other, until the share is closed."""
    with listener:
        while not held.closed:
            with suppress(*GONE), listener.accept() as connection:
                _converse(connection, held)


def _converse(connection: Connection, held: Held) -> None:
    """Answer what a process asks, until it leaves (EOFError)."""
    while True:
        asked = json.loads(connection.recv_bytes())
        pieces = [connection.recv_bytes() for _, count in asked.get("counts", ()) for _ in range(count)]
        try:
            for piece in _reply(held, asked, pieces):
                connection.send_bytes(piece)
        except GoneError:
            return
        except GONE:
            raise
        except BaseException as error:
            connection.send_bytes(json.dumps({"failed": words_of(error)}).encode())
            return


def _reply(held: Held, asked: dict[str, Any], pieces: list[bytes]) -> Iterator[bytes]:
    import pyarrow as pa

    def say(what: dict[str, Any]) -> bytes:
        return json.dumps(what).encode()

    match asked["do"]:
        case "taken":
            yield say({"taken": held.taken()})
        case "advance":
            given = iter(pieces)
            messages = {n: [pa.py_buffer(next(given)) for _ in range(c)] for n, c in asked["counts"]}
            sent = held.advance(asked["round"], messages)
            yield say({"to": [peer for peer, _ in sent.messages], "rows": sent.rows, "new": sent.new})
            yield from (message for _, message in sent.messages)
        case "answers":
            for name, table in held.answers():
                yield say({"relation": name})
                yield _stream(table)
            yield say({"relation": None})
        case "report":
            yield say(asdict(held.report()))
        case "end":
            held.end()
            yield say({})


def _stream(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
