"""Facts and answers by the ten million, none of which go through the driver.

    make bench-driver-memory
    make bench-driver-memory ARGS="--edges 1000000"

A standalone cluster is started on this machine: a master, and two workers with one core each. The
driver's JVM has 1 GB. The facts are a Parquet table of edges in chains of ten; the answers are the pairs
of nodes that are connected, 5.5 for each edge, written to Parquet and counted there. The table
shows the most memory that the driver's two processes have used, and the time of each step.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.measure import memory
from benchmarks.standalone import Cluster
from benchmarks.tables import count, markdown, seconds
from benchmarks.workloads import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EDGES = 10_000_000
LENGTH = 10  # edges of a chain
CORES = 2
PROGRAM = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def chains(spark: SparkSession, edges: int) -> DataFrame:
    """Edges in chains that have nothing to do with each other."""
    start = f"id + id div {LENGTH}"
    return spark.range(edges).selectExpr(f"{start} as x", f"{start} + 1 as y")


def expected(edges: int) -> tuple[int, int]:
    """How many pairs are connected, and the sum of their distances. Chains are whole."""
    pairs = [(LENGTH - d + 1, d) for d in range(1, LENGTH + 1)]
    whole = edges // LENGTH
    return whole * sum(n for n, _ in pairs), whole * sum(n * d for n, d in pairs)


def measure(spark: SparkSession, directory: Path, edges: int, maintained: bool) -> list[tuple[str, float]]:
    """The steps, with their seconds; wrong answers are an error."""
    import tidelog

    steps = list[tuple[str, float]]()
    began = perf_counter()

    def done(what: str) -> None:
        nonlocal began
        steps.append((what, perf_counter() - began))
        print(f"{what}: {steps[-1][1]:.1f} s, driver {most(spark)}", file=sys.stderr, flush=True)
        began = perf_counter()

    chains(spark, edges).write.parquet(str(directory / "edge"))
    done("write the facts")
    with tidelog.Database(PROGRAM, spark=spark, maintained=maintained) as db:
        db.commit(insert={"edge": spark.read.parquet(str(directory / "edge"))})
        done(f"commit ({db.report.strata[-1].way})")
        db["path"].to_spark().write.parquet(str(directory / "path"))
        done("write the answers")
    [found] = spark.read.parquet(str(directory / "path")).selectExpr("count(*)", "sum(y - x)").collect()
    done("count the answers")
    if tuple(found) != expected(edges):
        raise RuntimeError(f"wrong answers: {tuple(found)} instead of {expected(edges)}")
    return steps


def most(spark: SparkSession) -> str:
    """The most memory that the driver's JVM and Python have used."""
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    return f"{memory('VmHWM', jvm):,.0f} MB (JVM), {memory('VmHWM'):,.0f} MB (Python)"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.driver_memory", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--edges", type=int, default=EDGES, help=f"how many facts ({EDGES:,})")
    parser.add_argument("--driver", default="1g", help="memory of the driver's JVM (1g)")
    parser.add_argument("--executor", default="2g", help="memory of the JVM of each of two executors (2g)")
    parser.add_argument("--once", action="store_true", help="a single evaluation: maintained=False")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    options = parser.parse_args()
    from tidelog.execute.spark.session import start

    os.environ["PYSPARK_PYTHON"] = sys.executable
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="driver-memory-") as name:
        directory = Path(name)
        (directory / "driver").mkdir()
        (directory / "work").mkdir()
        with Cluster(directory, workers=CORES, memory=options.executor) as cluster:
            settings = {
                "spark.default.parallelism": str(CORES),
                "spark.driver.memory": options.driver,
                "spark.executor.memory": options.executor,
                "spark.sql.shuffle.partitions": "16",
                "spark.tidelog.tasks": str(CORES),
                "spark.tidelog.work": str(directory / "work"),
                **dict(setting.split("=", 1) for setting in options.set),
            }
            spark = start(directory / "driver", cluster.url, settings)
            try:
                steps = measure(spark, directory, options.edges, not options.once)
                used = most(spark)
            finally:
                spark.stop()
    print(markdown(("step", "seconds"), [(what, seconds(took)) for what, took in steps]))
    facts, answers = count(options.edges), count(expected(options.edges)[0])
    print(f"\n{facts} facts, {answers} answers; the driver has used {used}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
