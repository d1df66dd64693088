"""What tasks do in shuffle rounds (`shuffle`): functions that Spark calls in Python workers.

Tasks are fed with messages and yield messages: `target` is the number of the share that a message is for,
`round` the round that it is of. A row without a message is a share telling what it did, in `said`. Each
share is fed at least one row: so there is a task for it, whatever Spark does about what is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.stage.output import Outlet
from tidelog.execute.spark.stage.work import Work, explained
from tidelog.plan.placement import Distribution
from tidelog.program.model import Rule

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.tasks.turns import Turns

DDL = "target int, round int, message binary, said string"
TOGETHER = 1 << 20  # rows that are dealt at once


def deal(layout: Layout, distribution: Distribution, tasks: int) -> Work:
    """Send the rows that the fixpoint begins with to their owners: the messages of round 0."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tidelog.execute.spark.tasks.share import NOBODY, Share

        share = Share(distribution, NOBODY, tasks)
        try:
            for batch in batches:
                for name, table in layout.tables(batch):
                    share.load(name, table)
                if share.waiting >= TOGETHER:
                    yield from (_row(to, 0, message) for to, message, _ in share.outgoing())
            yield from (_row(to, 0, message) for to, message, _ in share.outgoing())
        finally:
            share.close()

    return work


def turn(turns: Turns, rules: Sequence[Rule], round: int, since: int) -> Work:
    """Take in the messages of a round; the new ones are of the round after it.

    Tasks are fed with the messages of all rounds from `since` on. A share that lacks others says so.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task, messages in _received(batches, since, round).items():
            taken, sent = turns.turn(task, round, since, messages)
            told: dict[str, object] = {"task": task, "taken": taken, "done": sent is not None}
            if sent is not None:
                yield from (_row(to, round + 1, message) for to, message in sent.messages)
                told |= {"rows": sent.rows, "new": sent.new}
            yield _row(task, round + 1, said=json.dumps(told))

    return lambda batches: explained(Said(), rules, work(batches))


class Said:
    """Where a task says something in a round, beside the messages that it sends."""

    ddl = DDL

    def say(self, what: Mapping[str, object]) -> pa.RecordBatch:
        """Tell the driver something."""
        return _row(0, 0, said=json.dumps(what))


def finish(turns: Turns, rules: Sequence[Rule], round: int, outlet: Outlet) -> Work:
    """Give what has been found after the last round. Tasks are fed with all messages."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task, messages in _received(batches, 0, round).items():
            report = turns.report(task, round, messages)
            new: dict[str, int] = {}
            for name, pieces in groupby(turns.answers(task, round, messages), key=itemgetter(0)):
                yield from outlet.tuples(name, _counted(pieces, new))
            yield outlet.say({"rounds": round + 1, "new": new, "instances": report.instances})

    return lambda batches: explained(outlet, rules, work(batches))


def _counted(pieces: Iterable[tuple[str, pa.Table]], counts: dict[str, int]) -> Iterator[pa.Table]:
    for name, table in pieces:
        counts[name] = counts.get(name, 0) + table.num_rows
        yield table


def _received(
    batches: Iterable[pa.RecordBatch], since: int, round: int
) -> dict[int, dict[int, list[pa.Buffer]]]:
    """The messages of rounds by target and round."""
    found: dict[int, dict[int, list[pa.Buffer]]] = {}
    for batch in batches:
        targets, rounds = batch.column("target").to_pylist(), batch.column("round").to_pylist()
        for target, number, message in zip(targets, rounds, batch.column("message"), strict=True):
            messages = found.setdefault(target, {n: [] for n in range(since, round + 1)})
            if message.is_valid and number in messages:
                messages[number].append(message.as_buffer())
    return found


def _row(target: int, round: int, message: bytes | None = None, said: str | None = None) -> pa.RecordBatch:
    import pyarrow as pa

    types = (pa.int32(), pa.int32(), pa.binary(), pa.string())
    arrays = [pa.array([v], t) for v, t in zip((target, round, message, said), types, strict=True)]
    return pa.record_batch(arrays, ["target", "round", "message", "said"])
