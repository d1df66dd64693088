"""Shares in rounds whose messages somebody else carries: workers that come, go and are asked twice."""

from __future__ import annotations

import multiprocessing
import random
import secrets
from collections import Counter
from collections.abc import Callable, Collection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.execute.spark.tasks.sharing import PATIENCE, Outcome, SharedExecutor, Tables, dealt
from tests.execute.spark.tasks.test_share import (
    CLOSURES,
    CSPA,
    FAILING,
    NEGATION,
    PAIRS,
    fixpoint,
    random_pairs,
)
from tests.oracle import model_of
from tests.properties.agreement import checked
from tests.random_programs import generate
from tests.running import Row, run
from tidelog.execute.spark.tasks import neighbours
from tidelog.execute.spark.tasks.held import SHELF, Held, Messages
from tidelog.execute.spark.tasks.share import NOBODY, Share
from tidelog.execute.spark.tasks.turns import Turns
from tidelog.plan.placement import Distribution
from tidelog.program.check import check
from tidelog.syntax.errors import EvaluationError
from tidelog.syntax.parser import parse

Log = list[dict[int, list[bytes]]]  # for each round, messages by share
Taking = Callable[[Turns, int, int, Log], Any]  # a turn of a share in a round: what it sends


def given(log: Log, task: int, since: int) -> Messages:
    return {n: [pa.py_buffer(m) for m in log[n].get(task, [])] for n in range(since, len(log))}


def in_rounds(distribution: Distribution, tables: Tables, tasks: int, take: Taking) -> Outcome:
    """The fixpoint; `take` lets a share have its turn, and must make it send."""
    turns = Turns(secrets.token_hex(8), b"secret", distribution, tasks)
    dealer = Share(distribution, NOBODY, tasks)
    for name, piece in dealt(tables, 0, 1):
        dealer.load(name, piece)
    log: Log = [{}]
    for to, message, _ in dealer.outgoing():
        log[0].setdefault(to, []).append(message)
    dealer.close()
    while True:
        sent = [take(turns, task, len(log) - 1, log) for task in range(tasks)]
        if not sum(s.rows for s in sent):
            break
        log.append({})
        for to, message in (pair for s in sent for pair in s.messages):
            log[-1].setdefault(to, []).append(message)
    outcome = Outcome()
    for task in range(tasks):
        messages = given(log, task, 0)
        report = turns.report(task, len(log) - 1, messages)
        outcome.add(turns.answers(task, len(log) - 1, messages), report)
    return outcome


def at_once(turns: Turns, task: int, round: int, log: Log) -> Any:
    """A share that is always there."""
    taken, sent = turns.turn(task, round, round, given(log, task, round))
    if sent is None:
        assert (taken, round) == (0, 0)
        _, sent = turns.turn(task, round, 0, given(log, task, 0))
    return sent


def contents(messages: tuple[tuple[int, bytes], ...]) -> Counter[int]:
    """How many bytes go to whom: equal rows in another order are as long."""
    total: Counter[int] = Counter()
    for to, message in messages:
        total[to] += len(message)
    return total


