"""Fixpoints on Spark, beside the local executor and a plain loop of DataFrames.

    make bench-spark ARGS="--only right-rand1k --ways pivot,barrier"

One session (`local[2]`) is started and used once before anything is measured. Each workload is
evaluated in each way (see `spark.tidelog.fixpoint`) from facts that Spark holds to answers that Spark
holds, several times; the best is shown. The local executor has two threads. Answers are checked, always.
A way that takes longer than `--limit` is not tried again on the workload. The plain loop (`frames`) has one
try, and is stopped when it has taken 10 times as long as the best other way. Last comes `tidelog run` from
the shell prompt to the written answers, Java's start included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.facts import Tables, read_tables
from benchmarks.tables import count, markdown, ratio, seconds
from benchmarks.workloads import ROOT, Workload, find_workload, make_data

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelog.plan.executor import Executor

NAMES = ("right-rand1k", "right-grid50", "right-chain2k", "cspa_big", "wiki-Vote")
GOALS = {  # seconds, or times the local executor
    ("right-rand1k", "barrier"): "3 s",
    ("right-rand1k", "pivot"): "1.5 s",
    ("right-grid50", "barrier"): "3 s",
    ("right-chain2k", "barrier"): "5 s",
    ("cspa_big", "auto"): "2 times local",
    ("wiki-Vote", "auto"): "2 times local",
}
WAYS = ("auto", "pivot", "barrier", "single", "frames")
REPEAT = 3
SLOWER = 10  # times the best way, after which the plain loop is stopped
COLD = "right-rand1k"
COLD_GOAL = "20 s"
OUT = ROOT / "build" / "bench-out"


class TooLongError(Exception):
    """A way has been stopped."""


def evaluate(
    workload: Workload, tables: Tables, executor: Executor, limit: float = float("inf")
) -> tuple[float, str]:
    """Seconds from facts to answers, and the way that the last fixpoint went."""
    from tidelog.maintain.seminaive import materialise
    from tidelog.program.check import check
    from tidelog.program.strata import stratify
    from tidelog.syntax.parser import parse

    program = check(parse(workload.program, workload.name))
    for relation in program.relations.values():
        executor.create(relation)
        if relation.name in tables:
            executor.insert(relation.name, tables[relation.name])
    started = perf_counter()

    def look(*_: object) -> None:
        if perf_counter() - started > limit:
            raise TooLongError

    reports = materialise(stratify(program), executor, look)
    took = perf_counter() - started
    found = {name: executor.size(name) for name in workload.expected}
    if found != workload.expected:
        raise RuntimeError(f"wrong answers: {found}, expected {dict(workload.expected)}")
    executor.close()
    return took, next((r.report.way for r in reversed(reports) if r.report.way), "")


def best(
    workload: Workload, tables: Tables, spark: SparkSession, way: str, limit: float
) -> tuple[float, str]:
    from tidelog.execute.spark.executor import SparkExecutor

    spark.conf.set("spark.tidelog.fixpoint", way)
    found = evaluate(workload, tables, SparkExecutor(spark))
    for _ in range(REPEAT - 1 if found[0] < limit else 0):
        found = min(found, evaluate(workload, tables, SparkExecutor(spark)))
    return found


def baseline(workload: Workload, tables: Tables, spark: SparkSession, limit: float) -> float | None:
    """Seconds that the plain loop takes; None if it was stopped at the limit."""
    from tidelog.execute.spark.executor import SparkExecutor

    spark.conf.set("spark.tidelog.fixpoint", "frames")
    started = perf_counter()
    stop = Timer(limit, spark.interruptAll)  # in a round; between two rounds it notices itself
    stop.start()
    try:
        return evaluate(workload, tables, SparkExecutor(spark), limit)[0]
    except Exception:
        if perf_counter() - started < limit:
            raise
        return None
    finally:
        stop.cancel()


def cold() -> float:
    """Seconds of `tidelog run` on Spark, from the shell prompt to the answers in a file."""
    workload = find_workload(COLD)
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-") as name:
        program = Path(name) / "closure.dl"
        program.write_text(workload.program)
        facts = next(iter(workload.facts.values())).path.parent
        command = [sys.executable, "-m", "tidelog", "run", str(program), "--engine", "spark", "-q"]
        started = perf_counter()
        subprocess.run([*command, "-F", str(facts), "-D", name], check=True)
        took = perf_counter() - started
        for relation, answers in workload.expected.items():
            written = Path(name) / f"{relation}.csv"
            files = sorted(written.glob("part-*")) if written.is_dir() else [written]
            found = sum(file.read_bytes().count(b"\n") for file in files)
            if found != answers:
                raise RuntimeError(f"{found} answers in {written}, expected {answers}")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.spark", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", choices=NAMES, metavar="WORKLOAD", help=", ".join(NAMES))
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), help=", ".join(WAYS))
    parser.add_argument("--no-cold", action="store_true", help="without `tidelog run` from the shell prompt")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds from which on a way has one try")
    parser.add_argument("--out", type=Path, default=OUT, help="the directory of spark.md")
    options = parser.parse_args()
    make_data()
    from tidelog.execute.local.executor import LocalExecutor
    from tidelog.execute.spark.session import start

    settings = {"spark.default.parallelism": "2", "spark.sql.shuffle.partitions": "2"}
    spark = start(Path(tempfile.mkdtemp(prefix="tidelog-bench-")), "local[2]", settings)
    warm = find_workload("right-grid50")
    evaluate(warm, read_tables(warm), LocalExecutor(2))
    ways = [way for way in options.ways if way != "frames"]
    for way in ways:
        best(warm, read_tables(warm), spark, way, 0.0)
    rows = []
    for name in options.only or NAMES:
        workload = find_workload(name)
        tables = read_tables(workload)
        local = min(evaluate(workload, tables, LocalExecutor(2))[0] for _ in range(REPEAT))
        answers = count(sum(workload.expected.values()))
        fastest = options.limit
        for way in ways:
            took, said = best(workload, tables, spark, way, options.limit)
            fastest = min(fastest, took)
            goal = GOALS.get((name, way), "")
            rows.append((name, answers, seconds(local), way, seconds(took), ratio(took / local), goal, said))
            print(*rows[-1], sep="  ", flush=True)
        if "frames" in options.ways:
            loop = baseline(workload, tables, spark, SLOWER * fastest)
            shown = f"stopped at {seconds(SLOWER * fastest)}" if loop is None else seconds(loop)
            times = ratio((SLOWER * fastest if loop is None else loop) / fastest)
            said = f"{times} times the best other way" + (", at least" if loop is None else "")
            rows.append((name, answers, seconds(local), "frames", shown, "", "", said))
            print(*rows[-1], sep="  ", flush=True)
    spark.stop()
    if not options.no_cold:
        rows.append((COLD, "", "", "tidelog run", seconds(cold()), "", COLD_GOAL, "from the shell prompt"))
        print(*rows[-1], sep="  ", flush=True)
    page = markdown(("workload", "answers", "local s", "way", "s", "÷ local", "goal", "what ran"), rows)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "spark.md").write_text(page + "\n")
    print("\n" + page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
