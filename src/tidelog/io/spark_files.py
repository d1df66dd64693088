"""Which facts and answers Spark's tasks read and write, and how.

Small files are read by this process, which knows the line of every mistake. So are larger text files that
are not written plainly (`execute.spark.files`), and those that Spark cannot read: facts are the same
whoever reads them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidelog.io.columnar import check_names
from tidelog.io.errors import data_error, said
from tidelog.io.lines import first_line, line_problem, wrong_header
from tidelog.io.options import COLUMNS
from tidelog.io.output import header_line, line_array
from tidelog.io.places import Place, parts, unreadable
from tidelog.program.model import Column, Relation
from tidelog.program.types import STRING, UNKNOWN
from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.io.options import Format
    from tidelog.io.writing import Sink

SMALL = 8 << 20  # bytes


# --- facts -------------------------------------------------------------------------


def facts_frame(session: object, relation: Relation, place: Place, small: int = SMALL) -> DataFrame | None:
    """A DataFrame of the facts at a place; None where this process should read them. Raises DataError."""
    if session is None:
        return None
    spark = cast("SparkSession", session)
    here = place.here
    if here is not None and not place.for_spark:
        if relation.key or not relation.columns or not here.exists():
            return None
        if not place.options and not _is_larger(here, small):
            return None
    if place.is_text:
        return _text_frame(spark, relation, place)
    from tidelog.execute.spark.files import read_frame, with_floats
    from tidelog.execute.spark.schema import CHANGE_COLUMNS, outward_frame

    try:
        frame = read_frame(spark, place.format, _address(place), place.table, place.options)
        names = frame.columns
    except Exception as error:
        if here is not None and not place.for_spark:
            return None
        raise unreadable(relation, place, said(error)) from error
    if place.format == "json":
        if not names:
            return outward_frame(spark, relation, None)
        found = [name for name in names if name not in CHANGE_COLUMNS]
        check_names(f"cannot read the facts of {relation.name} in {place}", found, relation.columns)
        schema = with_floats(frame.schema, relation.columns)
        if schema != frame.schema:
            return read_frame(spark, place.format, _address(place), "", place.options, schema)
    return frame


def stream_frame(session: object, relation: Relation, place: Place, *, changes: bool) -> DataFrame:
    """A stream of the facts that come to a place, or of their changes. Raises DataError."""
    from tidelog.execute.spark.files import read_frame, read_lines, read_stream, with_floats
    from tidelog.execute.spark.schema import CHANGE_COLUMNS, CHANGE_TYPE, schema_of

    spark, address = cast("SparkSession", session), _address(place)
    columns = (*relation.columns, *([Column(CHANGE_TYPE, STRING)] if changes else []))
    try:
        if place.is_text:
            return read_lines(
                spark,
                address,
                columns,
                place.text.delimiter,
                place.text.quoted,
                _first(columns, place),
                stream=True,
            ).rows
        schema = None
        if not place.table and place.format in COLUMNS:
            there = read_frame(spark, place.format, address, "", place.options) if _has_files(place) else None
            schema = schema_of(replace(relation, columns=columns)) if there is None else there.schema
            if place.format == "json":
                names = [name for name in schema.names if name not in CHANGE_COLUMNS[1:]]
                check_names(f"cannot read the facts of {relation.name} in {place}", names, columns)
                schema = with_floats(schema, columns)
        return read_stream(spark, place.format, address, place.table, place.options, schema)
    except TidelogError:
        raise
    except Exception as error:
        raise unreadable(relation, place, said(error)) from error


def _has_files(place: Place) -> bool:
    here = place.here
    return here is None or bool(parts(here))


def _is_larger(path: Path, size: int) -> bool:
    files = parts(path)
    return all(f.is_file() for f in files) and sum(f.stat().st_size for f in files) > size


def _text_frame(spark: SparkSession, relation: Relation, place: Place) -> DataFrame | None:
    from tidelog.execute.spark.files import read_lines

    here, text, columns = place.here, place.text, relation.columns
    if any(c.type == UNKNOWN for c in columns) or (text.quoted and len(text.delimiter) != 1):
        if here is None:
            raise unreadable(relation, place, "text elsewhere needs columns whose types are declared")
        return None
    header: str | Callable[[str], str] | None = _first(columns, place)
    count = 0
    if here is not None:
        header, count = _header(here, relation, text)
        if header is None and count:
            return None
    lines = read_lines(spark, _address(place), columns, text.delimiter, text.quoted, header)
    try:
        doubt = lines.doubts.first()
        if doubt is None and isinstance(header, str) and lines.headers.count() != count:
            return None
    except Exception as error:
        if here is not None:
            return None
        raise unreadable(relation, place, said(error)) from error
    if doubt is None:
        return lines.rows
    return None if here is not None else _refuse(relation, place, doubt[0])


def _first(columns: Sequence[Column], place: Place) -> Callable[[str], str] | None:
    return None if place.text.header == "none" else first_line(columns, place.text)


def _header(path: Path, relation: Relation, text: Format) -> tuple[str | None, int]:
    """The line that is the header of files, and of how many; (None, 1) where they have different ones."""
    found = set()
    kind = first_line(relation.columns, text)
    count = 0
    for file in parts(path):
        if text.header == "none" or not file.stat().st_size:
            continue
        with file.open("rb") as stream:
            first = stream.readline().removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").decode(errors="replace")
        match kind(first):
            case "wrong":
                heading = f"cannot read the facts of {relation.name}"
                raise wrong_header(heading, file, first, relation.columns, text)
            case "header":
                found.add(first)
                count += 1
    return (found.pop(), count) if len(found) == 1 else (None, count)


def _refuse(relation: Relation, place: Place, told: str) -> DataFrame:
    sentence, hint = line_problem(told, relation.columns)
    heading = f"cannot read the facts of {relation.name} in {place}"
    raise data_error("TL0501", f"{heading}: a wrong line", [f"  --> {sentence}"], hint=hint)


# --- answers -----------------------------------------------------------------------


def write_rows(sink: Sink, path: Path | None) -> None:
    """Write tuples of Spark's by its tasks: to a new path here, or where the place is."""
    from tidelog.execute.spark.files import write_frame, write_lines

    rows, place = sink.tuples, sink.place
    mode = sink.mode if path is None else "error"
    address = _address(place) if path is None else _local(path)
    if not place.is_text:
        write_frame(rows.frame(), place.format, address, place.table, mode, place.options)
    else:
        frame = rows.read()
        if path is not None and frame is not None and not sink.parts:
            _write_one(sink, frame, path)
        else:
            header = header_line(sink.relation, place.text).decode().removesuffix("\n") or None
            lines = _writer(sink)
            write_lines(rows.frame() if frame is None else frame, lines, header, address, mode)
    if path is not None and not path.exists():
        raise data_error(
            "TL0503",
            f"cannot write {sink.relation.name}: what Spark's tasks write is not to be seen here",
            hint='name a path that all machines have, or a file system that Spark knows: path="hdfs://..."',
        )


