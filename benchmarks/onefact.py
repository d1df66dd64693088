"""One fact deleted and inserted again, by every algorithm, beside differential dataflow.

    make bench-onefact ARGS="--only OL.cedge --algorithms ranked,auto"

The work is that of the table of updates in `PEERS.md`, whose figures are shown beside ours: load everything;
then for k = 1, 2, ... delete row number k x step of the file (1-based, modulo its length), wait, insert it
back, wait. Each workload is run by each algorithm in a process of its own; by `auto` and `recompute`, whose
single commits are compared, in five (`--runs`), in turns: the time of a commit is the median of its times.
How many answers change must be what the page says, and the answers in the end those of the beginning.
Figures go to `build/bench-out/onefact.json` and `onefact.md`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.datasets import CSPA_10K, find_data_set
from benchmarks.facts import read_tables
from benchmarks.live import Change, Live, middle, most, warm
from benchmarks.measure import settle
from benchmarks.options import add_common, children, limits
from benchmarks.peers import Spread, UpdateRow, read_update_peers
from benchmarks.supervise import Event, begin, done, supervise
from benchmarks.tables import count, markdown, milliseconds, ratio, seconds
from benchmarks.workloads import LEFT, PEERS, ROOT, Facts, Workload, find_workload, make_data

OUT = ROOT / "build" / "bench-out"
COMPARED = ("recompute", "auto")
RUNS = 5
PEER_GOAL = 2.0
RECOMPUTE_GOAL = 1.2


@dataclass(frozen=True)
class Work:
    """A workload, the relation whose rows go and come, and how its row of `PEERS.md` begins."""

    name: str
    peer: str
    workload: Workload
    relation: str = "edge"


WORKS = (
    Work("rand1k", "closure (left-linear) rand1k", find_workload("left-rand1k")),
    Work(
        "grid50",
        "closure grid50",
        Workload(
            "left-grid50", "", LEFT, {"edge": Facts("generated", "grid50/edge.facts")}, {"tc": 1_623_125}
        ),
    ),
    Work("OL.cedge", "closure OL.cedge", find_data_set("closure-OL.cedge").workload),
    Work("luxembourg_osm", "closure luxembourg_osm", find_workload("luxembourg_osm")),
    Work("ego-Facebook", "closure ego-Facebook", find_workload("ego-Facebook")),
    Work("cspa", "CSPA cspa", find_workload("cspa"), "assign"),
    Work("cspa-10k", "CSPA 10k", CSPA_10K, "assign"),
)


@dataclass
class Figures:
    """What one algorithm did with one workload: seconds of its commits, and how many answers changed."""

    work: str
    algorithm: str
    bootstrap: float | None = None
    deletes: list[float] = field(default_factory=list)
    inserts: list[float] = field(default_factory=list)
    impacts: list[int] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    megabytes: float | None = None
    stopped: str | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def commits(self) -> list[float]:
        return self.deletes + self.inserts


# --- the child: one workload, one algorithm -------------------------------------------


def measure(work: Work, row: UpdateRow, algorithm: str, options: argparse.Namespace) -> None:
    workload = work.workload
    tables = read_tables(workload)
    warm(workload.program, algorithm, options.engine, options.threads, tables)
    live = Live(workload.program, algorithm, options.engine, options.threads)
    begin("first evaluation")
    first = live.commit(Change(insert=tables))
    problems = [
        f"{name} has {live.answers[name][0]:,} tuples, not {size:,}"
        for name, size in workload.expected.items()
        if live.answers[name][0] != size
    ]
    settle()
    done("bootstrap", seconds=first.seconds, problems=problems)

    start = dict(live.answers)
    rows = tables[work.relation]
    for k in range(1, min(row.commits, options.commits or row.commits) + 1):
        one = rows.slice((k * row.step - 1) % rows.num_rows, 1)
        begin(f"delete {k}")
        delete = live.commit(Change(delete={work.relation: one}))
        begin(f"insert {k}")
        insert = live.commit(Change(insert={work.relation: one}))
        problems = live.problems(whole=False)
        if live.answers != start or insert.impact != delete.impact:
            problems.append(f"row {k * row.step}: inserting it back does not restore the answers")
        done(
            "pair",
            delete=delete.seconds,
            insert=insert.seconds,
            impact=delete.impact,
            touched=[delete.touched, insert.touched],
            why=[delete.why, insert.why],
            problems=problems,
        )
    begin("comparison of every tuple")
    done("end", problems=live.problems(whole=True), megabytes=live.peak)


# --- the parent -----------------------------------------------------------------------------


def run(work: Work, row: UpdateRow, algorithm: str, options: argparse.Namespace) -> Figures:
    figures = Figures(work.name, algorithm)

    def seen(event: Event) -> None:
        figures.problems.extend(event.get("problems", ()))
        figures.megabytes = event.get("megabytes", figures.megabytes)
        if event["what"] == "bootstrap":
            figures.bootstrap = event["seconds"]
        elif event["what"] == "pair":
            figures.deletes.append(event["delete"])
            figures.inserts.append(event["insert"])
            figures.impacts.append(event["impact"])
            figures.touched.extend(event["touched"])
            figures.why.extend(event["why"])

    figures.stopped = supervise("benchmarks.onefact", children(work.name, algorithm), limits(options), seen)
    if len(figures.impacts) == row.commits:
        found = Spread(middle(figures.impacts) or 0, max(figures.impacts))
        if found != row.impact:
            figures.problems.append(f"impact is {found}, in PEERS.md {row.impact}")
    return figures


def run_all(work: Work, row: UpdateRow, options: argparse.Namespace) -> list[Figures]:
    """Run every algorithm, and those that are compared again and again, in turns."""
    runs: dict[str, list[Figures]] = {algorithm: [] for algorithm in options.algorithms}
    for number, algorithm in itertools.product(range(options.runs), runs):
        if not number or algorithm in COMPARED:
            runs[algorithm].append(run(work, row, algorithm, options))
    return [together(same) for same in runs.values()]


def together(runs: Sequence[Figures]) -> Figures:
    """The figures of several runs of an algorithm: a commit's time is the median of its times.

    Problems, and where a run was stopped, are those of all runs; bootstrap, memory, impacts and what else
    there is are those of the first.
    """
    figures = runs[0]
    for other in runs[1:]:
        figures.problems += other.problems
        figures.stopped = figures.stopped or other.stopped
    figures.deletes = [median(times) for times in zip(*(f.deletes for f in runs), strict=False)]
    figures.inserts = [median(times) for times in zip(*(f.inserts for f in runs), strict=False)]
    return figures


HEADINGS = (
    *("", "first s", "delete p50", "max", "insert p50", "max", "impact p50", "max"),
    *("delete ÷ peer", "insert ÷ peer", "worst ÷ recompute", "touched max", "MB"),
)


def table(row: UpdateRow, here: Sequence[Figures]) -> str:
    """The figures of one workload, under those of the other system."""
    base = next((f for f in here if f.algorithm == "recompute"), None)
    rows = [
        (
            "differential dataflow",
            seconds(row.first_seconds),
            *(seconds(n) for s in (row.delete, row.insert) for n in (s.p50, s.max)),
            count(row.impact.p50),
            count(row.impact.max),
            *("", "", "", ""),
            count(row.megabytes),
        )
    ]
    for figures in here:
        deletes, inserts = middle(figures.deletes), middle(figures.inserts)
        rows.append(
            (
                figures.algorithm,
                seconds(figures.bootstrap),
                *(milliseconds(n) for n in (deletes, most(figures.deletes), inserts, most(figures.inserts))),
                count(middle(figures.impacts)),
                count(most(figures.impacts)),
                ratio(deletes * 1000 / row.delete.p50 if deletes is not None else None),
                ratio(inserts * 1000 / row.insert.p50 if inserts is not None else None),
                ratio(most(shares(figures, base)) if base else None),
                count(most(figures.touched)),
                count(figures.megabytes),
            )
        )
    return markdown(HEADINGS, rows)


def shares(ours: Figures, base: Figures) -> list[float]:
    """What each commit took, as a multiple of what another algorithm took with the same row."""
    same = zip((ours.deletes, ours.inserts), (base.deletes, base.inserts), strict=True)
    return [mine / its for times, theirs in same for mine, its in zip(times, theirs, strict=False)]


def section(row: UpdateRow, here: Sequence[Figures]) -> str:
    """One workload: its table, and what is to be said about it."""
    notes = [f"- {f.algorithm} was stopped at {f.stopped}." for f in here if f.stopped]
    notes += [f"- WRONG: {f.algorithm}: {problem}" for f in here for problem in f.problems]
    heading = f"## {row.workload} (step {row.step}, {row.commits} commits)"
    return "\n\n".join([heading, table(row, here), "\n".join(notes) or "All answers agree."])


def report(found: Sequence[Figures], rows: dict[str, UpdateRow]) -> str:
    """The page: a table for each workload, then what became of the goals."""
    parts = ["# One fact at a time", EXPLANATION]
    goals: list[str] = []
    for name in dict.fromkeys(figures.work for figures in found):
        here = [figures for figures in found if figures.work == name]
        row = rows[name]
        parts.append(section(row, here))
        goals += goals_of(row, here)
    ending = ["## Goals", "\n".join(f"- {goal}" for goal in goals)] if goals else []
    return "\n\n".join([*parts, *ending]) + "\n"


def goals_of(row: UpdateRow, here: Sequence[Figures]) -> list[str]:
    """How `auto` stands to the other system and to recompute."""
    auto = next((f for f in here if f.algorithm == "auto"), None)
    base = next((f for f in here if f.algorithm == "recompute"), None)
    if auto is None or not auto.deletes:
        return []
    delete = (middle(auto.deletes) or 0.0) * 1000 / row.delete.p50
    insert = (middle(auto.inserts) or 0.0) * 1000 / row.insert.p50
    text = f"{row.workload}: `auto` {delete:.2f} (delete) and {insert:.2f} (insert) times the peer's"
    text += f" median, goal {PEER_GOAL:g}"
    missed = max(delete, insert) > PEER_GOAL
    if base is not None and base.commits:
        worst = max(shares(auto, base))
        text += f"; {worst:.2f} times recompute with the same row at worst, goal {RECOMPUTE_GOAL:g}"
        missed = missed or worst > RECOMPUTE_GOAL
    return [f"{text}: {'missed' if missed else 'met'}."]


EXPLANATION = """\
Milliseconds for a commit, the median and the most; first is the first evaluation, in seconds. Ratios are of
medians, to differential dataflow with one worker; below 1 is faster. Worst is the most that a commit
took as a multiple of what recompute took with the same row."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.onefact", description=(__doc__ or "").split("\n")[0])
    names = [work.name for work in WORKS]
    parser.add_argument("--only", action="append", choices=names, metavar="WORKLOAD", help=", ".join(names))
    add_common(parser)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of {' and '.join(COMPARED)} ({RUNS})")
    parser.add_argument("--commits", type=int, help="no more than so many rows (impact is not compared then)")
    parser.add_argument("--out", type=Path, default=OUT, help="the directory of onefact.json and onefact.md")
    options = parser.parse_args()
    make_data()
    peers = read_update_peers(PEERS)
    rows = {work.name: next(row for row in peers if row.workload.startswith(work.peer)) for work in WORKS}
    if options.child:
        name, algorithm = options.child
        measure(next(work for work in WORKS if work.name == name), rows[name], algorithm, options)
        return 0

    options.out.mkdir(parents=True, exist_ok=True)
    found: list[Figures] = []
    for work in WORKS:
        if options.only and work.name not in options.only:
            continue
        here = run_all(work, rows[work.name], options)
        found += here
        (options.out / "onefact.json").write_text(json.dumps([asdict(f) for f in found], indent=1) + "\n")
        print(section(rows[work.name], here), "\n", flush=True)
    text = report(found, rows)
    (options.out / "onefact.md").write_text(text)
    print(text.partition("## Goals")[2].strip())
    return 1 if any(figures.problems for figures in found) else 0


if __name__ == "__main__":
    sys.exit(main())
