"""What the last commit left, the engine that has its answers, and how a commit replaces both.

A commit is prepared by the engine; then all that holds is replaced at once, where no signal comes between.
What fails before that leaves everything as it was.
"""

from __future__ import annotations

from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, cast
from weakref import WeakSet

from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.program.model import Relation
from tidelog.session.answer import Answer
from tidelog.session.backend import Backend, Operation, Outcome, Work
from tidelog.session.batches import Batch
from tidelog.session.changes import ChangeSet
from tidelog.session.definition import Definition
from tidelog.session.errors import closed
from tidelog.session.evaluate import fact_tables
from tidelog.session.keys import Keys
from tidelog.session.options import Options
from tidelog.session.report import Report, Reporting
from tidelog.session.subscriptions import Subscriptions
from tidelog.syntax.errors import ResourceError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.session.frames.given import GivenFrame
    from tidelog.session.store.opening import Opened
    from tidelog.session.store.stored import Stored
    from tidelog.session.transaction import Transaction


class State(NamedTuple):
    """What the last commit left."""

    definition: Definition
    version: int
    report: Reporting


class Commits:
    """The state of a database from commit to commit. With a store, each is kept there too.

    Nobody reads from the engine while it changes: `reading` is held.
    """

    def __init__(
        self, definition: Definition, version: int, options: Options, opened: Opened | None = None
    ) -> None:
        self.options, self.opened = options, opened
        self.state = State(definition, version, Reporting(Report()))
        self.reading = RLock()
        self.keys = Keys()
        self.batches: dict[str, Batch] = {}  # the last one of each stream
        self.subscriptions = Subscriptions()
        self.backend: Backend | None = None
        self._answers: WeakSet[Answer] = WeakSet()
        self._closed = False

    @property
    def engine(self) -> str:
        """What evaluates rules."""
        return self.options.engine

    @property
    def spark(self) -> object | None:
        """The Spark session that the database was given."""
        return self.options.spark

    def check_open(self) -> None:
        """Raise TidelogError if it has been closed."""
        if self._closed:
            raise closed()

    # --- reading ---------------------------------------------------------------

    def started(self) -> Backend:
        """The engine with the current answers. What the program alone says is derived on first use."""
        with self.reading:
            self.check_open()
            if self.backend is None:
                definition, version, _ = self.state
                operations = []
                if self.opened is None or self.opened.is_new:  # else the store has them
                    tables = fact_tables(definition.facts, definition.relations)
                    operations = [Operation(True, name, table) for name, table in tables.items()]
                self._carry_out(Work(None, definition, operations, version), None)
            assert self.backend is not None
            return self.backend

    def answer(self, relation: Relation) -> Answer:
        """The tuples of a relation, which stay as they are whatever is committed later."""
        with self.reading:
            backend = self.started()
            size = backend.size(relation)
            answer = Answer(relation, size, lambda: backend.held(relation), self.reading, self.spark)
            self._answers.add(answer)
        return answer

    def current(self, relation: Relation) -> pa.Table:
        """The tuples of a relation after the last commit."""
        with self.reading:
            return self.started().table(relation)

    def fetched(self, frame: GivenFrame, relation: Relation) -> list[Operation] | None:
        """What a DataFrame says, with rows in this process; None where they would stay in Spark."""
        with self.reading:
            fetch = getattr(self.started(), "fetched", None)
            return None if fetch is None else cast("list[Operation] | None", fetch(frame, relation))

    # --- committing --------------------------------------------------------------

    def finish(self, transaction: Transaction, *, commit: bool) -> None:
        """End a transaction (see `Transaction.commit` and `Transaction.rollback`)."""
        try:
            if commit:
                self._commit(transaction)
        finally:
            transaction.end()
        if commit:
            self.subscriptions.deliver()

    def _commit(self, transaction: Transaction) -> None:
        """Commit a transaction, unless it is of a batch that has been committed."""
        with self.reading:
            self.check_open()
            definition = new = self.state.definition
            batch = transaction.batch
            last = None if batch is None else self.batches.get(batch.stream)
            if batch is not None and last is not None and batch.number <= last.number:
                changes, report = self._nothing(self.state.version)
                with Uninterrupted():
                    return transaction.committed(changes, report)
            if self.backend is None and (self.opened is not None or not definition.silent):
                self.started()
            if transaction.rules.any or transaction.types:
                new = transaction.rules.definition(transaction.types)
            operations = transaction.operations
            unknown = {o.relation for o in operations if o.insert} - new.given.keys() - new.declared
            if unknown:
                new = new.with_given(unknown)
            version, ignored = self.state.version + 1, transaction.ignored_deletes
            if operations or new is not definition or batch is not None or self.opened is not None:
                old = None if self.backend is None else definition
                forgettable = transaction.rules.forgettable()
                work = Work(old, new, operations, version, forgettable, ignored, batch)
                self._carry_out(work, transaction)
            else:
                changes, report = self._nothing(version, ignored)
                with Uninterrupted():
                    self.state = State(definition, version, report)
                    self.keys.keep()
                    transaction.committed(changes, report)

    def _nothing(self, version: int, ignored: int = 0) -> tuple[ChangeSet, Reporting]:
        """What a commit that changes nothing comes to."""
        report = Report(version=version, ignored_deletes=ignored, maintained=self.options.maintained)
        changes = ChangeSet(self.state.definition.relations, {}, version, self.spark)
        return changes, Reporting(report)

    def _carry_out(self, work: Work, transaction: Transaction | None) -> None:
        """Do the work of a commit. Where it raises, everything is as it was before."""
        started = perf_counter()
        first, done = self.backend is None, False
        backend = self.backend
        if backend is None:
            backend = self._open() if self.opened is None else self.opened.backend(self._open)
        opened = perf_counter()
        try:
            outcome = backend.prepare(work)
            report = outcome.report
            if first:
                report.start_seconds = opened - started
            changes = ChangeSet(
                outcome.definition.relations, outcome.changed, work.version, self.spark, outcome.time
            )
            if self._answers:
                self._freeze(backend, outcome)
            concerned = [] if transaction is None else self.subscriptions.concerned(changes)
            with Uninterrupted():
                backend.commit()
                self.backend = backend
                self.state = State(outcome.definition, work.version, report)
                if work.batch is not None:
                    self.batches[work.batch.stream] = work.batch
                if transaction is not None:
                    self.keys.keep()
                    self.subscriptions.put(changes, concerned)
                    transaction.committed(changes, report)  # from here on another thread may write
                done = True
            if self.opened is not None and transaction is not None:
                cast("Stored", backend).settle()
        except BaseException as error:
            if not done:
                self._undo(backend, first=first)
            if isinstance(error, MemoryError):
                raise ResourceError(str(error)) from error
            raise

    def _undo(self, backend: Backend, *, first: bool) -> None:
        with Uninterrupted():
            try:
                backend.rollback()
            except BaseException:  # there is no way back: better no answers than wrong ones
                self._closed, self.backend = True, None
                backend.close()
                raise
            if first:
                backend.close()

    def _freeze(self, backend: Backend, outcome: Outcome) -> None:
        """Take answers in use out of the engine before it changes."""
        for answer in list(self._answers):
            name = answer.relation.name
            if not backend.in_place or name in outcome.changed or name in outcome.dropped:
                answer.freeze()
                self._answers.discard(answer)

    def _open(self) -> Backend:
        if self.state.definition.maintained:
            return self.options.keeping()
        return self.options.deriving(self.reading, compare=self.opened is not None)

    def use(self, algorithm: str) -> None:
        """Have recursive strata kept current by another algorithm from the next commit on."""
        with self.reading:
            self.options.algorithm = algorithm
            maintenance = getattr(self.backend, "maintenance", None)
            if maintenance is not None:
                maintenance.algorithm = self.options.chosen()

    # --- the end -------------------------------------------------------------------

    def close(self) -> None:
        """Give back what the engine holds. Answers already taken stay valid."""
        with self.reading:
            self._closed = True
            backend, self.backend = self.backend, None
            if backend is not None:
                for answer in list(self._answers):
                    answer.freeze()
                self._answers.clear()
                backend.close()
            if self.opened is not None:
                self.opened.store.close()
