"""What a manifest says of one version: the relations, and the files that hold them.

A relation is a list of *levels*, each made by one commit or by several: first the rows of its file
`deleted` go, then those of `inserted` come. Tuples are what holds. Where rules derive into a relation its
explicit facts are a list of their own, whose levels may delete what is not there and insert what
is; everywhere else all tuples are explicit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tidelog.program.model import Column, Relation
from tidelog.program.types import UNKNOWN, parse_type

FORMAT = 1


@dataclass(frozen=True)
class Part:
    """A Parquet file, or a directory of them, and its number of rows; the path is within the store."""

    path: str
    rows: int


@dataclass(frozen=True)
class Level:
    """Rows that go, then rows that come; None where there are none.

    `tier` counts how often levels have become one in it.
    """

    deleted: Part | None = None
    inserted: Part | None = None
    tier: int = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its files."""
        return tuple(part for part in (self.deleted, self.inserted) if part is not None)

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows go, and how many come."""
        gone, come = (0 if part is None else part.rows for part in (self.deleted, self.inserted))
        return gone, come

    @property
    def rows(self) -> int:
        """How many rows its files have."""
        return sum(self.counts)


Levels = tuple[Level, ...]


@dataclass(frozen=True)
class Entry:
    """A relation in one version: `size` tuples. Without `facts` all of them are explicit."""

    relation: Relation
    size: int = 0
    tuples: Levels = ()
    facts: Levels | None = None

    @property
    def explicit(self) -> Levels:
        """The levels of the explicit facts."""
        return self.tuples if self.facts is None else self.facts


@dataclass(frozen=True)
class Manifest:
    """A version. `program` is the path of its program; `changes` is what it changed, by relation.

    `batches` has the number of the last batch of each stream, `planned` when Spark planned it, in
    milliseconds, if it was Spark. `token` tells who wrote it.
    """

    version: int
    time: datetime
    program: str
    entries: Mapping[str, Entry]
    changes: Mapping[str, tuple[Relation, Level]] = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    planned: Mapping[str, int] = field(default_factory=dict)
    token: str = ""

    def paths(self) -> set[str]:
        """All files that this version needs."""
        lists = [entry.tuples + (entry.facts or ()) for entry in self.entries.values()]
        lists.append(tuple(level for _, level in self.changes.values()))
        return {self.program, *(part.path for levels in lists for level in levels for part in level.parts)}

    def text(self) -> str:
        """The manifest as a file has it."""
        body = {
            "format": FORMAT,
            "version": self.version,
            "timestamp": self.time.isoformat(timespec="microseconds"),
            "token": self.token,
            "program": self.program,
            "batches": dict(self.batches),
            "planned": dict(self.planned),
            "changes": {
                name: {"columns": _columns(relation), **_level(level)}
                for name, (relation, level) in self.changes.items()
            },
            "relations": {name: _entry(entry) for name, entry in self.entries.items()},
        }
        return sealed(body)

    @staticmethod
    def read(text: str) -> Manifest:
        """The manifest of a text. Raises ValueError, which says what is wrong."""
        body = unsealed(text)
        return Manifest(
            body["version"],
            datetime.fromisoformat(body["timestamp"]).astimezone(UTC),
            body["program"],
            {name: _read_entry(name, entry) for name, entry in body["relations"].items()},
            {name: (_read_relation(name, made), _read_level(made)) for name, made in body["changes"].items()},
            body["batches"],
            body.get("planned", {}),  # older manifests have none
            body["token"],
        )


# --- text -----------------------------------------------------------------------


def sealed(body: Mapping[str, object]) -> str:
    """A text that can be told from one that has been cut short or altered."""
    return json.dumps({**body, "checksum": _checksum(body)}, indent=1) + "\n"


def unsealed(text: str) -> dict[str, Any]:
    """What was sealed. Raises ValueError, which says what is wrong."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is not JSON as it should be: {error}") from None
    if not isinstance(body, dict) or "checksum" not in body:
        raise ValueError("it has no checksum")
    checksum = body.pop("checksum")
    form = body.get("format")
    if form != FORMAT:
        raise ValueError(f"it has the format {form}, and this version of Tidelog reads {FORMAT}")
    if checksum != _checksum(body):
        raise ValueError("its checksum is another one: it has been altered")
    return body


def _checksum(body: Mapping[str, object]) -> str:
    plain = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _entry(entry: Entry) -> dict[str, object]:
    relation = entry.relation
    made: dict[str, object] = {"columns": _columns(relation), "size": entry.size}
    if relation.key:
        made["key"] = list(relation.key)
    if relation.is_input:
        made["input"] = True
    if relation.is_output:
        made["output"] = True
    made["tuples"] = [_level(level) for level in entry.tuples]
    if entry.facts is not None:
        made["facts"] = [_level(level) for level in entry.facts]
    return made


def _read_entry(name: str, made: dict[str, Any]) -> Entry:
    facts = made.get("facts")
    return Entry(
        _read_relation(name, made),
        made["size"],
        tuple(map(_read_level, made["tuples"])),
        None if facts is None else tuple(map(_read_level, facts)),
    )


def _columns(relation: Relation) -> list[list[str]]:
    return [[column.name, str(column.type)] for column in relation.columns]


def _read_relation(name: str, made: dict[str, Any]) -> Relation:
    columns = tuple(Column(column, parse_type(type) or UNKNOWN) for column, type in made["columns"])
    key = tuple(made.get("key", ()))
    return Relation(name, columns, "input" in made, "output" in made, key=key)


def _level(level: Level) -> dict[str, object]:
    made: dict[str, object] = {"tier": level.tier} if level.tier else {}
    for name, part in (("deleted", level.deleted), ("inserted", level.inserted)):
        if part is not None:
            made[name] = {"path": part.path, "rows": part.rows}
    return made


def _read_level(made: dict[str, Any]) -> Level:
    deleted, inserted = (
        Part(made[name]["path"], made[name]["rows"]) if name in made else None
        for name in ("deleted", "inserted")
    )
    return Level(deleted, inserted, made.get("tier", 0))
