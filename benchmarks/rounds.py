"""Shuffle rounds: whether they take longer, and the driver more memory, the more of them there were.

    python -m benchmarks.rounds --nodes 640

The closure of a chain on `local[2]`, with `spark.tidelog.fixpoint=shuffle`: about as many rounds as half its
nodes, while the state grows with the square. For each fifty rounds: seconds for a round, what the JVM
holds after a collection of garbage, and the resident memory of this process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.tables import markdown

if TYPE_CHECKING:
    from tidelog.plan.executor import Progress

EVERY = 50
PROGRAM = """
    .decl edge(x: number, y: number)
    .input edge
    .decl path(x: number, y: number)
    .output path
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
"""


class Watcher:
    """Notes how long rounds take, and now and then what memory is in use."""

    def __init__(self, spark: Any) -> None:
        self._spark, self._last = spark, perf_counter()
        self.seconds: list[float] = []
        self.rows: list[list[str]] = []

    def __call__(self, _stratum: object, progress: Progress) -> None:
        """A round is over."""
        self.seconds.append(perf_counter() - self._last)
        if progress.round % EVERY == 0 and len(self.seconds) >= EVERY:
            recent = median(self.seconds[-EVERY:])
            memory = f"{_heap(self._spark):.0f}", f"{_resident():.0f}"
            self.rows.append([str(progress.round), f"{progress.tuples:,}", f"{recent:.3f}", *memory])
        self._last = perf_counter()


def _heap(spark: Any) -> float:
    """Megabytes that the driver's JVM holds, without what is garbage."""
    jvm = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def _resident() -> float:
    """Megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def main() -> int:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.rounds", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=640)
    nodes = parser.parse_args().nodes

    import pyarrow as pa

    from tidelog.execute.spark.executor import SparkExecutor
    from tidelog.execute.spark.session import start
    from tidelog.maintain.seminaive import materialise
    from tidelog.program.check import check
    from tidelog.program.strata import stratify
    from tidelog.syntax.parser import parse

    with tempfile.TemporaryDirectory() as directory:
        settings = {"spark.sql.shuffle.partitions": "2", "spark.tidelog.fixpoint": "shuffle"}
        spark = start(Path(directory), "local[2]", settings)
        program = check(parse(PROGRAM))
        executor = SparkExecutor(spark)
        for relation in program.relations.values():
            executor.create(relation)
        numbers = pa.array(range(nodes), pa.int32())
        executor.insert("edge", pa.table({"x": numbers.slice(0, nodes - 1), "y": numbers.slice(1)}))
        watcher = Watcher(spark)
        started = perf_counter()
        materialise(stratify(program), executor, watcher)
        took = perf_counter() - started
        found, expected = executor.size("path"), nodes * (nodes - 1) // 2
        executor.close()
        spark.stop()
    print(markdown(["round", "tuples", "seconds a round", "JVM, MB", "Python, MB"], watcher.rows))
    print(f"\n{len(watcher.seconds)} rounds in {took:.1f} s, {found:,} answers")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
