"""Batches of streams: each is committed once, and known by its number from then on.

Spark notes in its checkpoint what a batch consists of, and when that was planned, before it brings it.
One that is brought again after a crash has the same time; one that has been planned again, from an older
copy of the checkpoint, may have the same number and other rows, and has another time.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.io.errors import data_error
from tidelog.io.values import shown


class Batch(NamedTuple):
    """A batch of a stream; of one that Spark brings also when it was planned, in milliseconds."""

    stream: str
    number: int
    planned: int | None = None


def given_batch(batch: object) -> Batch:
    """What a user calls a batch. Raises DataError if it is not the name of a stream and a number."""
    match batch:
        case Batch():
            return batch
        case (str(stream), int(number)) if number >= 0 and not isinstance(number, bool):
            return Batch(stream, number)
    raise data_error(
        "TL0504",
        f"{shown(batch)} is no batch",
        hint='a batch is the name of a stream and a number from 0 on, as in ("orders", 17)',
    )
