"""The report of `benchmarks.updates`: tables of all figures, and of `auto` against the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean, median
from typing import Any, Self

from benchmarks.live import Answers, Commit, commit_of
from benchmarks.tables import count, markdown, ratio, seconds

THERE, BACK = "there", "back"
COMMITS = {"delete": (THERE,), "re-insert": (BACK,), "both": (THERE, BACK)}
LONGEST_WHY = 80
AUTO_GOAL = 1.2
SMALL_GOAL = ("galen", "10", 0.01)


@dataclass
class Figures:
    """What one algorithm did with one data set. `commits` are events of children, in order.

    A child is a `run`, by number; each run goes through the same updates, with the same sets of facts.
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

    def answers(self, update: str) -> dict[int, Answers]:
        """The answers after the first commit of an update, by set."""
        return {
            event["set"]: commit_of(event["commit"]).answers
            for event in self.commits
            if event["update"] == update and event["way"] == THERE
        }

    def times(self, update: str, ways: Sequence[str]) -> dict[tuple[int, str], float]:
        """The seconds of an update's commits, by set and way: the median of the runs."""
        found: dict[tuple[int, str], list[float]] = {}
        for event in self.commits:
            if event["update"] == update and event["way"] in ways:
                found.setdefault((event["set"], event["way"]), []).append(event["commit"]["seconds"])
        return {key: median(seconds) for key, seconds in found.items()}

    def seconds(self, update: str, ways: Sequence[str]) -> float | None:
        """What an update's commits take for a set of facts, on average of the sets that were done."""
        times = self.times(update, ways)
        done = [number for number, _ in times if all((number, way) in times for way in ways)]
        sums = [sum(times[number, way] for way in ways) for number in dict.fromkeys(done)]
        return mean(sums) if sums else None

    def line(self) -> str:
        """All of it in one line."""
        parts = [f"{self.data} {self.algorithm}:"]
        if self.bootstrap:
            parts.append(f"bootstrap {seconds(self.bootstrap['seconds'])} s;")
        for update in self.updates():
            ways = (seconds(self.seconds(update, (way,))) or "-" for way in (THERE, BACK))
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
    *(
        "data",
        "update",
        "commit",
        "recompute s",
        "best s",
        "by",
        "auto s",
        "auto ÷ cheaper",
        "worst set",
        "why",
    ),
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
Times are means over the sets of facts that an update has; the time of a commit is the median of several
processes. Delete is the first commit with a set, re-insert its reverse (of a recorded one: insert, then
delete); first is the very first such commit. Instances are the rule instances considered, impact is the
number of derived tuples that went (or came) with the first commit. At the end `auto` is set beside the
cheaper of recompute and the best single algorithm, over all sets together: for each commit, and for both
commits of an update, a cycle of the paper, which the goal is for. The worst set is that for which `auto`
stands worst beside whoever is best with that very set."""


def _table(here: Sequence[Figures]) -> str:
    base = next((f for f in here if f.algorithm == "recompute"), None)
    rows = []
    for update in _updates(here):
        for figures in here:
            there, back = figures.of(update, THERE), figures.of(update, BACK)
            first = figures.times(update, (THERE,)).get((0, THERE))
            rows.append(
                (
                    update,
                    figures.algorithm,
                    seconds(figures.bootstrap["seconds"] if figures.bootstrap else None),
                    seconds(figures.seconds(update, (THERE,))) or "-",
                    seconds(first),
                    seconds(figures.seconds(update, (BACK,))) or "-",
                    *(count(_mean(commit.instances for commit in commits)) for commits in (there, back)),
                    count(_mean(commit.impact for commit in there)),
                    *(
                        ratio(_share(figures, base, update, (way,)) if base else None)
                        for way in (THERE, BACK)
                    ),
                    count(figures.megabytes),
                )
            )
    return markdown(HEADINGS, rows, left=2)


def _mean(numbers: Iterable[int]) -> float | None:
    found = list(numbers)
    return mean(found) if found else None


def _updates(here: Iterable[Figures]) -> list[str]:
    return list(dict.fromkeys(update for figures in here for update in figures.updates()))


def _share(figures: Figures, other: Figures, update: str, ways: Sequence[str]) -> float | None:
    """The time of one algorithm as a multiple of another's, over the commits that both have done."""
    times, others = figures.times(update, ways), other.times(update, ways)
    both = times.keys() & others.keys()
    return sum(times[key] for key in both) / sum(others[key] for key in both) if both else None


