"""Whole evaluations of the workloads, beside other systems.

    make bench-materialise ARGS="--only cspa --only galen"
    make bench-materialise ARGS="--skip-long --threads 1"

Each evaluation runs in a process of its own, on the local executor. The figures of the
other systems come from `PEERS.md`; they are wall time of the whole process with loading,
so the ratios compare them with load + evaluate. Answers are checked, always.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers import Row, find_row, read_peers
from benchmarks.workloads import PEERS, ROOT, WORKLOADS, Workload, make_data

REPEAT = 3
LONG_SECONDS = 20.0


@dataclass(frozen=True)
class Run:
    """The best of the runs of one workload with so many threads; times in seconds."""

    workload: str
    threads: int
    answers: dict[str, int]
    start: float
    load: float
    evaluate: float
    write: float | None
    rounds: int
    derivations: int
    megabytes: float

    @property
    def total(self) -> float:
        return self.load + self.evaluate


def run_once(workload: Workload, threads: int, timeout: float) -> Run:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.measure", workload.name, str(threads)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
    )
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}")
    run = Run(workload=workload.name, threads=threads, **json.loads(done.stdout))
    if run.answers != workload.expected:
        raise RuntimeError(f"wrong answers: {run.answers}, expected {dict(workload.expected)}")
    return run


def run_best(workload: Workload, threads: int, timeout: float) -> Run:
    """The best of three; of one when it is long."""
    best = run_once(workload, threads, timeout)
    for _ in range(0 if best.total > LONG_SECONDS else REPEAT - 1):
        best = min(best, run_once(workload, threads, timeout), key=lambda run: run.total)
    return best


HEADINGS = (
    ("workload", 16),
    ("j", 1),
    ("load", 6),
    ("evaluate", 8),
    ("write", 6),
    ("M deriv/s", 9),
    ("MB", 6),
    ("Soufflé", 7),
    ("ratio", 6),
    ("best", 6),
    ("ratio", 6),
    ("by", 0),
)


def show(cells: Iterable[object]) -> None:
    shown: list[str] = []
    for (_, width), cell in zip(HEADINGS, cells, strict=True):
        text = "" if cell is None else f"{cell:.{digits(cell)}f}" if isinstance(cell, float) else str(cell)
        shown.append(text.ljust(width) if isinstance(cell, str) and not shown else text.rjust(width))
    print("  ".join(shown).rstrip(), flush=True)


def digits(number: float) -> int:
    return 2 if number < 100 else 0


def show_run(run: Run, row: Row | None) -> None:
    souffle = row.souffle(run.threads) if row else None
    best = row.best(run.threads) if row else None
    show(
        (
            run.workload,
            run.threads,
            run.load,
            run.evaluate,
            run.write,
            run.derivations / run.evaluate / 1e6,
            round(run.megabytes),
            souffle.seconds if souffle else None,
            run.total / souffle.seconds if souffle else None,
            best.seconds if best else None,
            run.total / best.seconds if best else None,
            f"{best.system}, {best.threads}" if best else None,
        )
    )


def geometric_mean(ratios: list[float]) -> float | None:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def show_means(runs: list[Run], rows: tuple[Row, ...], threads: int) -> None:
    pairs = [(run, find_row(rows, peer_name(run.workload))) for run in runs if run.threads == threads]
    against = {
        "compiled Soufflé": [(run, row.souffle(threads)) for run, row in pairs if row],
        "the best of any": [(run, row.best(threads)) for run, row in pairs if row],
    }
    for who, figures in against.items():
        known = [(run, figure.seconds) for run, figure in figures if figure is not None]
        total = geometric_mean([run.total / seconds for run, seconds in known])
        evaluate = geometric_mean([run.evaluate / seconds for run, seconds in known])
        if total is not None:
            worst, worst_run = max((run.total / seconds, run.workload) for run, seconds in known)
            print(
                f"-j {threads}, against {who} ({len(known)} workloads): geometric mean {total:.2f} "
                f"(evaluation alone {evaluate:.2f}), worst {worst:.2f} ({worst_run})"
            )


def peer_name(workload: str) -> str:
    return next(w.peer for w in WORKLOADS if w.name == workload)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.materialise", description=(__doc__ or "").split("\n")[0]
    )
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--skip-long", action="store_true", help="leave out what takes more than about 20 s")
    parser.add_argument("--threads", type=int, action="append", help="1 and 2 unless given")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one evaluation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to a file")
    options = parser.parse_args()

    make_data()
    rows = read_peers(PEERS)
    runs: list[Run] = []
    failed = 0
    show(heading for heading, _ in HEADINGS)
    for workload in WORKLOADS:
        if (options.only and workload.name not in options.only) or (options.skip_long and workload.long):
            continue
        for threads in options.threads or (1, 2):
            try:
                run = run_best(workload, threads, options.timeout)
            except (RuntimeError, subprocess.TimeoutExpired) as problem:
                print(f"{workload.name}  {threads}  FAILED: {problem}", flush=True)
                failed += 1
                continue
            runs.append(run)
            show_run(run, find_row(rows, workload.peer))
    print("\nTimes in seconds. Ratios: load + evaluate by the whole process of the other; below 1 is faster.")
    for threads in options.threads or (1, 2):
        show_means(runs, rows, threads)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
