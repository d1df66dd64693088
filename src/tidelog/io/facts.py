"""Finding and reading the facts of input relations in a directory.

For a relation `R` the first of `R.facts` (tab-separated), `R.csv` (comma-separated,
quoted as in RFC 4180, with or without a header line) and `R.parquet` is read; the
options of Soufflé's `.input` say otherwise: `filename`, `delimiter`, `headers`,
`rfc4180`, `IO=file`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.io.errors import Problems, data_error
from tidelog.io.options import Options, read_options
from tidelog.program.model import Column, Relation
from tidelog.program.types import BIGINT
from tidelog.syntax.errors import DataError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".facts", ".csv", ".parquet")


@dataclass(frozen=True)
class Facts:
    """The facts of one relation: their table, and its columns with their types."""

    relation: str
    columns: tuple[Column, ...]
    table: pa.Table
    path: Path


def find_facts(relations: Iterable[Relation], directory: Path) -> dict[str, Path]:
    """The file of each relation. Raises one DataError that names all relations without one."""
    found: dict[str, Path] = {}
    missing: list[tuple[str, list[Path]]] = []
    for relation in relations:
        options = read_options(relation.name, "input", relation.input_options)
        names = [options.filename] if options.filename else [relation.name + s for s in SUFFIXES]
        paths = [directory / name for name in names]
        path = next((p for p in paths if p.exists() and not p.is_dir()), None)  # a pipe will do
        if path is None:
            _refuse_what_is_no_file(relation, paths)
            missing.append((relation.name, paths))
        else:
            found[relation.name] = path
    if missing:
        notes = [f"for {name} looked for {', '.join(map(str, paths))}" for name, paths in missing]
        if not directory.is_dir():
            notes.append(f"{directory} is not a directory")
        raise data_error(
            "TL0502",
            f"no facts for {', '.join(name for name, _ in missing)}",
            notes=notes,
            hint="an empty file stands for no facts; -F says in which directory facts are",
        )
    return found


def _refuse_what_is_no_file(relation: Relation, paths: Iterable[Path]) -> None:
    """Name a directory or a link to nothing that has the name of a file of facts."""
    for path in paths:
        if path.is_dir():
            raise _unreadable(relation, path, "it is a directory")
        if path.is_symlink():
            raise _unreadable(relation, path, f"it is a link to {path.readlink()}, which is not there")


def read_facts(relation: Relation, path: Path) -> Facts:
    """Read a file of facts; columns of unknown type take theirs from the whole file."""
    options = read_options(relation.name, "input", relation.input_options)
    try:
        if path.suffix == ".parquet":
            return _read_parquet(relation, path)
        return _read_text(relation, path, options)
    except TidelogError:
        raise
    except OSError as error:
        raise _unreadable(relation, path, error.strerror or str(error)) from error


def _read_text(relation: Relation, path: Path, options: Options) -> Facts:
    from tidelog.io.arrays import TooLong, settle
    from tidelog.io.text import Format, read_text

    comma = path.suffix == ".csv" and options.filename is None
    format = Format(
        delimiter=options.delimiter or ("," if comma else "\t"),
        quoted=comma if options.rfc4180 is None else options.rfc4180,
        header="skip" if options.headers else ("detect" if comma else "none"),
    )
    table = read_text(path, relation.name, relation.columns, format)
    if not relation.columns:
        return Facts(relation.name, (), table, path)
    try:
        table, types = settle(table, relation.columns)
    except TooLong as error:  # read again as what it would be, which names the wrong rows
        columns = tuple(replace(c, type=BIGINT) if c == error.column else c for c in relation.columns)
        read_text(path, relation.name, columns, format)
        raise
    columns = tuple(Column(c.name, t) for c, t in zip(relation.columns, types, strict=True))
    return Facts(relation.name, columns, table, path)


def _read_parquet(relation: Relation, path: Path) -> Facts:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tidelog.io.rows import table_of_arrow

    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise _unreadable(relation, path, str(error)) from error
    problems = Problems(f"cannot read the facts of {relation.name} in {path}", "TL0501", "malformed")
    table, columns = table_of_arrow(relation.columns, table, problems, f"{path}, row {{}}")
    return Facts(relation.name, columns, table, path)


def _unreadable(relation: Relation, path: Path, reason: str) -> DataError:
    return data_error("TL0503", f"cannot read the facts of {relation.name} in {path}", notes=[reason])
