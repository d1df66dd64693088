"""Places: where the tuples of a relation are read from, and where they are written to.

A place is a path, of a file or of a directory of part files as Spark writes them, or a table of
Spark's catalog. The options of `.input` and `.output` say which; so does a pipeline file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from tidelog.io.errors import data_error
from tidelog.io.options import COLUMNS, FORMATS, TEXT, Format, Options, read_options, text_format
from tidelog.program.model import Relation
from tidelog.syntax.errors import DataError

_TABS = Format()
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True)
class Place:
    """Files of a format at a path, or a table; `text` says how text is written, `options` are Spark's."""

    format: str = ""
    path: str = ""
    table: str = ""
    text: Format = _TABS
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def here(self) -> Path | None:
        """The path, where it is one of this machine; None for a table and for other file systems."""
        if self.table:
            return None
        if self.path.startswith("file:"):
            return Path("/" + unquote(self.path.removeprefix("file:")).lstrip("/"))
        return None if _URI.match(self.path) else Path(self.path)

    @property
    def is_text(self) -> bool:
        """Whether it is a file of text."""
        return not self.table and self.format in TEXT

    @property
    def for_spark(self) -> bool:
        """Whether only Spark can read or write it."""
        return self.here is None or self.format not in FORMATS

    def __str__(self) -> str:
        return f"table {self.table}" if self.table else self.path


def within(directory: Path, path: str) -> str:
    """A path that may be relative to a directory, or a URI."""
    return path if _URI.match(path) else str(directory / path)


def parts(path: Path) -> list[Path]:
    """The files at a path: itself, or those in a directory whose names do not begin with `_` or `.`."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "_.")


# --- facts -----------------------------------------------------------------------


def find_facts(relations: Iterable[Relation], directory: Path) -> dict[str, Place]:
    """Where the facts of each relation are. Raises one DataError that names all relations without any."""
    found: dict[str, Place] = {}
    missing: list[tuple[str, list[Path]]] = []
    for relation in relations:
        options = read_options(relation.name, "input", relation.input_options)
        candidates = _candidates(relation, options, directory)
        place = next((p for p in candidates if _is_there(p)), None)
        paths = [p.here for p in candidates if p.here is not None]
        if place is None:
            _refuse_what_is_no_file(relation, paths)
            missing.append((relation.name, paths))
        else:
            found[relation.name] = place
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


def _candidates(relation: Relation, options: Options, directory: Path) -> list[Place]:
    if options.table:
        return [Place(table=options.table)]
    name = options.filename or options.path
    if name is not None:
        format = options.format or _format_of(name, "csv" if options.path else None) or "facts"
        return [Place(format, within(directory, name), text=text_format(format, options))]
    formats = [options.format] if options.format else FORMATS
    return [
        Place(format, str(directory / f"{relation.name}.{format}"), text=text_format(format, options))
        for format in formats
    ]


def _format_of(name: str, text: str | None) -> str | None:
    """The format that the name of a file tells of; `filename=x.csv` is Soufflé's, and so tab-separated."""
    suffix = Path(name).suffix.removeprefix(".")
    return suffix if suffix in (*COLUMNS, text) else None


def _is_there(place: Place) -> bool:
    path = place.here
    if path is None:
        return True  # Spark looks for it
    return path.exists() and bool(parts(path))  # a pipe will do


def _refuse_what_is_no_file(relation: Relation, paths: Iterable[Path]) -> None:
    """Name an empty directory or a link to nothing that has the name of a file of facts."""
    for path in paths:
        if path.is_dir():
            raise unreadable(relation, path, "it is a directory without a file in it")
        if path.is_symlink():
            raise unreadable(relation, path, f"it is a link to {path.readlink()}, which is not there")


def unreadable(relation: Relation, place: object, reason: str) -> DataError:
    """The error of facts that cannot be read at all."""
    return data_error("TL0503", f"cannot read the facts of {relation.name} in {place}", notes=[reason])


# --- answers ---------------------------------------------------------------------


def output_place(relation: Relation, directory: Path) -> Place | None:
    """Where a relation is written to; None when its options send it to the terminal."""
    options = read_options(relation.name, "output", relation.output_options)
    if options.io == "stdout":
        return None
    if options.table:
        return Place(table=options.table)
    name = options.filename or options.path
    format = options.format or (_format_of(name, "csv" if options.path else None) if name else None)
    name = name or f"{relation.name}.{format or 'csv'}"  # Soufflé's R.csv is tab-separated
    format = format or "facts"
    return Place(format, within(directory, name), text=text_format(format, options))
