"""`tidelog run PIPELINE`: what a pipeline file says, done."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from tidelog.cli.progress import progress
from tidelog.cli.stopping import TERMINATED, Stopping
from tidelog.cli.summary import Times, print_summary
from tidelog.cli.where import Where
from tidelog.session.database import Database
from tidelog.session.pipeline.check import check_pipeline
from tidelog.session.pipeline.model import Pipeline, read_pipeline
from tidelog.session.pipeline.work import catch_up, follow, load, write
from tidelog.syntax.errors import ProgramError


def run_pipeline(file: Path, where: Where, *, quiet: bool) -> None:
    """Run a pipeline. What can be found out before Spark is started is found out first.

    A continuous one runs until somebody says that it is enough, which is how it ends.
    """
    began = perf_counter()
    with Stopping() as stopping:
        pipeline = read_pipeline(file)
        run = _Run(pipeline, where.of(pipeline), stopping, began, quiet=quiet)
        try:
            run()
        except (KeyboardInterrupt, Exception) as error:
            if not stopping.explains(error):
                raise
            if not pipeline.continuous:
                if stopping.asked:
                    sys.exit(TERMINATED)
                raise
            if not quiet:
                at = "" if run.version is None else f" at version {run.version}"
                print(f"stopped{at}", file=sys.stderr)


class _Run:
    """A run, and the version that the store of a continuous one has come to."""

    def __init__(
        self, pipeline: Pipeline, where: Where, stopping: Stopping, began: float, *, quiet: bool
    ) -> None:
        self._pipeline, self._where, self._stopping = pipeline, where, stopping
        self._began, self._quiet = began, quiet
        self.version: int | None = None

    def __call__(self) -> None:
        pipeline, where, quiet = self._pipeline, self._where, self._quiet
        with ExitStack() as closing:
            with progress(quiet=quiet) as watch:
                _, problems = check_pipeline(pipeline, where.engine, connect=where.connects)
                if problems:
                    raise ProgramError(problems)
                checked = perf_counter()
                with self._stopping.held_back():  # a Java that is still starting would stay
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
                    return self._follow(db)
                (load if pipeline.store is None else catch_up)(pipeline, db)
                report = db.report
                derived = perf_counter()
            sizes = write(pipeline, db)
            written = perf_counter()
            if pipeline.store is not None and not quiet:
                more = db.version - db.opened_at
                print(f"version {db.version} of {pipeline.store}, {more} more", file=sys.stderr)
        if not quiet:
            times = Times(
                check=checked - self._began,
                start=started - checked + report.start_seconds,
                load=derived - started - report.seconds - report.start_seconds,
                derive=report.seconds,
                write=written - derived,
            )
            print_summary(report, times, sizes)

    def _follow(self, db: Database) -> None:
        def told(version: int) -> None:
            if not self._quiet:
                print(f"version {version} of {self._pipeline.store}", file=sys.stderr, flush=True)

        try:
            follow(self._pipeline, db, told)
        finally:
            self.version = db.version
