"""`tidelog run PIPELINE`: what a pipeline file says, done."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from tidelog.cli.progress import progress
from tidelog.cli.summary import Times, print_summary
from tidelog.cli.where import Where
from tidelog.session.database import Database
from tidelog.session.pipeline.check import check_pipeline
from tidelog.session.pipeline.model import Pipeline, read_pipeline
from tidelog.session.pipeline.work import catch_up, follow, load, write
from tidelog.syntax.errors import ProgramError


def run_pipeline(file: Path, where: Where, *, quiet: bool) -> None:
    """Run a pipeline. What can be found out before Spark is started is found out first."""
    with ExitStack() as closing:
        with progress(quiet=quiet) as watch:
            began = perf_counter()
            pipeline = read_pipeline(file)
            where = where.of(pipeline)
            _, problems = check_pipeline(pipeline, where.engine, connect=where.connects)
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
                    maintained=pipeline.store is not None,
                    store=pipeline.store,
                )
            )
            if pipeline.continuous:
                _follow(pipeline, db, quiet=quiet)
                return
            before = db.version
            (load if pipeline.store is None else catch_up)(pipeline, db)
            report = db.report
            derived = perf_counter()
        sizes = write(pipeline, db)
        written = perf_counter()
        if pipeline.store is not None and not quiet:
            print(f"version {db.version} of {pipeline.store}, {db.version - before} more", file=sys.stderr)
    if not quiet:
        times = Times(
            check=checked - began,
            start=started - checked + report.start_seconds,
            load=derived - started - report.seconds - report.start_seconds,
            derive=report.seconds,
            write=written - derived,
        )
        print_summary(report, times, sizes)


def _follow(pipeline: Pipeline, db: Database, *, quiet: bool) -> None:
    """Run until somebody says that it is enough, which is how a continuous pipeline ends."""

    def enough(*_: object) -> None:
        raise KeyboardInterrupt

    def told(version: int) -> None:
        if not quiet:
            print(f"version {version} of {pipeline.store}", file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, enough)
    try:
        follow(pipeline, db, told)
    except KeyboardInterrupt:
        if not quiet:
            print(f"stopped at version {db.version}", file=sys.stderr)
