"""Single lines of text: what the first one of a file is, and what is wrong with one that Spark has met.

Spark's tasks are given `first_line` by value, so that it works where Tidelog is not installed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence

from tidelog.io.errors import data_error, wrong_arity, wrong_value
from tidelog.io.options import Format
from tidelog.io.places import Place
from tidelog.io.values import parse_text, shown
from tidelog.program.model import Column
from tidelog.syntax.errors import DataError

_PLAINLY = "numbers have to be in decimal here, and quoted fields within a line"


def first_line(columns: Sequence[Column], format: Format) -> Callable[[str], str]:
    """A function of the first line of a file: it is a `header`, a `row`, or a `wrong` header."""
    names = [column.name for column in columns]
    delimiter, quoted, rule = format.delimiter, format.quoted and len(format.delimiter) == 1, format.header

    def kind(line: str) -> str:
        fields = line.split(delimiter)
        if quoted:
            try:
                fields = next(csv.reader([line], delimiter=delimiter, strict=True), [""])
            except csv.Error:
                fields = []
        if rule == "none" or fields == names:
            return "row" if rule == "none" else "header"
        if rule == "detect":
            return "row"
        # What is to be skipped may say anything, but not that the columns are in another order.
        return "wrong" if rule == "names" or sorted(fields) == sorted(names) else "header"

    return kind


def wrong_header(
    heading: str, file: object, line: str, columns: Sequence[Column], format: Format
) -> DataError:
    """The error of a header that is not the names of the columns."""
    return data_error(
        "TL0501",
        f"{heading}: a header that is not the columns",
        [f"  --> {file}:1: {_header_words(line)}"],
        [f"the columns are {shown(format.delimiter.join(column.name for column in columns))}"],
        "a header has the names of the columns, in their order",
    )


def _header_words(line: str) -> str:
    return f"the header is {shown(line)}"


def line_problem(told: str, columns: Sequence[Column]) -> tuple[str, str]:
    """What is wrong with a line, from what `execute.spark.files` tells of it: a sentence, and a hint."""
    path, kind, count, index, text = told.split("\n", 4)
    file = Place(path=path).here or path
    if kind == "header":
        names = ", ".join(column.name for column in columns)
        return f"{file}:1: {_header_words(text)}", f"a header has the names of the columns: {names}"
    if not text:
        return f"{file}: a blank line", "a file may end with one line end"
    if int(count) < 0:
        return f"{file}: {shown(text)} is not well quoted", _PLAINLY
    if int(count) != len(columns):
        return f"{file}: {shown(text)} has {wrong_arity(int(count), columns)}", _PLAINLY
    if int(index) < 0:
        return f"{file}: {shown(text)} is not plain UTF-8 text", "lines end in LF or CRLF"
    column = columns[int(index)]
    try:
        parse_text(text, column.type)
    except ValueError as error:
        return (
            f"{file}: {wrong_value(int(index), column, text, str(error))}",
            "put the line right, and run again",
        )
    return f"{file}: {wrong_value(int(index), column, text, 'is not written plainly')}", _PLAINLY
