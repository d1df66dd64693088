"""DataFrames of Spark as facts, answers and changes.

A DataFrame that is given is only looked at: its columns have to fit. It is computed once, when the
transaction is committed, and stays in Spark from then on. Facts of a relation that has been given
one are kept there too, whatever they come as; so are answers and changes, until somebody asks
for their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from tidelog.io.errors import column_place, data_error, said, some_match, wrong_arity, wrong_value
from tidelog.io.lines import line_problem
from tidelog.io.values import accept, read_integer, shown
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import S64, STRING, UNKNOWN
from tidelog.syntax.errors import DataError, TidelogError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.execute.spark.state import Rows
    from tidelog.plan.maintenance import Delta


@runtime_checkable
class InSpark(Protocol):
    """Tuples of a relation that Spark has (`execute.spark.state.Rows`)."""

    def table(self) -> pa.Table:
        """All of them, on the driver."""

    def first(self, count: int) -> pa.Table:
        """A few of them, on the driver."""

    def frame(self) -> DataFrame:
        """A DataFrame."""

    def has(self, row: Sequence[Value]) -> bool:
        """Whether a row is among them."""


def is_frame(rows: object) -> bool:
    """Whether something is a DataFrame of Spark, of either kind."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(rows).__mro__
    )


class Everything:
    """In the place of rows: all facts that a relation has by then."""


EVERYTHING = Everything()
APPLY = "change"


# --- what is given -------------------------------------------------------------


@dataclass(frozen=True)
class GivenFrame:
    """A DataFrame for a relation, as cells; one `of_changes` says of each row whether it comes or goes."""

    frame: DataFrame
    columns: tuple[Column, ...]
    heading: str
    code: str
    of_changes: bool

    def computed(self, spark: SparkSession, relation: Relation) -> Rows:
        """Its rows. Raises DataError for values that do not fit, or when Spark cannot compute it."""
        from tidelog.execute.spark.state import computed

        try:
            return computed(spark, relation, self.frame)
        except TidelogError:
            raise
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> DataError:
        from tidelog.execute.spark.schema import ADDS, CHANGE_TYPE, TAKES, explain

        wrong = explain(error)
        if wrong is None:
            what = f"{self.heading}: Spark cannot compute the DataFrame"
            return data_error(self.code, what, notes=[said(error), "nothing has been changed"])
        place, hint = f"{self.heading}: a wrong row", None
        if wrong.kind == "line":
            columns = (*self.columns, *([Column(CHANGE_TYPE, STRING)] if self.of_changes else []))
            sentence, hint = line_problem(wrong.value, columns)
            place, line = f"{self.heading}: a wrong line", f"  --> {sentence}"
        elif wrong.kind == "change":
            line = f"  --> _change_type: {shown(wrong.value)} is none of {', '.join(ADDS + TAKES)}"
        elif wrong.kind == "null":
            column = self.columns[wrong.column]
            line = f"  --> {column_place(wrong.column, column)}: null, and there are no nulls"
            hint = "leave such rows out with df.dropna(), or give them a value with df.fillna()"
        else:
            column = self.columns[wrong.column]
            value, reason = _reason(wrong.value, column)
            line = f"  --> {wrong_value(wrong.column, column, value, reason)}"
        return data_error(self.code, place, [line], hint=hint)


def _reason(text: str, column: Column) -> tuple[object, str]:
    """A value that Spark has found not to fit, from its text, and why it does not."""
    value = float(text) if column.type.kind == "float" else read_integer(text)
    if value is None:
        return text, f"is not a {column.type}"
    try:
        accept(value, column.type)
    except ValueError as error:
        return value, str(error)
    return text, f"is not a {column.type} as it should be written"


