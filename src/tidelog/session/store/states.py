"""What a state says: the answers of a version with the numbers of their algorithm, to be loaded.

    states/00000012-5f0c11aa.json                 the state of version 12, and its files
    data/path/00000012-5f0c11aa-state.parquet     the tuples of a relation, with their numbers

A state says nothing that cannot be derived from its version. So it may be missing, or be of an earlier
version than the last: what has changed since is then brought up to date. Its files are written before the
one that names them, and there is one state at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidelog.maintain.notes import Note
from tidelog.session.store.manifest import FORMAT, Part, sealed, unsealed

NUMBERS = 1  # what the numbers of tuples mean: another one when that changes
SUFFIX = "-state.parquet"


@dataclass(frozen=True)
class State:
    """A state in a store. `token` is that of its version's manifest. Empty relations have no part."""

    path: str
    version: int
    token: str
    engine: str
    fingerprint: str
    notes: Sequence[Note]
    relations: Mapping[str, Part | None]

    def paths(self) -> set[str]:
        """All of its files."""
        return {self.path, *(part.path for part in self.relations.values() if part is not None)}

    def text(self) -> str:
        """The state as its file has it."""
        return sealed(
            {
                "format": FORMAT,
                "numbers": NUMBERS,
                "version": self.version,
                "token": self.token,
                "engine": self.engine,
                "rules": self.fingerprint,
                "strata": [asdict(note) for note in self.notes],
                "relations": {
                    name: None if part is None else {"path": part.path, "rows": part.rows}
                    for name, part in self.relations.items()
                },
            }
        )

    @staticmethod
    def read(path: str, text: str) -> State:
        """The state of a text. Raises ValueError, which says what is wrong."""
        body: dict[str, Any] = unsealed(text)
        if body["numbers"] != NUMBERS:
            raise ValueError(f"its numbers are of the kind {body['numbers']}, and here they are {NUMBERS}")
        notes = [Note(**{**note, "relations": tuple(note["relations"])}) for note in body["strata"]]
        relations = {
            name: None if part is None else Part(part["path"], part["rows"])
            for name, part in body["relations"].items()
        }
        return State(path, body["version"], body["token"], body["engine"], body["rules"], notes, relations)
