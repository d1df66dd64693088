"""Whether everything that kills have left is as it should be."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from tests.kills.history import ANSWERS, INPUTS, History, Model
from tidelog import Database


def check(directory: Path, history: History) -> None:
    """Raise AssertionError where a version or the feed is not what it should be."""
    streams = {relation: stream_id(directory, relation) for relation in INPUTS}
    told: Model = {name: set() for name in ANSWERS}
    with Database(store=directory / "store") as db:
        seen = []
        for version in db.versions:
            batches = db.store.manifest(version).batches
            last = {relation: batches.get(stream, -1) for relation, stream in streams.items()}
            seen.append(last)
            had = {relation: files_until(directory, relation, batch) for relation, batch in last.items()}
            expected, view = history.model(had), db.as_of(version)
            for name, rows in expected.items():
                assert len(view[name]) == len(rows), f"{name} in version {version}"
                assert set(view[name]) == rows, f"{name} in version {version}"
            for name in ANSWERS:
                replay(directory / "feed" / name / f"{version:08}.parquet", told[name])
                assert told[name] == expected[name], f"the feed of {name} up to version {version}"
        every_batch_once(seen)
        assert had == history.counts()
        for name, rows in history.model(history.counts()).items():
            assert set(db[name]) == rows, name
        files = {path.stem for name in ANSWERS for path in (directory / "feed" / name).glob("*.parquet")}
        assert {int(stem) for stem in files} <= set(db.versions)
        assert json.loads((directory / "feed/_feed.json").read_text())["version"] == db.version


def replay(path: Path, rows: set[tuple[int, ...]]) -> None:
    """Do what a file of the feed tells; nothing goes that is not there, nothing comes that is."""
    if path.exists():
        columns = [column.to_pylist() for column in pq.read_table(path).columns]
        for *row, kind, version, _ in zip(*columns, strict=True):
            found = tuple(row)
            assert version == int(path.stem)
            assert (found in rows) == (kind == "delete"), f"{kind} {found} in {path.name}"
            (rows.remove if kind == "delete" else rows.add)(found)


def every_batch_once(seen: list[dict[str, int]]) -> None:
    """The first version has had nothing, each other one batch more than the one before it."""
    assert seen[0] == dict.fromkeys(INPUTS, -1)
    for before, after in pairwise(seen):
        more = [after[relation] - before[relation] for relation in INPUTS]
        assert sorted(more) == [0] * (len(more) - 1) + [1], (before, after)


def files_until(directory: Path, relation: str, batch: int) -> int:
    """How many files a stream has had after a batch.

    It is one for each batch, but where Spark was killed after it had noted the next file, and before it
    noted a batch: then there are two in that one.
    """
    if batch < 0:
        return 0
    noted = (directory / "checkpoint" / relation / "offsets" / str(batch)).read_text().splitlines()
    return int(json.loads(noted[-1])["logOffset"]) + 1


def stream_id(directory: Path, relation: str) -> str:
    """What Spark calls the stream."""
    return str(json.loads((directory / "checkpoint" / relation / "metadata").read_text())["id"])
