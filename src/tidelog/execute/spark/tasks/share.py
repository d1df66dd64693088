"""A task's share of a fixpoint.

A task keeps its tuples of each copy of a relation (`plan.placement`), and what it has itself derived
of each relation, its *outbox*, so that it sends nothing twice. It works in rounds:

1. Run the forms over what is new in the copies. Tuples that are new in an outbox go to the owners
   of each copy; those that are the task's own are new in its copies at once. Repeat while more of
   them stay than wait for other tasks.
2. Swap what waits. What a copy did not have yet is new in it.

A swap before which no task had anything new or waiting is the last. Each instance of a rule is
considered once, by the task that has its tuples, when the last of them has come. That tuples come
to different copies at different times does no harm.

`run` does so over an exchange. Where somebody else carries the messages (`held`), the steps are called one
by one: `take` what has come, `begin` when that was all that the fixpoint begins with, `settle`, and
send what is `outgoing`. A share that has settled has derived all that follows from what it has
taken, whatever the order in which it came.

Rows travel as Arrow record batches, since each task has codes of its own; a message is batches, each
after the number of its copy.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local.executor import LocalExecutor
from tidelog.execute.local.fixpoint import NEVER, Run
from tidelog.execute.local.memory import Cells
from tidelog.execute.local.relation import StoredRelation
from tidelog.execute.spark.tasks.checkpoint import WISH, Checkpoints
from tidelog.execute.spark.tasks.exchange import Exchange, PeerError
from tidelog.execute.spark.tasks.owners import Owners, Placing
from tidelog.plan.binary import MADE_BY as AUXILIARY
from tidelog.plan.executor import Progress, RuleForm, TaskReport, Version, Watch, unwatched
from tidelog.plan.placement import Copy, Distribution
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation
from tidelog.syntax.errors import EvaluationError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

ENOUGH = 1 << 16  # rows for other tasks that are worth a swap in any case
MOST = 1 << 20  # rows that are turned into a table, or back, at once
PIECE = 1 << 15  # rows of a copy in a message that Spark carries
NOBODY = -1  # the number of a share that owns nothing, and only finds owners

RULE_FAILED = "rule failed: "  # how a task begins to tell of an EvaluationError
_PART = Struct("<QQ")  # the number of a copy, the bytes of its batch


class Share:
    """The share of task number `task` of `tasks`; without an exchange there is no other task."""

    def __init__(
        self, distribution: Distribution, task: int, tasks: int, exchange: Exchange | None = None
    ) -> None:
        self.distribution, self.task, self.tasks, self._exchange = distribution, task, tasks, exchange
        self._executor = LocalExecutor()
        self._owners = Owners(tasks, self._executor.codes)
        self.kept: list[_Kept] = []
        self._copies: dict[str, list[_Kept]] = {name: [] for name in distribution.relations}
        for copy in distribution.copies:
            relation = replace(distribution.relations[copy.relation], name=copy.name)
            self._executor.create(relation)
            kept = _Kept(copy, self._executor.relations[copy.name], self._owners)
            self.kept.append(kept)
            self._copies[copy.relation].append(kept)
        for name in distribution.derived:
            self._executor.create(distribution.relations[name])
        self._outboxes = {name: self._executor.relations[name] for name in distribution.derived}
        self._taken = dict.fromkeys(distribution.derived, 0)
        self._growing = [kept for name in distribution.derived for kept in self._copies[name]]
        self._answers = {
            name: next(kept for kept in self._copies[name] if kept.copy.is_once)
            for name in distribution.derived
            if self._is_answer(name)
        }
        self._given: dict[str, int] = {}
        self.begun: dict[int, int] = {}  # the rows that growing copies began with, by their numbers
        self._before: dict[int, int] = {}  # instances that were considered before a checkpoint
        self._runs: tuple[Run, ...] = ()  # of the forms that read strata below alone, and of the others
        self._waiting = 0
        self._swaps = 0
        self._rounds = 0

    def close(self) -> None:
        """Give the memory back. The exchange is the caller's to close."""
        self._executor.close()

    # --- rows in and out --------------------------------------------------------------

    def load(self, relation: str, rows: pa.Table) -> None:
        """Take in rows that the fixpoint begins with, of any relation and whoever their owners are."""
        for start in range(0, rows.num_rows, MOST):
            part = rows.slice(start, MOST)
            self._spread(relation, self._cells(self.distribution.relations[relation], part))

    def answers(self) -> Iterator[tuple[str, pa.Table]]:
        """What the fixpoint has found, in pieces: each new tuple of the stratum's relations, at its owner."""
        for name, kept in self._answers.items():
            cells = kept.stored.cells
            for start in range(self._given.get(name, 0), len(cells), MOST):
                relation = self.distribution.relations[name]
                yield name, self._executor.to_table(relation, cells[start : start + MOST])

    # --- the fixpoint -----------------------------------------------------------------

    def run(self, watch: Watch = unwatched, checkpoints: Checkpoints | None = None) -> TaskReport:
        """Run rounds until no task has anything new, from the last checkpoint on if there is one.

        The report tells of this task alone: tuples and instances are to be summed over tasks. If a
        rule fails in one task, all raise that error; if one fails otherwise, the others raise PeerError.
        """
        try:
            return self._fixpoint(watch, checkpoints)
        except PeerError as error:
            self._tell(error.told or str(error))
            raise understood(error.told or "", self.distribution) or error from None
        except BaseException as error:
            self._tell(words_of(error))
            raise

    def _fixpoint(self, watch: Watch, checkpoints: Checkpoints | None) -> TaskReport:
        started = time.perf_counter()
        while self._swap():
            pass  # rows that were loaded are with their owners when nobody has any left

        def look(_: Progress) -> None:
            if self._exchange is not None:
                self._exchange.check()
            watch(Progress(self._rounds, self._new))

        self.begin(look, again=checkpoints is not None and bool(checkpoints.chain))
        if checkpoints is not None:
            checkpoints.restore(self)
        wish = 0
        while (said := self._swap(self._fresh + wish)) % WISH:
            if checkpoints is not None:
                checkpoints.look(self, said)
                wish = checkpoints.wish(self)
            while self._waiting < min(ENOUGH, self._fresh):
                self._derive(look)
        self._forget()
        return self.report(time.perf_counter() - started)

    def begin(self, watch: Watch = unwatched, *, again: bool = False) -> None:
        """Begin, with all rows that there are to begin with; `again` if it is gone on from a checkpoint."""
        self._given = {name: len(kept.stored) for name, kept in self._answers.items()}
        self.begun = {n: len(kept.stored) for n, kept in enumerate(self.kept) if kept in self._growing}
        forms = self.distribution.forms
        first = self._run(tuple(form for form in forms if Version.DELTA not in form.reads))
        if not again:
            first.once(watch)
            self._collect()
        self._runs = first, self._run(tuple(form for form in forms if Version.DELTA in form.reads))

    def settle(self) -> None:
        """Derive all that follows from the rows that are here."""
        while self._fresh:
            self._derive(unwatched)

    def report(self, seconds: float = 0.0) -> TaskReport:
        """What this task has done so far.

        The instances of a rule that was broken are the matches of its last join. Those are fewer than the
        matches of its body where an auxiliary relation has dropped what told some of them apart.
        """
        report = TaskReport(self._rounds, self._new, dict(self._before), seconds)
        for run in self._runs:
            for number, form in enumerate(run.forms):
                counts = self._is_answer(form.rule.head.relation)
                known = report.instances.get(form.rule.id, 0)
                report.instances[form.rule.id] = known + (run.instances(number) if counts else 0)
        return report

    def resume(self, rounds: int, instances: dict[int, int]) -> None:
        """Count on from what was done before a checkpoint."""
        self._rounds, self._before = rounds, instances

    def _run(self, forms: tuple[RuleForm, ...]) -> Run:
        changing = [*self._outboxes, *(kept.copy.name for kept in self._growing)]
        return Run(forms, changing, self._executor.relations, self._executor.codes, None, 1, NEVER)

    def _derive(self, watch: Watch) -> None:
        """Run the forms over what is new in the copies."""
        for kept in self._growing:
            kept.begin()
        self._rounds += 1
        self._runs[-1].resume(watch)
        self._collect()

    @property
    def _fresh(self) -> int:
        """The rows of copies that no round has seen."""
        return sum(kept.fresh for kept in self._growing)

    def _collect(self) -> None:
        """Spread what is new in the outboxes."""
        for name, outbox in self._outboxes.items():
            if len(outbox) > self._taken[name]:
                self._spread(name, outbox.cells[self._taken[name] :])
                self._taken[name] = len(outbox)

    def _forget(self) -> None:
        """Give back the memory of all that is not an answer."""
        answers = {kept.copy.name for kept in self._answers.values()}
        for name, stored in self._executor.relations.items():
            if name not in answers:
                stored.free()

    def _is_answer(self, relation: str) -> bool:
        return self.distribution.relations[relation].made_by != AUXILIARY

    @property
    def _new(self) -> int:
        return sum(len(kept.stored) - self._given[name] for name, kept in self._answers.items())

    # --- other tasks ------------------------------------------------------------------

    def _spread(self, relation: str, cells: Cells) -> None:
        """Give rows to their owners: the task's own to its copies, the others to what waits for a swap."""
        for kept in self._copies[relation]:
            for owner, part in enumerate(kept.placing.parts(cells)):
                if owner == self.task:
                    kept.insert(part)
                elif len(part):
                    kept.waiting[owner].append(part)
                    self._waiting += len(part)

    def _swap(self, fresh: int = 0) -> int:
        """Swap what is waiting; how many rows were waiting or fresh in all tasks together."""
        said = self._waiting + fresh
        if self._exchange is None:
            return said
        to_each = [self._message(peer, MOST) for peer in range(self.tasks)]
        messages, total = self._exchange.swap(self._swaps, to_each, said)
        self._swaps += 1
        for message in messages:
            if message is not None:
                self.take(message)
        return total

    def outgoing(self) -> Iterator[tuple[int, bytes, int]]:
        """What waits for other tasks, in pieces: the task, a message for it, and how many rows are in it."""
        for peer in range(self.tasks):
            while any(kept.waiting[peer] for kept in self.kept):
                waiting = self._waiting
                message = self._message(peer, PIECE)
                yield peer, message, waiting - self._waiting

    @property
    def waiting(self) -> int:
        """How many rows wait for other tasks."""
        return self._waiting

    def discard(self) -> None:
        """Forget what waits for other tasks: they have it already."""
        for kept in self.kept:
            for waiting in kept.waiting:
                waiting.clear()
        self._waiting = 0

    def _message(self, peer: int, most: int) -> bytes:
        parts: list[bytes] = []
        for number, kept in enumerate(self.kept):
            if kept.waiting[peer]:
                cells = kept.take(peer, most)
                self._waiting -= len(cells)
                rows = self.batch(kept, cells).serialize()
                parts += [_PART.pack(number, rows.size), rows]
        return b"".join(parts)

    def take(self, message: pa.Buffer) -> None:
        """Add the rows of a message to the copies they are for."""
        import pyarrow as pa

        at = 0
        while at < message.size:
            number, length = _PART.unpack_from(message, at)
            kept = self.kept[number]
            at += _PART.size
            self.put(kept, pa.ipc.read_record_batch(message.slice(at, length), kept.schema))
            at += length

    def batch(self, kept: _Kept, cells: Cells) -> pa.RecordBatch:
        """Rows of a copy, with their values."""
        [batch] = self._executor.to_table(kept.relation, cells).to_batches()
        return batch

    def put(self, kept: _Kept, batch: pa.RecordBatch, peer: int | None = None) -> None:
        """Add rows to a copy, or to what waits for another task."""
        import pyarrow as pa

        cells = self._cells(kept.relation, pa.Table.from_batches([batch]))
        if peer is None:
            kept.insert(cells)
        else:
            kept.waiting[peer].append(cells)
            self._waiting += len(cells)

    def _cells(self, relation: Relation, rows: pa.Table) -> Cells:
        """A table as rows of this task's codes, two a word."""
        cells: Cells = np.zeros((rows.num_rows, 2 * max(1, (relation.arity + 1) // 2)), np.uint32)
        for i, column in enumerate(relation.columns):
            cells[:, i] = self._executor.codes.from_arrow(rows.column(i), column.type)
        return cells

    def _tell(self, told: str) -> None:
        if self._exchange is not None:
            self._exchange.fail(told)


class _Kept:
    """A copy as a task keeps it, and rows of it that wait to be sent."""

    def __init__(self, copy: Copy, stored: StoredRelation, owners: Owners) -> None:
        self.copy, self.stored = copy, stored
        self.relation = stored.relation
        self.placing = Placing(copy, stored.relation, owners)
        self.schema = arrow_schema(stored.relation)
        self.waiting: list[deque[Cells]] = [deque() for _ in range(owners.tasks)]
        self.seen = 0

    def insert(self, cells: Cells) -> None:
        """Add rows that are this task's own."""
        if len(cells):
            self.stored.insert([cells[:, i] for i in range(self.stored.arity)], len(cells))

    @property
    def fresh(self) -> int:
        """The rows that no round has seen."""
        return len(self.stored) - self.seen

    def begin(self) -> None:
        """Begin a round: rows that none has seen are DELTA."""
        self.stored.delta_from(self.seen)
        self.seen = len(self.stored)

    def take(self, peer: int, most: int) -> Cells:
        """Rows that wait for a task, not more than one message may have."""
        waiting, taken, room = self.waiting[peer], [], most
        while waiting and room:
            cells = waiting.popleft()
            taken.append(cells[:room])
            if len(cells) > room:
                waiting.appendleft(cells[room:])
            room -= len(taken[-1])
        return np.concatenate(taken)


def words_of(error: BaseException) -> str:
    """An error as other tasks are told of it."""
    if isinstance(error, EvaluationError):
        words = {"message": error.message, "rule": error.rule, "values": error.values}
        return RULE_FAILED + json.dumps(words)
    return str(error) if isinstance(error, TidelogError) else f"{type(error).__name__}: {error}"


def understood(told: str, distribution: Distribution) -> EvaluationError | None:
    """The failure of a rule in another task as it was there, if that is what was told."""
    if not told.startswith(RULE_FAILED):
        return None
    words = json.loads(told.removeprefix(RULE_FAILED))
    spans = (form.rule.span for form in distribution.forms if form.rule.text == words["rule"])
    return EvaluationError(words["message"], words["rule"], words["values"], next(spans, None))
