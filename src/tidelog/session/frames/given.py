"""A DataFrame that is given to a relation: whether its columns fit, and what is wrong with a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.io.errors import column_place, data_error, said, some_match, wrong_arity, wrong_value
from tidelog.io.lines import line_problem
from tidelog.io.nested import text_of
from tidelog.io.values import accept, read_integer, shown
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64, STRING, UNKNOWN, Type
from tidelog.syntax.errors import DataError, TidelogError, UnsupportedError

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import DataFrame, SparkSession, StructField
    from tidelog.execute.spark.state import Rows


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
            what, why, hint = f"{self.heading}: Spark cannot compute the DataFrame", said(error), None
            if "No module named 'tidelog'" in str(error):  # arrays and structs go through them
                why = "the Python of Spark's workers has no Tidelog"
                hint = "install it there; on one machine, set PYSPARK_PYTHON to the Python that has it first"
            return data_error(self.code, what, notes=[why, "nothing has been changed"], hint=hint)
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
        elif wrong.kind == "nested":
            value, reason = json.loads(wrong.value)
            line = f"  --> {column_place(wrong.column, self.columns[wrong.column])}: {value} {reason}"
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
    from tidelog.execute.spark.schema import CHANGE_COLUMNS, cells_of, places, type_of

    look = _Look(relation, frame, f"cannot {verb} {relation}", note, of_changes=verb == APPLY)
    look.check_kind()
    fields = frame.schema.fields
    chosen = [i for i, f in enumerate(fields) if not (look.of_changes and f.name in CHANGE_COLUMNS)]
    names = [fields[i].name for i in chosen]
    if columns is None:
        columns = tuple(Column(f"c{i}", UNKNOWN) for i in range(len(chosen)))
    else:
        look.check_names(names, columns)
    taken = [chosen[place] for place in places(names, columns) or ()]
    settled = tuple(
        Column(c.name, type_of(fields[i].dataType)) if c.type == UNKNOWN else c
        for c, i in zip(columns, taken, strict=True)
    )
    look.check_types(settled, [fields[i] for i in taken])
    cells = cells_of(frame, taken, settled, text_of, of_changes=look.of_changes)
    return GivenFrame(cells, settled, look.heading, look.code, look.of_changes), settled


class _Look:
    """A DataFrame that is looked at for a relation. What does not fit is raised as DataError."""

    def __init__(
        self, relation: str, frame: DataFrame, heading: str, note: str | None, *, of_changes: bool
    ) -> None:
        self.relation, self.frame, self.heading, self.of_changes = relation, frame, heading, of_changes
        self.code = "TL0505" if note else "TL0504"
        self.notes = [note] if note else []

    def _wrong(
        self, what: str, lines: Sequence[str] = (), notes: Sequence[str] = (), hint: str | None = None
    ) -> DataError:
        return data_error(self.code, f"{self.heading}: {what}", lines, [*self.notes, *notes], hint)

    def check_kind(self) -> None:
        """It has an end; and its rows say whether they come or go, if they should."""
        from tidelog.execute.spark.schema import CHANGE_TYPE

        if self.frame.isStreaming:
            hint = "db.stream(df, relation) commits each of its batches"
            raise self._wrong("a stream has no end, so it cannot be computed", hint=hint)
        kinds = [f.name for f in self.frame.schema.fields if f.name.casefold() == CHANGE_TYPE]
        if self.of_changes and len(kinds) > 1:
            raise self._wrong(f"the DataFrame has {len(kinds)} columns {CHANGE_TYPE}")
        types = {f.name: f.dataType.typeName() for f in self.frame.schema.fields}
        if self.of_changes and types.get(CHANGE_TYPE) != "string":
            raise self._wrong(
                f"the DataFrame has no column {CHANGE_TYPE} of strings",
                notes=[f"its columns are {self._listed()}"],
                hint="tx.insert and tx.delete take rows without it",
            )

    def check_names(self, names: Sequence[str], columns: tuple[Column, ...]) -> None:
        """There are as many as there are columns; and they are all theirs, or none is."""
        from tidelog.execute.spark.schema import CHANGE_TYPE, half_matching

        theirs = f"the columns of the DataFrame are {self._listed()}"
        if len(names) != len(columns):
            hint = "select the columns that are wanted: df.select(...)"
            if CHANGE_TYPE in names and not self.of_changes:
                hint = f"tx.apply takes a DataFrame with {CHANGE_TYPE}"
            raise self._wrong(wrong_arity(len(names), columns), notes=[theirs], hint=hint)
        if shared := half_matching(names, columns):
            ours = f"those of {self.relation} are {', '.join(column.name for column in columns)}"
            hint = "df.withColumnRenamed(...) renames a column, df.toDF(...) all of them"
            raise self._wrong(some_match(shared, columns), notes=[theirs, ours], hint=hint)

    def check_types(self, columns: tuple[Column, ...], fields: Sequence[StructField]) -> None:
        """Each column's values are of its type; all that are not are named."""
        from tidelog.execute.spark.schema import COMMIT_VERSION, advice, is_integer, takes

        lines, hints = [], []

        def differ(ours: str, field: StructField, wanted: Type) -> None:
            theirs = f"`{field.name}` of the DataFrame is {field.dataType.simpleString()}"
            lines.append(f"  --> {ours}, {theirs}")
            hints.append(advice(field.name, field.dataType, wanted))

        for i, (column, field) in enumerate(zip(columns, fields, strict=True)):
            if not takes(column.type, field.dataType):
                ours = "has no type yet" if column.type == UNKNOWN else f"is {column.type}"
                differ(f"{column_place(i, column)} {ours}", field, column.type)
        for field in self.frame.schema.fields if self.of_changes else []:
            if field.name == COMMIT_VERSION and not is_integer(field.dataType):
                differ(f"{field.name} is s64", field, S64)
        if lines:
            what = "a column does not fit" if len(lines) == 1 else f"{len(lines)} columns do not fit"
            raise self._wrong(what, lines, hint="\n  = hint: ".join(hints))

    def _listed(self) -> str:
        return ", ".join(f"{f.name}: {f.dataType.simpleString()}" for f in self.frame.schema.fields) or "none"


def no_frames(what: str, hint: str) -> UnsupportedError:
    """The error of asking for or giving DataFrames where they cannot be."""
    return UnsupportedError(f"error[TL0612]: {what}\n  = hint: {hint}")


def keys_in_frames(relation: str) -> UnsupportedError:
    """The error of a DataFrame for a relation with a primary key, where its rows would stay in Spark."""
    return no_frames(
        f"{relation} has a primary key, and keys are not checked in Spark",
        "give it rows of this process, as in df.toArrow(), or declare it without the key",
    )