def _write_one(sink: Sink, frame: DataFrame, path: Path) -> None:
    """Write text in order as one file: sorted part files, one after the other."""
    from tidelog.execute.spark.files import sorted_frame, write_lines

    pieces = path.with_name(path.name + ".parts")
    write_lines(sorted_frame(frame, sink.relation), _writer(sink), None, _local(pieces), "error")
    if not pieces.exists():
        return
    with path.open("wb") as whole:
        whole.write(header_line(sink.relation, sink.place.text))
        for part in parts(pieces):
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, whole, 1 << 20)
            part.unlink()
    shutil.rmtree(pieces)


def _writer(sink: Sink) -> Callable[[pa.RecordBatch], pa.Array]:
    return partial(_lines, format=sink.place.text, hidden=not sink.relation.columns)


def _lines(batch: pa.RecordBatch, format: Format, hidden: bool) -> pa.Array:
    """In a task: the text of rows."""
    import pyarrow as pa

    return pa.array(["()"] * batch.num_rows) if hidden else line_array(batch.columns, format, "")


def _address(place: Place) -> str:
    here = place.here
    return place.path if here is None else _local(here)


def _local(path: Path) -> str:
    """A path of this machine as Spark has to be told of it, whatever its own file system is."""
    return f"file://{path.absolute()}"
