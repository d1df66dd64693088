"""The cost of a commit is in proportion to the change: one fact among ten million.

    make bench-proportion
    make bench-proportion ARGS="--facts 100000 --only negation --algorithms dred,auto"

The facts are a great many small graphs of 5 to 20 nodes that have nothing to do with each
other, so one fact can only matter to one of them. Three programs look at them: with recursion, with negation
(under recursion, and of what is recursive), with aggregates over recursion. Facts are drawn at
random, each is deleted in one commit and inserted again in the next. The goal is 1,000 tuples
touched and 5 ms at most, with every algorithm that does not start anew.
Figures go to `build/bench-out/proportion.json` and `proportion.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.facts import Tables
from benchmarks.live import ALGORITHMS, Answers, Change, Live, commit_of, middle, most, warm
from benchmarks.measure import settle
from benchmarks.options import add_common, children, limits
from benchmarks.supervise import Event, begin, done, supervise
from benchmarks.tables import count, markdown, milliseconds, seconds
from benchmarks.workloads import ROOT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FACTS = 10_000_000
COMMITS = 100
SMALLEST, LARGEST = 5, 20
MOST_TOUCHED = 1_000
MOST_SECONDS = 0.005
OUT = ROOT / "build" / "bench-out"

INPUTS = """\
.decl edge(x: number, y: number)
.decl weight(x: number, w: number)
.decl closed(x: number)
.input edge, weight, closed
"""
REACH = """\
.decl reach(x: number, y: number)
.output reach
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
"""
PROGRAMS = {
    "recursion": INPUTS
    + REACH
    + """\
.decl sees(x: number, w: number)
.output sees
sees(x, w) :- reach(x, y), weight(y, w).
""",
    "negation": INPUTS
    + """\
.decl free(x: number, y: number)
.decl leaves(x: number)
.decl stuck(x: number)
.output free, stuck
free(x, y) :- edge(x, y), !closed(y).
free(x, z) :- free(x, y), edge(y, z), !closed(z).
leaves(x) :- free(x, y), !free(y, x).
stuck(x) :- weight(x, _), !leaves(x).
""",
    "aggregate": INPUTS
    + REACH
    + """\
