"""Delimited text into tables: Arrow's reader first, an exact pass where it does not succeed.

What a file may look like: lines end in LF or CRLF; blank lines at the end are allowed
(but a relation of one string column has a row for every line, a blank one being the
empty string); nothing is null, `NA` is a string like any other; without `quoted`, quote
characters are ordinary characters.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from tidelog.io.arrays import column_fits, schema_of, table_of
from tidelog.io.errors import Problems, wrong_arity, wrong_value
from tidelog.io.lines import first_line, wrong_header
from tidelog.io.options import Format
from tidelog.io.values import parse_text
from tidelog.program.model import Column, Value
from tidelog.program.types import STRING, UNKNOWN

_BATCH = 1 << 16
_BOM = b"\xef\xbb\xbf"


def read_text(path: Path, relation: str, columns: tuple[Column, ...], format: Format) -> pa.Table:
    """The rows of a file. Columns of unknown type are read as strings."""
    data = path.read_bytes()
    start = len(_BOM) if data.startswith(_BOM) else 0
    end = len(data)
    if [c.type for c in columns] != [STRING]:  # there a blank line is an empty string
        while end > start and data[end - 1] in b"\r\n":
            end -= 1
    body = pa.py_buffer(data).slice(start, end - start)
    skipped = 0
    if format.header != "none" and end > start:
        skipped, width = _header(path, relation, data, start, columns, format)
        body = body.slice(min(width, body.size))
    if body.size == 0:
        return table_of([[] for _ in columns], columns)
    table = _read_fast(data, body, columns, format)
    return table if table is not None else _read_exact(path, relation, body, columns, format, skipped)


def _header(
    path: Path, relation: str, data: bytes, start: int, columns: tuple[Column, ...], format: Format
) -> tuple[int, int]:
    """How many lines (0 or 1) and bytes the heading takes."""
    line_end = data.find(b"\n", start)
    line_end = len(data) if line_end < 0 else line_end + 1
    line = data[start:line_end].decode(errors="surrogateescape").removesuffix("\n").removesuffix("\r")
    match first_line(columns, format)(line):
        case "wrong":
            raise wrong_header(f"cannot read the facts of {relation}", path, line, columns, format)
        case "header":
            return 1, line_end - start
        case _:
            return 0, 0


# --- the fast path -----------------------------------------------------------


def _read_fast(data: bytes, body: pa.Buffer, columns: tuple[Column, ...], format: Format) -> pa.Table | None:
    """The table by Arrow's reader, or None where it fails or is not to be trusted."""
    if not columns or len(format.delimiter) != 1 or not format.delimiter.isascii():
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None  # Arrow takes a lone CR for the end of a line
    if format.quoted and b'"' in data and not _well_quoted(body, format.delimiter):
        return None  # Arrow takes `"x"z` for xz
    names = [str(i) for i in range(len(columns))]
    types = schema_of(columns).types
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(body),
            read_options=pa_csv.ReadOptions(column_names=names, block_size=1 << 22),
            parse_options=pa_csv.ParseOptions(
                delimiter=format.delimiter,
                quote_char='"' if format.quoted else False,
                double_quote=format.quoted,
                escape_char=False,
                newlines_in_values=format.quoted,
                ignore_empty_lines=False,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict(zip(names, types, strict=True)),
                null_values=[],
                true_values=["true", "1"],
                false_values=["false", "0"],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    hexadecimal = b"0x" in data or b"0X" in data
    fits = (
        column_fits(array, column.type, hexadecimal=hexadecimal)
        for array, column in zip(table.columns, columns, strict=True)
    )
    return table.rename_columns([c.name for c in columns]) if all(fits) else None


def _well_quoted(body: pa.Buffer, delimiter: str) -> bool:
    """Whether every quote begins a field or is part of one that ends where its last quote is."""
    d = re.escape(delimiter.encode())
    field = re.compile(rb'[^"]*+(?<![^%b\n])"[^"]*+(?:""[^"]*+)*+"(?=%b|\r?\n|\Z)' % (d, d))
    data, place = memoryview(body), 0
    while found := field.match(data, place):
        place = found.end()
    return re.compile(rb'"').search(data, place) is None


# --- the exact path ----------------------------------------------------------


def _read_exact(
    path: Path, relation: str, body: pa.Buffer, columns: tuple[Column, ...], format: Format, skipped: int
) -> pa.Table:
    """The table value by value; raises DataError naming the first wrong rows."""
    problems = Problems(f"cannot read the facts of {relation}", "TL0501", "malformed")
    problems.hint = _delimiter_hint(path, body, columns, format)
    # Bytes that are not UTF-8 become lone surrogates, which no column accepts.
    lines = io.TextIOWrapper(pa.BufferReader(body), "utf-8", "surrogateescape", newline="\n")
    tables = []
    cells: list[list[Value]] = [[] for _ in columns]
    count = 0
    for number, fields in _rows(lines, format):
        place = f"{path}:{number + skipped}"
        if isinstance(fields, str):
            problems.add(place, fields)
            continue
        row = _parse_row(place, fields, columns, problems)
        if row is None:
            continue
        count += 1
        for column, cell in zip(cells, row, strict=True):
            column.append(cell)
        if count % _BATCH == 0:
            tables.append(table_of(cells, columns))
            cells = [[] for _ in columns]
    problems.raise_if_any()
    if not columns:
        return table_of([], columns, rows=min(count, 1))
    return pa.concat_tables([*tables, table_of(cells, columns)])


def _parse_row(
    place: str, fields: list[str], columns: tuple[Column, ...], problems: Problems
) -> list[Value] | None:
    """The cells of a row, or None after noting what is wrong with it."""
    if not columns and fields == ["()"]:
        return []
    if columns and fields == [""] and [c.type for c in columns] not in ([STRING], [UNKNOWN]):
        problems.add(place, "a blank line")
        return None
    if len(fields) != len(columns) or not columns:
        expected = (
            wrong_arity(len(fields), columns) if columns else "only () stands for a row without columns"
        )
        problems.add(place, expected)
        return None
    row: list[Value] = []
    for index, (field, column) in enumerate(zip(fields, columns, strict=True)):
        try:
            row.append(parse_text(field, column.type))
        except ValueError as error:
            problems.add(place, wrong_value(index, column, field, str(error)))
            return None
    return row


def _rows(lines: io.TextIOBase, format: Format) -> Iterator[tuple[int, list[str] | str]]:
    """Each row's line number and fields, or instead of the fields what is wrong."""
    if not format.quoted:
        for number, line in enumerate(lines, 1):
            yield number, line.removesuffix("\n").removesuffix("\r").split(format.delimiter)
        return
    if len(format.delimiter) != 1:
        yield 1, "rfc4180 needs a delimiter of one character"
        return
    limit = csv.field_size_limit(sys.maxsize)  # a field may be longer than csv's 128 KiB
    try:
        reader = csv.reader(lines, delimiter=format.delimiter, strict=True)
        begin = 1
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield begin, f"not well quoted ({error})"
                return  # after a wrong quote, where rows begin is a guess
            yield begin, fields or [""]
            begin = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _delimiter_hint(path: Path, body: pa.Buffer, columns: tuple[Column, ...], format: Format) -> str | None:
    """A guess at what went wrong when lines have a wrong number of fields."""
    first = body.slice(0, min(body.size, 4096)).to_pybytes().split(b"\n")[0]
    # What `-D` wrote and `-F` reads: values may hold commas, so the tabs alone are counted.
    tabs_fit = 0 < len(columns) - 1 == first.count(b"\t") != first.count(b",")
    if tabs_fit and format.delimiter == "," and path.suffix == ".csv":
        name = path.with_suffix(".facts").name
        return f"it looks tab-separated, as tidelog run writes {path.name}: rename it to {name}"
    if len(columns) < 2 or format.delimiter.encode() in first:
        return None
    for delimiter, name in ((b"\t", "tabs"), (b",", "commas"), (b";", "semicolons"), (b" ", "blanks")):
        if first.count(delimiter) == len(columns) - 1:
            usual = (
                "R.facts is read with tabs, R.csv with commas, unless .input R(delimiter=...) says otherwise"
            )
            return f"its fields seem to be separated by {name}; {usual}"
    return None