class Unreliable:
    """Shares are lost now and then, some miss rounds, and some turns are taken twice."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def __call__(self, turns: Turns, task: int, round: int, log: Log) -> Any:
        if self.draw.random() < 0.3:
            held = SHELF.find((turns.run, task))
            if held is not None:
                held.end()
        since = self.draw.randrange(round + 1)
        taken, sent = turns.turn(task, round, since, given(log, task, since))
        if sent is None:
            assert taken < since
            _, sent = turns.turn(task, round, taken, given(log, task, taken))
        if sent is None:
            _, sent = turns.turn(task, round, 0, given(log, task, 0))
        assert sent is not None
        if self.draw.random() < 0.3:
            _, again = turns.turn(task, round, round, given(log, task, round))
            assert again == sent
        if self.draw.random() < 0.3:
            other = Turns(turns.run + "-other", turns.secret, turns.distribution, turns.tasks)
            _, same = other.turn(task, round, 0, given(log, task, 0))
            assert same is not None
            assert (same.rows, contents(same.messages)) == (sent.rows, contents(sent.messages))
            list(other.answers(task, round, given(log, task, 0)))
        return sent


class InRounds(SharedExecutor):
    """The local executor, but for fixpoints, which are run in rounds."""

    def __init__(self, tasks: int, take: Taking = at_once) -> None:
        super().__init__(tasks)
        self.take = take

    def outcome(self, distribution: Distribution) -> Outcome:
        return in_rounds(distribution, self.tables(distribution), self.tasks, self.take)


def agrees(text: str, facts: dict[str, list[Row]], tasks: int, take: Taking = at_once) -> None:
    program = check(parse(text))
    result = run(program, InRounds(tasks, take), facts)
    for name, rows in model_of(program, facts).items():
        assert result.relations[name] == rows, name


@pytest.mark.parametrize("text", CLOSURES.values(), ids=CLOSURES)
def test_closure(text: str) -> None:
    agrees(text, {"edge": list(PAIRS)}, 3)


@pytest.mark.parametrize("seed", range(3))
def test_shares_that_are_lost_or_asked_twice(seed: int) -> None:
    agrees(CLOSURES["left"], {"edge": list(PAIRS)}, 3, Unreliable(seed))
    agrees(NEGATION, {"edge": list(PAIRS), "closed": random_pairs(5, 10, 30)}, 2, Unreliable(seed))
    facts = {"assign": random_pairs(3, 25, 20), "dereference": random_pairs(4, 25, 20)}
    agrees(CSPA, facts, 3, Unreliable(seed))


def test_random_programs() -> None:
    for seed in range(30):
        program = checked(generate(seed).text)
        if program is not None:
            found = run(program, InRounds(2 + seed % 3, Unreliable(seed))).relations
            assert found == model_of(program), f"seed {seed}"


def test_a_failing_rule() -> None:
    distribution, tables = fixpoint(FAILING, {"start": [(3,), (4,)]})
    with pytest.raises(EvaluationError, match="division by zero"):
        in_rounds(distribution, tables, 2, at_once)


def test_what_is_left_behind() -> None:
    """A share that has given its answers is gone, and so is its socket."""
    runs: set[str] = set()

    def take(turns: Turns, task: int, round: int, log: Log) -> Any:
        runs.add(turns.run)
        return at_once(turns, task, round, log)

    agrees(CLOSURES["left"], {"edge": list(PAIRS)}, 2, take)
    assert all(SHELF.find((run, task)) is None for run in runs for task in range(2))
    place = Path(neighbours._address(("x", 0))).parent
    assert not [path for path in place.iterdir() if path.name.split("-")[0] in runs]


# --- several processes ------------------------------------------------------------------


def work(end: Connection) -> None:
    """A worker: has the turns that it is told to have."""
    while True:
        turns, task, round, since, messages = end.recv()
        given = {n: [pa.py_buffer(m) for m in of_round] for n, of_round in messages.items()}
        try:
            end.send(turns.turn(task, round, since, given))
        except Exception as error:
            end.send(error)


class Workers:
    """Two processes; a turn is had by either. Before some turns one is killed and another takes its place."""

    def __init__(self, seed: int, deadly: Collection[int] = ()) -> None:
        self.draw, self.deadly, self.turns = random.Random(seed), deadly, 0
        self.spawn = multiprocessing.get_context("spawn")
        self.workers = [self.start() for _ in range(2)]
        self.lost = 0

    def start(self) -> tuple[Any, Connection]:
        ours, theirs = self.spawn.Pipe()
        process = self.spawn.Process(target=work, args=(theirs,))
        process.start()
        return process, ours

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process, _ in self.workers:
            process.kill()
            process.join()

    def __call__(self, turns: Turns, task: int, round: int, log: Log) -> Any:
        self.turns += 1
        if self.turns in self.deadly:
            process, _ = self.workers[0]
            process.kill()
            process.join()
            self.workers = [self.workers[1], self.start()]
        number = self.draw.randrange(2)
        _, sent = self.ask(number, turns, task, round, round, log)
        if sent is None:
            self.lost += 1
            _, sent = self.ask(number, turns, task, round, 0, log)
        return sent

    def ask(self, number: int, turns: Turns, task: int, round: int, since: int, log: Log) -> Any:
        _, end = self.workers[number]
        messages = {n: log[n].get(task, []) for n in range(since, len(log))}
        end.send((turns, task, round, since, messages))
        assert end.poll(PATIENCE)
        told = end.recv()
        if isinstance(told, Exception):
            raise told
        return told


CHAIN: dict[str, list[Row]] = {"edge": [(i, i + 1) for i in range(40)]}


def test_a_share_is_found_in_another_process() -> None:
    with Workers(1) as workers:
        agrees(CLOSURES["left"], CHAIN, 3, workers)
        assert workers.lost == 0


def test_processes_that_are_killed() -> None:
    with Workers(2, [10, 20]) as workers:
        agrees(CLOSURES["left"], CHAIN, 3, workers)
        assert workers.lost > 0


def test_a_failing_rule_in_another_process() -> None:
    distribution, tables = fixpoint(FAILING, {"start": [(3,), (4,)]})
    with Workers(3) as workers, pytest.raises(EvaluationError, match="division by zero") as caught:
        in_rounds(distribution, tables, 1, workers)
    assert caught.value.values == {"x": 3}


def test_strangers_are_not_answered() -> None:
    distribution, _ = fixpoint(CLOSURES["left"], {"edge": list(PAIRS)})
    key = (secrets.token_hex(8), 0)
    held = Held(Share(distribution, 0, 1))
    assert neighbours.offer(key, held, b"secret")
    assert neighbours.find(key, b"another") is None
    assert not neighbours.offer(key, held, b"secret")  # there is one already
    found = neighbours.find(key, b"secret")
    assert found is not None
    assert found.taken() == 0
    found.leave()
    held.end()
    assert neighbours.find(key, b"secret") is None
