"""Whether the program, the sources and the sinks of a pipeline go together, and with what is there.

Nothing is run or written. Everything that is wrong is found in one go; what Spark knows about
sources (`check_columns`) is asked for after the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.io.facts import only_spark, read_facts
from tidelog.io.places import Place, parts
from tidelog.io.spark_files import SMALL, facts_frame
from tidelog.io.writing import check_places
from tidelog.program.check import check
from tidelog.program.model import Program, Relation
from tidelog.session.frames.given import APPLY, given_frame
from tidelog.session.pipeline.document import in_order, near
from tidelog.session.pipeline.model import Pipeline, Sink, Source
from tidelog.syntax.errors import DataError, Diagnostic, ProgramError, TidelogError
from tidelog.syntax.parser import read
from tidelog.syntax.source import Span

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import SparkSession


def check_pipeline(
    pipeline: Pipeline, engine: str, *, connect: bool = False
) -> tuple[Program | None, list[Diagnostic]]:
    """The program, and everything that is wrong as far as this process can see.

    `engine` is what it will run on; with `connect`, on Spark over Spark Connect.
    """
    try:
        program = check(read(pipeline.program))
    except ProgramError as error:
        wrong = [replace(d, span=d.span or pipeline.program_span) for d in error.diagnostics]
        return None, [*wrong, *in_order(_together(pipeline, engine, connect))]
    own = {name: r for name, r in program.relations.items() if r.made_by is None}
    problems = _together(pipeline, engine, connect)
    for source in pipeline.sources:
        problems += _named(source, own, "source") or _readable(source, own[source.relation], pipeline, engine)
    given = {source.relation for source in pipeline.sources}
    for name, relation in own.items():
        if relation.is_input and name not in given:
            hint = f"sources: {{{name}: {{format: csv, path: ...}}}}"
            problems.append(
                Diagnostic("TL0907", f"no source for {name}", relation.span, "an input", hint=hint)
            )
    for sink in pipeline.sinks:
        problems += _named(sink, own, "sink") or _in_use(sink, pipeline) or _writable(sink, engine)
    problems += _written_twice(pipeline.sinks)
    return program, in_order(problems)


def _together(pipeline: Pipeline, engine: str, connect: bool) -> list[Diagnostic]:
    """What a pipeline asks for that does not go together."""
    found = []

    def wrong(message: str, span: Span | None, hint: str) -> None:
        found.append(Diagnostic("TL0908", message, span, hint=hint))

    if not pipeline.sinks and pipeline.store is None:
        wrong("nothing is written: there is neither a sink nor a store", pipeline.program_span, "sinks: ...")
    if pipeline.continuous and pipeline.store is None:
        wrong("a continuous pipeline needs a store", pipeline.trigger_span, "store: DIRECTORY")
    if pipeline.store is not None and engine != "spark":
        wrong(f"a store is filled by streams of Spark, and the engine is {engine}", None, "engine: spark")
    if pipeline.store is not None and connect:
        message = "a store is filled by streams, and they are not to be had over Spark Connect"
        wrong(message, None, "spark: {master: URL}")
    for sink in pipeline.sinks:
        if sink.changes and pipeline.store is None:
            wrong("changes are known where there is a store", sink.span, "store: DIRECTORY")
        if sink.changes and (sink.place.format != "parquet" or sink.place.options):
            wrong("changes are written as Parquet, without options", sink.span, "format: parquet")
        if not sink.changes and pipeline.continuous:
            message = "a continuous pipeline has changes to write; there is no moment for all answers"
            wrong(message, sink.span, "write: changes, or trigger: once")
    for source in pipeline.sources:
        if source.changes and engine != "spark":
            wrong(f"changes are read by Spark, and the engine is {engine}", source.span, "engine: spark")
    return found


def _named(place: Source | Sink, relations: dict[str, Relation], what: str) -> list[Diagnostic]:
    name = place.relation
    if name in relations:
        return []
    message = f"the {what} {name} is no relation of the program"
    notes = (f"the relations are {', '.join(relations)}",)
    return [Diagnostic("TL0906", message, place.span, notes=notes, hint=near(name, relations))]


def _readable(source: Source, relation: Relation, pipeline: Pipeline, engine: str) -> list[Diagnostic]:
    place, heading = source.place, f"the source {source.relation} cannot be read"
    if place.for_spark and engine != "spark":
        return [told(only_spark(heading, place), "TL0909", heading, source.span)]
    if relation.key and (place.for_spark or source.changes or pipeline.store is not None):
        message = f"{relation.name} has a primary key, and keys are not checked in Spark yet"
        return [Diagnostic("TL0908", message, source.span, hint="declare it without the key")]
    path = place.here
    if path is not None and not path.exists():
        return [Diagnostic("TL0909", f"{heading}: there is no {path}", source.span)]
    if path is not None and not place.for_spark and not parts(path) and pipeline.store is None:
        return [Diagnostic("TL0909", f"{heading}: the directory {path} has no files", source.span)]
    return []


def _writable(sink: Sink, engine: str) -> list[Diagnostic]:
    heading = f"the sink {sink.relation} cannot be written"
    if sink.changes:
        return []
    path = sink.place.here
    if sink.mode == "error" and path is not None and path.exists():
        return [Diagnostic("TL0910", f"{heading}: {sink.place} is there already", sink.span)]
    if sink.mode == "overwrite" and path is not None and path.is_file():
        message = f"{heading}: {sink.place} is a file, and a sink is a directory of parts"
        return [Diagnostic("TL0910", message, sink.span, hint="name another path, or move it elsewhere")]
    if sink.mode == "append" and path is not None and path.is_file():
        return [Diagnostic("TL0910", f"{heading}: {sink.place} is a file, not of parts", sink.span)]
    try:
        places = [(sink.relation, sink.place)]
        check_places(places, by_spark=engine == "spark", mode=sink.mode, parts=True)
    except DataError as error:
        return [told(error, "TL0910", heading, sink.span)]
    return []


def _written_twice(sinks: Iterable[Sink]) -> list[Diagnostic]:
    seen: dict[str, Sink] = {}
    found = []
    for sink in sinks:
        other = seen.setdefault(str(sink.place), sink)
        if other is not sink:
            message = f"{other.relation} and {sink.relation} would both be written to {sink.place}"
            found.append(Diagnostic("TL0910", message, sink.span))
    return found


def _in_use(sink: Sink, pipeline: Pipeline) -> list[Diagnostic]:
    """That a sink would take the place of the program, of a source or of the store, or come into that."""
    store = None if pipeline.store is None else Place("parquet", pipeline.store)
    used = [("the program", Place("dl", str(pipeline.program)))]
    used += [(f"the source {source.relation}", source.place) for source in pipeline.sources]
    used += [] if store is None else [("the store", store)]
    for what, place in used:
        if sink.place.here is None or place.here is None:
            continue
        mine, theirs = (os.path.realpath(path) + os.sep for path in (sink.place.here, place.here))
        if theirs.startswith(mine) or (place is store and mine.startswith(theirs)):
            message = f"the sink {sink.relation} cannot be written: {sink.place} is in use by {what}"
            return [Diagnostic("TL0910", message, sink.span, hint="name another path")]
    return []


# --- what sources hold -------------------------------------------------------------


def check_columns(
    sources: Iterable[Source], program: Program, spark: SparkSession | None
) -> list[Diagnostic]:
    """What is wrong with the columns of sources, or with their rows where they are few."""
    found = []
    for source in sources:
        relation = program.relations.get(source.relation)
        if relation is not None:
            try:
                _look(source, relation, spark)
            except DataError as error:
                heading = f"the source {source.relation} does not fit"
                found.append(told(error, "TL0909", heading, source.span))
    return found


def _look(source: Source, relation: Relation, spark: SparkSession | None) -> None:
    place, path = source.place, source.place.here
    if spark is not None and not place.is_text:
        frame = facts_frame(spark, relation, place, small=0)
        if frame is not None:
            verb = APPLY if source.changes else "insert into"
            given_frame(relation.name, relation.columns, frame, None, verb)
            return
    if path is None or place.for_spark or source.changes or not path.exists():
        return
    if sum(part.stat().st_size for part in parts(path)) <= SMALL and all(p.is_file() for p in parts(path)):
        read_facts(relation, place)


def told(error: TidelogError, code: str, heading: str, span: Span) -> Diagnostic:
    """An error of ours as one of a pipeline, with its place there."""
    first, *rest = str(error).splitlines()
    what = first.partition("]: ")[2] or first
    notes = [
        line.removeprefix("  --> ").removeprefix("  = note: ") for line in rest if "= hint: " not in line
    ]
    hints = [line.removeprefix("  = hint: ") for line in rest if "= hint: " in line]
    return Diagnostic(code, heading, span, notes=(what, *notes, *hints[1:]), hint=hints[0] if hints else None)
