"""Checkpoints of a fixpoint that tasks share, so that one which is run again does not begin from nothing.

A checkpoint is what all tasks have after the same swap: then every tuple that has been derived from what
they have seen is with its owner, or waits to be sent. Each task writes the tuples of its copies that are
new since the checkpoint before, how many of all it has seen, and what waits. So the tuples are those of
a *chain* of checkpoints, in this order, and the rest is that of the last.

The first task says when it is time, along with what all tasks say in a swap, and so they agree. A
checkpoint is complete when all tasks have written what they have of it; of an attempt that was cut short,
some may not have. Which one is gone on from is found by the first task. A checkpoint has the
random word of its attempt in its name: the tasks of an attempt that is given up may still be writing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING

from tidelog.execute.spark.place import Place
from tidelog.syntax.errors import InternalError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.tasks.share import Share

WISH = 1 << 50  # what is said for "it is time", beside a number of rows: there are never so many
MOST = 1 << 20  # rows that are written at once
OWN = -1  # the task that rows wait for, if they do not wait
_PART = Struct("<qQQ")  # the task that rows wait for, the number of their copy, the bytes of their batch


class CheckpointError(TidelogError):
    """A checkpoint cannot be written: the run fails, and it would be in vain to try it again."""

    def __init__(self, place: Place, reason: Exception) -> None:
        self.told = str(reason)
        super().__init__(f"error[TL0616]: a checkpoint cannot be written to {place.name}: {reason}")


def last_chain(place: Place, tasks: int) -> list[str]:
    """The names of the checkpoints up to the last complete one."""
    for name in reversed(place.names()):
        there = set((place / name).names())
        if all(f"{task}.json" in there for task in range(tasks)):
            told = (place / name).load("0.json")
            return [*told["before"], name]
    return []


@dataclass
class Checkpoints:
    """One task's part in the checkpoints of an attempt, which goes on from a chain of them, or begins."""

    place: Place
    every: float
    word: str
    chain: list[str] = field(default_factory=list)
    resumed: int = 0  # the round that was gone on from

    def __post_init__(self) -> None:
        self._last = monotonic()
        self._saved: dict[int, int] = {}

    def wish(self, share: Share) -> int:
        """What to say in a swap beside other numbers."""
        return WISH if share.task == 0 and monotonic() - self._last >= self.every else 0

    def look(self, share: Share, said: int) -> None:
        """After a swap, in which all together have said this: write a checkpoint if it is time."""
        if said >= WISH:
            self._last = monotonic()
            try:
                self._save(share)
            except OSError as error:
                raise CheckpointError(self.place, error) from error

    def _save(self, share: Share) -> None:
        name = f"{len(self.chain):06}-{self.word}"
        place = self.place / name
        place.make()
        with place.open(f"{share.task}.rows") as file:
            for peer, number, batch in self._rows(share):
                rows = batch.serialize()
                file.write(_PART.pack(peer, number, rows.size))
                file.write(rows)
        report = share.report()
        told = {
            "before": self.chain,
            "rounds": report.rounds,
            "instances": report.instances,
            "rows": {number: len(share.kept[number].stored) - share.begun[number] for number in share.begun},
            "seen": {number: share.kept[number].seen - share.begun[number] for number in share.begun},
        }
        place.write(f"{share.task}.json", told)
        self.chain = [*self.chain, name]
        self._saved = {number: len(share.kept[number].stored) for number in share.begun}

    def _rows(self, share: Share) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """The rows of a checkpoint in pieces: whom they wait for, the number of their copy."""
        for number, begun in share.begun.items():
            kept = share.kept[number]
            cells = kept.stored.cells
            since = self._saved.get(number, begun)
            for at in range(since, len(cells), MOST):
                yield OWN, number, share.batch(kept, cells[at : at + MOST])
            for peer, waiting in enumerate(kept.waiting):
                for part in waiting:
                    yield peer, number, share.batch(kept, part)

    def restore(self, share: Share) -> None:
        """Let a share that has just begun have what it had at the end of the chain."""
        if not self.chain:
            return
        for name in self.chain:
            self._take(share, (self.place / name).read(f"{share.task}.rows"), last=name == self.chain[-1])
        told = (self.place / self.chain[-1]).load(f"{share.task}.json")
        for number, begun in share.begun.items():
            kept = share.kept[number]
            if len(kept.stored) != begun + told["rows"][str(number)]:
                raise InternalError(f"a checkpoint does not fit the rows of {kept.copy.name}")
            kept.seen = begun + told["seen"][str(number)]
        self.resumed = told["rounds"]
        share.resume(told["rounds"], {int(rule): count for rule, count in told["instances"].items()})
        self._saved = {number: len(share.kept[number].stored) for number in share.begun}

    def _take(self, share: Share, rows: pa.Buffer, *, last: bool) -> None:
        import pyarrow as pa

        at = 0
        while at < rows.size:
            peer, number, length = _PART.unpack_from(rows, at)
            at += _PART.size
            if peer == OWN or last:
                kept = share.kept[number]
                batch = pa.ipc.read_record_batch(rows.slice(at, length), kept.schema)
                share.put(kept, batch, None if peer == OWN else peer)
            at += length
