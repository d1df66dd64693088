"""The versions of a database, in a directory."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import uuid4

from tidelog.program.model import Relation
from tidelog.session.changes import Changes
from tidelog.session.errors import UnknownRelationError
from tidelog.session.store.errors import StoreError, damaged, no_version, not_a_store, said
from tidelog.session.store.files import LOCK, Files, open_files
from tidelog.session.store.levels import folded
from tidelog.session.store.manifest import Entry, Levels, Manifest
from tidelog.session.store.programs import StoredProgram
from tidelog.session.store.rows import ArrowSets, SparkSets, recorded
from tidelog.session.store.states import SUFFIX, State

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession
    from tidelog.execute.spark.state import Rows

MANIFESTS, PROGRAMS, DATA, STATES = "manifests", "programs", "data", "states"
LOG = logging.getLogger("tidelog")

_MANIFEST = re.compile(r"(\d{8,})\.json")
_UNFINISHED = re.compile(r"\.\d{8,}\.json")
_OURS = re.compile(r"\.?(\d{8,})-[0-9a-f]{8}(-[a-z0-9-]+)?\.(json|parquet)")  # version, token, what it is


class Vacuumed(NamedTuple):
    """What has been removed: versions, and files of any kind with their bytes."""

    versions: list[int]
    files: int
    bytes: int


class Store:
    """A directory of versions, open for one database. `latest` is the last version, if there is one.

    With a Spark session what has more rows than `in_process` is read and written by Spark.
    """

    in_process = 100_000

    def __init__(self, files: Files, spark: object | None = None) -> None:
        """Take the store. Raises StoreError if somebody else has it, or it cannot be read."""
        self.files = files
        self.spark = cast("SparkSession | None", spark)
        self.token = uuid4().hex[:8]  # in the names of all files that are written while it is open
        self.latest: Manifest | None = None
        self._state: State | None = None
        self._state_read = False
        try:
            if not self.versions:
                self._check_empty()  # before anything is made there
            files.lock()
            versions = self.versions
            if versions:
                self.latest = self.manifest(versions[-1])
            self._clean(versions[-1] if versions else -1)
        except OSError as error:
            files.unlock()
            raise not_a_store(files.place, said(error)) from error
        except BaseException:
            files.unlock()
            raise

    @staticmethod
    def open(place: str | Path, spark: object | None = None) -> Store:
        """The store of a directory or URI; one that is not there begins without versions."""
        return Store(open_files(place), spark)

    def close(self) -> None:
        """Let others have it. What has been read stays, and views can still be read."""
        self.files.unlock()

    def _check_empty(self) -> None:
        """Raise StoreError where there are other files than those of a first commit that was cut short."""
        known, begun = {MANIFESTS, PROGRAMS, DATA, STATES, LOCK}, self.files.names(MANIFESTS)
        other = [name for name in self.files.names("") if name not in known]
        other += [path for path in self._written() if not _ours(path)]
        other += [f"{MANIFESTS}/{name}" for name in begun if not _UNFINISHED.fullmatch(name)]
        if other:
            hint = "give a directory that is empty or not there"
            raise not_a_store(self.files.place, f"there is no manifest in it, but {min(other)}", hint)

    def _clean(self, last: int) -> None:
        """Remove what a commit has left that was never published."""
        for path in self._written():
            ours = _ours(path)
            if ours and (ours[0].startswith(".") or int(ours[1]) > last):
                self.files.remove(path)
        for name in self.files.names(MANIFESTS):
            if _UNFINISHED.fullmatch(name):
                self.files.remove(f"{MANIFESTS}/{name}")

    def _written(self) -> list[str]:
        """All files but manifests."""
        folders = [PROGRAMS, STATES, *(f"{DATA}/{name}" for name in self.files.names(DATA))]
        return [f"{folder}/{name}" for folder in folders for name in self.files.names(folder)]

    # --- versions ------------------------------------------------------------------

    @property
    def versions(self) -> list[int]:
        """The versions that can be read, in order."""
        found = (_MANIFEST.fullmatch(name) for name in self.files.names(MANIFESTS))
        return sorted(int(match[1]) for match in found if match)

    def manifest(self, version: int) -> Manifest:
        """A version. Raises StoreError if it cannot be read."""
        if self.latest is not None and self.latest.version == version:
            return self.latest
        path = manifest_path(version)
        try:
            made = Manifest.read(self.files.read(path).decode())
        except FileNotFoundError:
            raise no_version(version, self.versions) from None
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise damaged(
                path, said(error) if isinstance(error, ValueError | OSError) else repr(error)
            ) from error
        if made.version != version:
            raise damaged(path, f"it is of version {made.version}")
        return made

    def program(self, manifest: Manifest) -> StoredProgram:
        """The program of a version."""
        try:
            return StoredProgram.read(self.files.read(manifest.program).decode())
        except FileNotFoundError:
            raise damaged(manifest.program, "the file is not there") from None
        except (ValueError, OSError) as error:
            raise damaged(manifest.program, said(error)) from error

    @property
    def batches(self) -> Mapping[str, int]:
        """The number of the last batch of each stream."""
        return {} if self.latest is None else self.latest.batches

    def batch(self, stream: str) -> int | None:
        """The number of the last batch of a stream that has been committed."""
        return self.batches.get(stream)

    # --- the state -------------------------------------------------------------------

    @property
    def state(self) -> State | None:
        """The state to begin with, if there is one that can be read."""
        if not self._state_read:
            self._state, self._state_read = self._find_state(), True
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state, self._state_read = state, True

    def _find_state(self) -> State | None:
        names = filter(_ours, self.files.names(STATES))
        for path in sorted((f"{STATES}/{name}" for name in names), reverse=True):
            try:
                state = State.read(path, self.files.read(path).decode())
                if self.manifest(state.version).token == state.token:
                    return state
            except (ValueError, KeyError, TypeError, OSError, StoreError) as error:
                LOG.warning("%s cannot be read, and answers are derived anew: %s", path, said(error))
        return None

    def of_states(self) -> set[str]:
        """All files of states, whether they are named or not."""
        found = (path for path in self._written() if path.startswith(STATES) or path.endswith(SUFFIX))
        return {path for path in found if _ours(path)}

    # --- rows ------------------------------------------------------------------------

    def table(self, relation: Relation, levels: Levels, *, exact: bool = True) -> pa.Table:
        """The rows of levels, in this process."""
        sets = ArrowSets(self.files, relation)
        return sets.table(folded(levels, sets, first=True, exact=exact).come)

    def frame(self, relation: Relation, levels: Levels, *, exact: bool = True) -> DataFrame | None:
        """The rows of levels as a DataFrame of cells; None if there are none."""
        assert self.spark is not None
        return folded(levels, SparkSets(self.files, relation, self.spark), first=True, exact=exact).come

    def tuples(self, entry: Entry) -> pa.Table | Rows:
        """The tuples of a relation in a version, in Spark if Spark has to read them."""
        if self.spark is None or not self.in_spark(entry.tuples):
            return self.table(entry.relation, entry.tuples)
        sets = SparkSets(self.files, entry.relation, self.spark)
        return sets.rows(self.frame(entry.relation, entry.tuples), entry.size)

    def in_spark(self, levels: Levels) -> bool:
        """Whether Spark reads such levels."""
        return self.spark is not None and sum(level.rows for level in levels) > self.in_process

    # --- changes -----------------------------------------------------------------------

    def changes(self, relation: str, first: int, last: int) -> list[Changes]:
        """What versions have changed in a relation, from `first` to `last`, both included.

        Those that have not changed it are left out. Raises StoreError where one cannot be read, and
        UnknownRelationError for a relation that none of them has.
        """
        found = []
        known: set[str] = set()
        for version in range(first, last + 1):
            manifest = self.manifest(version)
            known |= {*manifest.entries, *manifest.changes}
            if relation in manifest.changes:
                columns, level = manifest.changes[relation]
                counts = level.counts
                there = self.spark if self.in_spark((level,)) else None
                delta = recorded(self.files, columns, level, there)
                found.append(Changes(columns, delta, counts, version, manifest.time, self.spark))
        if known and relation not in known:
            raise UnknownRelationError(relation, sorted(known))
        return found

    # --- removing ------------------------------------------------------------------------

    def vacuum(self, keep: int) -> Vacuumed:
        """Remove all versions but the last `keep`, and the files that none of these needs.

        A state goes with its version.
        """
        versions = self.versions
        kept = versions[-keep:]
        needed = {path for version in kept for path in self.manifest(version).paths()}
        if self.state is not None and self.state.version in kept:
            needed |= self.state.paths()
        else:
            self._state = None
        gone = versions[: len(versions) - len(kept)]
        # Manifests first: a crash leaves files that nobody names, never names without files.
        removed = self._remove(manifest_path(version) for version in gone)
        files = self._remove(path for path in self._written() if _ours(path) and path not in needed)
        return Vacuumed(gone, removed[0] + files[0], removed[1] + files[1])

    def _remove(self, paths: Iterable[str]) -> tuple[int, int]:
        count = size = 0
        for path in paths:
            try:
                size += self.files.remove(path)
            except OSError as error:
                raise StoreError(f"error[TL0805]: cannot remove {path}\n  = note: {said(error)}") from error
            count += 1
        return count, size


def manifest_path(version: int) -> str:
    """Where the manifest of a version is."""
    return f"{MANIFESTS}/{version:08}.json"


def _ours(path: str) -> re.Match[str] | None:
    """The parts of the name of a file, if a store has made it: whoever puts others there keeps them."""
    return _OURS.fullmatch(path.rpartition("/")[2])
