"""The command `tidelog`: its options, and nothing heavy before one of its commands runs.

Exit codes: 0 done; 1 the program or the data is wrong; 2 wrong usage; 70 a bug in
Tidelog; 130 interrupted; 141 nobody reads the output any more.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tidelog import __version__
from tidelog.cli.guard import guarded, standard_output
from tidelog.cli.where import Where
from tidelog.execute import Engine
from tidelog.syntax.errors import TidelogError

PIPELINES = (".yaml", ".yml")

app = typer.Typer(
    name="tidelog",
    help="Datalog: give it facts and it gives you the answers, in process or on Apache Spark.",
    add_completion=False,
    no_args_is_help=True,
    # Plain help and plain errors: loading rich would double the time of --help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Program = Annotated[
    Path, typer.Argument(metavar="PROGRAM", help="The file of the program.", show_default=False)
]
EngineOfRun = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        envvar="TIDELOG_ENGINE",
        help="What evaluates the rules: spark, unless a pipeline says otherwise; local needs no Java.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's master; without one, Spark is started here."),
]
Remote = Annotated[str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server.")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; as often as wanted."),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidelog {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


@app.command()
def run(
    program: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A program, or a pipeline (.yaml).", show_default=False),
    ],
    facts: Annotated[
        Path | None,
        typer.Option(
            "-F",
            "--facts",
            metavar="DIR",
            help="Where the facts of inputs are: R.facts, R.csv, R.parquet, ...",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-D", "--output", metavar="DIR", help="Where R.csv of outputs go; - prints them."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("-j", "--jobs", metavar="N", min=1, help="Threads to use; a Spark started here: cores."),
    ] = None,
    engine: EngineOfRun = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no summary.")] = False,
) -> None:
    """Read facts, derive everything, write the answers: on Spark, or with --engine local in this process."""

    where = Where.given(engine and engine.value, master, remote, conf or [], threads)
    is_pipeline = program.suffix in PIPELINES
    if is_pipeline and (facts or output):
        raise typer.BadParameter("-F and -D are for programs; a pipeline says where it reads and writes")

    def work() -> None:
        if is_pipeline:
            from tidelog.cli.pipeline import run_pipeline

            run_pipeline(program, where, quiet=quiet)
        else:
            from tidelog.cli.run import run_program

            run_program(program, facts or Path("."), output or Path("."), where=where, quiet=quiet)

    guarded(work)


@app.command(name="dry-run")
def dry_run(
    pipeline: Annotated[
        Path, typer.Argument(metavar="PIPELINE", help="The file of the pipeline.", show_default=False)
    ],
    engine: EngineOfRun = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
) -> None:
    """Check everything about a pipeline without running it, and say what it would do."""
    where = Where.given(engine and engine.value, master, remote, conf or [])
    if pipeline.suffix not in PIPELINES:
        raise typer.BadParameter(f"{pipeline} is no pipeline (.yaml); tidelog check looks at a program")

    def work() -> None:
        from tidelog.cli import dry_run

        text = dry_run.dry_run(pipeline, where)
        with standard_output():
            typer.echo(text)

    guarded(work)


@app.command()
def init(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="The directory to make.", show_default=False)],
) -> None:
    """Make a directory with a small pipeline that runs: a program, facts, and tidelog.yaml."""

    def work() -> None:
        from tidelog.cli.init import init_pipeline

        text = init_pipeline(name)
        with standard_output():
            typer.echo(text)

    guarded(work)


@app.command()
def check(program: Program) -> None:
    """Find all problems of a program, without running it."""

    def work() -> None:
        from tidelog.cli.look import check_program

        text = check_program(program)
        with standard_output():
            typer.echo(text)

    guarded(work)


@app.command()
def plan(
    program: Program,
    facts: Annotated[
        Path | None,
        typer.Option("-F", "--facts", metavar="DIR", help="Order joins by the sizes of the facts there."),
    ] = None,
) -> None:
    """Print strata, rules, and a plan for each rule."""

    def work() -> None:
        from tidelog.cli.look import plan_program

        text = plan_program(program, facts)
        with standard_output():
            typer.echo(text)

    guarded(work)


@app.command()
def shell(
    program: Program,
    algorithm: Annotated[
        str, typer.Option("--algorithm", metavar="NAME", help="How answers are kept current.")
    ] = "auto",
    engine: Annotated[Engine, typer.Option("--engine", help="What evaluates the rules.")] = Engine.local,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="auto, incremental or full.")
    ] = "auto",
    threads: Annotated[
        int, typer.Option("-j", "--jobs", "--threads", metavar="N", min=1, help="Threads to use.")
    ] = 1,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="DIR", help="Keep each commit in a store, and go on there."),
    ] = None,
) -> None:
    """Carry out transactions, written in DDlog's command language, from standard input."""

    from tidelog.session.options import check_choice

    try:
        check_choice(algorithm, policy)
    except TidelogError as error:
        raise typer.BadParameter(str(error)) from None

    def work() -> None:
        from tidelog.cli.shell import run_shell

        run_shell(
            program, algorithm=algorithm, engine=engine.value, policy=policy, threads=threads, store=store
        )

    guarded(work)


def main() -> None:
    """Run the command line and exit."""
    # Most of a short run is importing, and the collector would go through all of it again and again.
    gc.set_threshold(100_000, 50, 100)
    try:
        app(prog_name="tidelog")
    except KeyboardInterrupt:  # while the command itself was still being loaded
        sys.exit(130)
    except SystemExit as ended:
        _leave(ended.code)
        raise


def _leave(code: object) -> None:
    """End at once, where all is written: taking the engine down piece by piece takes a fifth of a second."""
    if isinstance(code, int) and "pyspark" not in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
