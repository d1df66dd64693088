"""`tidelog run PIPELINE`: what a pipeline file says, done."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from tidelog.cli.progress import progress
from tidelog.cli.summary import Times, print_summary
from tidelog.cli.where import Where
from tidelog.session.database import Database
from tidelog.session.pipeline.check import check_pipeline
from tidelog.session.pipeline.model import read_pipeline
from tidelog.session.pipeline.work import load, write
from tidelog.syntax.errors import ProgramError


def run_pipeline(file: Path, where: Where, *, quiet: bool) -> None:
    """Run a pipeline. What can be found out before Spark is started is found out first."""
    with ExitStack() as closing:
        with progress(quiet=quiet) as watch:
            began = perf_counter()
            pipeline = read_pipeline(file)
            where = where.of(pipeline)
            _, problems = check_pipeline(pipeline, where.engine)
            if problems:
                raise ProgramError(problems)
            checked = perf_counter()
            session = closing.enter_context(where.session())
            started = perf_counter()
            db = closing.enter_context(
                Database(
                    pipeline.program,
                    engine=where.engine,
                    threads=where.threads or 1,
                    spark=session,
                    watch=watch,
                    maintained=False,
                )
            )
            load(pipeline, db)
            report = db.report
            derived = perf_counter()
        sizes = write(pipeline, db)
        written = perf_counter()
    if not quiet:
        times = Times(
            check=checked - began,
            start=started - checked + report.start_seconds,
            load=derived - started - report.seconds - report.start_seconds,
            derive=report.seconds,
            write=written - derived,
        )
        print_summary(report, times, sizes)
