"""What commits have changed, as files that others read: each commit once, whatever is killed meanwhile.

    path/00000012.parquet      what version 12 has changed in the relation path
    _feed.json                 the last version that has been written

A file is made from what the store has recorded of a version, and appears as a whole. The version is noted
after its files: after a crash those of one version may be written again, under the same names and with
the same rows. A feed begins with all that there is in the oldest version that can be read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, NamedTuple

from tidelog.io.errors import said
from tidelog.io.nested import outward_array, outward_type
from tidelog.program.model import Relation
from tidelog.session.changes import check_feed
from tidelog.session.store.draft import folders
from tidelog.session.store.errors import StoreError, damaged, store_error
from tidelog.session.store.files import open_files
from tidelog.session.store.manifest import Manifest, Part
from tidelog.session.store.rows import field_names
from tidelog.session.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "_feed.json"

_WRITING = Lock()  # several streams may have one feed


class _Noted(NamedTuple):
    """The last version of a feed, what tells it from one of another store, and the relations named."""

    version: int
    timestamp: str
    relations: list[str] | None


class Feed:
    """A directory of changes: of some relations, or of those that are outputs of the program.

    Raises StoreError if it is the store's.
    """

    def __init__(self, store: Store, place: str | Path, relations: Collection[str] | None = None) -> None:
        self._store, self._files = store, open_files(place)
        if self._files.spark == store.files.spark:
            hint = "give the feed a directory of its own"
            raise store_error("TL0812", f"the feed {place} is the store itself", hint=hint)
        self._relations = None if relations is None else sorted(set(relations))

    def catch_up(self) -> int:
        """Write everything that the feed lacks; how many versions that is. Raises StoreError."""
        with _WRITING:
            latest = self._store.latest
            if latest is None:
                return 0
            try:
                return self._catch_up(latest)
            except OSError as error:
                raise store_error(
                    "TL0812",
                    f"cannot write the feed {self._files.place}",
                    [said(error), "commits are not concerned; what is missing is written the next time"],
                ) from error

    def _catch_up(self, latest: Manifest) -> int:
        noted = self._noted()
        if noted is None:
            first = self._store.versions[0]
            before = self._store.manifest(first)
            self._write(before, before, whole=True)
        else:
            first, before = noted.version, self._last(noted, latest)
        for version in range(first + 1, latest.version + 1):
            manifest = self._store.manifest(version)
            self._write(manifest, before)
            before = manifest
        return latest.version - first + (noted is None)

    def _noted(self) -> _Noted | None:
        try:
            return _Noted(**json.loads(self._files.read(NOTE)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise damaged(f"{self._files.place}/{NOTE}", str(error)) from error

    def _last(self, noted: _Noted, latest: Manifest) -> Manifest:
        """The version that was written last, if the feed can go on from there."""
        why = f"its last version is {noted.version}"
        try:
            if noted.relations != self._relations:
                why = f"it is of {_listed(noted.relations)}, not of {_listed(self._relations)}"
            elif noted.version <= latest.version:
                found = self._store.manifest(noted.version)
                if _timestamp(found) == noted.timestamp:
                    return found
                why += f" of {noted.timestamp}, and in the store that one is of {_timestamp(found)}"
            else:
                why += f", and the store's is {latest.version}"
        except StoreError as error:
            why += f": {str(error).splitlines()[0].partition(': ')[2]}"
        raise store_error(
            "TL0812",
            f"the feed {self._files.place} cannot go on with what is in {self._store.files.place}",
            [why],
            "give another directory: a feed begins with all that there is",
        )

    def _write(self, manifest: Manifest, before: Manifest, *, whole: bool = False) -> None:
        """Write the files of a version, then note it; all that there is, or what has changed."""
        for name in self._chosen(manifest, before):
            if whole:
                entry = manifest.entries.get(name)
                if entry is not None and entry.size:
                    table = self._store.table(entry.relation, entry.tuples)
                    self._put(entry.relation, manifest, [("insert", iter(table.to_batches()))])
            elif name in manifest.changes:
                relation, level = manifest.changes[name]
                sides = (("delete", level.deleted), ("insert", level.inserted))
                self._put(relation, manifest, [(kind, self._read(part)) for kind, part in sides if part])
        noted = _Noted(manifest.version, _timestamp(manifest), self._relations)
        text = json.dumps(noted._asdict()).encode()
        self._files.put(NOTE, lambda file: file.write(text))

    def _chosen(self, manifest: Manifest, before: Manifest) -> Iterable[str]:
        if self._relations is not None:
            return self._relations
        entries = {**before.entries, **manifest.entries}
        return [name for name, entry in entries.items() if entry.relation.is_output]

    def _read(self, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of a file, piece by piece."""
        import pyarrow.dataset as ds

        opened = self._store.files.opened(part.path)
        where, system = opened if isinstance(opened, tuple) else (opened, None)
        rows = 0
        for batch in ds.dataset(where, filesystem=system, format="parquet").to_batches():
            rows += batch.num_rows
            yield batch
        if rows != part.rows:
            raise damaged(part.path, f"it has {rows:,} rows, and should have {part.rows:,}")

    def _put(
        self, relation: Relation, manifest: Manifest, sides: list[tuple[str, Iterator[pa.RecordBatch]]]
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        check_feed(relation)
        types = [column.type for column in relation.columns]
        named = zip(field_names(relation), types, strict=False)  # without columns there is a hidden one
        fields = [pa.field(name, outward_type(type)) for name, type in named]
        added = [
            pa.field("_change_type", pa.string()),
            pa.field("_commit_version", pa.int64()),
            pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC")),
        ]
        schema = pa.schema(fields + added)

        def fill(file: IO[bytes]) -> None:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for kind, batches in sides:
                    values = (kind, manifest.version, manifest.time)
                    for batch in batches:
                        columns = [
                            outward_array(batch.column(i), type).cast(field.type)
                            for i, (type, field) in enumerate(zip(types, fields, strict=True))
                        ]
                        columns += [
                            pa.repeat(pa.scalar(value, field.type), batch.num_rows)
                            for value, field in zip(values, added, strict=True)
                        ]
                        writer.write_batch(pa.record_batch(columns, schema=schema))

        folder = folders([relation.name])[relation.name]
        self._files.put(f"{folder}/{manifest.version:08}.parquet", fill)


def _listed(relations: list[str] | None) -> str:
    return "the program's outputs" if relations is None else ", ".join(relations)


def _timestamp(manifest: Manifest) -> str:
    return manifest.time.isoformat(timespec="microseconds")
