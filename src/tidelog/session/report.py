"""What an evaluation or a commit did and how long it took, stratum by stratum; and moments of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidelog.maintain.seminaive import StratumReport
from tidelog.program.aggregates import label
from tidelog.program.model import Value

if TYPE_CHECKING:
    from tidelog.maintain.update import Upkeep

COLUMNS = ("stratum", "relations", "rounds", "tuples", "instances", "seconds")
COMMIT_COLUMNS = ("stratum", "relations", "algorithm", "instances", "touched", "seconds", "phases", "why")


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
class PhaseLine:
    """One phase of an algorithm: rule instances considered, tuples whose marks or numbers it changed."""

    name: str
    instances: int
    touched: int
    seconds: float


@dataclass(frozen=True)
class StratumLine:
    """One stratum: `tuples` is how many were derived, `instances` how many rule instances were considered.

    `way` says where it is kept, and how an engine with several ways ran it. Where answers were brought up to
    date, `algorithm` did it, `why` says why that one, `phases` what it did step by step, and `touched` of how
    many tuples it changed marks or numbers.
    """

    stratum: int
    relations: tuple[str, ...]
    rounds: int
    tuples: int
    instances: int
    seconds: float
    algorithm: str = ""
    why: str = ""
    phases: tuple[PhaseLine, ...] = ()
    touched: int = 0
    way: str = ""

    def cells(self) -> tuple[str, ...]:
        """The line as text; where no line has a way, the last cell is left out (`Report.rows`)."""
        return (
            str(self.stratum),
            ", ".join(self.relations),
            f"{self.rounds:,}",
            f"{self.tuples:,}",
            f"{self.instances:,}",
            f"{self.seconds:.3f}",
            self.way,
        )

    def commit_cells(self) -> tuple[str, ...]:
        """The line of a commit as text; where no line has a way, the last cell is left out."""
        return (
            str(self.stratum or "-"),  # a relation without rules is in no stratum
            ", ".join(self.relations),
            self.algorithm,
            f"{self.instances:,}",
            f"{self.touched:,}",
            f"{self.seconds:.6f}",
            ", ".join(f"{phase.name} {phase.instances:,}" for phase in self.phases),
            self.why,
            self.way,
        )


@dataclass(frozen=True)
class Report:
    """The last evaluation, or a commit.

    `start_seconds` went into starting the engine, `load_seconds` into handing it the facts. `ignored_inserts`
    counts facts inserted that were there, `ignored_deletes` facts deleted that were not. `version` is the
    number of the commit. `place` says where answers are kept, and why there, if there is a choice. `loaded`
    is the version whose answers have been loaded from a store and not derived, if there is one.
    """

    strata: tuple[StratumLine, ...] = ()
    load_seconds: float = 0.0
    start_seconds: float = 0.0
    version: int = 0
    ignored_inserts: int = 0
    ignored_deletes: int = 0
    maintained: bool = False
    place: str = ""
    loaded: int | None = None

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

    @property
    def touched(self) -> int:
        """The number of tuples whose marks or numbers have changed."""
        return sum(line.touched for line in self.strata)

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of the lines, of an evaluation or a commit."""
        columns = COMMIT_COLUMNS if self.maintained else COLUMNS
        return (*columns, "way") if any(line.way for line in self.strata) else columns

    def rows(self, lines: Sequence[StratumLine]) -> list[tuple[str, ...]]:
        """Some lines as text, one for each of `columns`."""
        cells = [line.commit_cells() if self.maintained else line.cells() for line in lines]
        return [row[: len(self.columns)] for row in cells]

    def __str__(self) -> str:
        told = [text for text in (self.place, self._loaded, self.ignored) if text]
        return "\n".join([text_table(self.columns, self.rows(self.strata)), *told])

    def _repr_html_(self) -> str:
        if not self.maintained:
            return html_table(self.columns, self.rows(self.strata), "evaluation")
        told = "; ".join(text for text in (self.place, self._loaded, self.ignored) if text)
        caption = f"commit {self.version}" + (f": {told}" if told else "")
        return html_table(self.columns, self.rows(self.strata), caption)

    @property
    def _loaded(self) -> str:
        return "" if self.loaded is None else f"loaded from the store: version {self.loaded}"

    @property
    def ignored(self) -> str:
        """What had no effect, in words; empty if everything had."""
        inserts, deletes = self.ignored_inserts, self.ignored_deletes
        told = [f"{inserts:,} inserted that {_were(inserts)} there"] if inserts else []
        told += [f"{deletes:,} deleted that {_were(deletes)} not there"] if deletes else []
        return ", ".join(told)


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
            way=s.report.way,
        )
        for number, s in enumerate(strata, 1)
    )
    return Report(lines, load_seconds)


class Reporting:
    """A report that is put together when it is first asked for: most commits' reports never are."""

    def __init__(
        self,
        made: Report,
        upkeep: Sequence[Upkeep] = (),
        start_seconds: float = 0.0,
        places: Sequence[str] = (),
    ) -> None:
        """`places` says for each stratum where it is kept."""
        self._made, self._upkeep, self.start_seconds, self._places = made, upkeep, start_seconds, places

    def placed(self, place: str) -> None:
        """Say where answers are kept."""
        self._made = replace(self._made, place=place)

    def loaded(self, version: int) -> None:
        """Say that answers were loaded."""
        self._made = replace(self._made, loaded=version)

    def get(self) -> Report:
        """The report."""
        if self._upkeep or self.start_seconds:
            places = self._places or [""] * len(self._upkeep)
            lines = tuple(map(_line, self._upkeep, places)) or self._made.strata
            seconds = self._made.start_seconds + self.start_seconds
            self._made = replace(self._made, strata=lines, start_seconds=seconds)
            self._upkeep, self.start_seconds = (), 0.0
        return self._made


def _line(upkeep: Upkeep, place: str) -> StratumLine:
    ways = dict.fromkeys([place, *(phase.way for phase in upkeep.phases)])
    rounds = tuples = instances = touched = 0
    seconds = 0.0
    phases = []
    for phase in upkeep.phases:
        considered = sum(phase.instances.values())
        phases.append(PhaseLine(phase.phase, considered, phase.touched, phase.seconds))
        rounds, tuples = rounds + phase.rounds, tuples + phase.new
        instances, touched = instances + considered, touched + phase.touched
        seconds += phase.seconds
    return StratumLine(
        upkeep.stratum + 1,
        labels(upkeep.relations),
        rounds,
        tuples,
        instances,
        seconds,
        upkeep.algorithm,
        upkeep.why,
        tuple(phases),
        touched,
        "; ".join(way for way in ways if way),
    )


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def shown_row(row: Sequence[Value]) -> tuple[str, ...]:
    """The values of a tuple as text."""
    return tuple(v if isinstance(v, str) else str(v).lower() if isinstance(v, bool) else str(v) for v in row)


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
