"""Rows given from Python into tables: lists, tuples, dicts, generators, Arrow, pandas, polars.

Tables with named columns are matched by name where the names are the relation's, else by
position. Columns whose Arrow type already says that every value fits are cast whole;
anything else goes value by value through `values.accept`, which finds the wrong rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.io.errors import Problems, data_error, some_match, wrong_arity, wrong_value
from tidelog.io.values import accept, read_integer, shown
from tidelog.program.arrow import arrow_type, is_text
from tidelog.program.model import Column, Value
from tidelog.program.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    STRING,
    UNKNOWN,
    Type,
    array_of,
    signed,
    struct_of,
    unsigned,
)

if TYPE_CHECKING:
    import pyarrow as pa


def table_of_rows(
    relation: str,
    columns: tuple[Column, ...] | None,
    rows: object,
    note: str | None = None,
    verb: str = "insert into",
) -> tuple[pa.Table, tuple[Column, ...]]:
    """Rows as a table, and its columns with their types.

    Columns of unknown type take theirs from the rows; with `columns` None, the number of
    columns too. `note` is for errors, where the types are not ones the user declared, and `verb` too.
    """
    problems = Problems(f"cannot {verb} {relation}", "TL0505" if note else "TL0504", "wrong")
    problems.notes += [note] if note else []
    table = _as_arrow(rows)
    if table is not None:
        return table_of_arrow(columns, table, problems, "row {}")
    listed = _listed(f"cannot {verb} {relation}", rows)
    if columns is None:
        columns = _unknown_columns(len(listed[0]) if listed and isinstance(listed[0], Sequence) else 0)
    cells = _transposed(listed, columns, problems)
    return _convert(cells, columns, problems, "row {}", rows=len(listed))


def table_of_arrow(
    columns: tuple[Column, ...] | None, table: pa.Table, problems: Problems, place: str
) -> tuple[pa.Table, tuple[Column, ...]]:
    """An Arrow table in the layout of a relation; `place` has a `{}` for the row's number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tidelog.io.arrays import column_fits, schema_of

    declared = columns is not None
    if columns is None:
        columns = _unknown_columns(table.num_columns)
    names = [c.name for c in columns]
    if sorted(table.column_names) == sorted(names):
        table = table.select(names)
    elif table.num_columns != len(columns):
        raise data_error(
            problems.code,
            f"{problems.heading}: {wrong_arity(table.num_columns, columns)}",
            notes=[f"the columns given are {', '.join(table.column_names) or 'none'}"],
        )
    elif declared and (shared := len({*names} & {*table.column_names})):
        raise data_error(
            problems.code,
            f"{problems.heading}: {some_match(shared, columns)}",
            notes=[
                f"the columns given are {', '.join(table.column_names)}",
                f"the columns are {', '.join(names)}",
            ],
            hint="give all of them these names, or none of them to go by position",
        )
    columns = tuple(
        Column(c.name, _type_of_arrow(a.type) if c.type == UNKNOWN else c.type)
        for c, a in zip(columns, table.columns, strict=True)
    )
    schema = schema_of(columns)
    if not columns:
        return pa.table([pa.array([True] * min(table.num_rows, 1), pa.bool_())], schema=schema), columns
    arrays = []
    for array, column, field in zip(table.columns, columns, schema, strict=True):
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if array.null_count or not _castable(array.type, column.type):
            break
        try:
            cast = array
            if array.type != field.type:
                # Integers become floats as `float` does it: rounded where they are long.
                cast = pc.cast(array, field.type, safe=column.type.kind != "float")
        except pa.ArrowInvalid:
            break
        if not column_fits(cast, column.type) and column.type.kind != "float":
            break
        if column.type == FLOAT and pc.sum(pc.is_inf(cast)) != pc.sum(
            pc.is_inf(array.cast(pa.float64(), safe=False))
        ):
            break
        arrays.append(cast)
    else:
        return pa.table(arrays, schema=schema), columns
    cells: list[list[object]] = [
        [_integer_of(v) for v in array.to_pylist()] if is_text(column.type) else array.to_pylist()
        for array, column in zip(table.columns, columns, strict=True)
    ]
    return _convert(cells, columns, problems, place, rows=table.num_rows)


