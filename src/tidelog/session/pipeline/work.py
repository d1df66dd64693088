"""Running a pipeline: as a batch, over what is new in its sources, or for as long as it may."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tidelog.io import writing
from tidelog.io.places import unreadable
from tidelog.io.spark_files import facts_frame
from tidelog.session.database import Database
from tidelog.session.pipeline.model import Pipeline, Source

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import DataFrame
    from tidelog.execute.spark.state import Rows


def load(pipeline: Pipeline, db: Database) -> None:
    """Commit all that the sources have, at once."""
    with db.transaction() as tx:
        tx.read({source.relation: source.place for source in pipeline.sources if not source.changes})
        for source in pipeline.sources:
            if source.changes:
                tx.apply(source.relation, _changes(source, db))


def _changes(source: Source, db: Database) -> DataFrame:
    frame = facts_frame(db.spark, db.relations[source.relation], source.place, small=-1)
    if frame is None:
        relation = db.relations[source.relation]
        raise unreadable(
            relation, source.place, "changes are read by Spark, from Parquet, JSON, ORC or tables"
        )
    return frame


def write(pipeline: Pipeline, db: Database) -> list[tuple[str, int]]:
    """Write the answers to their sinks, all of them or none; what was written, with sizes."""
    sinks, sizes = [], []
    for sink in pipeline.sinks:
        if not sink.changes:
            answer = db[sink.relation]
            held = cast("Rows", answer.held())
            sinks.append(writing.Sink(answer.relation, held, sink.place, sink.mode, parts=True))
            sizes.append((sink.relation, len(answer)))
    writing.write_all(sinks)
    return sizes
