"""Running a pipeline: as a batch, over what is new in its sources, or for as long as it may.

With a store each source is a stream of Spark. The checkpoint of a stream is in the store, beside
the versions that its batches became, so that both go on together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, cast

from tidelog.io import writing
from tidelog.io.places import unreadable
from tidelog.io.spark_files import facts_frame, stream_frame
from tidelog.session.database import Database
from tidelog.session.pipeline.model import Pipeline, Source
from tidelog.session.streams import Stream

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import DataFrame
    from tidelog.execute.spark.state import Rows

CHECKPOINTS = "checkpoints"


# --- a batch -----------------------------------------------------------------------


def load(pipeline: Pipeline, db: Database) -> None:
    """Commit all that the sources have, at once."""
    with db.transaction() as tx:
        tx.read({source.relation: source.place for source in pipeline.sources if not source.changes})
        for source in pipeline.sources:
            if source.changes:
                tx.apply(source.relation, _changes(source, db))


def _changes(source: Source, db: Database) -> DataFrame:
    relation = db.relations[source.relation]
    frame = None if source.place.is_text else facts_frame(db.spark, relation, source.place, small=-1)
    if frame is None:
        reason = "Spark reads changes at once from Parquet, JSON, ORC or tables; with a store also from text"
        raise unreadable(relation, source.place, reason)
    return frame


def write(pipeline: Pipeline, db: Database) -> list[tuple[str, int]]:
    """Write the answers to their sinks, all of them or none; what was written, with sizes."""
    sinks, sizes = [], []
    for sink in pipeline.sinks:
        if not sink.changes:
            answer = db[sink.relation]
            held = cast("Rows", answer.held(there=sink.place.for_spark))
            sinks.append(writing.Sink(answer.relation, held, sink.place, sink.mode, parts=True))
            sizes.append((sink.relation, len(answer)))
    writing.write_all(sinks)
    return sizes


# --- streams -----------------------------------------------------------------------


def catch_up(pipeline: Pipeline, db: Database) -> None:
    """Commit what is new in the sources, one after the other, and write what that has changed."""
    for source in pipeline.sources:
        _follow(source, pipeline, db, "availableNow").awaitTermination()
    write_changes(pipeline, db)


def follow(pipeline: Pipeline, db: Database, told: Callable[[int], None], wait: float = 0.5) -> None:
    """Commit what comes, and write what that changes, until a stream fails or the caller is interrupted.

    `told` is called with each version that has been written.
    """
    streams: list[Stream] = []
    try:
        interval = pipeline.interval or None
        streams += (_follow(source, pipeline, db, interval) for source in pipeline.sources)
        written = -1
        while not _ended(streams, wait):
            if db.version != written:
                written = db.version
                write_changes(pipeline, db)
                told(written)
    finally:
        for stream in streams:
            stream.stop()
        write_changes(pipeline, db)


def _ended(streams: Sequence[Stream], wait: float) -> bool:
    """Whether a stream has ended, after a while; raises what has ended it."""
    sleep(wait)
    ended = [stream for stream in streams if not stream.isActive]
    for stream in ended:
        stream.awaitTermination()
    return bool(ended)


def _follow(source: Source, pipeline: Pipeline, db: Database, trigger: str | None) -> Stream:
    assert pipeline.store is not None
    frame = stream_frame(db.spark, db.relations[source.relation], source.place, changes=source.changes)
    name = f"{pipeline.name} {source.relation}"
    checkpoint = f"{_absolute(pipeline.store)}/{CHECKPOINTS}/{source.relation}"
    return db.stream(frame, source.relation, name=name, checkpoint=checkpoint, trigger=trigger)


def _absolute(store: str) -> str:
    return store if "://" in store else str(Path(store).absolute())


def write_changes(pipeline: Pipeline, db: Database) -> None:
    """Write what commits have changed to the sinks for changes, each commit once."""
    for sink in pipeline.sinks:
        if sink.changes:
            db.write_feed(sink.place.path, [sink.relation])