def fits_columns(table: pa.Table, columns: tuple[Column, ...]) -> bool:
    """Whether the columns of a table, found by their names, have types that say whether values fit."""
    types = ((table.schema.field(column.name).type, column.type) for column in columns)
    return all(
        _type_of_arrow(theirs) != UNKNOWN if ours == UNKNOWN else _castable(theirs, ours)
        for theirs, ours in types
    )


def table_of_objects(
    columns: tuple[Column, ...], rows: list[object], problems: Problems, place: str
) -> tuple[pa.Table, tuple[Column, ...]]:
    """Rows that are mappings, one for each row of a file, in the layout of a relation."""
    cells = _transposed(rows, columns, problems)
    for i, column in enumerate(columns):
        if is_text(column.type):
            cells[i] = [_integer_of(value) for value in cells[i]]
    return _convert(cells, columns, problems, place, rows=len(rows))


# --- what was given ----------------------------------------------------------


def _as_arrow(rows: object) -> pa.Table | None:
    """Arrow data and DataFrames as an Arrow table; None for anything else."""
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    library = type(rows).__module__.partition(".")[0]
    if library == "pandas":
        if not hasattr(rows, "itertuples"):
            return None  # a Series or an index
        try:
            return pa.Table.from_pandas(rows, preserve_index=False)
        except (pa.ArrowException, OverflowError):
            return None  # a column of mixed objects: as rows, so that the wrong one is found
    if hasattr(rows, "__arrow_c_stream__"):  # polars, DuckDB and others
        try:
            return pa.table(rows)
        except (pa.ArrowException, TypeError, ValueError):
            return None  # one column, not a table
    return None


def _listed(heading: str, rows: object) -> list[object]:
    """The rows as a list, whatever iterable they came in."""
    library = type(rows).__module__.partition(".")[0]
    if library == "pandas" and hasattr(rows, "itertuples"):
        return list(rows.itertuples(index=False, name=None))
    if type(rows).__module__ == "numpy":
        return list(rows.tolist())  # type: ignore[attr-defined]
    is_column = library in ("pandas", "polars", "pyarrow")  # whose tables have been dealt with
    if is_column or isinstance(rows, (str, bytes, Mapping, Path)) or not isinstance(rows, Iterable):
        what = f"one column ({library} {type(rows).__name__})" if is_column else shown(rows)
        hint = "give a list of tuples, as in [(1, 2), (2, 3)], or a table"
        if type(rows).__name__ == "LazyFrame":
            what, hint = "a LazyFrame", "its rows are there after `.collect()`"
        raise data_error("TL0504", f"{heading}: {what} is not a collection of rows", hint=hint)
    return list(rows)


def _unknown_columns(count: int) -> tuple[Column, ...]:
    return tuple(Column(f"c{i}", UNKNOWN) for i in range(count))


def _transposed(rows: list[object], columns: tuple[Column, ...], problems: Problems) -> list[list[object]]:
    """The rows' values column by column."""
    kinds = set(map(type, rows))
    if kinds <= {tuple, list}:
        plain: Sequence[Sequence[object]] = rows  # type: ignore[assignment]
    elif kinds == {dict}:
        plain = _by_name(rows, columns, problems)  # type: ignore[arg-type]
    else:
        plain = [_row_of(number, row, columns, problems) for number, row in enumerate(rows, 1)]
    if set(map(len, plain)) - {len(columns)}:
        for number, row in enumerate(plain, 1):
            if len(row) != len(columns):
                problems.add(f"row {number}", wrong_arity(len(row), columns))
    problems.raise_if_any()
    return [[row[i] for row in plain] for i in range(len(columns))]


def _row_of(number: int, row: object, columns: tuple[Column, ...], problems: Problems) -> Sequence[object]:
    if isinstance(row, Mapping):
        return _by_name([row], columns, problems, number)[0]
    if type(row).__module__ == "numpy" and hasattr(row, "tolist"):
        row = row.tolist()
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
        return row
    names = ", ".join(c.name for c in columns)
    problems.hint = f"a row is a tuple, as in ({names}{',' if len(columns) == 1 else ''})"
    problems.add(f"row {number}", f"{shown(row)} is not a row")
    return [None] * len(columns)


