"""`tidelog run`: facts in, answers out, and what happened in between."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

from tidelog.cli.guard import standard_output
from tidelog.cli.progress import progress
from tidelog.cli.startup import keep_pandas_out
from tidelog.cli.summary import Times, print_summary
from tidelog.io.output import (
    ambiguous_columns,
    check_outputs,
    delimiter_words,
    output_path,
    print_relation,
    write_files,
)
from tidelog.session.database import Database
from tidelog.session.report import Watch


def _database(program: Path, engine: str, threads: int, watch: Watch | None) -> Database:
    """A database for a single evaluation: nothing is kept for updates."""
    return Database(program, engine=engine, threads=threads, watch=watch, maintained=False)


def run_program(program: Path, facts: Path, output: Path, *, threads: int, engine: str, quiet: bool) -> None:
    """Run a program; `output` may be `-` for the terminal."""
    if engine != "spark":
        keep_pandas_out()
    to_terminal = str(output) == "-"
    with ExitStack() as closing:  # the engine is given back, also when the answers cannot be written
        with progress(quiet=quiet) as watch:
            started = perf_counter()
            db = closing.enter_context(_database(program, engine, threads, watch))
            wanted = [r for r in db.relations.values() if r.is_output]
            if not to_terminal:
                check_outputs(wanted, output)  # before the work is done, not after
            checked = perf_counter()
            with db.transaction() as tx:
                tx.load(facts)
                loaded = perf_counter()
            report = db.report
            derived = perf_counter()
        outputs = [(r, db[r.name].to_arrow()) for r in db.relations.values() if r.is_output]
        printed = [(r, t) for r, t in outputs if to_terminal or output_path(r, output) is None]
        if not to_terminal:
            write_files(outputs, output)
        with standard_output():
            for relation, table in printed:
                print_relation(relation, table, sys.stdout.buffer)
            for relation in db.relations.values():
                if relation.printsize:
                    sys.stdout.buffer.write(f"{relation.name}\t{len(db[relation.name])}\n".encode())
            sys.stdout.buffer.flush()
        written = perf_counter()
        for relation, table in outputs:
            delimiter = delimiter_words(relation)
            for column in ambiguous_columns(relation, table):
                note = (
                    f"column {column} of {relation.name} holds {delimiter} or line ends, written as they are"
                )
                print(f"warning: {note}; rfc4180=true would quote them", file=sys.stderr)
        if not quiet:
            times = Times(
                check=checked - started,
                start=report.start_seconds,
                load=loaded - checked + report.load_seconds,
                derive=derived - loaded - report.start_seconds - report.load_seconds,
                write=written - derived,
            )
            print_summary(report, times, [(r.name, t.num_rows) for r, t in outputs])
