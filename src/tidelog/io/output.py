"""Answers as text: files that appear all together or not at all, and the terminal.

A file holds one line for each tuple, fields separated by tabs, sorted, nothing quoted
unless `rfc4180=true` asks for it: what Soufflé writes, but in a fixed order.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tidelog.io.errors import data_error
from tidelog.io.options import Options, read_options
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 16
RULE = "-" * 15
DOUBLE_RULE = "=" * 15

Output = tuple[Relation, "pa.Table"]


def text_lines(relation: Relation, table: pa.Table, options: Options) -> Iterator[bytes]:
    """The text of a table, sorted, in pieces of many lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tidelog.io.sort import sorted_table

    def large(text: str) -> pa.Scalar:
        return pa.scalar(text, pa.large_string())

    delimiter = options.delimiter or "\t"
    if options.headers:
        yield delimiter.join(c.name for c in relation.columns).encode() + b"\n"
    if not relation.columns:
        yield b"()\n" * min(table.num_rows, 1)
        return
    for batch in sorted_table(table, relation.columns).to_batches(max_chunksize=_BATCH):
        fields = [pc.cast(column, pa.large_string()) for column in batch.columns]
        if options.rfc4180:
            fields = [_quoted(column, delimiter) for column in fields]
        # The text of all lines, one after the other, is the data buffer of this array.
        fields[-1] = pc.binary_join_element_wise(fields[-1], large("\n"), large(""))
        lines = pc.binary_join_element_wise(*fields, large(delimiter))
        yield lines.buffers()[2].to_pybytes()


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

    options = read_options(relation.name, "output", relation.output_options)
    if options.rfc4180:
        return []
    pattern = f"[\\r\\n]|{re.escape(options.delimiter or chr(9))}"
    return [
        column.name
        for column, array in zip(relation.columns, table.columns, strict=bool(relation.columns))
        if column.type.kind == "string" and pc.any(pc.match_substring_regex(array, pattern)).as_py()
    ]


def delimiter_words(relation: Relation) -> str:
    """What a relation's fields are separated by, for a message."""
    delimiter = read_options(relation.name, "output", relation.output_options).delimiter or "\t"
    return {"\t": "tabs", " ": "blanks"}.get(delimiter, f"the delimiter {delimiter!r}")


def print_relation(relation: Relation, table: pa.Table, stream: IO[bytes]) -> None:
    """A relation between rules, as Soufflé's `-D-` prints it."""
    options = read_options(relation.name, "output", relation.output_options)
    stream.write(f"{RULE}\n{relation.name}\n{DOUBLE_RULE}\n".encode())
    for piece in text_lines(relation, table, options):
        stream.write(piece)
    stream.write(f"{DOUBLE_RULE}\n".encode())


# --- files -------------------------------------------------------------------


def output_path(relation: Relation, directory: Path) -> Path | None:
    """The file a relation is written to; None when its options send it to the terminal."""
    options = read_options(relation.name, "output", relation.output_options)
    return None if options.io == "stdout" else directory / (options.filename or f"{relation.name}.csv")


def check_outputs(relations: Iterable[Relation], directory: Path) -> None:
    """Raise DataError where outputs could not be written, before any work is done for them."""
    seen: dict[Path, str] = {}
    for relation in relations:
        path = output_path(relation, directory)
        if path is None:
            continue
        if path in seen:
            raise data_error("TL0503", f"{seen[path]} and {relation.name} would both be written to {path}")
        seen[path] = relation.name
        if path.is_dir():
            raise data_error("TL0503", f"cannot write {relation.name}: {path} is a directory")
        parent = next(p for p in (path.parent, *path.parent.parents) if p.exists())
        if not parent.is_dir():
            raise data_error("TL0503", f"cannot write {relation.name}: {parent} is not a directory")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise data_error("TL0503", f"cannot write {relation.name}: {parent} is not writable")


def write_files(outputs: Sequence[Output], directory: Path) -> list[Path]:
    """Write every output to its file. When anything fails, all files are as they were before."""
    check_outputs((relation for relation, _ in outputs), directory)
    try:
        with ExitStack() as cleanup:
            staged = _stage(outputs, directory, cleanup)
            _publish(staged)
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        raise data_error(
            "TL0503", f"cannot write the outputs to {directory}", notes=[f"{error.strerror or error}{place}"]
        ) from error
    return [target for _, target in staged]


def _stage(outputs: Sequence[Output], directory: Path, cleanup: ExitStack) -> list[tuple[Path, Path]]:
    """Write the files beside their targets: the new file and where it belongs, for each."""
    stages: dict[Path, Path] = {}
    staged: list[tuple[Path, Path]] = []
    for relation, table in outputs:
        target = output_path(relation, directory)
        if target is None:
            continue
        if target.parent not in stages:
            for made in _make_directories(target.parent):
                cleanup.callback(_remove_if_empty, made)
            stage = Path(tempfile.mkdtemp(prefix=".tidelog-", dir=target.parent))
            cleanup.callback(shutil.rmtree, stage, ignore_errors=True)
            stages[target.parent] = stage
        path = stages[target.parent] / target.name
        options = read_options(relation.name, "output", relation.output_options)
        with path.open("wb") as file:
            for piece in text_lines(relation, table, options):
                file.write(piece)
        staged.append((path, target))
    return staged


def _publish(staged: list[tuple[Path, Path]]) -> None:
    """Move the new files to their places; put the old ones back when one cannot be moved."""
    moved: list[tuple[Path | None, Path]] = []
    try:
        for path, target in staged:
            old = path.with_name(path.name + ".old") if target.exists() else None
            if old is not None:
                _keep(target, old)
            os.replace(path, target)
            moved.append((old, target))
    except BaseException:
        for old, target in reversed(moved):
            if old is None:
                target.unlink()
            else:
                os.replace(old, target)
        raise


def _keep(target: Path, old: Path) -> None:
    """Give a file a second name, or a copy where file systems have no links."""
    try:
        os.link(target, old)
    except OSError:
        shutil.copy2(target, old)


def _make_directories(path: Path) -> list[Path]:
    """Make a directory with its parents; the ones that were made, outermost first."""
    missing = [p for p in (path, *path.parents) if not p.exists()][::-1]
    for directory in missing:
        directory.mkdir(exist_ok=True)
    return missing


def _remove_if_empty(directory: Path) -> None:
    """Leave no directory behind that holds nothing (after a failure)."""
    try:
        directory.rmdir()
    except OSError:
        return
