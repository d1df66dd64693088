"""The report of `benchmarks.updates`: tables of all figures, and of `auto` against the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from benchmarks.live import Commit, commit_of, middle
from benchmarks.tables import count, markdown, ratio, seconds

THERE, BACK = "there", "back"
COMMITS = {"delete": (THERE,), "re-insert": (BACK,), "both": (THERE, BACK)}
LONGEST_WHY = 80
AUTO_GOAL = 1.2
SMALL_GOAL = ("galen", "10", 0.01)


@dataclass
class Figures:
    """What one algorithm did with one data set. `commits` are events of children, in order.

    A child is a `run`, by number. Runs of one algorithm differ by half where a commit takes milliseconds,
    depending on where in memory things come to lie, and noise only adds: so the best run's median is the time
    of a commit.
    """

    data: str
    algorithm: str
    bootstrap: dict[str, Any] | None = None
    commits: list[dict[str, Any]] = field(default_factory=list)
    megabytes: float | None = None
    stopped: str | None = None
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, stored: dict[str, Any]) -> Self:
        return cls(**stored)

    def updates(self) -> list[str]:
        """The updates that were begun, in order."""
        return list(dict.fromkeys(event["update"] for event in self.commits))

    def of(self, update: str, way: str) -> list[Commit]:
        return [
            commit_of(event["commit"])
            for event in self.commits
            if event["update"] == update and event["way"] == way
        ]

    def seconds(self, update: str, way: str) -> float | None:
        """The time of a commit: the median of a run, of the best run."""
        by_run: dict[int, list[float]] = {}
        for event in self.commits:
            if event["update"] == update and event["way"] == way:
                by_run.setdefault(event.get("run", 0), []).append(commit_of(event["commit"]).seconds)
        medians = [middle(times) for times in by_run.values()]
        return min((m for m in medians if m is not None), default=None)

    def line(self) -> str:
        """All of it in one line."""
        parts = [f"{self.data} {self.algorithm}:"]
        if self.bootstrap:
            parts.append(f"bootstrap {seconds(self.bootstrap['seconds'])} s;")
        for update in self.updates():
            ways = (seconds(self.seconds(update, way)) or "-" for way in (THERE, BACK))
            parts.append(f"{update}: {' / '.join(ways)};")
        parts.extend(f"{problem};" for problem in self.problems)
        if self.stopped:
            parts.append(f"stopped: {self.stopped}")
        return " ".join(parts).rstrip(";")


HEADINGS = (
    *("update", "algorithm", "bootstrap s", "delete s", "first s", "re-insert s"),
    *("instances of delete", "of re-insert", "impact", "delete ÷ recompute", "re-insert ÷ recompute", "MB"),
)
AUTO_HEADINGS = (
    "data",
    "update",
    "commit",
    "recompute s",
    "best s",
    "by",
    "auto s",
    "auto ÷ cheaper",
    "why",
)


def report(found: Sequence[Figures]) -> tuple[str, list[str]]:
    """The page, and everything that was wrong."""
    parts = ["# Updates", EXPLANATION]
    problems: list[str] = []
    for data in dict.fromkeys(figures.data for figures in found):
        here = [figures for figures in found if figures.data == data]
        parts += [f"## {data}", _table(here)]
        stopped = [f"{f.algorithm} was stopped at {f.stopped}." for f in here if f.stopped]
        wrong = [f"{f.algorithm}: {problem}" for f in here for problem in f.problems] + _disagreements(here)
        if stopped:
            parts.append("\n".join(f"- {line}" for line in stopped))
        parts.append("\n".join(f"- WRONG: {line}" for line in wrong) or "All answers that there are agree.")
        problems += [f"{data}, {line}" for line in wrong]
    parts += _auto(found)
    return "\n\n".join(parts) + "\n", problems


EXPLANATION = """\
Median times, of the best of several processes where they are short. Delete is the first commit of an
update, re-insert its reverse (of a recorded one: insert, then delete); first is the very first such commit,
which may have indexes to make. Instances are the rule instances considered, impact is the number of derived
tuples that went (or came) with the first commit. At the end `auto` is set beside the cheaper of recompute and
the best single algorithm: for each commit, and for both commits of an update together."""


def _table(here: Sequence[Figures]) -> str:
    base = next((f for f in here if f.algorithm == "recompute"), None)
    rows = []
    for update in _updates(here):
        for figures in here:
            there, back = figures.of(update, THERE), figures.of(update, BACK)
            first = there[0] if there else None
            ways = [figures.seconds(update, way) for way in (THERE, BACK)]
            against = [base.seconds(update, way) if base else None for way in (THERE, BACK)]
            rows.append(
                (
                    update,
                    figures.algorithm,
                    seconds(figures.bootstrap["seconds"] if figures.bootstrap else None),
                    seconds(ways[0]) or "-",
                    seconds(first.seconds if first else None),
                    seconds(ways[1]) or "-",
                    count(first.instances if first else None),
                    count(back[0].instances if back else None),
                    count(first.impact if first else None),
                    *(ratio(_share(way, other)) for way, other in zip(ways, against, strict=True)),
                    count(figures.megabytes),
                )
            )
    return markdown(HEADINGS, rows, left=2)


def _updates(here: Iterable[Figures]) -> list[str]:
    return list(dict.fromkeys(update for figures in here for update in figures.updates()))


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _disagreements(here: Sequence[Figures]) -> list[str]:
    """Where answers are not those of recompute (of the first algorithm, if that was not measured)."""
    wrong: list[str] = []
    base = next((f for f in here if f.algorithm == "recompute"), here[0])
    for figures in here:
        if base.bootstrap and figures.bootstrap and _answers(base.bootstrap) != _answers(figures.bootstrap):
            wrong.append(f"{figures.algorithm}: first answers are not those of {base.algorithm}")
        for update in figures.updates():
            expected = [commit.answers for commit in base.of(update, THERE)[:1]]
            if any(commit.answers not in expected for commit in figures.of(update, THERE) if expected):
                wrong.append(
                    f"{figures.algorithm}: answers after update {update} are not those of {base.algorithm}"
                )
    return wrong


def _answers(commit: dict[str, Any]) -> object:
    return commit_of(commit).answers


def _auto(found: Sequence[Figures]) -> list[str]:
    """`auto` beside the others: each commit, and an update as a whole, for which the goal is."""
    rows: list[tuple[str, ...]] = []
    worst: dict[str, tuple[float, str]] = {}
    for auto in (figures for figures in found if figures.algorithm == "auto"):
        singles = [f for f in found if f.data == auto.data and f is not auto]
        for update in auto.updates():
            for name, ways in COMMITS.items():
                known = {f.algorithm: time for f in singles if (time := _total(f, update, ways)) is not None}
                cheaper, recompute = min(known.values(), default=None), known.pop("recompute", None)
                best, took = min(known, key=known.__getitem__, default=""), _total(auto, update, ways)
                share = _share(took, cheaper)
                if share is not None:
                    worst[name] = max(worst.get(name, (0.0, "")), (share, f"{auto.data}, {update}"))
                figures = (seconds(recompute), seconds(known.get(best)), best, seconds(took), ratio(share))
                rows.append((auto.data, update, name, *figures, _why(auto, update, ways)))
    goals = _small(found)
    if worst:
        said = "; ".join(f"{name} {share:.2f} ({where})" for name, (share, where) in worst.items())
        goals.insert(
            0, f"`auto` against the cheaper of the two, the worst: {said}; goal {AUTO_GOAL} for both."
        )
    parts = ["## auto", markdown(AUTO_HEADINGS, rows, left=3)] if rows else []
    return [*parts, "## Goals", "\n".join(f"- {goal}" for goal in goals)] if goals else parts


def _total(figures: Figures, update: str, ways: tuple[str, ...]) -> float | None:
    """The time of an update's commits together."""
    times = [figures.seconds(update, way) for way in ways]
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _why(figures: Figures, update: str, ways: tuple[str, ...]) -> str:
    commits = figures.of(update, ways[0])
    return commits[-1].why[:LONGEST_WHY] if commits and len(ways) == 1 else ""


def _small(found: Sequence[Figures]) -> list[str]:
    """A small update against bootstrap: of the best algorithm, and of auto."""
    data, update, goal = SMALL_GOAL
    shares: dict[str, float] = {}
    for figures in found:
        times = [figures.seconds(update, way) for way in (THERE, BACK)]
        known = [time for time in times if time is not None]
        if figures.data == data and figures.bootstrap and len(known) == 2:
            shares[figures.algorithm] = max(known) / figures.bootstrap["seconds"]
    if not shares:
        return []
    best = min(shares, key=shares.__getitem__)
    text = f"{data}, {update} facts, the dearer commit as a share of bootstrap: {best} {shares[best]:.2%}"
    if "auto" in shares:
        text += f", auto {shares['auto']:.2%}"
    return [f"{text}; goal {goal:.0%}."]
