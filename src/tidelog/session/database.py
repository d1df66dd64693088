"""A program, its facts, and the answers that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, SupportsIndex, cast
from weakref import finalize

from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.io.places import output_place
from tidelog.io.writing import write_files
from tidelog.program.model import Program, Relation
from tidelog.session.answer import Answer
from tidelog.session.batches import Batch, given_batch
from tidelog.session.changes import ChangeSet
from tidelog.session.committing import Commits
from tidelog.session.definition import Definition
from tidelog.session.errors import UnknownRelationError, no_changes, rows_by_relation
from tidelog.session.keys import Keys
from tidelog.session.options import (
    Options,
    check_choice,
    check_engine,
    program_module,
    thread_count,
)
from tidelog.session.report import Report, Watch
from tidelog.session.subscriptions import Callback, Subscription
from tidelog.session.transaction import Transaction
from tidelog.session.writer import Writer
from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import DataFrame
    from tidelog.session.feeds import Feed
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
        options = Options(engine, spark, thread_count(threads), algorithm, policy, watch, maintained)
        if maintained:
            check_choice(algorithm, policy)
        module = program_module(program)
        opened: Opened | None = None
        if store is None:
            definition, version = Definition.first(module, maintained=maintained), 0
        else:
            from tidelog.session.store.opening import open_store

            opened = open_store(store, module, spark=spark, maintained=maintained)
            definition, version = opened.definition, opened.version
        self._commits = Commits(definition, version, options, opened)
        self._writer = Writer()
        self._streams: list[Stream] = []
        self.opened_at = version  # before what the program has changed since
        keys = self._commits.keys
        for fact in definition.facts:
            relation = definition.relations[fact.relation]
            if relation.key:
                keys.insert(relation, [fact.row])
        if opened is not None:
            opened.begin(self, keys, self._commits.batches)
        keys.keep()

    # --- reading ---------------------------------------------------------------

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The program's relations, in order of declaration."""
        return self._commits.state.definition.relations

    @property
    def program(self) -> Program:
        """The checked program."""
        return self._commits.state.definition.program

    @property
    def spark(self) -> object | None:
        """The Spark session that the database was given."""
        return self._commits.spark

    @property
    def engine(self) -> str:
        """What evaluates rules: local, spark or substitution."""
        return self._commits.engine

    @property
    def rules(self) -> list[NumberedText]:
        """The rules with their numbers."""
        return [NumberedText(rule.id, rule.text) for rule in self._commits.state.definition.rules]

    @property
    def version(self) -> int:
        """The number of commits so far."""
        return self._commits.state.version

    @property
    def report(self) -> Report:
        """What the last commit, or the first evaluation, did, stratum by stratum."""
        self._commits.started()
        return self._commits.state.report.get()

    @property
    def algorithm(self) -> str:
        """What keeps recursive strata current; it may be changed between commits."""
        return self._commits.options.algorithm

    @algorithm.setter
    def algorithm(self, name: str) -> None:
        check_choice(name, self.policy)
        self._commits.use(name)

    @property
    def policy(self) -> str:
        """What `algorithm` may do: auto, incremental (auto never recomputes) or full (all recompute)."""
        return self._commits.options.policy

    def __getitem__(self, relation: str) -> Answer:
        with self._commits.reading:
            found = self.relations.get(relation)
            if found is None:
                raise UnknownRelationError(relation, self.relations)
            return self._commits.answer(found)

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
        opened = self._commits.opened
        if opened is None:
            from tidelog.session.store.errors import no_store

            raise no_store()
        return opened.store

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
        self._commits.check_open()
        store = self.store
        with self._writer.turn():
            with self._commits.reading:
                state = store.state
                if state is not None and state.version not in store.versions[-keep:]:
                    cast("Stored", self._commits.started()).save()  # it would go with its version
            return store.vacuum(keep)

    def write(self, directory: str | Path) -> list[Path]:
        """Write every output relation to its file, all of them or none; the files written."""
        outputs = []
        for relation in self.relations.values():
            if relation.is_output:
                place = output_place(relation, Path(directory))
                # On Spark its tasks write all but files of text, so that what is there is always alike.
                there = place is not None and (place.for_spark or not place.is_text)
                outputs.append((relation, self[relation.name].held(there=there)))
        return write_files(outputs, Path(directory), by_spark=self.spark is not None)

    # --- changing ----------------------------------------------------------------

    def transaction(self, *, batch: tuple[str, int] | Batch | None = None) -> Transaction:
        """Begin a transaction; there is one at a time, another thread waits for its turn.

        `batch` is the name of a stream and the number of a batch of it. A batch that has been committed, or a
        later one of the same stream, is not committed again: nothing changes, and the version stays.
        """
        self._commits.check_open()
        given = None if batch is None else given_batch(batch)
        self._writer.check()
        while True:
            with Uninterrupted():
                if self._writer.take():
                    return self._begun(given)

    def _begun(self, batch: Batch | None) -> Transaction:
        """A transaction that has the right to write."""
        try:
            begun = Transaction(self._commits, self._commits.state.definition, self._commits.keys, batch)
        except BaseException:
            self._writer.end()
            raise
        # One that is dropped without an end gives its turn back when it is collected.
        release = finalize(begun, _end, self._writer, self._commits.keys)
        release.atexit, begun.release = False, release
        return begun

    def commit(
        self,
        insert: Rows | None = None,
        delete: Rows | None = None,
        add_rules: str | Iterable[str] = (),
        remove_rules: str | SupportsIndex | Iterable[str | SupportsIndex] = (),
    ) -> ChangeSet:
        """Change facts (rows by relation) and rules (one, or several) in one transaction; what has changed.

        What is deleted and removed goes first.
        """
        deleted, inserted = rows_by_relation("delete", delete), rows_by_relation("insert", insert)
        with self.transaction() as tx:
            for rule in _rules(remove_rules):
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
        self._commits.check_open()
        if not callable(callback):
            raise TypeError(f"a subscriber is a function, not {type(callback).__name__}")
        if not self._commits.options.maintained and self._commits.opened is None:
            raise no_changes()
        definition = self._commits.state.definition
        if relation not in definition.relations and not definition.may_come(relation):
            raise UnknownRelationError(relation, definition.relations)
        return self._commits.subscriptions.add(relation, callback)

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

        self._commits.check_open()
        check_frame(self, changes, relation)
        follows = None if feed is None else self._feed(feed, feed_relations)
        if follows is not None:
            follows.catch_up()
        begun = Stream(self, self._writer, name, relation, follows, stored=self._commits.opened is not None)
        begun.begin(changes, checkpoint, trigger)
        self._streams = [*(stream for stream in self._streams if stream.isActive), begun]
        return begun

    def last_batch(self, stream: str) -> int | None:
        """The number of the last batch of a stream that has been committed."""
        last = self._commits.batches.get(stream)
        return None if last is None else last.number

    def committed(self, stream: str) -> Batch | None:
        """That batch, as it was committed."""
        return self._commits.batches.get(stream)

    def write_feed(self, directory: str | Path, relations: Iterable[str] | None = None) -> int:
        """Write what commits have changed as Parquet files, by relation and version, unless it is there.

        The relations are those that are outputs of the program, if none are named. The number of versions
        that were written; StoreError if there is no store, or it does not go with what is there.
        """
        return self._feed(directory, relations).catch_up()

    def _feed(self, directory: str | Path, relations: Iterable[str] | None) -> Feed:
        from tidelog.session.feeds import Feed

        self._commits.started()
        names = None if relations is None else [relations] if isinstance(relations, str) else list(relations)
        for name in names or ():
            if name not in self.relations and not self._commits.state.definition.may_come(name):
                raise UnknownRelationError(name, self.relations)
        return Feed(self.store, directory, names)

    # --- the end -------------------------------------------------------------------

    def close(self) -> None:
        """Give back what the engine holds, and end streams. Answers and changes already taken stay valid."""
        for stream in self._streams:
            stream.stop()
        self._commits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _rules(
    given: str | SupportsIndex | Iterable[str | SupportsIndex],
) -> Iterable[str | SupportsIndex]:
    """Rules by text or number: one, or several."""
    if isinstance(given, bytes):  # which are numbers, one by one
        raise TypeError("a rule is text, not bytes")
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else given


def _end(writer: Writer, keys: Keys) -> None:
    """The end of a transaction: what it did to the keys and has not committed is undone."""
    with Uninterrupted():
        keys.undo()
        writer.end()