.decl total(x: number, s: number)
.decl heaviest(x: number, m: number)
.output total, heaviest
total(x, s) :- weight(x, _), s = sum w : { reach(x, y), weight(y, w) }.
heaviest(x, m) :- weight(x, _), m = max s : { edge(x, y), total(y, s) }.
""",
}
# The relations of which facts go and come, in turn: those that the program reads.
TURNS = {
    "recursion": ("edge", "weight"),
    "negation": ("edge", "closed", "edge", "weight"),
    "aggregate": ("edge", "weight"),
}


# --- the facts ---------------------------------------------------------------------------


def components(facts: int, seed: int) -> Tables:
    """At least so many facts, in components of 5 to 20 nodes.

    Each node but the first has an edge from an earlier node of its component; every other node has
    one more edge to a node of its component, which may close a cycle; each has a weight, every
    fourth is closed. The rows of a relation are in random order.
    """
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    # A node comes with about 2.6 facts; one component too many does no harm.
    sizes = rng.integers(SMALLEST, LARGEST + 1, size=int(facts / 2.6 / ((SMALLEST + LARGEST) / 2) * 1.05) + 2)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    node = np.arange(len(first))
    place = node - first

    child = node[place > 0]
    parent = first[place > 0] + (rng.random(len(child)) * place[place > 0]).astype(np.int64)
    start = node[rng.random(len(node)) < 0.5]
    # Mostly onwards, sometimes back.
    onward = rng.random(len(start)) < 0.9
    low = np.where(onward, place[start] + 1, 0)
    end = first[start] + low + (rng.random(len(start)) * (size[start] - low)).astype(np.int64)
    kept = (end < first[start] + size[start]) & (end != start)
    edges = np.unique(np.concatenate([parent, start[kept]]) * len(node) + np.concatenate([child, end[kept]]))
    closed = node[rng.random(len(node)) < 0.25]
    weights = rng.integers(0, 10, size=len(node))

    # Cut after the component with which there are enough facts.
    per_node = (
        1 + np.bincount(edges // len(node), minlength=len(node)) + np.bincount(closed, minlength=len(node))
    )
    enough = int(np.searchsorted(np.cumsum(per_node), facts))
    last = int(first[min(enough, len(node) - 1)] + size[min(enough, len(node) - 1)])

    def table(**columns: npt.NDArray[np.int64]) -> pa.Table:
        mixed = rng.permutation(len(next(iter(columns.values()))))
        return pa.table({name: column[mixed].astype(np.int32) for name, column in columns.items()})

    edges = edges[edges // len(node) < last]
    return {
        "edge": table(x=edges // len(node), y=edges % len(node)),
        "weight": table(x=node[:last], w=weights[:last]),
        "closed": table(x=closed[closed < last]),
    }


def draws(tables: Tables, turns: Sequence[str], commits: int, seed: int) -> list[tuple[str, int]]:
    """Which facts go and come: relations in turn, rows at random."""
    import numpy as np

    rng = np.random.default_rng(seed)
    names = (turns[k % len(turns)] for k in range(commits))
    return [(name, int(rng.integers(tables[name].num_rows))) for name in names]


# --- the child: one program, one algorithm ---------------------------------------------------


def measure(name: str, algorithm: str, options: argparse.Namespace) -> None:
    program = PROGRAMS[name]
    warm(program, algorithm, options.engine, options.threads, components(1000, options.seed))
    tables = components(options.facts, options.seed)
    live = Live(program, algorithm, options.engine, options.threads)
    begin("bootstrap")
    bootstrap = live.commit(Change(insert=tables))
    facts = sum(table.num_rows for table in tables.values())
    settle()
    done("bootstrap", commit=bootstrap.figures(), facts=facts, problems=live.problems(whole=False))

    start = dict(live.answers)
    for k, (relation, row) in enumerate(draws(tables, TURNS[name], options.commits, options.seed), 1):
        fact = tables[relation].slice(row, 1)
        begin(f"delete {k}")
        delete = live.commit(Change(delete={relation: fact}))
        begin(f"insert {k}")
        insert = live.commit(Change(insert={relation: fact}))
        problems = live.problems(whole=False)
        if live.answers != start:
            problems.append(
                f"{relation}{fact.to_pylist()[0]}: inserting it back does not restore the answers"
            )
        done("pair", delete=delete.figures(), insert=insert.figures(), problems=problems)
    begin("comparison of every tuple")
    done("end", problems=live.problems(whole=True), megabytes=live.peak)


# --- the parent --------------------------------------------------------------------------------


@dataclass
class Figures:
    """What one algorithm did with one program. `answers` are those after each deletion.

    `firsts` are the times of the first commits, until each relation has had its turn, which may have
    indexes to make; they are not among `deletes` and `inserts`, nor among `busy`, the seconds in which these
    had a processor.
    """

    program: str
    algorithm: str
    facts: int = 0
    derived: int = 0
    bootstrap: float | None = None
    firsts: list[float] = field(default_factory=list)
    deletes: list[float] = field(default_factory=list)
    inserts: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)
    impacts: list[int] = field(default_factory=list)
    answers: list[Answers] = field(default_factory=list)
    megabytes: float | None = None
    stopped: str | None = None
    problems: list[str] = field(default_factory=list)

    def missed(self) -> list[str]:
        """The goals that this run has missed."""
        slow = sum(time > MOST_SECONDS for time in self.deletes + self.inserts)
        wide = sum(touched > MOST_TOUCHED for touched in self.touched)
        busy = sum(time > MOST_SECONDS for time in self.busy)
        said = []
        if slow:
            said = [f"{slow} commits took over {MOST_SECONDS * 1000:g} ms, {busy} so long on the processor"]
        return said + ([f"{wide} commits touched over {MOST_TOUCHED:,} tuples"] if wide else [])


def run(program: str, algorithm: str, options: argparse.Namespace) -> Figures:
    figures = Figures(program, algorithm)

    def seen(event: Event) -> None:
        figures.problems.extend(event.get("problems", ()))
        figures.megabytes = event.get("megabytes", figures.megabytes)
        if event["what"] == "bootstrap":
            commit = commit_of(event["commit"])
            figures.facts, figures.bootstrap = event["facts"], commit.seconds
            figures.derived = sum(size for size, _ in commit.answers.values())
            figures.answers.append(commit.answers)
        elif event["what"] == "pair":
            delete, insert = commit_of(event["delete"]), commit_of(event["insert"])
            if len(figures.firsts) < 2 * len(TURNS[program]):
                figures.firsts += [delete.seconds, insert.seconds]
            else:
                figures.deletes.append(delete.seconds)
                figures.inserts.append(insert.seconds)
                figures.busy += [delete.busy, insert.busy]
            figures.answers.append(delete.answers)
            figures.touched += [delete.touched, insert.touched]
            figures.instances += [delete.instances, insert.instances]
            figures.impacts += [delete.impact, insert.impact]

    figures.stopped = supervise("benchmarks.proportion", children(program, algorithm), limits(options), seen)
    return figures


HEADINGS = (
    *("program", "algorithm", "facts", "derived", "bootstrap s", "first max ms"),
    *("delete p50 ms", "max", "insert p50 ms", "max"),
    *("touched p50", "max", "instances p50", "max", "impact max", "MB"),
)


EXPLANATION = """\
Milliseconds for a commit, the median and the most. The first commits, until each relation has had its turn,
may have indexes to make and stand apart: the dearest is shown. Touched are tuples whose marks or numbers
have changed."""


def table(found: Sequence[Figures]) -> str:
    rows = [
        (
            f.program,
            f.algorithm,
            count(f.facts),
            count(f.derived),
            seconds(f.bootstrap),
            milliseconds(most(f.firsts)),
            *(
                milliseconds(n)
                for n in (middle(f.deletes), most(f.deletes), middle(f.inserts), most(f.inserts))
            ),
            *(count(n) for n in (middle(f.touched), most(f.touched), middle(f.instances), most(f.instances))),
            count(most(f.impacts)),
            count(f.megabytes),
        )
        for f in found
    ]
    return markdown(HEADINGS, rows, left=2)


def problems_of(found: Sequence[Figures]) -> list[str]:
    """What was wrong, and where an algorithm has other answers than the first one for the same program."""
    wrong = [f"{f.program}, {f.algorithm}: {problem}" for f in found for problem in f.problems]
    for figures in found:
        base = next((f for f in found if f.program == figures.program and f.answers), figures)
        if any(a != b for a, b in zip(figures.answers, base.answers, strict=False)):
            wrong.append(f"{figures.program}, {figures.algorithm}: other answers than {base.algorithm}")
    return wrong


def report(found: Sequence[Figures]) -> str:
    notes = [f"{f.program}, {f.algorithm}: {missed}." for f in found for missed in f.missed()]
    notes += [f"{f.program}, {f.algorithm} was stopped at {f.stopped}." for f in found if f.stopped]
    notes += [f"WRONG: {problem}" for problem in problems_of(found)]
    goal = f"Goal: at most {MOST_TOUCHED:,} tuples touched and {MOST_SECONDS * 1000:g} ms in every commit"
    verdict = "\n".join(f"- {note}" for note in notes) if notes else f"{goal}: met; all answers agree."
    return (
        "\n\n".join(
            ["# One fact among many", EXPLANATION, table(found), *([f"{goal}."] if notes else []), verdict]
        )
        + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.proportion", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", choices=list(PROGRAMS), help=", ".join(PROGRAMS))
    add_common(parser)
    parser.set_defaults(algorithms=[name for name in ALGORITHMS if name != "recompute"])
    parser.add_argument("--facts", type=int, default=FACTS, help=f"{FACTS:,} unless given")
    parser.add_argument(
        "--commits", type=int, default=COMMITS, help=f"facts deleted and inserted ({COMMITS})"
    )
    parser.add_argument("--seed", type=int, default=20260101, help="for facts and draws")
    parser.add_argument("--out", type=Path, default=OUT, help="the directory of proportion.json and .md")
    options = parser.parse_args()
    if options.child:
        program, algorithm = options.child
        measure(program, algorithm, options)
        return 0

    options.out.mkdir(parents=True, exist_ok=True)
    found: list[Figures] = []
    for program in PROGRAMS:
        if options.only and program not in options.only:
            continue
        for algorithm in options.algorithms:
            found.append(run(program, algorithm, options))
            figures = found[-1]
            times = f"{milliseconds(middle(figures.deletes))} / {milliseconds(middle(figures.inserts))} ms"
            print(
                f"{program} {algorithm}: {times}{', stopped: ' + figures.stopped if figures.stopped else ''}",
                flush=True,
            )
            (options.out / "proportion.json").write_text(
                json.dumps([asdict(f) for f in found], indent=1) + "\n"
            )
    text = report(found)
    (options.out / "proportion.md").write_text(text)
    print("\n" + text)
    return 1 if problems_of(found) else 0


if __name__ == "__main__":
    sys.exit(main())
