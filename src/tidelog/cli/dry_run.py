"""`tidelog dry-run PIPELINE`: everything checked, nothing run, and what would be done."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tidelog.cli.look import counts
from tidelog.cli.where import Where
from tidelog.io.places import Place
from tidelog.program.model import Program
from tidelog.session.pipeline.check import check_columns, check_pipeline
from tidelog.session.pipeline.model import Pipeline, read_pipeline
from tidelog.syntax.errors import ProgramError


def dry_run(file: Path, where: Where) -> str:
    """What a pipeline would do; raises ProgramError with everything that is wrong with it."""
    pipeline = read_pipeline(file)
    where = where.of(pipeline)
    program, problems = check_pipeline(pipeline, where.engine, connect=where.connects)
    if program is not None:
        broken = {problem.span for problem in problems}
        readable = [source for source in pipeline.sources if source.span not in broken]
        with ExitStack() as closing:
            asks = where.engine == "spark" and any(not source.place.is_text for source in readable)
            session = closing.enter_context(where.session()) if asks else None
            problems += check_columns(readable, program, session)
    if problems or program is None:
        raise ProgramError(problems)
    return described(pipeline, program, where)


def described(pipeline: Pipeline, program: Program, where: Where) -> str:
    """A pipeline in words."""
    rows: list[tuple[str, ...]] = [("pipeline", f"{pipeline.name}, {pipeline.file}")]
    rows.append(("program", f"{pipeline.program}: {counts(program)}"))
    for source in pipeline.sources:
        what = "changes of " if source.changes else ""
        columns = ", ".join(f"{c.name}: {c.type}" for c in program.relations[source.relation].columns)
        rows.append(("source", f"{what}{source.relation}({columns}) from {_at(source.place)}"))
    for sink in pipeline.sinks:
        what = "changes of " if sink.changes else ""
        mode = "" if sink.changes else f", {sink.mode}"
        rows.append(("sink", f"{what}{sink.relation} to {_at(sink.place)}{mode}"))
    rows.append(("store", pipeline.store or "none: everything is derived anew"))
    rows.append(("trigger", _trigger(pipeline)))
    rows.append(("engine", str(where)))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _at(place: Place) -> str:
    return str(place) if place.table else f"{place.path} ({place.format})"


def _trigger(pipeline: Pipeline) -> str:
    if pipeline.continuous:
        often = f"every {pipeline.interval}" if pipeline.interval else "as it comes"
        return f"continuous: what is new is committed {often}, until it is stopped"
    if pipeline.store is not None:
        return "once: what is new in the sources is committed"
    return "once: all that the sources have"
