"""Parquet, JSON and ORC files, read and written in this process by Arrow.

JSON is an object on each line, with the names of the columns as keys. A path is a file, or a
directory of part files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.io.errors import Problems, data_error, wrong_arity
from tidelog.io.places import parts, unreadable
from tidelog.program.arrow import is_text
from tidelog.program.model import Column, Relation

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(relation: Relation, format: str, path: Path) -> tuple[pa.Table, tuple[Column, ...]]:
    """The facts at a path, and their columns with their types. Raises DataError, OSError."""
    import pyarrow as pa

    from tidelog.io.arrays import table_of
    from tidelog.io.objects import objects_of
    from tidelog.io.rows import fits_columns, table_of_arrow, table_of_objects

    heading = f"cannot read the facts of {relation.name} in {path}"
    problems = Problems(heading, "TL0501", "malformed")
    try:
        tables = [_read(format, file) for file in parts(path)]
        table = pa.concat_tables([t for t in tables if t.num_columns] or tables[:1])
    except pa.ArrowException as error:
        if format == "json":
            return table_of_objects(
                relation.columns, objects_of(relation, path), problems, f"{path}, row {{}}"
            )
        raise unreadable(relation, path, str(error)) from error
    if format == "json":
        if not table.num_rows:
            return table_of([[] for _ in relation.columns], relation.columns), relation.columns
        check_names(heading, table.column_names, relation.columns)
    if format == "json" and not fits_columns(table, relation.columns):
        return table_of_objects(relation.columns, objects_of(relation, path), problems, f"{path}, row {{}}")
    table = _without_decimals(table, relation.columns)
    return table_of_arrow(relation.columns, table, problems, f"{path}, row {{}}")


def _without_decimals(table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
    """A table whose decimals without a fraction, as Spark writes long integers, are text or integers."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            texts = table.column(i).cast(pa.string())
            text = i < len(columns) and is_text(columns[i].type)
            try:
                table = table.set_column(i, field.name, texts if text else texts.cast(pa.int64()))
            except pa.ArrowInvalid:
                table = table.set_column(i, field.name, texts.cast(pa.uint64()))
    return table


def check_names(heading: str, names: list[str], columns: tuple[Column, ...]) -> None:
    """Raise DataError unless the keys of objects are the columns: there is no order to go by."""
    if sorted(names) != sorted(c.name for c in columns):
        what = "the keys of its objects are not the columns"
        if len(names) != len(columns):
            what = wrong_arity(len(names), columns)
        notes = [f"the keys are {', '.join(names)}", f"the columns are {', '.join(c.name for c in columns)}"]
        raise data_error("TL0501", f"{heading}: {what}", notes=notes)


def _read(format: str, file: Path) -> pa.Table:
    import pyarrow as pa

    match format:
        case "parquet":
            import pyarrow.parquet as pq

            return pq.ParquetFile(file).read()
        case "orc":
            import pyarrow.orc as orc

            return orc.ORCFile(file).read()
        case _:
            import pyarrow.json as json

            if not file.stat().st_size:  # which Arrow takes for a mistake
                return pa.table({})
            return json.read_json(file)


def write_table(table: pa.Table, relation: Relation, format: str, path: Path) -> None:
    """Write a relation to a file, sorted."""
    from tidelog.io.nested import outward_table
    from tidelog.io.sort import sorted_table

    table = outward_table(sorted_table(table, relation.columns), relation)
    match format:
        case "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, path)
        case "orc":
            import pyarrow.orc as orc

            orc.write_table(_signed(table), path)
        case _:
            from tidelog.io.objects import write_objects

            write_objects(table, path)


def _signed(table: pa.Table) -> pa.Table:
    """A table without unsigned integers, which ORC does not have."""
    import pyarrow as pa

    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    wider[pa.uint64()] = pa.decimal128(20, 0)

    def signed(type: pa.DataType) -> pa.DataType:
        if pa.types.is_list(type):
            return pa.list_(signed(type.value_type))
        if pa.types.is_struct(type):
            return pa.struct([field.with_type(signed(field.type)) for field in type.fields])
        return wider.get(type, type)

    return table.cast(pa.schema([field.with_type(signed(field.type)) for field in table.schema]))
