"""Answers as text, in files (`writing`) and on the terminal.

There is one line for each tuple, fields separated by tabs, sorted, nothing quoted
unless `rfc4180=true` asks for it: what Soufflé writes, but in a fixed order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tidelog.io.options import Format, read_options, text_format
from tidelog.io.places import output_place
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 16
RULE = "-" * 15
DOUBLE_RULE = "=" * 15


def text_lines(relation: Relation, table: pa.Table, format: Format) -> Iterator[bytes]:
    """The text of a table, sorted, in pieces of many lines."""
    from tidelog.io.sort import sorted_table

    yield header_line(relation, format)
    if not relation.columns:
        yield b"()\n" * min(table.num_rows, 1)
        return
    for batch in sorted_table(table, relation.columns).to_batches(max_chunksize=_BATCH):
        # The text of all lines, one after the other, is the data buffer of this array.
        yield line_array(batch.columns, format, "\n").buffers()[2].to_pybytes()


def header_line(relation: Relation, format: Format) -> bytes:
    """The heading of a file; nothing where it has none."""
    names = format.delimiter.join(c.name for c in relation.columns)
    return names.encode() + b"\n" if format.header in ("skip", "names") else b""


def line_array(columns: list[pa.Array], format: Format, end: str) -> pa.Array:
    """The lines of a batch, each with its end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def large(text: str) -> pa.Scalar:
        return pa.scalar(text, pa.large_string())

    fields = [pc.cast(column, pa.large_string()) for column in columns]
    if format.quoted:
        fields = [_quoted(column, format.delimiter) for column in fields]
    fields[-1] = pc.binary_join_element_wise(fields[-1], large(end), large(""))
    return pc.binary_join_element_wise(*fields, large(format.delimiter))


def output_text(relation: Relation) -> Format:
    """How an output relation is written as text."""
    place = output_place(relation, Path())
    if place is not None:
        return place.text
    return text_format("facts", read_options(relation.name, "output", relation.output_options))


def _quoted(column: pa.Array, delimiter: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    quote, nothing = (pa.scalar(text, pa.large_string()) for text in ('"', ""))
    doubled = pc.replace_substring(column, '"', '""')
    needed = pc.match_substring_regex(column, f'["\\r\\n]|{re.escape(delimiter)}')
    return pc.if_else(needed, pc.binary_join_element_wise(quote, doubled, quote, nothing), column)


def ambiguous_columns(relation: Relation, table: pa.Table) -> list[str]:
    """Columns whose text cannot be told apart when read again: they hold delimiters or line ends."""
    import pyarrow.compute as pc

    format = output_text(relation)
    if format.quoted:
        return []
    pattern = f"[\\r\\n]|{re.escape(format.delimiter)}"
    return [
        column.name
        for column, array in zip(relation.columns, table.columns, strict=bool(relation.columns))
        if (column.type.kind == "string" or column.type.is_nested)
        and pc.any(pc.match_substring_regex(array, pattern)).as_py()
    ]


def delimiter_words(relation: Relation) -> str:
    """What a relation's fields are separated by, for a message."""
    delimiter = output_text(relation).delimiter
    return {"\t": "tabs", " ": "blanks"}.get(delimiter, f"the delimiter {delimiter!r}")


def print_relation(relation: Relation, table: pa.Table, stream: IO[bytes]) -> None:
    """A relation between rules, as Soufflé's `-D-` prints it."""
    stream.write(f"{RULE}\n{relation.name}\n{DOUBLE_RULE}\n".encode())
    for piece in text_lines(relation, table, output_text(relation)):
        stream.write(piece)
    stream.write(f"{DOUBLE_RULE}\n".encode())
