"""The command: `python -m tests.properties` (what it does is said in `__main__`)."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass

from tests.properties.agreement import checked, disagreement, minimise
from tests.properties.cases import failure_of
from tests.properties.on_spark import starting
from tests.properties.replay import ALGORITHMS, ENGINES, SPARK
from tests.random_programs import generate


@dataclass(frozen=True)
class Checks:
    """What is checked of a seed; it goes to other processes."""

    programs: bool
    histories: bool
    algorithm: str | None
    engine: str | None

    def problem(self, seed: int) -> str | None:
        """What goes wrong, made small; None if nothing does."""
        found = _program_problem(seed) if self.programs else None
        if found is None and self.histories and (failure := failure_of(seed, self.algorithm, self.engine)):
            found = str(failure)
        return found


def _program_problem(seed: int) -> str | None:
    program = generate(seed)
    accepted = checked(program.text)
    problem = None if accepted is None else disagreement(accepted)
    return None if problem is None else f"program {seed}: {problem}\n\n{minimise(program).text}"


def _outcomes(seeds: range, workers: int, checks: Checks) -> Iterator[str | None]:
    """What is found for each seed, in any order. A worker that dies is an error, not a wait for ever."""
    if workers == 1:
        yield from map(checks.problem, seeds)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(checks.problem, seed) for seed in seeds]):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def main(description: str | None) -> int:
    """The exit code: 1 if a case fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=description)
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first; the others follow it")
    parser.add_argument("--only", choices=("programs", "histories"), help="one kind of cases only")
    parser.add_argument("--algorithm", choices=ALGORITHMS, help="for every history (default: in turns)")
    parser.add_argument("--engine", choices=(*ENGINES, SPARK), help="for every history (default: first two)")
    parser.add_argument("--workers", type=int, default=1, help="how many processes")
    options = parser.parse_args()
    narrow = options.only == "histories" or options.algorithm or options.engine
    checks = Checks(not narrow, options.only != "programs", options.algorithm, options.engine)
    seeds = range(options.seed, options.seed + options.cases)
    if options.engine == SPARK and options.workers != 1:
        parser.error("histories on Spark share one session: --workers 1")
    with starting() if options.engine == SPARK else nullcontext():
        for done, outcome in enumerate(_outcomes(seeds, options.workers, checks), 1):
            if outcome is not None:
                print(outcome)
                return 1
            if sys.stderr.isatty() and done % 20 == 0:
                print(f"\r{done} of {options.cases}", end="", file=sys.stderr, flush=True)
    kinds = ["programs"] * checks.programs + ["histories"] * checks.histories
    print(f"{options.cases} cases agree with the oracle ({' and '.join(kinds)})")
    return 0
