"""Answers into files and tables, all of them or none as far as file systems allow it.

What goes to a path of this machine is written beside it first and moved there when everything has
been written; when anything fails, all is as it was before. Tables, and paths and formats that only
Spark knows, are written before anything is moved, one after the other.

This process writes a file for each relation. Spark's tasks write a directory of part files, but
text for which one file was asked for becomes one file, whoever writes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tidelog.io.errors import data_error, said
from tidelog.io.facts import only_spark
from tidelog.io.output import text_lines
from tidelog.io.places import Place, output_place
from tidelog.program.model import Relation
from tidelog.syntax.errors import TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.state import Rows

MODES = ("overwrite", "append", "error", "ignore")
MOST_FETCHED = 1_000_000  # tuples of Spark's that this process writes as text
_PARTS = ("part-", "_", ".")


@dataclass(frozen=True, eq=False)
class Sink:
    """Tuples of a relation, here or in Spark, and where they go.

    With `parts` a path becomes a directory of part files, whoever writes them.
    """

    relation: Relation
    tuples: pa.Table | Rows
    place: Place
    mode: str = "overwrite"
    parts: bool = False

    @property
    def in_spark(self) -> bool:
        """Whether Spark has the tuples."""
        import pyarrow as pa

        return not isinstance(self.tuples, pa.Table)


def write_files(
    outputs: Sequence[tuple[Relation, pa.Table | Rows]], directory: Path, *, by_spark: bool = False
) -> list[Path]:
    """Write every output to the place that its options name; the files and directories written."""
    check_outputs((relation for relation, _ in outputs), directory, by_spark=by_spark)
    places = [(relation, tuples, output_place(relation, directory)) for relation, tuples in outputs]
    return write_all([Sink(relation, tuples, place) for relation, tuples, place in places if place])


def check_outputs(relations: Iterable[Relation], directory: Path, *, by_spark: bool = False) -> None:
    """Raise DataError where outputs could not be written, before any work is done for them."""
    places = ((relation.name, output_place(relation, directory)) for relation in relations)
    check_places([(name, place) for name, place in places if place is not None], by_spark=by_spark)


def check_places(places: Iterable[tuple[str, Place]], *, by_spark: bool) -> None:
    """Raise DataError for a place that cannot be written to, or is written to twice."""
    seen: dict[str, str] = {}
    for name, place in places:
        if place.for_spark and not by_spark:
            raise only_spark(f"cannot write {name}", place)
        if str(place) in seen:
            raise data_error("TL0503", f"{seen[str(place)]} and {name} would both be written to {place}")
        seen[str(place)] = name
        path = place.here
        if path is None:
            continue
        if path.is_dir() and not _is_of_parts(path, place):
            raise data_error("TL0503", f"cannot write {name}: {path} is a directory")
        parent = next(p for p in (path.parent, *path.parent.parents) if p.exists())
        if not parent.is_dir():
            raise data_error("TL0503", f"cannot write {name}: {parent} is not a directory")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise data_error("TL0503", f"cannot write {name}: {parent} is not writable")


def _is_of_parts(path: Path, place: Place) -> bool:
    """Whether a directory is one that Spark wrote, or is empty, and so may be replaced."""
    names = [p.name for p in path.iterdir()]
    return all(name.startswith(_PARTS) for name in names) and (bool(names) or not place.is_text)


def write_all(sinks: Sequence[Sink]) -> list[Path]:
    """Write everything. When anything fails, what is at paths of this machine is as it was before."""
    try:
        with ExitStack() as cleanup:
            staged = _stage(sinks, cleanup)
            _publish(staged)
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        raise data_error(
            "TL0503", "cannot write the outputs", notes=[f"{error.strerror or error}{place}"]
        ) from error
    return [target for _, target in staged]


def _stage(sinks: Sequence[Sink], cleanup: ExitStack) -> list[tuple[Path, Path]]:
    """Write beside the targets: what is new and where it belongs, for each."""
    stages: dict[Path, Path] = {}
    staged: list[tuple[Path, Path]] = []
    for sink in sinks:
        target = sink.place.here
        if target is None or sink.place.for_spark or (sink.in_spark and sink.mode == "append"):
            _write_by_spark(sink, None)  # which knows what to do with a table, and how to add to files
            continue
        if target.exists() and sink.mode in ("error", "ignore"):
            if sink.mode == "error":
                raise data_error("TL0503", f"cannot write {sink.relation.name}: {target} is there already")
            continue
        if target.is_file() and sink.mode == "append":
            raise data_error("TL0503", f"cannot write {sink.relation.name}: {target} is a file, not of parts")
        if target.parent not in stages:
            for made in _make_directories(target.parent):
                cleanup.callback(_remove_if_empty, made)
            stage = Path(tempfile.mkdtemp(prefix=".tidelog-", dir=target.parent))
            cleanup.callback(shutil.rmtree, stage, ignore_errors=True)
            stages[target.parent] = stage
        path = stages[target.parent] / f"{len(staged)}-{target.name}"
        _write(sink, path)
        if sink.mode == "append" and target.is_dir():
            [path] = (p for p in path.iterdir() if p.name.startswith("part-"))
            target = target / path.name
        staged.append((path, target))
    return staged


# --- one of them -------------------------------------------------------------------


def _write(sink: Sink, path: Path) -> None:
    """Write to a new file or directory."""
    import pyarrow as pa

    tuples = sink.tuples
    if not isinstance(tuples, pa.Table):
        if sink.parts or not sink.place.is_text or tuples.size > MOST_FETCHED:
            _write_by_spark(sink, path)
            return
        tuples = tuples.table()
    if sink.parts:
        path.mkdir()
        (path / "_SUCCESS").touch()
        path = path / f"part-00000-{uuid4()}.{sink.place.format}"
    if sink.place.is_text:
        with path.open("wb") as file:
            for piece in text_lines(sink.relation, tuples, sink.place.text):
                file.write(piece)
        return
    from tidelog.io.columnar import write_table

    write_table(tuples, sink.relation, sink.place.format, path)


def _write_by_spark(sink: Sink, path: Path | None) -> None:
    """Let Spark's tasks write, to a new path here or to the place itself."""
    from tidelog.io.spark_files import write_rows

    if not sink.in_spark:
        raise only_spark(f"cannot write {sink.relation.name}", sink.place)
    try:
        write_rows(sink, path)
    except (TidelogError, OSError):
        raise
    except Exception as error:
        where = f"cannot write {sink.relation.name} to {sink.place}"
        raise data_error("TL0503", where, notes=[said(error)]) from error


# --- moving ------------------------------------------------------------------------


def _publish(staged: list[tuple[Path, Path]]) -> None:
    """Move what is new to its place; put the old back when something cannot be moved."""
    moved: list[tuple[Path | None, Path]] = []
    try:
        for path, target in staged:
            old = path.with_name(path.name + ".old") if target.exists() else None
            if old is not None:
                _keep(target, old, move=path.is_dir())
            try:
                os.replace(path, target)
            except BaseException:
                if old is not None and not target.exists():
                    os.rename(old, target)
                raise
            moved.append((old, target))
    except BaseException:
        for old, target in reversed(moved):
            if target.is_dir():
                shutil.rmtree(target)
            elif old is None or old.is_dir():
                target.unlink()
            if old is not None:
                os.replace(old, target)
        raise


def _keep(target: Path, old: Path, *, move: bool) -> None:
    """Give a file a second name, or a copy where file systems have no links; a directory of parts moves."""
    if move or (target.is_dir() and _is_replaceable(target)):
        os.rename(target, old)
        return
    try:
        os.link(target, old)
    except OSError:
        shutil.copy2(target, old)


def _is_replaceable(path: Path) -> bool:
    return any(p.name.startswith(_PARTS) for p in path.iterdir())


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
