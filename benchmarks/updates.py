"""Updates deleted and inserted again, by every algorithm, against recomputing.

    make bench-updates ARGS="--only galen --sizes 10,10000"
    make bench-updates ARGS="--only crdt --algorithms elastic,auto --add"

Each data set is loaded by each algorithm in a process of its own, or in several (`--runs`), in turns with
the other algorithms. Then come the updates, small ones first: each of several sets of facts is deleted and
inserted again, once, as in the paper. The time of a commit is the median of the processes; what does not
happen within `--limit` ends a process: what came before is kept, larger updates are not tried.

All answers are checked: sizes and checksums after a commit are those of recompute, after the reverse
those of the beginning. Figures go to `build/bench-out/updates.json` and `updates.md`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.datasets import DATA_SETS, SETS, DataSet, find_data_set
from benchmarks.facts import read_tables
from benchmarks.live import ALGORITHMS, Change, Commit, Live, warm
from benchmarks.measure import settle
from benchmarks.options import add_common, children, limits
from benchmarks.supervise import Event, begin, done, supervise
from benchmarks.updates_report import Figures, report
from benchmarks.workloads import ROOT

RUNS = 3
SLOW_BOOTSTRAP = 20.0  # seconds: then there is one process, not RUNS
SHORT_SECONDS = 20.0  # of all commits of an update: then no more of its sets are tried
LOOKED_AT = 3_000_000  # up to so many answers, every tuple is looked at after every commit

OUT = ROOT / "build" / "bench-out"


# --- the child: one data set, one algorithm ----------------------------------------


def measure(data: DataSet, algorithm: str, options: argparse.Namespace) -> None:
    program = data.workload.program
    tables = read_tables(data.workload)
    if options.rows:
        tables = {name: table.slice(0, options.rows) for name, table in tables.items()}
    warm(program, algorithm, options.engine, options.threads, tables)
    live = Live(program, algorithm, options.engine, options.threads)

    def missed(published: Mapping[str, int]) -> list[str]:
        """Where answers have not the size that is published for them."""
        held = {name: len(live.db[name]) for name in published if not options.rows}
        return [
            f"{name} has {n:,} tuples, not {published[name]:,}"
            for name, n in held.items()
            if n != published[name]
        ]

    begin("bootstrap")
    bootstrap = live.commit(Change(insert=tables))
    settle()
    done("bootstrap", commit=bootstrap.figures(), problems=missed(data.workload.expected))
    start = dict(live.answers)

    for update in _chosen(data.updates, options.sizes):
        spent = 0.0
        for number in range(min(data.sets(update), options.sets)):
            change = data.change(update, tables, options.seed, number)
            there = _step(live, f"{update}, there", change, update, number, "there")
            problems = missed(data.after.get(update, {}))
            back = _step(live, f"{update}, back", change.reverse, update, number, "back")
            if live.answers != start:
                problems.append(
                    f"after update {update} and its reverse the answers are not those of the beginning"
                )
            if problems:
                done("problems", problems=problems)
            spent += there.seconds + back.seconds
            if spent > SHORT_SECONDS:
                break
    begin("comparison of every tuple")
    done("end", problems=live.problems(whole=True), megabytes=live.peak)


def _step(live: Live, what: str, change: Change, update: str, number: int, way: str) -> Commit:
    begin(what)
    commit = live.commit(change)
    whole = sum(size for size, _ in live.answers.values()) <= LOOKED_AT
    figures = {"update": update, "set": number, "way": way, "commit": commit.figures()}
    done("commit", **figures, problems=live.problems(whole=whole))
    return commit


def _chosen(updates: tuple[str, ...], sizes: list[str] | None) -> list[str]:
    return [update for update in updates if sizes is None or update in sizes]


# --- the parent ---------------------------------------------------------------------


def run(figures: Figures, number: int, options: argparse.Namespace) -> None:
    """Have a child measure, and add what it says."""

    def seen(event: Event) -> None:
        figures.problems.extend(event.get("problems", ()))
        figures.megabytes = event.get("megabytes", figures.megabytes)
        if event["what"] == "bootstrap":
            figures.bootstrap = event["commit"]
        elif event["what"] == "commit":
            figures.commits.append({**event, "run": number})

    command = children(figures.data, figures.algorithm)
    figures.stopped = supervise("benchmarks.updates", command, limits(options), seen) or figures.stopped


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.updates", description=(__doc__ or "").split("\n")[0])
    names = [data.name for data in DATA_SETS]
    parser.add_argument("--only", action="append", choices=names, metavar="DATASET", help=", ".join(names))
    add_common(parser)
    parser.add_argument(
        "--sizes", type=lambda text: text.split(","), help="names of updates: 10,100,hundredth,recorded"
    )
    parser.add_argument("--sets", type=int, default=SETS, help=f"of facts, for each update ({SETS})")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"processes for each algorithm ({RUNS})")
    parser.add_argument("--seed", type=int, default=20260101, help="for drawing facts")
    parser.add_argument("--rows", type=int, help="read only the first rows of every file")
    parser.add_argument("--add", action="store_true", help="keep the figures that the file has already")
    parser.add_argument("--out", type=Path, default=OUT, help="the directory of updates.json and updates.md")
    options = parser.parse_args()
    if options.child:
        name, algorithm = options.child
        measure(find_data_set(name), algorithm, options)
        return 0

    store = options.out / "updates.json"
    options.out.mkdir(parents=True, exist_ok=True)
    kept: dict[tuple[str, str], Figures] = {}
    if options.add and store.exists():
        kept = {(f.data, f.algorithm): f for f in map(Figures.of_json, json.loads(store.read_text()))}
    for data in DATA_SETS:
        if options.only and data.name not in options.only:
            continue
        here = [Figures(data.name, algorithm) for algorithm in options.algorithms]
        for number, figures in itertools.product(range(options.runs), here):
            if number and figures.bootstrap and figures.bootstrap["seconds"] > SLOW_BOOTSTRAP:
                continue
            run(figures, number, options)
            print(figures.line(), flush=True)
            kept[data.name, figures.algorithm] = figures
            store.write_text(json.dumps([f.to_json() for f in kept.values()], indent=1) + "\n")
    order = [data.name for data in DATA_SETS]
    found = sorted(kept.values(), key=lambda f: (order.index(f.data), ALGORITHMS.index(f.algorithm)))
    text, problems = report(found)
    print("\n" + text)
    (options.out / "updates.md").write_text(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