def given_frame(
    relation: str,
    columns: tuple[Column, ...] | None,
    frame: DataFrame,
    note: str | None,
    verb: str,
) -> tuple[GivenFrame, tuple[Column, ...]]:
    """A DataFrame whose columns have been found to fit, and the columns with their types.

    Columns of unknown type take theirs from it; with `columns` None, their number too. `verb` says what is
    to be done with it, APPLY that its rows say it themselves; `note` is for errors. Raises DataError.
    """
    from tidelog.execute.spark.schema import (
        CHANGE_COLUMNS,
        CHANGE_TYPE,
        COMMIT_VERSION,
        advice,
        cells_of,
        half_matching,
        is_integer,
        places,
        takes,
        type_of,
    )

    of_changes = verb == APPLY
    heading, code = f"cannot {verb} {relation}", "TL0505" if note else "TL0504"
    notes = [note] if note else []
    if frame.isStreaming:
        raise data_error(
            code,
            f"{heading}: a stream has no end, so it cannot be computed",
            hint="db.stream(df, relation) commits each of its batches",
        )
    fields = frame.schema.fields
    chosen = [i for i, f in enumerate(fields) if not (of_changes and f.name in CHANGE_COLUMNS)]
    names = [fields[i].name for i in chosen]
    if of_changes and not any(f.name == CHANGE_TYPE and f.dataType.typeName() == "string" for f in fields):
        raise data_error(
            code,
            f"{heading}: the DataFrame has no column {CHANGE_TYPE} of strings",
            notes=[f"its columns are {_listed(fields)}"],
            hint="tx.insert and tx.delete take rows without it",
        )
    declared = columns is not None
    if columns is None:
        columns = tuple(Column(f"c{i}", UNKNOWN) for i in range(len(chosen)))
    where = places(names, columns)
    shared = half_matching(names, columns) if declared else 0
    if where is not None and shared:
        ours = ", ".join(column.name for column in columns)
        raise data_error(
            code,
            f"{heading}: {some_match(shared, columns)}",
            notes=[
                *notes,
                f"the columns of the DataFrame are {_listed(fields)}",
                f"those of {relation} are {ours}",
            ],
            hint="df.withColumnRenamed(...) renames a column, df.toDF(...) all of them",
        )
    if where is None:
        hint = "select the columns that are wanted: df.select(...)"
        if CHANGE_TYPE in names and not of_changes:
            hint = f"tx.apply takes a DataFrame with {CHANGE_TYPE}"
        raise data_error(
            code,
            f"{heading}: {wrong_arity(len(names), columns)}",
            notes=[*notes, f"the columns of the DataFrame are {_listed(fields)}"],
            hint=hint,
        )
    found = [fields[chosen[place]] for place in where]
    settled = tuple(
        Column(c.name, type_of(f.dataType)) if c.type == UNKNOWN else c
        for c, f in zip(columns, found, strict=True)
    )
    lines, hints = [], []
    for i, (column, field) in enumerate(zip(settled, found, strict=True)):
        if not takes(column.type, field.dataType):
            theirs = f"`{field.name}` of the DataFrame is {field.dataType.simpleString()}"
            ours = "has no type yet" if column.type == UNKNOWN else f"is {column.type}"
            lines.append(f"  --> {column_place(i, column)} {ours}, {theirs}")
            hints.append(advice(field.name, field.dataType, column.type))
    for field in fields if of_changes else []:
        if field.name == COMMIT_VERSION and not is_integer(field.dataType):
            theirs = f"`{field.name}` of the DataFrame is {field.dataType.simpleString()}"
            lines.append(f"  --> {field.name} is s64, {theirs}")
            hints.append(advice(field.name, field.dataType, S64))
    if lines:
        what = "a column does not fit" if len(lines) == 1 else f"{len(lines)} columns do not fit"
        raise data_error(code, f"{heading}: {what}", lines, notes, "\n  = hint: ".join(hints))
    cells = cells_of(frame, [chosen[place] for place in where], settled, of_changes=of_changes)
    return GivenFrame(cells, settled, heading, code, of_changes), settled


def _listed(fields: Sequence[object]) -> str:
    return ", ".join(f"{f.name}: {f.dataType.simpleString()}" for f in fields) or "none"  # type: ignore[attr-defined]


def no_frames(what: str, hint: str) -> UnsupportedError:
    """The error of asking for or giving DataFrames where they cannot be."""
    return UnsupportedError(f"error[TL0612]: {what}\n  = hint: {hint}")


def keys_in_frames(relation: str) -> UnsupportedError:
    """The error of a DataFrame for a relation with a primary key, where its rows would stay in Spark."""
    return no_frames(
        f"{relation} has a primary key, and keys are not checked in Spark",
        "give it rows of this process, as in df.toArrow(), or declare it without the key",
    )


# --- facts ---------------------------------------------------------------------


