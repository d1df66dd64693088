"""The options of `.input` and `.output`: Soufflé's, and ours for what Spark reads and writes.

| option                               | means                                                             |
|--------------------------------------|-------------------------------------------------------------------|
| `IO`                                 | `file`; of an output also `stdout`                                |
| `filename`                           | a file in the directory of facts or answers, tab-separated text   |
| `delimiter`, `headers`, `rfc4180`    | how text is written                                               |
| `format`                             | facts, csv, parquet, json, orc, or another that Spark knows       |
| `path`                               | as `filename`, of any format; also a URI that Spark knows         |
| `table`                              | a table of Spark's catalog                                        |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidelog.io.errors import data_error

TEXT_OPTIONS = ("delimiter", "headers", "rfc4180")
KNOWN = ("IO", "filename", *TEXT_OPTIONS, "format", "path", "table")
TEXT = ("facts", "csv")
COLUMNS = ("parquet", "json", "orc")
FORMATS = TEXT + COLUMNS
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}


@dataclass(frozen=True)
class Options:
    """Options that were given; None where one was not."""

    io: str = "file"
    filename: str | None = None
    delimiter: str | None = None
    headers: bool | None = None
    rfc4180: bool | None = None
    format: str | None = None
    path: str | None = None
    table: str | None = None


@dataclass(frozen=True)
class Format:
    """How a text file is written.

    `header` is "none", "skip" (the first line is not data; one is written), "names" (the same, and it has
    to be the names of the columns) or "detect" (it is not data when it is these names; none is written).
    """

    delimiter: str = "\t"
    quoted: bool = False
    header: str = "none"


def read_options(relation: str, direction: str, given: Sequence[tuple[str, str]]) -> Options:
    """The options of a relation. `direction` is input or output (which may go to `stdout`)."""
    values = dict(given)
    place = f".{direction} {relation}"
    for key in values:
        if key not in KNOWN:
            raise data_error(
                "TL0507", f"{place}: there is no option {key}", notes=[f"options are {', '.join(KNOWN)}"]
            )
    kinds = ("file",) if direction == "input" else ("file", "stdout")
    io = values.get("IO", "file")
    if io not in kinds:
        raise data_error(
            "TL0507", f"{place}: IO={io} is not supported", notes=[f"IO is {' or '.join(kinds)}"]
        )
    _check_together(place, values)
    text = text_options(place, values)
    return Options(
        io=io,
        filename=values.get("filename"),
        delimiter=text.delimiter,
        headers=text.headers,
        rfc4180=text.rfc4180,
        format=values.get("format"),
        path=values.get("path"),
        table=values.get("table"),
    )


def text_options(place: str, values: Mapping[str, str]) -> Options:
    """How text is written, of the options given somewhere; others are passed over."""
    delimiter = values.get("delimiter")
    if delimiter is not None:
        delimiter = _ESCAPES.get(delimiter, delimiter)
        if delimiter in ("", "\n", "\r"):
            raise data_error("TL0507", f"{place}: the delimiter is empty or the end of a line")
    return Options(
        delimiter=delimiter,
        headers=_flag(place, "headers", values.get("headers")),
        rfc4180=_flag(place, "rfc4180", values.get("rfc4180")),
    )


def text_format(format: str, options: Options, headers: str = "skip") -> Format:
    """How the text of a format is written; `headers` is what a header is where there is one."""
    comma = format == "csv"
    plain = "detect" if comma else "none"
    return Format(
        delimiter=options.delimiter or ("," if comma else "\t"),
        quoted=comma if options.rfc4180 is None else options.rfc4180,
        header=headers if options.headers else ("none" if options.headers is False else plain),
    )


def _check_together(place: str, values: Mapping[str, str]) -> None:
    """Raise DataError where options exclude each other."""
    places = [key for key in ("filename", "path", "table") if key in values]
    if len(places) > 1:
        raise data_error("TL0507", f"{place}: {' and '.join(places)} are two places; give one of them")
    if "table" in values and "format" in values:
        raise data_error("TL0507", f"{place}: a table has a format already; leave format out")
    if "table" in values or values.get("format", "facts") not in TEXT:
        what = "a table" if "table" in values else values["format"]
        for key in TEXT_OPTIONS:
            if key in values:
                raise data_error("TL0507", f"{place}: {key} is for text, and this is {what}")


def _flag(place: str, key: str, value: str | None) -> bool | None:
    if value is not None and value not in ("true", "false"):
        raise data_error("TL0507", f"{place}: {key}={value} is neither true nor false")
    return None if value is None else value == "true"
