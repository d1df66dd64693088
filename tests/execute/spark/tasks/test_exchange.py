"""Tasks swap messages; strangers are refused; a task that fails or goes stops the others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

import pyarrow as pa
import pytest
from pyarrow import flight

from tests.execute.spark.tasks.sharing import HOST, PATIENCE, connected, everywhere
from tidelog.execute.spark.tasks import exchange as module
from tidelog.execute.spark.tasks.exchange import Exchange, PeerError, UnreachableError

SECRET = bytes(range(32))


def test_everybody_gets_what_was_meant_for_them_and_the_sum() -> None:
    tasks = 3
    exchanges = connected(tasks)

    def rounds(me: int) -> None:
        for round in range(50):
            to_each = [f"{round}: {me} to {peer}".encode() for peer in range(tasks)]
            messages, total = exchanges[me].swap(round, to_each, 10**me)
            assert total == 111
            texts = [None if m is None else m.to_pybytes().decode() for m in messages]
            assert texts == [None if p == me else f"{round}: {p} to {me}" for p in range(tasks)]

    everywhere([lambda me=me: rounds(me) for me in range(tasks)])
    everywhere([e.close for e in exchanges])


def test_a_task_may_be_a_round_ahead() -> None:
    first, second = connected(2)

    def slow() -> list[int]:
        ahead.wait(PATIENCE)
        return [second.swap(round, [b"", b""], 1)[1] for round in range(2)]

    def quick() -> list[int]:
        sums = []
        for round in range(2):
            if round == 0:
                threading.Timer(0.05, ahead.set).start()
            sums.append(first.swap(round, [b"", b""], 1)[1])
        return sums

    ahead = threading.Event()
    assert everywhere([slow, quick]) == [[2, 2], [2, 2]]
    everywhere([first.close, second.close])


@pytest.mark.parametrize(
    "size", [0, 1, module.TOGETHER, module.TOGETHER + 1, module.PIECE, 3 * module.PIECE + 1]
)
def test_messages_of_any_length(size: int) -> None:
    exchanges = connected(2)
    message = os.urandom(size)

    def swap(me: int) -> bytes:
        messages, _ = exchanges[me].swap(0, [message] * 2, 0)
        return messages[1 - me].to_pybytes()

    assert everywhere([lambda: swap(0), lambda: swap(1)]) == [message, message]
    everywhere([e.close for e in exchanges])


def test_a_message_of_hundreds_of_megabytes() -> None:
    exchanges = connected(2)
    message = pa.py_buffer(bytes(300_000_000))

    def swap(me: int) -> int:
        messages, _ = exchanges[me].swap(0, [message if me == 0 else b""] * 2, 0)
        return messages[1 - me].size

    assert everywhere([lambda: swap(0), lambda: swap(1)]) == [0, 300_000_000]
    everywhere([e.close for e in exchanges])


def test_a_task_alone() -> None:
    with Exchange(HOST, SECRET) as exchange:
        exchange.connect([exchange.address], 0)
        assert exchange.swap(0, [b""], 5) == ([None], 5)


# --- strangers --------------------------------------------------------------------

CALLS: dict[str, Callable[[flight.FlightClient, flight.FlightCallOptions], object]] = {
    "do_put": lambda c, o: put(c, o, "1"),
    "do_get": lambda c, o: c.do_get(flight.Ticket(b"1"), o).read_all(),
    "do_exchange": lambda c, o: c.do_exchange(flight.FlightDescriptor.for_command("1"), o)[1].read_chunk(),
    "do_action": lambda c, o: list(c.do_action(flight.Action("x", b""), o)),
    "list_actions": lambda c, o: c.list_actions(o),
    "list_flights": lambda c, o: list(c.list_flights(b"", o)),
    "get_flight_info": lambda c, o: c.get_flight_info(flight.FlightDescriptor.for_command("1"), o),
    "get_schema": lambda c, o: c.get_schema(flight.FlightDescriptor.for_command("1"), o),
}


def put(client: flight.FlightClient, options: flight.FlightCallOptions, task: str) -> None:
    writer, _ = client.do_put(flight.FlightDescriptor.for_command(task), pa.schema([]), options)
    writer.write_metadata(b"x" * 24)
    writer.close()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("secret", [None, "", SECRET.hex()[:-1], SECRET.hex() + "0", SECRET.hex().upper()])
def test_strangers_are_refused(call: str, secret: str | None) -> None:
    headers = [] if secret is None else [(b"tidelog-secret", secret.encode())]
    with Exchange(HOST, SECRET) as exchange, flight.connect(exchange.address) as client:
        with pytest.raises((flight.FlightUnauthenticatedError, OSError), match="Unauthenticated"):
            CALLS[call](client, flight.FlightCallOptions(headers=headers))
        assert not exchange._arrived


@pytest.mark.parametrize("call", sorted(CALLS.keys() - {"do_put", "list_actions", "list_flights"}))
def test_there_is_nothing_else_to_call(call: str) -> None:
    headers = [(b"tidelog-secret", SECRET.hex().encode())]
    with (
        Exchange(HOST, SECRET) as exchange,
        flight.connect(exchange.address) as client,
        pytest.raises(NotImplementedError),
    ):
        CALLS[call](client, flight.FlightCallOptions(headers=headers))


def test_a_task_has_one_stream() -> None:
    first, second = connected(2)
    headers = [(b"tidelog-secret", first._secret.encode())]
    with flight.connect(first.address) as client, pytest.raises(flight.FlightServerError, match="already"):
        put(client, flight.FlightCallOptions(headers=headers), "1")
    sums = everywhere([lambda: first.swap(0, [b"", b""], 1), lambda: second.swap(0, [b"", b""], 2)])
    assert [total for _, total in sums] == [3, 3]
    everywhere([first.close, second.close])


def test_another_runs_secret_does_not_connect() -> None:
    with Exchange(HOST, SECRET) as ours, Exchange(HOST, SECRET[::-1]) as theirs:
        addresses = [ours.address, theirs.address]
        with pytest.raises(UnreachableError, match="cannot reach each other: nothing is heard of task 0"):
            theirs.connect(addresses, 1, 0.5)


# --- failures ---------------------------------------------------------------------


def test_all_are_told_of_a_failure() -> None:
    exchanges = connected(3)

    def swap(me: int) -> PeerError:
        with pytest.raises(PeerError) as caught:
            exchanges[me].swap(0, [b""] * 3, 0)
        return caught.value

    def fail() -> None:
        exchanges[1].fail("no such luck")
        exchanges[1].close()

    told, _, also_told = everywhere([lambda: swap(0), fail, lambda: swap(2)])
    for error in (told, also_told):
        assert (error.task, error.told) == (1, "no such luck")
        assert str(error) == "error[TL0610]: task 1 of the fixpoint has failed: no such luck"
    with pytest.raises(PeerError, match="no such luck"):
        exchanges[0].check()
    everywhere([exchanges[0].close, exchanges[2].close])


def test_a_task_that_closes_early_is_gone() -> None:
    first, second = connected(2)
    second.close()
    with pytest.raises(PeerError, match="task 1 of the fixpoint is gone"):
        first.swap(0, [b"", b""], 0)
    first.close()


def test_a_task_that_closes_after_its_last_message_is_not_missed() -> None:
    first, second = connected(2)

    def swap_and_close() -> None:
        second.swap(0, [b"", b""], 1)
        second.close()

    everywhere([swap_and_close, lambda: first.swap(0, [b"", b""], 1)])
    first.close()


def test_nobody_listens() -> None:
    with Exchange(HOST, SECRET) as gone:
        address = gone.address
    with (
        Exchange(HOST, SECRET) as exchange,
        pytest.raises(UnreachableError, match="nothing is heard of task 1"),
    ):
        exchange.connect([exchange.address, address], 0, 5)


def test_somebody_does_not_connect() -> None:
    gone = pytest.raises(UnreachableError, match="nothing is heard of task 1")
    with Exchange(HOST, SECRET) as other, Exchange(HOST, SECRET) as exchange, gone:
        exchange.connect([exchange.address, other.address], 0, 0.2)


def swapping(end: Connection) -> None:
    """A task in a process of its own that swaps until it is killed."""
    with Exchange(HOST, SECRET) as exchange:
        end.send(exchange.address)
        exchange.connect(end.recv(), 1)
        for round in range(1 << 30):
            exchange.swap(round, [b"x", b"x"], 1)


@pytest.fixture
def other() -> object:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=swapping, args=(theirs,))
    process.start()
    yield process, ours
    process.kill()
    process.join()


@pytest.mark.parametrize("size", [1, 100_000_000])
def test_a_killed_process_is_noticed(other: object, size: int) -> None:
    process, end = other
    assert end.poll(PATIENCE)
    with Exchange(HOST, SECRET) as exchange:
        addresses = [exchange.address, end.recv()]
        end.send(addresses)
        exchange.connect(addresses, 0)
        exchange.swap(0, [b"x", b"x"], 1)
        threading.Timer(0.1, process.kill).start()
        with pytest.raises(PeerError, match="task 1 of the fixpoint is gone"):
            for round in range(1, 1 << 30):
                exchange.swap(round, [b"x", bytes(size)], 1)


def test_closing_does_not_wait_for_a_process_that_is_stopped(
    other: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PARTING", 0.2)
    process, end = other
    assert end.poll(PATIENCE)
    exchange = Exchange(HOST, SECRET)
    addresses = [exchange.address, end.recv()]
    end.send(addresses)
    exchange.connect(addresses, 0)
    exchange.swap(0, [b"x", b"x"], 1)
    os.kill(process.pid, signal.SIGSTOP)
    exchange.close()
    assert not is_listening(exchange.address)


def test_closing_frees_the_port_and_the_threads() -> None:
    before = set(threading.enumerate())
    exchanges = connected(3)
    assert all(is_listening(e.address) for e in exchanges)
    everywhere([e.close for e in exchanges])
    assert not any(is_listening(e.address) for e in exchanges)
    assert set(threading.enumerate()) <= before
    for e in exchanges:
        e.close()  # once more does no harm


def is_listening(address: str) -> bool:
    host, port = address.removeprefix("grpc://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