class FrameFacts:
    """The explicit facts of a relation, in Spark. Operations make others; these stay as they are."""

    def __init__(self, held: Rows) -> None:
        self._held = held

    @staticmethod
    def of(relation: Relation, tables: Sequence[pa.Table], given: GivenFrame) -> FrameFacts:
        """Facts that the driver had, in the session of a DataFrame."""
        import pyarrow as pa

        from tidelog.execute.spark.state import Rows, rows_of

        spark = given.frame.sparkSession
        return FrameFacts(
            rows_of(spark, relation, pa.concat_tables(tables)) if tables else Rows(spark, relation)
        )

    @property
    def sources(self) -> tuple[Rows, ...]:
        """What an executor is given."""
        return (self._held,)

    def insert(self, rows: pa.Table | GivenFrame) -> tuple[FrameFacts, int]:
        """With more facts, and how many of the rows had no effect."""
        return self._plus(self._given(rows))

    def delete(self, rows: pa.Table | GivenFrame) -> tuple[FrameFacts, int]:
        """Without some facts, and how many of the rows had no effect."""
        return self._minus(self._given(rows))

    def apply(self, changes: GivenFrame) -> tuple[FrameFacts, int, int]:
        """With some facts and without others, and how many of either had no effect."""
        from tidelog.execute.spark.state import split_changes

        held = self._held
        come, gone = split_changes(changes.computed(held.spark, held.relation))
        facts, deletes = self._minus(gone)
        facts, inserts = facts._plus(come)
        return facts, inserts, deletes

    def _given(self, rows: pa.Table | GivenFrame) -> Rows:
        from tidelog.execute.spark.state import rows_of

        spark, relation = self._held.spark, self._held.relation
        if isinstance(rows, GivenFrame):
            return rows.computed(spark, relation)
        return rows_of(spark, relation, rows)

    def _plus(self, given: Rows) -> tuple[FrameFacts, int]:
        frame = given.read()
        after = self._held if frame is None else self._held.plus(frame)
        return FrameFacts(after), given.size - (after.size - self._held.size)

    def _minus(self, given: Rows) -> tuple[FrameFacts, int]:
        after = self._held.minus(given)
        return FrameFacts(after), given.size - (self._held.size - after.size)


# --- changes -------------------------------------------------------------------


class FrameDelta:
    """What has gone from a relation and what has come, in Spark."""

    def __init__(self, gone: Rows, come: Rows) -> None:
        self.gone, self.come = gone, come

    @cached_property
    def deleted(self) -> pa.Table:
        """What has gone, on the driver."""
        return self.gone.table()

    @cached_property
    def inserted(self) -> pa.Table:
        """What has come, on the driver."""
        return self.come.table()

    def fetch(self) -> None:
        """Have it on the driver, before the session goes."""
        self.deleted, self.inserted  # noqa: B018  (kept when they are read)


Entry = tuple[Relation, "Delta", tuple[int, int]]


class FrameComparison(Mapping[str, Entry]):
    """What tells two states apart: of each relation compared in Spark, when somebody first asks for it.

    Until then it holds on to both states. The old one may be brought to Spark only then, by a function.
    """

    def __init__(self, old: Mapping[str, Rows | Callable[[], Rows]], new: Mapping[str, Rows]) -> None:
        self._pairs = {name: (old.get(name), new.get(name)) for name in {**old, **new}}
        self.names = list(self._pairs)  # all that may have changed
        self._found: dict[str, Entry] = {}
        self._lock = RLock()

    def settle(self) -> None:
        """Be asked for nothing more of the engines: the states are here."""

    def fetch(self) -> None:
        """Have all of it on the driver, before the session goes."""
        for name in self:
            cast("FrameDelta", self[name][1]).fetch()

    def __getitem__(self, name: str) -> Entry:
        with self._lock:
            if name in self._pairs:
                self._compare(name)
            return self._found[name]

    def _compare(self, name: str) -> None:
        from tidelog.execute.spark.state import Rows

        old, new = self._pairs[name]
        if callable(old):
            old = old()
        some = new or old
        assert some is not None
        empty = Rows(some.spark, some.relation)
        before, after = old or empty, new or empty
        delta = FrameDelta(before.minus(after), after.minus(before))
        counts = (delta.gone.size, delta.come.size)
        if counts != (0, 0):
            self._found[name] = (some.relation, cast("Delta", delta), counts)
        del self._pairs[name]

    def __contains__(self, name: object) -> bool:
        with self._lock:
            if name in self._pairs:
                self._compare(str(name))
            return name in self._found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def taken_there(spark: SparkSession, relation: Relation, table: pa.Table) -> Rows:
    """Tuples of this process, without repetitions, in Spark."""
    from tidelog.execute.spark.state import Rows
    from tidelog.execute.spark.types import column_types, to_cells

    if not table.num_rows:
        return Rows(spark, relation)
    cells = to_cells(table, column_types(relation))
    return Rows(spark, relation, (spark.createDataFrame(cells),), (cells.num_rows,), cells)


def change_feed(
    spark: SparkSession, relation: Relation, delta: Delta | FrameDelta | None, version: int, time: datetime
) -> DataFrame:
    """The changes of a relation as a DataFrame, with the columns of a change feed."""
    from tidelog.execute.spark.schema import change_frame
    from tidelog.execute.spark.state import Rows

    micros = round(time.timestamp() * 1_000_000)
    if isinstance(delta, FrameDelta):
        sides = (delta.gone, delta.come)
    elif delta is not None:
        sides = (taken_there(spark, relation, delta.deleted), taken_there(spark, relation, delta.inserted))
    else:
        sides = (Rows(spark, relation),) * 2
    gone, come = (
        change_frame(side.frame(), kind, version, micros)
        for side, kind in zip(sides, ("delete", "insert"), strict=True)
    )
    return gone.unionAll(come)