def _by_name(
    rows: Sequence[Mapping[str, object]], columns: tuple[Column, ...], problems: Problems, first: int = 1
) -> list[list[object]]:
    names = [c.name for c in columns]
    expected = set(names)
    result = []
    for number, row in enumerate(rows, first):
        if row.keys() != expected:
            missing = [n for n in names if n not in row]
            extra = [str(n) for n in row if n not in expected]
            parts = [f"no value for {', '.join(missing)}"] if missing else []
            parts += [f"no column is named {', '.join(extra)}"] if extra else []
            problems.add(f"row {number}", "; ".join(parts))
        result.append([row.get(n) for n in names])
    return result


# --- values to cells ---------------------------------------------------------

_FAST: dict[str, set[type]] = {"bool": {bool}, "int": {int}, "float": {float, int}, "string": {str}}


def _convert(
    values: list[list[object]], columns: tuple[Column, ...], problems: Problems, place: str, *, rows: int
) -> tuple[pa.Table, tuple[Column, ...]]:
    """Columns of Python values as a table."""
    import pyarrow as pa

    from tidelog.io.arrays import column_fits, infer_values, schema_of

    columns = tuple(
        Column(c.name, infer_values(v) if c.type == UNKNOWN else c.type)
        for c, v in zip(columns, values, strict=True)
    )
    schema = schema_of(columns)
    if not columns:
        return pa.table([pa.array([True] * min(rows, 1), pa.bool_())], schema=schema), columns
    arrays: list[pa.Array | None] = []
    for column, cells, field in zip(columns, values, schema, strict=True):
        array = None
        if column.type.kind in _FAST and not is_text(column.type):
            # Arrow alone would take 1.5 for the integer 1: the Python types are looked at first.
            if set(map(type, cells)) <= _FAST[column.type.kind]:
                try:
                    array = pa.array(cells, field.type)
                except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                    array = None
            if array is not None and not column_fits(array, column.type):
                array = None
        arrays.append(array)
    if any(array is None for array in arrays):
        _exact(values, columns, arrays, problems, place)
        problems.raise_if_any()
    return pa.table(arrays, schema=schema), columns


def _exact(
    values: list[list[object]],
    columns: tuple[Column, ...],
    arrays: list[pa.Array | None],
    problems: Problems,
    place: str,
) -> None:
    """Fill in the arrays that are missing, row by row so that problems come in the order of rows."""
    import pyarrow as pa

    todo = [i for i, array in enumerate(arrays) if array is None]
    cells: list[list[Value]] = [[] for _ in todo]
    for number, row in enumerate(zip(*(values[i] for i in todo), strict=True), 1):
        for index, value, target in zip(todo, row, cells, strict=True):
            try:
                target.append(accept(value, columns[index].type))
            except ValueError as error:
                problems.add(place.format(number), wrong_value(index, columns[index], value, str(error)))
                break
    problems.raise_if_any()
    for index, target in zip(todo, cells, strict=True):
        arrays[index] = pa.array(target, arrow_type(columns[index].type))


# --- Arrow types -------------------------------------------------------------


def _castable(source: pa.DataType, type: Type) -> bool:
    """Whether a cast from the Arrow type fails for every value that does not fit."""
    import pyarrow as pa

    if pa.types.is_integer(source):
        return type.kind in ("int", "float", "bigint")
    if pa.types.is_floating(source):
        return type.kind == "float"
    if pa.types.is_boolean(source):
        return type.kind == "bool"
    # Big integers are text in Arrow tables, ours among them.
    return _is_string(source) and (type.kind == "string" or is_text(type))


def _integer_of(value: object) -> object:
    """The integer a text stands for; anything else as it is."""
    number = read_integer(value.strip(" \t")) if isinstance(value, str) else None
    return value if number is None else number


def _is_string(source: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(source) or pa.types.is_large_string(source) or pa.types.is_string_view(source)
    )


def _type_of_arrow(source: pa.DataType) -> Type:
    """The type of an undeclared column that an Arrow column is given for."""
    import pyarrow as pa

    if pa.types.is_dictionary(source):
        return _type_of_arrow(source.value_type)
    if pa.types.is_integer(source):
        return unsigned(64) if source == pa.uint64() else signed(64)
    if pa.types.is_floating(source):
        return DOUBLE
    if pa.types.is_boolean(source):
        return BOOL
    if pa.types.is_list(source) or pa.types.is_large_list(source):
        return array_of(_type_of_arrow(source.value_type))
    if pa.types.is_struct(source):
        return struct_of(*((field.name, _type_of_arrow(field.type)) for field in source.fields))
    return STRING if _is_string(source) else UNKNOWN
