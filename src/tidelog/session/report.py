"""What an evaluation did and how long it took, stratum by stratum; and moments of one that runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidelog.maintain.seminaive import StratumReport
from tidelog.program.aggregates import label

COLUMNS = ("stratum", "relations", "rounds", "tuples", "instances", "seconds")


@dataclass(frozen=True)
class Moment:
    """A moment of an evaluation: in stratum `stratum` of `strata`, counted from 1.

    `tuples` counts what has been derived since the evaluation began.
    """

    stratum: int
    strata: int
    relations: tuple[str, ...]
    round: int
    tuples: int


Watch = Callable[[Moment], None]


@dataclass(frozen=True)
class StratumLine:
    """One stratum: `tuples` is how many were derived, `instances` how many rule instances were considered."""

    stratum: int
    relations: tuple[str, ...]
    rounds: int
    tuples: int
    instances: int
    seconds: float

    def cells(self) -> tuple[str, ...]:
        """The line as text, one for each of `COLUMNS`."""
        return (
            str(self.stratum),
            ", ".join(self.relations),
            f"{self.rounds:,}",
            f"{self.tuples:,}",
            f"{self.instances:,}",
            f"{self.seconds:.3f}",
        )


@dataclass(frozen=True)
class Report:
    """The last evaluation.

    `start_seconds` went into starting the engine, `load_seconds` into handing it the facts.
    """

    strata: tuple[StratumLine, ...] = ()
    load_seconds: float = 0.0
    start_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """The time of all strata together."""
        return sum(line.seconds for line in self.strata)

    @property
    def tuples(self) -> int:
        """The number of tuples derived."""
        return sum(line.tuples for line in self.strata)

    @property
    def instances(self) -> int:
        """The number of rule instances considered."""
        return sum(line.instances for line in self.strata)

    def __str__(self) -> str:
        return text_table(COLUMNS, [line.cells() for line in self.strata])

    def _repr_html_(self) -> str:
        return html_table(COLUMNS, [line.cells() for line in self.strata], "evaluation")


def labels(relations: Sequence[str]) -> tuple[str, ...]:
    """The relations of a stratum as users know them."""
    return tuple(map(label, relations))


def report_of(strata: Sequence[StratumReport], load_seconds: float) -> Report:
    """The report of an evaluation."""
    lines = tuple(
        StratumLine(
            stratum=number,
            relations=labels(s.relations),
            rounds=s.report.rounds,
            tuples=s.report.new,
            instances=sum(s.report.instances.values()),
            seconds=s.report.seconds,
        )
        for number, s in enumerate(strata, 1)
    )
    return Report(lines, load_seconds)


def text_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a heading, columns aligned: numbers to the right, the rest to the left."""
    numeric = [all(_is_number(row[i]) for row in rows) for i in range(len(heading))]
    widths = [max(len(row[i]) for row in (heading, *rows)) for i in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in (heading, *rows)
    )


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Rows as an HTML table, everything escaped."""
    from html import escape

    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).removeprefix("-").isdigit()
