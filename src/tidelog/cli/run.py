"""`tidelog run`: facts in, answers out, and what happened in between."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tidelog.cli.guard import standard_output
from tidelog.cli.progress import progress
from tidelog.cli.summary import Times, print_summary
from tidelog.cli.where import Where
from tidelog.io.output import ambiguous_columns, delimiter_words, print_relation
from tidelog.io.places import find_facts, output_place
from tidelog.io.writing import MOST_FETCHED, check_outputs, write_files
from tidelog.program.check import check
from tidelog.session.database import Database
from tidelog.session.frames.held import InSpark
from tidelog.syntax.parser import read

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.program.model import Relation
    from tidelog.session.answer import Answer


def run_program(program: Path, facts: Path, output: Path, *, where: Where, quiet: bool) -> None:
    """Run a program; `output` may be `-` for the terminal."""
    to_terminal = str(output) == "-"
    with ExitStack() as closing:  # the engine is given back, also when the answers cannot be written
        with progress(quiet=quiet) as watch:
            began = perf_counter()
            if where.engine == "spark":
                _check_first(program, facts, None if to_terminal else output)
            checking = perf_counter() - began
            session = closing.enter_context(where.session())
            started = perf_counter()
            db = closing.enter_context(  # for a single evaluation: nothing is kept for updates
                Database(
                    program,
                    engine=where.engine,
                    threads=where.threads or 1,
                    spark=session,
                    watch=watch,
                    maintained=False,
                )
            )
            wanted = [r for r in db.relations.values() if r.is_output]
            if not to_terminal:  # before the work is done, not after
                check_outputs(wanted, output, by_spark=session is not None)
            checked = perf_counter()
            with db.transaction() as tx:
                tx.load(facts)
                loaded = perf_counter()
            report = db.report
            derived = perf_counter()
        answers = [(r, db[r.name]) for r in db.relations.values() if r.is_output]
        outputs = [(r, _tuples(r, answer)) for r, answer in answers]
        if not to_terminal:
            write_files(outputs, output, by_spark=session is not None)
        with standard_output():
            for relation, answer in answers:
                if to_terminal or output_place(relation, output) is None:
                    print_relation(relation, answer.table(), sys.stdout.buffer)
            for relation in db.relations.values():
                if relation.printsize:
                    sys.stdout.buffer.write(f"{relation.name}\t{len(db[relation.name])}\n".encode())
            sys.stdout.buffer.flush()
        written = perf_counter()
        for relation, tuples in outputs:
            _warn(relation, tuples)
        if not quiet:
            times = Times(
                check=checked - started + checking,
                start=started - began - checking + report.start_seconds,
                load=loaded - checked + report.load_seconds,
                derive=derived - loaded - report.start_seconds - report.load_seconds,
                write=written - derived,
            )
            print_summary(report, times, [(r.name, len(answer)) for r, answer in answers])


def _check_first(program: Path, facts: Path, output: Path | None) -> None:
    """Find what is wrong before Spark is started, which takes its time."""
    relations = check(read(program)).relations.values()
    if output is not None:
        check_outputs((r for r in relations if r.is_output), output, by_spark=True)
    find_facts((r for r in relations if r.is_input), facts)


def _tuples(relation: Relation, answer: Answer) -> pa.Table | InSpark:
    """What is written; text is fetched from Spark, unless it is a lot."""
    place = output_place(relation, Path())
    is_text = place is None or (place.is_text and place.here is not None)
    return answer.table() if is_text and len(answer) <= MOST_FETCHED else answer.held(there=not is_text)


def _warn(relation: Relation, tuples: pa.Table | InSpark) -> None:
    """Say which columns of text cannot be read again as they were; of what Spark has, nobody knows."""
    place = output_place(relation, Path())
    if isinstance(tuples, InSpark) or not (place is None or place.is_text):
        return
    delimiter = delimiter_words(relation)
    for column in ambiguous_columns(relation, tuples):
        note = f"column {column} of {relation.name} holds {delimiter} or line ends, written as they are"
        print(f"warning: {note}; rfc4180=true would quote them", file=sys.stderr)
