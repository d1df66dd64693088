"""A version that is being written: its files first, then, in one step, its manifest."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from tidelog.execute.spark.delta import FrameDelta
from tidelog.program.model import Relation
from tidelog.session.batches import Batch
from tidelog.session.definition import Definition
from tidelog.session.frames.held import InSpark
from tidelog.session.store.errors import StoreError, not_written, overtaken
from tidelog.session.store.facts import Words, last_words, since_cleared
from tidelog.session.store.levels import merged, with_level
from tidelog.session.store.manifest import Entry, Level, Levels, Manifest, Part
from tidelog.session.store.programs import StoredProgram
from tidelog.session.store.rows import ArrowSets, Sets, SparkSets, T
from tidelog.session.store.store import DATA, PROGRAMS, Store, manifest_path

if TYPE_CHECKING:
    from tidelog.session.backend import Changed

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")


class Draft:
    """The next version of a store, until it is published or discarded."""

    def __init__(self, store: Store, version: int, time: datetime) -> None:
        self._store, self._before = store, store.latest
        self.version, self.time = version, time
        self._paths: list[str] = []
        self._manifest: Manifest | None = None
        self._folders: dict[str, str] = {}
        self.published = False

    # --- writing -------------------------------------------------------------------

    def write(
        self,
        definition: Definition,
        changed: Changed,
        words: Mapping[str, Words],
        program: StoredProgram | None,
        batch: Batch | None,
    ) -> None:
        """Write all files: what has changed, what was said of explicit facts, and the program if it is new.

        Raises StoreError if they cannot be written.
        """
        try:
            self._write(definition, changed, words, program, batch)
        except (OSError, StoreError) as error:
            self.discard()
            if isinstance(error, StoreError):
                raise
            raise not_written(self._store.files.place, error) from error
        except BaseException:
            self.discard()
            raise

    def _write(
        self,
        definition: Definition,
        changed: Changed,
        words: Mapping[str, Words],
        program: StoredProgram | None,
        batch: Batch | None,
    ) -> None:
        before = self._before
        entries: dict[str, Entry] = {}
        changes: dict[str, tuple[Relation, Level]] = {}
        self._folders = folders({*definition.relations, *changed})
        derived = derived_relations(definition)
        for name in changed:
            relation, delta, counts = changed[name]
            changes[name] = (relation, self._level(relation, delta, counts))
        for name, relation in definition.relations.items():
            was = None if before is None else before.entries.get(name)
            if was is None or was.relation.columns != relation.columns:
                assert was is None or not was.size, "columns get their types before there are rows"
                was = Entry(relation)
            made = replace(was, relation=relation)
            if name in changes:
                made = self._changed(made, changes[name][1])
            facts = self._facts(relation, was.explicit, words.get(name, ())) if name in derived else None
            entries[name] = replace(made, facts=facts)
        batches, planned = ({}, {}) if before is None else (dict(before.batches), dict(before.planned))
        if batch is not None:
            batches[batch.stream] = batch.number
            planned.pop(batch.stream, None)
            if batch.planned is not None:
                planned[batch.stream] = batch.planned
        path = self._program(program)
        self._manifest = Manifest(
            self.version, self.time, path, entries, changes, batches, planned, self._store.token
        )
        named = self._manifest.paths()
        self._store.files.settle([path for path in self._paths if path in named])
        self._remove([path for path in self._paths if path not in named])  # became part of others at once

    def _level(self, relation: Relation, delta: object, counts: tuple[int, int]) -> Level:
        """Write what has gone from a relation and what has come."""
        parts: list[Part | None] = []
        for what, count in zip(("deleted", "inserted"), counts, strict=True):
            if not count:
                parts.append(None)
                continue
            path = self._path(relation, what)
            store = self._store
            if isinstance(delta, FrameDelta) and count > store.in_process and store.spark is not None:
                frame = (delta.gone if what == "deleted" else delta.come).read()
                assert frame is not None, "there are rows"
                parts.append(SparkSets(store.files, relation, store.spark).write(frame, path))
            else:
                parts.append(ArrowSets(self._store.files, relation).write(getattr(delta, what), path))
        gone, come = parts
        return Level(gone, come)

    def _changed(self, entry: Entry, level: Level) -> Entry:
        gone, come = level.counts
        size = entry.size - gone + come
        levels = self._appended(entry.relation, entry.tuples, level, exact=True) if size else ()
        return replace(entry, size=size, tuples=levels)

    def _facts(self, relation: Relation, levels: Levels, words: Words) -> Levels:
        """The explicit facts of a relation that rules derive into."""
        cleared, words = since_cleared(words)
        levels = () if cleared else levels
        if not words:
            return levels
        store = self._store
        if store.spark is not None and any(isinstance(rows, InSpark) for _, rows in words):
            in_spark = SparkSets(store.files, relation, store.spark)
            level = self._said(relation, in_spark, words)
        else:
            level = self._said(relation, ArrowSets(store.files, relation), words)
        return self._appended(relation, levels, level, exact=False)

    def _said(self, relation: Relation, sets: Sets[T], words: Words) -> Level:
        moves = last_words(words, sets)
        return Level(
            None if moves.gone is None else sets.write(moves.gone, self._path(relation, "facts-deleted")),
            None if moves.come is None else sets.write(moves.come, self._path(relation, "facts-inserted")),
        )

    def _appended(self, relation: Relation, levels: Levels, level: Level, *, exact: bool) -> Levels:
        store = self._store

        def path(what: str) -> str:
            return self._path(relation, what if exact else f"facts-{what}")

        def merge(several: Levels, first: bool) -> Level:
            if store.in_spark(several):
                assert store.spark is not None
                in_spark = SparkSets(store.files, relation, store.spark)
                return merged(several, in_spark, path, first=first, exact=exact)
            return merged(several, ArrowSets(store.files, relation), path, first=first, exact=exact)

        return with_level(levels, level, merge)

    def _program(self, program: StoredProgram | None) -> str:
        if program is None:
            assert self._before is not None, "the first version has a program"
            return self._before.program
        path = f"{PROGRAMS}/{self.version:08}-{self._store.token}.json"
        text = program.text().encode()
        self._paths.append(path)
        self._store.files.write(path, lambda file: file.write(text))
        return path

    def _path(self, relation: Relation, what: str) -> str:
        folder = self._folders[relation.name]
        path = f"{DATA}/{folder}/{self.version:08}-{self._store.token}-{what}.parquet"
        self._paths.append(path)
        return path

    # --- the end -----------------------------------------------------------------------

    def publish(self) -> None:
        """Have the version appear. Raises StoreError if that fails; `published` says if it is there still."""
        assert self._manifest is not None
        path, files = manifest_path(self.version), self._store.files
        text = self._manifest.text().encode()
        try:
            files.publish(path, text)
        except FileExistsError:
            raise overtaken(path, self.version) from None
        except OSError as error:
            self.published = self._is_there(path, text)
            raise not_written(files.place, error) from error
        self.published = True
        self._store.latest = self._manifest

    def _is_there(self, path: str, text: bytes) -> bool:
        """Whether a manifest is there in spite of an error, as far as one can tell."""
        try:
            return self._store.files.read(path) == text
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def discard(self) -> None:
        """Remove what has been written, as far as that goes: nobody knows of it."""
        self._remove(self._paths)
        self._paths = []

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(OSError):
                self._store.files.remove(path)


def derived_relations(definition: Definition) -> set[str]:
    """The relations that rules derive into."""
    return {rule.head.relation for rule in definition.program.rules}


def folders(names: Collection[str]) -> dict[str, str]:
    """A directory for each relation: its name, if that goes on every file system and no other is like it."""
    alike = Counter(name.casefold() for name in names)
    return {name: _folder(name, plain=alike[name.casefold()] == 1) for name in names}


def _folder(name: str, *, plain: bool) -> str:
    if plain and _PLAIN.fullmatch(name):
        return name
    readable = re.sub(r"[^A-Za-z0-9_]", "_", name)[:60]
    return f"r{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
