"""A program, its facts, and the answers that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import RLock
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, cast
from weakref import WeakSet, finalize

from tidelog.io.places import output_place
from tidelog.io.writing import write_files
from tidelog.program.model import Program, Relation
from tidelog.session.answer import Answer
from tidelog.session.backend import Backend, Operation, Outcome, Work
from tidelog.session.batches import Batch, given_batch
from tidelog.session.changes import ChangeSet
from tidelog.session.definition import Definition
from tidelog.session.errors import UnknownRelationError, closed, rows_by_relation
from tidelog.session.evaluate import fact_tables
from tidelog.session.keys import Keys
from tidelog.session.options import (
    check_choice,
    check_engine,
    chosen_algorithm,
    deriving_backend,
    keeping_backend,
    program_module,
    thread_count,
)
from tidelog.session.report import Report, Reporting, Watch
from tidelog.session.subscriptions import Callback, Subscription, Subscriptions
from tidelog.session.transaction import Transaction
from tidelog.session.uninterrupted import Uninterrupted
from tidelog.session.writer import Writer
from tidelog.syntax.errors import ResourceError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame
    from tidelog.maintain.protocol import Algorithm
    from tidelog.session.feeds import Feed
    from tidelog.session.spark_frames import GivenFrame
    from tidelog.session.store.opening import Opened
    from tidelog.session.store.store import Store, Vacuumed
    from tidelog.session.store.stored import Stored
    from tidelog.session.store.view import View
    from tidelog.session.streams import Into, Stream, Trigger

Rows = Mapping[str, object]


class NumberedText(NamedTuple):
    """A rule of a database: its number, and its text on one line."""

    id: int
    text: str


class _State(NamedTuple):
    """What the last commit left."""

    definition: Definition
    version: int
    report: Reporting


class Database:
    """A Datalog program with its facts, whose answers are kept current.

    `program` is a path, the name of an existing file, or the text of a program; it may be empty. `algorithm`
    brings recursive strata up to date: auto (which chooses), recompute, counting, dred, fbf, elastic, ranked
    or dbsp. `policy` is auto, incremental (algorithm auto never recomputes) or full (all recompute).
    `engine` is local (in process, the default), spark, or substitution (the slow reference); `threads` is
    for local, `spark` (a SparkSession, which says the engine too) for spark. `watch` is told how evaluations
    proceed.
    `store` is a directory or URI where each commit is kept. A database that is there goes on: with the
    program that it has if none is given, else with that one.
    With `maintained=False` every commit derives everything anew, which is quicker for a single one.
    """

    def __init__(
        self,
        program: str | Path = "",
        *,
        algorithm: str = "auto",
        engine: str | None = None,
        policy: str = "auto",
        threads: int = 1,
        spark: object | None = None,
        watch: Watch | None = None,
        maintained: bool = True,
        store: str | Path | None = None,
    ) -> None:
        if engine is None:
            engine = "local" if spark is None else "spark"
        check_engine(engine, spark)
        self.engine, self._spark, self._watch = engine, spark, watch
        self._threads = thread_count(threads)
        self._maintained, self._policy = maintained, policy
        self._algorithm = algorithm
        if maintained:
            check_choice(algorithm, policy)
        module = program_module(program)
        self._opened: Opened | None = None
        if store is None:
            definition, version = Definition.first(module, maintained=maintained), 0
        else:
            from tidelog.session.store.opening import open_store

            self._opened = open_store(store, module, spark=spark, maintained=maintained)
            definition, version = self._opened.definition, self._opened.version
        self._state = _State(definition, version, Reporting(Report()))
        self.opened_at = version  # before what the program has changed since
        self._backend: Backend | None = None
        self._closed = False
        self._writer = Writer()
        self._reading = RLock()  # nobody reads from an engine while it changes
        self._answers: WeakSet[Answer] = WeakSet()
        self._keys = Keys()
        self._batches: dict[str, Batch] = {}  # the last one of each stream
        self._streams: list[Stream] = []
        self._subscriptions = Subscriptions()
        for fact in definition.facts:
            relation = definition.relations[fact.relation]
            if relation.key:
                self._keys.insert(relation, [fact.row])
        if self._opened is not None:
            self._opened.begin(self, self._keys, self._batches)
        self._keys.keep()

    # --- reading ---------------------------------------------------------------

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The program's relations, in order of declaration."""
        return self._state.definition.relations

    @property
    def program(self) -> Program:
        """The checked program."""
        return self._state.definition.program

    @property
    def spark(self) -> object | None:
        """The Spark session that the database was given."""
        return self._spark

    @property
    def rules(self) -> list[NumberedText]:
        """The rules with their numbers."""
        return [NumberedText(rule.id, rule.text) for rule in self._state.definition.rules]

    @property
    def version(self) -> int:
        """The number of commits so far."""
        return self._state.version

    @property
    def report(self) -> Report:
        """What the last commit, or the first evaluation, did, stratum by stratum."""
        self._started()
        return self._state.report.get()

    @property
    def algorithm(self) -> str:
        """What keeps recursive strata current; it may be changed between commits."""
        return self._algorithm

    @algorithm.setter
    def algorithm(self, name: str) -> None:
        check_choice(name, self._policy)
        with self._reading:
            self._algorithm = name
            maintenance = getattr(self._backend, "maintenance", None)
            if maintenance is not None:
                maintenance.algorithm = self._chosen()

    @property
    def policy(self) -> str:
        """What `algorithm` may do: auto, incremental (auto never recomputes) or full (all recompute)."""
        return self._policy

    def __getitem__(self, relation: str) -> Answer:
        with self._reading:
            found = self.relations.get(relation)
            if found is None:
                raise UnknownRelationError(relation, self.relations)
            backend = self._started()
            answer = Answer(
                found, backend.size(found), lambda: backend.held(found), self._reading, self._spark
            )
            self._answers.add(answer)
        return answer

    def __contains__(self, relation: object) -> bool:
        return relation in self.relations

    def __iter__(self) -> Iterator[str]:
        return iter(self.relations)

    def __repr__(self) -> str:
        return f"<tidelog.Database of {', '.join(self.relations) or 'no relations'}>"

    # --- versions --------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The store, where there is one: versions, their changes, and batches of streams."""
        if self._opened is None:
            from tidelog.session.store.errors import no_store

            raise no_store()
        return self._opened.store

    @property
    def versions(self) -> list[int]:
        """The versions that can be read with `as_of`."""
        return self.store.versions

    def as_of(self, version: int) -> View:
        """A version as it was, to be read. Raises StoreError if it is not there, or no more."""
        from tidelog.session.store.view import view_of

        return view_of(self.store, version)

    def vacuum(self, keep: int) -> Vacuumed:
        """Remove all versions from the store but the last `keep`, with their files; what was removed."""
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise TidelogError(f"error[TL0806]: cannot keep {keep!r} versions: give a whole number from 1 on")
        self._check_open()
        store = self.store
        self._writer.begin()
        try:
            with self._reading:
                state = store.state
                if state is not None and state.version not in store.versions[-keep:]:
                    cast("Stored", self._started()).save()  # it would go with its version
            return store.vacuum(keep)
        finally:
            self._writer.end()

    def write(self, directory: str | Path) -> list[Path]:
        """Write every output relation to its file, all of them or none; the files written."""
        outputs = []
        for relation in self.relations.values():
            if relation.is_output:
                place = output_place(relation, Path(directory))
                # On Spark its tasks write all but files of text, so that what is there is always alike.
                there = place is not None and (place.for_spark or not place.is_text)
                outputs.append((relation, self[relation.name].held(there=there)))
        return write_files(outputs, Path(directory), by_spark=self._spark is not None)

    # --- changing ----------------------------------------------------------------

    def transaction(self, *, batch: tuple[str, int] | Batch | None = None) -> Transaction:
        """Begin a transaction; there is one at a time, another thread waits for its turn.

        `batch` is the name of a stream and the number of a batch of it. A batch that has been committed, or a
        later one of the same stream, is not committed again: nothing changes, and the version stays.
        """
        self._check_open()
        given = None if batch is None else given_batch(batch)
        self._writer.begin()
        begun = Transaction(self, self._state.definition, self._keys, given)
        # One that is dropped without an end gives its turn back when it is collected.
        release = finalize(begun, _end, self._writer, self._keys)
        release.atexit, begun.release = False, release
        return begun

    def commit(
        self,
        insert: Rows | None = None,
        delete: Rows | None = None,
        add_rules: str | Iterable[str] = (),
        remove_rules: str | int | Iterable[str | int] = (),
    ) -> ChangeSet:
        """Change facts (rows by relation) and rules (one, or several) in one transaction; what has changed.

        What is deleted and removed goes first.
        """
        deleted, inserted = rows_by_relation("delete", delete), rows_by_relation("insert", insert)
        with self.transaction() as tx:
            for rule in [remove_rules] if isinstance(remove_rules, str | int) else remove_rules:
                tx.remove_rule(rule)
            for text in [add_rules] if isinstance(add_rules, str) else add_rules:
                tx.add_rule(text)
            for relation, rows in deleted.items():
                tx.delete(relation, rows)
            for relation, rows in inserted.items():
                tx.insert(relation, rows)
        return tx.changes

    def load(self, directory: str | Path) -> None:
        """Read the facts of every input relation from its file, in a transaction of its own."""
        with self.transaction() as tx:
            tx.load(directory)

    def subscribe(self, relation: str, callback: Callback) -> Subscription:
        """Have a function called with a relation's changes and the commit's number, after each that has any.

        It is called in the thread of a commit, in the order of the commits, when the commit is final; it may
        read the database and begin transactions. What it raises is logged, under the name `tidelog`.
        """
        self._check_open()
        definition = self._state.definition
        if relation not in definition.relations and not definition.may_come(relation):
            raise UnknownRelationError(relation, definition.relations)
        return self._subscriptions.add(relation, callback)

    def stream(
        self,
        changes: DataFrame,
        relation: Into,
        *,
        name: str | None = None,
        checkpoint: str | Path | None = None,
        trigger: Trigger | None = None,
        feed: str | Path | None = None,
        feed_relations: Iterable[str] | None = None,
    ) -> Stream:
        """Follow a stream of Spark: each of its micro-batches is one commit, and is committed once.

        Its rows are facts of a relation, or changes of them if there is a column `_change_type`; or
        `relation` is a function that is given a transaction and a batch. `trigger` is as Spark's: a time
        between batches, "availableNow" (what is there, then end), "once", or a mapping. With a store, and
        a checkpoint for Spark, it goes on after a crash where it was. `feed` is a directory for `write_feed`
        after each batch. Raises StreamError, or DataError where columns do not fit.
        """
        from tidelog.session.streams import Stream, check_frame

        self._check_open()
        check_frame(self, changes, relation)
        follows = None if feed is None else self._feed(feed, feed_relations)
        if follows is not None:
            follows.catch_up()
        begun = Stream(self, self._writer, name, relation, follows, stored=self._opened is not None)
        begun.begin(changes, checkpoint, trigger)
        self._streams = [*(stream for stream in self._streams if stream.isActive), begun]
        return begun

    def last_batch(self, stream: str) -> int | None:
        """The number of the last batch of a stream that has been committed."""
        last = self._batches.get(stream)
        return None if last is None else last.number

    def committed(self, stream: str) -> Batch | None:
        """That batch, as it was committed."""
        return self._batches.get(stream)

    def write_feed(self, directory: str | Path, relations: Iterable[str] | None = None) -> int:
        """Write what commits have changed as Parquet files, by relation and version, unless it is there.

        The relations are those that are outputs of the program, if none are named. The number of versions
        that were written; StoreError if there is no store, or it does not go with what is there.
        """
        return self._feed(directory, relations).catch_up()

    def _feed(self, directory: str | Path, relations: Iterable[str] | None) -> Feed:
        from tidelog.session.feeds import Feed

        self._started()
        names = None if relations is None else [relations] if isinstance(relations, str) else list(relations)
        for name in names or ():
            if name not in self.relations and not self._state.definition.may_come(name):
                raise UnknownRelationError(name, self.relations)
        return Feed(self.store, directory, names)

    def current(self, relation: Relation) -> pa.Table:
        """The tuples of a relation after the last commit."""
        with self._reading:
            return self._started().table(relation)

    def fetched(self, frame: GivenFrame, relation: Relation) -> list[Operation] | None:
        """What a DataFrame says, with rows in this process; None where they would stay in Spark."""
        with self._reading:
            fetch = getattr(self._started(), "fetched", None)
            return None if fetch is None else cast("list[Operation] | None", fetch(frame, relation))

    def finish(self, transaction: Transaction, *, commit: bool) -> None:
        """End a transaction (see `Transaction.commit` and `Transaction.rollback`)."""
        try:
            if commit:
                self._check_open()
                self._commit(transaction)
        finally:
            transaction.release()
        if commit:
            self._subscriptions.deliver()

    def _commit(self, transaction: Transaction) -> None:
        with self._reading:
            definition = new = self._state.definition
            batch = transaction.batch
            last = None if batch is None else self._batches.get(batch.stream)
            if batch is not None and last is not None and batch.number <= last.number:
                report = Reporting(Report(version=self.version, maintained=self._maintained))
                changes = ChangeSet(definition.relations, {}, self.version, self._spark)
                return transaction.committed(changes, report)
            if self._backend is None and (self._opened is not None or not definition.silent):
                self._started()
            if transaction.rules.any or transaction.types:
                new = transaction.rules.definition(transaction.types)
            operations = transaction.operations
            unknown = {o.relation for o in operations if o.insert} - new.given.keys() - new.declared
            if unknown:
                new = new.with_given(unknown)
            version, ignored = self._state.version + 1, transaction.ignored_deletes
            if operations or new is not definition or batch is not None or self._opened is not None:
                old = None if self._backend is None else definition
                forgettable = transaction.rules.forgettable()
                work = Work(old, new, operations, version, forgettable, ignored, batch)
                self._carry_out(work, transaction)
            else:
                empty = Report(version=version, ignored_deletes=ignored, maintained=self._maintained)
                report = Reporting(empty)
                with Uninterrupted():
                    self._state = _State(definition, version, report)
                    self._keys.keep()
                    transaction.committed(ChangeSet(definition.relations, {}, version, self._spark), report)

    def _started(self) -> Backend:
        """The engine with the current answers. What the program alone says is derived on first use."""
        with self._reading:
            self._check_open()
            if self._backend is None:
                definition = self._state.definition
                operations = []
                if self._opened is None or self._opened.is_new:  # else the store has them
                    tables = fact_tables(definition.facts, definition.relations)
                    operations = [Operation(True, name, table) for name, table in tables.items()]
                self._carry_out(Work(None, definition, operations, self._state.version), None)
            assert self._backend is not None
            return self._backend

    def _carry_out(self, work: Work, transaction: Transaction | None) -> None:
        """Do the work of a commit. Where it raises, everything is as it was before."""
        started = perf_counter()
        first, done = self._backend is None, False
        backend = self._backend
        if backend is None:
            backend = self._open() if self._opened is None else self._opened.backend(self._open)
        opened = perf_counter()
        try:
            outcome = backend.prepare(work)
            report = outcome.report
            if first:
                report.start_seconds = opened - started
            changes = ChangeSet(
                outcome.definition.relations, outcome.changed, work.version, self._spark, outcome.time
            )
            if self._answers:
                self._freeze(backend, outcome)
            concerned = [] if transaction is None else self._subscriptions.concerned(changes)
            with Uninterrupted():
                backend.commit()
                self._backend = backend
                self._state = _State(outcome.definition, work.version, report)
                if work.batch is not None:
                    self._batches[work.batch.stream] = work.batch
                if transaction is not None:
                    self._keys.keep()
                    transaction.committed(changes, report)
                    self._subscriptions.put(changes, concerned)
                done = True
            if self._opened is not None and transaction is not None:
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
                self._closed, self._backend = True, None
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
        engine, threads, spark, watch = self.engine, self._threads, self._spark, self._watch
        if self._state.definition.maintained:
            return keeping_backend(engine, threads, spark, self._chosen, watch)
        compare = self._opened is not None
        return deriving_backend(engine, threads, spark, watch, self._reading, compare=compare)

    def _chosen(self) -> str | Algorithm:
        return chosen_algorithm(self._algorithm, self._policy)

    # --- the end -------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    def close(self) -> None:
        """Give back what the engine holds, and end streams. Answers and changes already taken stay valid."""
        for stream in self._streams:
            stream.stop()
        with self._reading:
            self._closed = True
            backend, self._backend = self._backend, None
            if backend is not None:
                for answer in list(self._answers):
                    answer.freeze()
                self._answers.clear()
                backend.close()
            if self._opened is not None:
                self._opened.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end(writer: Writer, keys: Keys) -> None:
    """The end of a transaction: what it did to the keys and has not committed is undone."""
    keys.undo()
    writer.end()
