"""Changes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, SupportsIndex, cast

from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.io.facts import Facts, read_facts
from tidelog.io.places import Place, find_facts
from tidelog.io.plain import PlainRows, Row, rows_of_table
from tidelog.io.rows import table_of_rows
from tidelog.io.spark_files import facts_frame
from tidelog.program.model import Column, Relation
from tidelog.program.types import UNKNOWN
from tidelog.session.backend import Operation
from tidelog.session.batches import Batch
from tidelog.session.changes import ChangeSet
from tidelog.session.definition import Definition, Types, columns_with
from tidelog.session.errors import UnknownRelationError, ended, no_key, not_committed
from tidelog.session.frames.given import (
    APPLY,
    EVERYTHING,
    GivenFrame,
    given_frame,
    is_frame,
    keys_in_frames,
    no_frames,
)
from tidelog.session.keys import Keys
from tidelog.session.report import Report, Reporting
from tidelog.session.rule_changes import RuleChanges

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame


class Home(Protocol):
    """What a transaction needs of the database it belongs to."""

    @property
    def engine(self) -> str:
        """What evaluates rules."""

    @property
    def spark(self) -> object | None:
        """The Spark session that it was given."""

    def fetched(self, frame: GivenFrame, relation: Relation) -> list[Operation] | None:
        """What a DataFrame says, with rows in this process; None where they would stay in Spark."""

    def finish(self, transaction: Transaction, *, commit: bool) -> None:
        """End the transaction; a commit leaves its changes and its report there."""

    def current(self, relation: Relation) -> pa.Table:
        """The tuples of a relation after the last commit."""


class Transaction:
    """Changes to be made by the next commit. Made by `Database.transaction`; use it in a `with`.

    Operations apply in order: the last word on a fact counts. Rows are an iterable of tuples, lists or
    dicts, an Arrow table, a pandas, polars or Spark DataFrame. A method that raises has done nothing, and
    the transaction can go on. On the engine spark a Spark DataFrame stays there, and is computed once, when
    the transaction is committed.
    """

    def __init__(self, home: Home, definition: Definition, keys: Keys, batch: Batch | None = None) -> None:
        self._home = home
        self.batch = batch
        self._definition = definition
        self._keys = keys
        self._open, self._committing = True, False
        self._changes: ChangeSet | None = None
        self._report: Reporting | None = None
        self.release: Callable[[], object] = lambda: None  # gives the turn to write back, once
        self.operations: list[Operation] = []
        self.types: dict[str, Types] = {}  # that undeclared relations have taken from their facts here
        self.rules = RuleChanges(definition)
        self.ignored_deletes = 0

    # --- facts --------------------------------------------------------------------

    def insert(self, relation: str, rows: object) -> None:
        """Add facts. A fact that is there already has no effect, and is counted in the report.

        Raises DataError naming the first wrong rows, or those whose primary key is another row's.
        """
        self._change(relation, rows, insert=True)

    def delete(self, relation: str, rows: object) -> None:
        """Take facts away. A fact that is not there has no effect, and is counted in the report.

        A tuple that rules derive stays as long as they do.
        """
        self._change(relation, rows, insert=False)

    def apply(self, relation: str, changes: DataFrame) -> None:
        """Add and take away facts as the column `_change_type` of a Spark DataFrame says.

        It is insert or update_postimage, delete or update_preimage. Of several changes of one fact the one
        with the highest `_commit_version` counts, if there is such a column; there, or without it, an
        insertion. Raises DataError where columns do not fit.
        """
        self._check_open()
        if self._home.engine != "spark" or not is_frame(changes):
            what = "only a Spark DataFrame of changes can be applied, to a database on Spark"
            raise no_frames(what, "tx.delete and tx.insert take rows of any kind on any engine")
        self._change_by_frame(relation, changes, APPLY)

    def clear(self, relation: str) -> None:
        """Take all facts of a relation away. Tuples that rules derive stay."""
        self._check_open()
        if self._columns(relation) is None:
            raise UnknownRelationError(relation, self._known().relations)
        before, found = self._definition.relations.get(relation), self._known().relations.get(relation)
        if found is not None and found.key:
            self._keys.clear(found)
        if self._home.engine == "spark":
            self.operations.append(Operation(False, relation, EVERYTHING, counted=False))
            return
        inserted = [o.rows for o in self.operations if o.insert and o.relation == relation]
        if before is not None:
            inserted.insert(0, self._home.current(before))
        self.operations += [Operation(False, relation, rows, counted=False) for rows in inserted if len(rows)]

    def insert_or_update(self, relation: str, rows: object) -> None:
        """Add rows, each in place of the one with the same primary key if there is one."""
        from tidelog.session.by_key import replaced

        self._check_open()
        found = self._keyed(relation)
        given = self._python_rows(found, rows)
        self._check_open()
        self._replace(found, *replaced(self._keys, found, given))

    def delete_key(self, relation: str, keys: Iterable[object]) -> None:
        """Take away the rows with some primary keys: values, or tuples where a key has several columns."""
        from tidelog.session.by_key import delete_keys, read_keys

        self._check_open()
        found = self._keyed(relation)
        wanted = read_keys(self._keys, found, keys)
        self._check_open()
        gone, missed = delete_keys(self._keys, found, wanted)
        self.ignored_deletes += missed
        self._replace(found, gone, [])

    def modify(self, relation: str, key: object, values: Mapping[str, object]) -> None:
        """Change columns of the row with a primary key. Raises DataError if there is none."""
        from tidelog.session.by_key import modified

        self._check_open()
        found = self._keyed(relation)
        old, new = modified(self._keys, found, key, values)
        self._replace(found, [old], [new])

    def load(self, directory: str | Path) -> None:
        """Add the facts of every input relation, each from its file in the directory."""
        self._check_open()
        inputs = [r for r in self._known().relations.values() if r.is_input]
        self.read(find_facts(inputs, Path(directory)))

    def read(self, places: Mapping[str, Place]) -> None:
        """Add the facts of some relations, each from its place; on Spark large ones stay there."""
        self._check_open()
        read: list[tuple[Relation, tuple[Column, ...], Facts]] = []
        frames: list[tuple[str, DataFrame]] = []
        for name, place in places.items():
            columns, relation = self._columns(name), self._known().relations.get(name)
            if columns is None or relation is None:
                raise UnknownRelationError(name, self._known().relations)
            typed = replace(relation, columns=columns)
            frame = facts_frame(self._home.spark, typed, place)
            if frame is None:
                read.append((relation, columns, read_facts(typed, place)))
            else:
                frames.append((name, frame))
        mark = self._keys.mark()
        try:
            for relation, _, facts in read:
                if relation.key:
                    self._keys.insert(relation, rows_of_table(facts.table, facts.columns))
            for name, frame in frames:
                self._change_by_frame(name, frame, _verb(True))
        except BaseException:
            self._keys.undo(mark)
            raise
        for relation, columns, facts in read:
            self._add(relation.name, facts.table, columns, facts.columns, insert=True)

    def _change(self, relation: str, rows: object, *, insert: bool) -> None:
        self._check_open()
        if self._home.engine == "spark" and is_frame(rows):
            return self._change_by_frame(relation, cast("DataFrame", rows), _verb(insert))
        plain = self._plainly(relation, rows)
        self._check_open()  # whoever gives the rows may have ended it
        if plain is not None:
            found = self._known().relations[relation]
            if found.key:
                (self._keys.insert if insert else self._keys.delete)(found, plain)
            if plain:
                self._settle(relation, found.columns, insert=insert)
                self.operations.append(Operation(insert, relation, plain))
            return
        columns = self._columns(relation)
        if columns is None and not insert:
            raise UnknownRelationError(relation, self._known().relations)
        table, settled = self._table(relation, columns, rows, insert=insert)
        self._check_open()
        if not insert and columns is not None and any(c.type == UNKNOWN for c in columns):
            self.ignored_deletes += table.num_rows  # a relation that waits for its types has no facts
            return
        declared = self._known().relations.get(relation)
        if declared is not None and declared.key:
            given = rows_of_table(table, settled)
            (self._keys.insert if insert else self._keys.delete)(declared, given)
        self._add(relation, table, columns, settled, insert=insert)

    def _change_by_frame(self, relation: str, frame: DataFrame, verb: str) -> None:
        insert, columns = verb != "delete from", self._columns(relation)
        known = self._known().relations
        if columns is None and not insert:
            raise UnknownRelationError(relation, known)
        given, found = given_frame(relation, columns, frame, self._note(relation), verb)
        if relation in known and known[relation].key:
            return self._change_by_key(known[relation], given, insert=insert)
        if insert or all(c.type != UNKNOWN for c in columns or ()):  # without types there are no facts
            self._add(relation, given, columns, found, insert=insert)

    def _change_by_key(self, relation: Relation, frame: GivenFrame, *, insert: bool) -> None:
        """Change a relation with a key as a DataFrame says, whose rows are fetched for that."""
        operations = [
            operation if frame.of_changes else operation._replace(insert=insert)
            for operation in self._fetched(relation, frame)
        ]
        mark = self._keys.mark()
        try:
            for operation in operations:
                rows = rows_of_table(operation.rows, relation.columns)
                (self._keys.insert if operation.insert else self._keys.delete)(relation, rows)
        except BaseException:
            self._keys.undo(mark)
            raise
        self.operations += [operation for operation in operations if len(operation.rows)]

    def _fetched(self, relation: Relation, frame: GivenFrame) -> list[Operation]:
        operations = self._home.fetched(frame, relation)
        if operations is None:
            raise keys_in_frames(relation.name)
        return operations

    def _plainly(self, relation: str, rows: object) -> list[Row] | None:
        """A few rows of a relation whose columns are known, which need no table."""
        definition = self._known()
        check = definition.checks.get(relation)
        if check is None:
            found = definition.relations.get(relation)
            if found is None:
                return None
            check = definition.checks[relation] = PlainRows(found.columns)
        return check(rows)

    def _table(
        self, relation: str, columns: tuple[Column, ...] | None, rows: object, *, insert: bool
    ) -> tuple[pa.Table, tuple[Column, ...]]:
        return table_of_rows(relation, columns, rows, self._note(relation), _verb(insert))

    def _note(self, relation: str) -> str | None:
        if relation in self.types or relation in self._definition.given:
            return f"{relation} is not declared: its first facts gave its columns their types"
        return None

    def _add(
        self,
        relation: str,
        rows: pa.Table | GivenFrame,
        columns: tuple[Column, ...] | None,
        found: tuple[Column, ...],
        *,
        insert: bool,
    ) -> None:
        if isinstance(rows, GivenFrame) or rows.num_rows:
            if columns is None or any(c.type == UNKNOWN for c in columns):
                self.types[relation] = tuple(c.type for c in found)
            self._settle(relation, found, insert=insert)
            self.operations.append(Operation(insert, relation, rows))

    def _settle(self, relation: str, columns: tuple[Column, ...], *, insert: bool) -> None:
        """What rules of this transaction have settled about a relation stays for its facts."""
        before = self._definition.relations.get(relation)
        if (
            insert
            and (before is None or any(column.type == UNKNOWN for column in before.columns))
            and relation not in self._known().declared
        ):
            self.types[relation] = tuple(column.type for column in columns)

    def _replace(self, relation: Relation, gone: list[Row], new: list[Row]) -> None:
        if gone:
            self.operations.append(Operation(False, relation.name, gone))
        if new:
            self.operations.append(Operation(True, relation.name, new))

    def _python_rows(self, relation: Relation, rows: object) -> list[Row]:
        if self._home.engine == "spark" and is_frame(rows):
            given, columns = cast("DataFrame", rows), relation.columns
            frame, _ = given_frame(relation.name, columns, given, None, _verb(True))
            [fetched] = self._fetched(relation, frame)
            return list(rows_of_table(fetched.rows, columns))
        plain = PlainRows(relation.columns)(rows)
        if plain is not None:
            return plain
        table, settled = self._table(relation.name, relation.columns, rows, insert=True)
        return list(rows_of_table(table, settled))

    # --- what there is, with the changes made here so far ---------------------------

    def _known(self) -> Definition:
        """The definition with the rules changed so far; without them while they do not go together."""
        return self.rules.pending(self.types) or self._definition

    def _columns(self, relation: str) -> tuple[Column, ...] | None:
        """The columns of a relation one may insert into; None for a new one of an untyped program."""
        definition = self._known()
        found = definition.relations.get(relation)
        types = self.types.get(relation)
        if found is not None:
            if types is None or not any(c.type == UNKNOWN for c in found.columns):
                return found.columns
            return columns_with(found.columns, types)
        if not definition.may_come(relation):
            raise UnknownRelationError(relation, definition.relations)
        return None if types is None else tuple(Column(f"c{i}", type) for i, type in enumerate(types))

    def _keyed(self, relation: str) -> Relation:
        definition = self._known()
        found = definition.relations.get(relation)
        if found is None:
            raise UnknownRelationError(relation, definition.relations)
        if not found.key:
            raise no_key(relation, [column.name for column in found.columns])
        return found

    # --- rules ------------------------------------------------------------------------

    def add_rule(self, text: str) -> tuple[int, ...]:
        """Add rules, with declarations of what they need; the numbers of the rules.

        A rule that is there already has no effect. A fact is inserted. Raises ProgramError for mistakes of
        syntax; whether the rules fit into the program is checked when the transaction is committed.
        """
        self._check_open()
        with self._whole():
            return self.rules.add(text, self._facts)

    def remove_rule(self, rule: str | SupportsIndex) -> None:
        """Remove a rule, by its number or its text (variables may have other names); a fact is deleted.

        Raises UnknownRuleError, which shows rules that look alike.
        """
        self._check_open()
        if isinstance(rule, SupportsIndex):
            self.rules.remove_number(rule)
        else:
            with self._whole():
                self.rules.remove(rule, self._facts)
        self._keep_types()

    def _keep_types(self) -> None:
        """Relations that were given facts here stay, also if no rule speaks of them any more."""
        before = self._definition
        given = {operation.relation for operation in self.operations if operation.insert}
        given &= before.relations.keys() - before.given.keys() - before.declared - self.types.keys()
        self.types |= before.types_of(given)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of it or nothing: a text may hold several rules and facts."""
        count, keys, types, rules = (
            len(self.operations),
            self._keys.mark(),
            dict(self.types),
            self.rules.moment(),
        )
        try:
            yield
        except BaseException:
            del self.operations[count:]
            self._keys.undo(keys)
            self.types = types
            self.rules.back_to(rules)
            raise

    def _facts(self, relation: str, rows: list[Row], *, insert: bool) -> None:
        self._change(relation, rows, insert=insert)

    # --- the end ------------------------------------------------------------------------

    @property
    def changes(self) -> ChangeSet:
        """What the commit has changed."""
        if self._changes is None:
            raise not_committed()
        return self._changes

    @property
    def report(self) -> Report:
        """What the commit did, stratum by stratum."""
        if self._report is None:
            raise not_committed()
        return self._report.get()

    def committed(self, changes: ChangeSet, report: Reporting) -> None:
        """Told by the database when the changes are made, where no interrupt comes between."""
        self._changes, self._report = changes, report
        self.end()

    def end(self) -> None:
        """Be over and give the turn to write back: an interrupt comes before both or after both."""
        with Uninterrupted():
            self._open = False
            self.release()

    def commit(self) -> ChangeSet:
        """Make the changes. When it returns, the answers are current; when it raises, nothing has changed."""
        self._check_open()
        try:
            self._committing = True
            self._home.finish(self, commit=True)
        finally:
            self._committing = False
            if self._open:  # an interrupt came before the end
                self.end()
        return self.changes

    def rollback(self) -> None:
        """Forget the changes."""
        self._check_open()
        self._home.finish(self, commit=False)

    def _check_open(self) -> None:
        if not self._open or self._committing:
            raise ended()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._open and kind is None:
                self.commit()
            elif self._open:
                self.rollback()
        finally:
            if self._open:  # an interrupt came before the end
                self.rollback()


def _verb(insert: bool) -> str:
    return "insert into" if insert else "delete from"
