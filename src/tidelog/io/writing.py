"""Answers into files and tables, all of them or none as far as file systems allow it.

What goes to a path of this machine is written beside it first and moved there when everything has
been written; when anything fails, all is as it was before. Tables, and paths and formats that only
Spark knows, are written before anything is moved, one after the other.

This process writes a file for each relation. Spark's tasks write a directory of part files, but
text for which one file was asked for becomes one file, whoever writes it. A directory is replaced if
it holds such part files and nothing else.
"""

from __future__ import annotations

import os
import re
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
from tidelog.syntax.errors import DataError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.state import Rows

MODES = ("overwrite", "append", "error", "ignore")
MOST_FETCHED = 1_000_000  # tuples of Spark's that this process writes as text
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PART = rf"(_SUCCESS|part-[0-9]{{5,}}-{_UUID}[-.].*)"
_OURS = re.compile(rf"{_PART}|\.{_PART}\.crc")
# Formats that keep a log of what is in force: with it, nothing is removed when a table is replaced.
_LOGS = {"delta": "_delta_log", "hudi": ".hoodie", "iceberg": "metadata"}


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


def check_places(
    places: Iterable[tuple[str, Place]], *, by_spark: bool, mode: str = "overwrite", parts: bool = False
) -> None:
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
        _check_directory(name, place, path, mode, parts=parts or not place.is_text)
        parent = next(p for p in (path.parent, *path.parent.parents) if p.exists())
        if not parent.is_dir():
            raise data_error("TL0503", f"cannot write {name}: {parent} is not a directory")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise data_error("TL0503", f"cannot write {name}: {parent} is not writable")


def _check_directory(name: str, place: Place, path: Path, mode: str, *, parts: bool) -> None:
    """Raise DataError if a directory is in the way, or holds what is no part file and would be lost."""
    if mode == "ignore" or not path.is_dir():
        return
    log = _LOGS.get(place.format)
    if log is not None and (path / log).is_dir():
        return
    foreign = _foreign(path)
    if foreign is not None and (mode != "append" or foreign.name[0] not in "_."):
        raise _holds(f"cannot write {name}", path, foreign)
    if not parts and not any(path.iterdir()):
        raise data_error("TL0503", f"cannot write {name}: {path} is a directory")


def _foreign(directory: Path) -> Path | None:
    """Something in a directory that neither Spark nor we have written, first of all what is not hidden."""
    found = [p for p in directory.iterdir() if not (_OURS.fullmatch(p.name) and p.is_file())]
    return min(found, key=lambda p: (p.name[0] in "_.", p.name), default=None)


def _holds(heading: str, directory: Path, foreign: Path) -> DataError:
    return data_error(
        "TL0503",
        f"{heading}: the directory {directory} holds {foreign.name}",
        notes=["a directory is replaced if it has part files in it, as Spark writes them, and nothing else"],
        hint="name another path, or move it elsewhere",
    )


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
        if target is not None:
            name, parts = sink.relation.name, sink.parts or not sink.place.is_text
            _check_directory(name, sink.place, target, sink.mode, parts=parts)
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
    if target.is_dir():
        foreign = _foreign(target)  # which may have come since anybody looked
        if foreign is not None:
            raise _holds("cannot write the outputs", target, foreign)
        move = move or any(target.iterdir())
    if move:
        os.rename(target, old)
        return
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
