"""The figures of other systems on the same work, read from the tables of `PEERS.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """What one system needed: seconds of wall time for the whole process, and peak MB where known."""

    system: str
    threads: int
    seconds: float
    megabytes: float | None


@dataclass(frozen=True)
class Row:
    """One workload of the table and all figures for it."""

    workload: str
    figures: tuple[Figure, ...]

    def souffle(self, threads: int) -> Figure | None:
        """Compiled Soufflé with as many threads."""
        for figure in self.figures:
            if "compiled" in figure.system and figure.threads == threads:
                return figure
        return None

    def best(self, threads: int) -> Figure | None:
        """The fastest system that uses no more threads."""
        fair = [figure for figure in self.figures if figure.threads <= threads]
        return min(fair, key=lambda figure: figure.seconds, default=None)


def read_peers(path: Path) -> tuple[Row, ...]:
    """The rows of the first table of the page (the one with threads)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| workload"))
    systems = _systems(_cells(lines[start]))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, _, *cells = _cells(line)
        figures = (_figure(*system, cell) for system, cell in zip(systems[2:], cells, strict=True))
        rows.append(Row(name, tuple(figure for figure in figures if figure is not None)))
    return tuple(rows)


@dataclass(frozen=True)
class Spread:
    """The median and the most of a number of commits."""

    p50: float
    max: float

    def __str__(self) -> str:
        return f"{self.p50:,.0f} / {self.max:,.0f}"


@dataclass(frozen=True)
class UpdateRow:
    """One-fact commits of differential dataflow: milliseconds, and the answers that changed."""

    workload: str
    step: int
    commits: int
    first_seconds: float
    delete: Spread
    insert: Spread
    impact: Spread
    megabytes: float


def read_update_peers(path: Path) -> tuple[UpdateRow, ...]:
    """The rows of the table of updates: the one with a column `step, commits`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| workload | step, commits"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, steps, first, delete, insert, impact, megabytes = _cells(line)
        step, commits = steps.split(",")
        rows.append(
            UpdateRow(
                workload=name,
                step=int(step),
                commits=int(commits),
                first_seconds=float(first.removesuffix(" s")),
                delete=_spread(delete),
                insert=_spread(insert),
                impact=_spread(impact),
                megabytes=float(megabytes.replace(",", "")),
            )
        )
    return tuple(rows)


def _spread(cell: str) -> Spread:
    """A cell such as `2.4 / 82.6` or `55 / 2,739`."""
    p50, most = (float(part.replace(",", "")) for part in cell.split("/"))
    return Spread(p50, most)


def find_row(rows: tuple[Row, ...], workload: str) -> Row | None:
    """The row of a workload, by the beginning of its name."""
    return next((row for row in rows if row.workload.startswith(workload)), None)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _systems(headers: list[str]) -> list[tuple[str, int]]:
    """System and threads of each column; `2 threads` and `interpreted` go on with the system before."""
    systems: list[tuple[str, int]] = []
    for header in headers:
        threads = 2 if re.search(r"\b2 (threads|workers)", header) else 1
        name = header.split(",")[0]
        if re.match(r"2 (threads|workers)", header):
            name = systems[-1][0]
        elif header == "interpreted":
            name = systems[-1][0].replace("compiled", header)
        systems.append((name, threads))
    return systems


def _figure(system: str, threads: int, cell: str) -> Figure | None:
    """A cell such as `0.53 / 28`; None where there is no time (`over 100`, `out of memory`, nothing)."""
    found = re.fullmatch(r"([\d.]+)(?: / ([\d,]+))?", cell)
    if found is None:
        return None
    megabytes = float(found[2].replace(",", "")) if found[2] else None
    return Figure(system, threads, float(found[1]), megabytes)
