"""Bytes per stored tuple: ten million distinct pairs with their hash set and one index.

    make bench-memory

Two ways to count: what the process grew by, and what the executor says it holds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.measure import memory
from benchmarks.workloads import ROOT

if TYPE_CHECKING:
    import pyarrow as pa

TUPLES = 10_000_000

# The rule makes the executor look up `pair` by its first column: that is the index.
PROGRAM = """\
.decl pair(x: number, y: number)
.decl key(x: number)
.input pair, key
.decl found(y: number)
.output found
found(y) :- key(x), pair(x, y).
"""


def pairs(distribution: str, tuples: int) -> pa.Table:
    """`tens`: each key has ten partners. `unique`: each key has one."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(20240601)
    keys = np.repeat(np.arange(tuples // 10), 10) if distribution == "tens" else np.arange(tuples)
    order = rng.permutation(tuples)
    # Distinct by construction: the second column never repeats for one key.
    values = np.arange(tuples) * 7 % (tuples + 9)
    return pa.table({"x": keys[order].astype("int64"), "y": values[order].astype("int64")})


def measure(distribution: str, tuples: int) -> dict[str, object]:
    import ctypes
    import gc

    import pyarrow as pa

    from tidelog.execute.local.executor import LocalExecutor
    from tidelog.maintain.seminaive import materialise
    from tidelog.program.check import check
    from tidelog.program.strata import stratify
    from tidelog.syntax.parser import parse

    def settle() -> float:
        """Resident MB, once what is free has been given back to the system."""
        gc.collect()
        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)
        return memory("VmRSS")

    program = check(parse(PROGRAM))

    def evaluate(table: pa.Table) -> LocalExecutor:
        executor = LocalExecutor(threads=1)
        for relation in program.relations.values():
            executor.create(relation)
        executor.insert("key", pa.table({"x": table["x"][:1]}))
        executor.insert("pair", table)
        return executor

    warm = evaluate(pairs("tens", 1000))
    materialise(stratify(program), warm)
    warm.close()

    table = pairs(distribution, tuples)
    before = settle() - table.nbytes / 2**20  # the table itself is gone when we look again
    executor = evaluate(table)
    assert executor.size("pair") == tuples
    del table
    materialise(stratify(program), executor)
    after = settle()
    return {
        "distribution": distribution,
        "tuples": tuples,
        "resident": (after - before) * 2**20 / tuples,
        "peak": (memory("VmHWM") - before) * 2**20 / tuples,
        "accounted": executor.memory(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.memory", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tuples", type=int, default=TUPLES, help=f"{TUPLES:,} unless given")
    parser.add_argument("--one", choices=("tens", "unique"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.tuples)))
        return 0
    print(f"{options.tuples:,} distinct pairs, bytes per tuple")
    print(f"{'keys':<22}{'resident':>10}{'peak':>8}{'accounted':>11}  of which")
    for distribution, what in (("tens", "ten tuples per key"), ("unique", "one tuple per key")):
        child = [sys.executable, "-m", "benchmarks.memory", "--one", distribution]
        done = subprocess.run(
            [*child, "--tuples", str(options.tuples)], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        figures = json.loads(done.stdout)
        parts = {name: size / options.tuples for name, size in figures["accounted"].items()}
        shown = ", ".join(f"{name} {size:.1f}" for name, size in parts.items() if size >= 0.05)
        resident, peak, accounted = figures["resident"], figures["peak"], sum(parts.values())
        print(f"{what:<22}{resident:>10.1f}{peak:>8.1f}{accounted:>11.1f}  {shown}")
    print("\nResident is what the process grew by while it held the tuples; peak includes the load itself.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
