"""One evaluation of one workload, in a process of its own: python -m benchmarks.measure NAME THREADS.

Prints one JSON object. A small evaluation of the same program comes first, so that
kernels are in memory and only the work itself is timed; what that costs is `start`.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.facts import read_table
from benchmarks.workloads import ROOT, Facts, Workload, find_workload

if TYPE_CHECKING:
    from tidelog.plan.executor import Executor

BEGAN = time.perf_counter()
WARM_ROWS = 20


def memory(field: str, process: int | str = "self") -> float:
    """A field of a process's memory, in MB: VmRSS is what it uses now, VmHWM the most it used."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    for line in lines:
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def forget_peak() -> None:
    """Let VmHWM begin anew, where the system allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def settle() -> None:
    """Have Python's collector leave alone what is there, as a service does once it has started.

    Once in a while it looks at every object that lives; with Numba loaded that takes as long as many commits.
    """
    gc.collect()
    gc.freeze()


def main(name: str, threads: int) -> dict[str, object]:
    import pyarrow as pa

    from tidelog.execute.local.executor import LocalExecutor
    from tidelog.maintain.seminaive import materialise
    from tidelog.program.arrow import arrow_schema
    from tidelog.program.check import check
    from tidelog.program.strata import stratify
    from tidelog.syntax.parser import parse

    workload = find_workload(name)
    program = check(parse(workload.program, workload.name))
    strata = stratify(program)

    def read(relation: str, facts: Facts) -> pa.Table:
        return read_table(facts, arrow_schema(program.relations[relation]))

    def fresh() -> LocalExecutor:
        executor = LocalExecutor(threads=threads)
        for relation in program.relations.values():
            executor.create(relation)
        return executor

    warm = fresh()
    for relation, facts in workload.facts.items():
        warm.insert(relation, read(relation, facts).slice(0, WARM_ROWS))
    materialise(strata, warm)
    for relation in workload.expected:
        warm.table(relation)
    warm.close()
    started = time.perf_counter()

    executor = fresh()
    for relation, facts in workload.facts.items():
        executor.insert(relation, read(relation, facts))
    loaded = time.perf_counter()
    reports = materialise(strata, executor)
    evaluated = time.perf_counter()
    peak = memory("VmHWM")
    if workload.write:
        write(workload, executor)
    written = time.perf_counter()
    return {
        "answers": {relation: executor.size(relation) for relation in workload.expected},
        "start": started - BEGAN,
        "load": loaded - started,
        "evaluate": evaluated - loaded,
        "write": written - evaluated if workload.write else None,
        "rounds": sum(stratum.report.rounds for stratum in reports),
        "derivations": sum(sum(stratum.report.instances.values()) for stratum in reports),
        "megabytes": peak,
    }


def write(workload: Workload, executor: Executor) -> None:
    """The answers as tab-separated text, as `tidelog run` writes them."""
    import pyarrow.csv

    target = ROOT / "build" / "bench-out" / workload.name
    target.mkdir(parents=True, exist_ok=True)
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter="\t")
    for relation in workload.expected:
        table = executor.table(relation)
        pyarrow.csv.write_csv(table, target / f"{relation}.csv", options)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
