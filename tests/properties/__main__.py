"""As many random programs as one likes: `python -m tests.properties --cases 10000 --seed 7`."""

from __future__ import annotations

import argparse
import sys

from tests.properties.agreement import checked, disagreement, minimise
from tests.random_programs import generate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first; the others follow it")
    options = parser.parse_args()
    rejected = 0
    for done, seed in enumerate(range(options.seed, options.seed + options.cases)):
        program = generate(seed)
        accepted = checked(program.text)
        if accepted is None:
            rejected += 1
        elif (problem := disagreement(accepted)) is not None:
            print(f"seed {seed}: {problem}\n\nmade smaller:\n\n{minimise(program).text}")
            return 1
        if sys.stderr.isatty() and done % 20 == 0:
            print(f"\r{done} of {options.cases}", end="", file=sys.stderr, flush=True)
    print(f"{options.cases} programs agree ({rejected} of them rejected by the checker)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
