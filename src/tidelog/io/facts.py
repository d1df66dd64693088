"""Reading the facts of input relations, in this process.

For a relation `R` the first of `R.facts` (tab-separated), `R.csv` (comma-separated, quoted as in
RFC 4180, with or without a header line), `R.parquet`, `R.json` (an object on each line) and `R.orc` is
read, each a file or a directory of part files; the options of `.input` say otherwise (`options`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.io.errors import data_error
from tidelog.io.options import FORMATS
from tidelog.io.places import Place, find_facts, parts, unreadable
from tidelog.program.model import Column, Relation
from tidelog.program.types import BIGINT
from tidelog.syntax.errors import DataError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Facts", "find_facts", "read_facts"]


@dataclass(frozen=True)
class Facts:
    """The facts of one relation: their table, and its columns with their types."""

    relation: str
    columns: tuple[Column, ...]
    table: pa.Table
    place: Place


def read_facts(relation: Relation, place: Place) -> Facts:
    """Read facts; columns of unknown type take theirs from all of them."""
    path = place.here
    if path is None or place.for_spark:
        raise only_spark(f"cannot read the facts of {relation.name}", place)
    try:
        if place.is_text:
            return _read_text(relation, place, path)
        from tidelog.io.columnar import read_table

        table, columns = read_table(relation, place.format, path)
    except TidelogError:
        raise
    except OSError as error:
        raise unreadable(relation, path, error.strerror or str(error)) from error
    return Facts(relation.name, columns, table, place)


def only_spark(heading: str, place: Place) -> DataError:
    """The error of a place that this process cannot read or write."""
    if place.table:
        what = f"{place.table} is a table of Spark's catalog"
    elif place.here is None:
        what = f"{place.path} is on a file system that Spark knows"
    else:
        what = f"{place.format} is a format that Spark may know; here there are {', '.join(FORMATS)}"
    return data_error("TL0507", f"{heading}: {what}", hint="run it on Spark: --engine spark")


def _read_text(relation: Relation, place: Place, path: Path) -> Facts:
    import pyarrow as pa

    from tidelog.io.arrays import TooLong, schema_of, settle
    from tidelog.io.text import read_text

    files = parts(path)

    def read(columns: tuple[Column, ...]) -> pa.Table:
        tables = [read_text(file, relation.name, columns, place.text) for file in files]
        schema = schema_of(columns)  # Arrow's reader does not say that nothing is null
        return tables[0] if len(tables) == 1 else pa.concat_tables(table.cast(schema) for table in tables)

    table = read(relation.columns)
    if not relation.columns:
        return Facts(relation.name, (), table.slice(0, 1), place)
    try:
        table, types = settle(table, relation.columns)
    except TooLong as error:  # read again as what it would be, which names the wrong rows
        read(tuple(replace(c, type=BIGINT) if c == error.column else c for c in relation.columns))
        raise
    columns = tuple(Column(c.name, t) for c, t in zip(relation.columns, types, strict=True))
    return Facts(relation.name, columns, table, place)