def _worst_set(figures: Figures, others: Sequence[Figures], update: str, ways: Sequence[str]) -> float | None:
    """Its worst multiple of the cheapest for one and the same set of facts."""

    def sets(of: Figures) -> dict[int, float]:
        times = of.times(update, ways)
        found = {number for number, _ in times if all((number, way) in times for way in ways)}
        return {number: sum(times[number, way] for way in ways) for number in found}

    rivals = [sets(other) for other in others]
    best = {number: min((r[number] for r in rivals if number in r), default=None) for number in sets(figures)}
    return max(
        (took / least for number, took in sets(figures).items() if (least := best[number])), default=None
    )


def _disagreements(here: Sequence[Figures]) -> list[str]:
    """Where answers are not those of recompute (of the first algorithm, if that was not measured)."""
    wrong: list[str] = []
    base = next((f for f in here if f.algorithm == "recompute"), here[0])
    for figures in here:
        if base.bootstrap and figures.bootstrap and _answers(base.bootstrap) != _answers(figures.bootstrap):
            wrong.append(f"{figures.algorithm}: first answers are not those of {base.algorithm}")
        for update in figures.updates():
            expected = base.answers(update)
            found = figures.answers(update)
            if any(found[number] != expected[number] for number in found.keys() & expected.keys()):
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
        others = {f.algorithm: f for f in found if f.data == auto.data and f is not auto}
        for update in auto.updates():
            for name, ways in COMMITS.items():
                shares = {name: _share(auto, other, update, ways) for name, other in others.items()}
                known = {name: share for name, share in shares.items() if share is not None}
                share = max(known.values(), default=None)
                if share is not None:
                    worst[name] = max(worst.get(name, (0.0, "")), (share, f"{auto.data}, {update}"))
                known.pop("recompute", None)
                best = max(known, key=known.__getitem__, default="")
                times = [
                    of.seconds(update, ways) if of else None
                    for of in (others.get("recompute"), others.get(best), auto)
                ]
                worst_set = _worst_set(auto, list(others.values()), update, ways)
                figures = (seconds(times[0]), seconds(times[1]), best, seconds(times[2]), ratio(share))
                rows.append((auto.data, update, name, *figures, ratio(worst_set), _why(auto, update, ways)))
    goals = _small(found)
    if worst:
        said = "; ".join(f"{name} {share:.2f} ({where})" for name, (share, where) in worst.items())
        goals.insert(
            0, f"`auto` against the cheaper of the two, the worst: {said}; goal {AUTO_GOAL} for both."
        )
    parts = ["## auto", markdown(AUTO_HEADINGS, rows, left=3)] if rows else []
    return [*parts, "## Goals", "\n".join(f"- {goal}" for goal in goals)] if goals else parts


def _why(figures: Figures, update: str, ways: tuple[str, ...]) -> str:
    commits = figures.of(update, ways[0])
    return commits[-1].why[:LONGEST_WHY] if commits and len(ways) == 1 else ""


def _small(found: Sequence[Figures]) -> list[str]:
    """A small update against bootstrap: of the best algorithm, and of auto."""
    data, update, goal = SMALL_GOAL
    shares: dict[str, float] = {}
    for figures in found:
        times = [figures.seconds(update, (way,)) for way in (THERE, BACK)]
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
