"""A version of a database, to be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from threading import RLock

from tidelog.program.model import Relation
from tidelog.session.answer import Answer
from tidelog.session.errors import UnknownRelationError
from tidelog.session.store.errors import no_version
from tidelog.session.store.manifest import Manifest
from tidelog.session.store.programs import StoredProgram
from tidelog.session.store.store import Store


class View(Mapping[str, Answer]):
    """What a database held after one of its commits: a mapping from relations to answers.

    Rows are read when they are asked for. `vacuum` may take them away; answers that were read stay.
    """

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self._store, self._manifest = store, manifest
        self._program: StoredProgram | None = None
        self._lock = RLock()

    @property
    def version(self) -> int:
        """The number of the commit."""
        return self._manifest.version

    @property
    def timestamp(self) -> datetime:
        """When it was made."""
        return self._manifest.time

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations that there were."""
        return {name: entry.relation for name, entry in self._manifest.entries.items()}

    @property
    def rules(self) -> list[tuple[int, str]]:
        """The rules that there were, with their numbers."""
        return self._read().rules

    @property
    def declarations(self) -> str:
        """The declarations that there were."""
        return self._read().declarations

    def _read(self) -> StoredProgram:
        if self._program is None:
            self._program = self._store.program(self._manifest)
        return self._program

    def __getitem__(self, relation: str) -> Answer:
        entry = self._manifest.entries.get(relation)
        if entry is None:
            raise UnknownRelationError(relation, self._manifest.entries)
        found = entry
        store = self._store
        return Answer(found.relation, found.size, lambda: store.tuples(found), self._lock, store.spark)

    def __iter__(self) -> Iterator[str]:
        return iter(self._manifest.entries)

    def __len__(self) -> int:
        return len(self._manifest.entries)

    def __repr__(self) -> str:
        return f"<version {self.version} of a tidelog.Database, {self.timestamp:%Y-%m-%d %H:%M:%S} UTC>"


def view_of(store: Store, version: int) -> View:
    """A version. Raises StoreError if it cannot be read."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise no_version(version, store.versions)
    return View(store, store.manifest(version))
