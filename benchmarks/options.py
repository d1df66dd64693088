"""Options that the benchmarks of updates share."""

from __future__ import annotations

import argparse
import sys

from benchmarks.live import ALGORITHMS
from benchmarks.supervise import Limits


def add_common(parser: argparse.ArgumentParser, algorithms: tuple[str, ...] = ALGORITHMS) -> None:
    def names(text: str) -> list[str]:
        unknown = [name for name in text.split(",") if name not in algorithms]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(algorithms)}")
        return text.split(",")

    parser.add_argument(
        "--algorithms", type=names, default=list(algorithms), metavar="A,B", help=", ".join(algorithms)
    )
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one commit (600)")
    parser.add_argument(
        "--memory-limit", type=float, default=20_000, metavar="MB", help="for one process (20,000)"
    )
    parser.add_argument("--engine", default="local", help="local, or substitution for small data")
    parser.add_argument("--threads", type=int, default=1, help="of the local engine (1)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)


def limits(options: argparse.Namespace) -> Limits:
    return Limits(options.limit, options.memory_limit)


def children(work: str, algorithm: str) -> list[str]:
    """The arguments of a child that measures one algorithm on one piece of work: ours, and which."""
    return [*sys.argv[1:], "--child", work, algorithm]
