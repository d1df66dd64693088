"""As many random programs and histories as one likes: `python -m tests.properties --cases 10000 --seed 7`.

A case is a random program, derived by every evaluator, and a random history of commits, replayed
by a few algorithms on each engine, or by the one that is asked for. The first that fails is made
small and printed as a script.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from tests.properties.agreement import checked, disagreement, minimise
from tests.properties.cases import failure_of
from tests.properties.replay import ALGORITHMS, ENGINES
from tests.random_programs import generate


def program_problem(seed: int) -> str | None:
    """Where the evaluators differ on the random program of a seed, made small; None if nowhere."""
    program = generate(seed)
    accepted = checked(program.text)
    problem = None if accepted is None else disagreement(accepted)
    return None if problem is None else f"program {seed}: {problem}\n\n{minimise(program).text}"


def history_problem(seed: int, algorithm: str | None, engine: str | None) -> str | None:
    """What goes wrong with the random history of a seed, made small; None if nothing does."""
    failure = failure_of(seed, algorithm, engine)
    return None if failure is None else str(failure)


def problem(seed: int, kinds: tuple[str, ...], algorithm: str | None, engine: str | None) -> str | None:
    found = program_problem(seed) if "programs" in kinds else None
    if found is None and "histories" in kinds:
        found = history_problem(seed, algorithm, engine)
    return found


@contextmanager
def outcomes(
    seeds: Iterable[int], workers: int, check: partial[str | None]
) -> Iterator[Iterable[str | None]]:
    if workers == 1:
        yield map(check, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield pool.imap_unordered(check, seeds, chunksize=10)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first; the others follow it")
    parser.add_argument("--only", choices=("programs", "histories"), help="one kind of cases only")
    parser.add_argument("--algorithm", choices=ALGORITHMS, help="for every history (default: in turns)")
    parser.add_argument("--engine", choices=ENGINES, help="for every history (default: both)")
    parser.add_argument("--workers", type=int, default=1, help="how many processes")
    options = parser.parse_args()
    narrow = options.algorithm or options.engine
    kinds = (options.only,) if options.only else ("histories",) if narrow else ("programs", "histories")
    check = partial(problem, kinds=kinds, algorithm=options.algorithm, engine=options.engine)
    seeds = range(options.seed, options.seed + options.cases)
    with outcomes(seeds, options.workers, check) as found:
        for done, outcome in enumerate(found, 1):
            if outcome is not None:
                print(outcome)
                return 1
            if sys.stderr.isatty() and done % 20 == 0:
                print(f"\r{done} of {options.cases}", end="", file=sys.stderr, flush=True)
    print(f"{options.cases} cases agree with the oracle ({' and '.join(kinds)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
