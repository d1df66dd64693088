"""The closing summary of a run, on stderr: a rich table on a terminal, plain text elsewhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tidelog.session.report import COLUMNS, Report, text_table


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


def print_summary(report: Report, times: Times, outputs: list[tuple[str, int]]) -> None:
    """Print what each stratum did, the sizes of the outputs, and where the time went."""
    rows = [line.cells() for line in report.strata]
    sizes = ", ".join(f"{name} {size:,}" for name, size in outputs)
    closing = [f"outputs: {sizes}"] if outputs else []
    closing.append(str(times))
    if not sys.stderr.isatty():
        print("\n".join([*([text_table(COLUMNS, rows)] if rows else []), *closing]), file=sys.stderr)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(stderr=True, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "relations" else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    if rows:
        console.print(table)
    for line in closing:
        console.print(escape(line))
