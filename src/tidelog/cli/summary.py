"""The closing summary of a run, on stderr: a rich table on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tidelog.session.report import Report, text_table

MOST = 20  # strata or outputs; when there are more, SHOWN of them are printed
SHOWN = 15
WORDS = ("relations", "algorithm", "phases", "why", "way")  # columns that are not numbers


@dataclass(frozen=True)
class Times:
    """Seconds of a run, apart: the program, the engine's start, loading facts, deriving, writing answers."""

    check: float
    start: float
    load: float
    derive: float
    write: float

    def __str__(self) -> str:
        parts = [f"{name} {seconds:.3f} s" for name, seconds in vars(self).items()]
        return ", ".join([*parts, f"total {sum(vars(self).values()):.3f} s"])


def strata_rows(report: Report) -> tuple[list[tuple[str, ...]], str]:
    """A row for each stratum; of many only the slowest, still in order, and a line on the rest."""
    lines = report.strata
    if len(lines) <= MOST:
        return report.rows(lines), ""
    slowest = {line.stratum for line in sorted(lines, key=lambda line: -line.seconds)[:SHOWN]}
    rest = [line for line in lines if line.stratum not in slowest]
    tuples, seconds = sum(line.tuples for line in rest), sum(line.seconds for line in rest)
    words = f"and {len(rest):,} faster strata: {tuples:,} tuples, {seconds:.3f} s"
    return report.rows([line for line in lines if line.stratum in slowest]), words


def outputs_line(outputs: list[tuple[str, int]]) -> str:
    """The sizes of the outputs; of many only those of the first."""
    shown = outputs if len(outputs) <= MOST else outputs[:SHOWN]
    sizes = [f"{name} {size:,}" for name, size in shown]
    if rest := outputs[len(shown) :]:
        sizes.append(f"and {len(rest):,} more with {sum(size for _, size in rest):,} tuples")
    return f"outputs: {', '.join(sizes)}"


def print_summary(report: Report, times: Times, outputs: list[tuple[str, int]]) -> None:
    """Print what each stratum did, the sizes of the outputs, and where the time went."""
    rows, rest = strata_rows(report)
    closing = [text for text in (rest, report.place) if text]
    closing += [outputs_line(outputs)] if outputs else []
    closing.append(str(times))
    if not sys.stderr.isatty():
        print("\n".join([*([text_table(report.columns, rows)] if rows else []), *closing]), file=sys.stderr)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(stderr=True, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in report.columns:
        table.add_column(name, justify="left" if name in WORDS else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    if rows:
        console.print(table)
    for line in closing:
        console.print(escape(line))
