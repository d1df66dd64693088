"""Cases: which histories are replayed how, so that every algorithm and engine has its share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.properties.expected import Expected
from tests.properties.histories import History, generate_history, splits
from tests.properties.replay import ALGORITHMS, ENGINES, Way, ending_problem_of, problem_of, reproduction
from tests.properties.shrink import PATIENCE, shrink

LOCAL_WAYS, REFERENCE_WAYS = 2, 1  # so many for each case: the reference is slow


@dataclass(frozen=True)
class Failure:
    """A case that fails, made small."""

    seed: int
    way: Way
    problem: str
    script: str

    def __str__(self) -> str:
        how = f"algorithm {self.way.algorithm}, engine {self.way.engine}"
        return f"history {self.seed}, {how}: {self.problem}\n\n{self.script}"


def ways_of(seed: int, algorithm: str | None = None, engine: str | None = None) -> list[Way]:
    """How the history of a seed is replayed: algorithms take turns from seed to seed, unless given."""
    ways = []
    for name in ENGINES if engine is None else (engine,):
        count = LOCAL_WAYS if name == "local" else REFERENCE_WAYS
        # The reference is a few algorithms ahead, so that a history is not replayed twice by the same.
        first = seed * count + (name != "local") * len(ALGORITHMS) // 2
        for i in range(count):
            ways.append(Way(ALGORITHMS[(first + i) % len(ALGORITHMS)], name))
    if algorithm is not None:
        ways = [Way(algorithm, way.engine) for way in ways]
    return list(dict.fromkeys(ways))


def failure_of(
    seed: int, algorithm: str | None = None, engine: str | None = None, patience: float = PATIENCE
) -> Failure | None:
    """The first failure of the history of a seed: transaction by transaction, then split otherwise."""
    history = generate_history(seed)
    expected = Expected(history)
    for place, way in enumerate(ways_of(seed, algorithm, engine)):
        split = splits(history)[(seed + place) % len(splits(history))]
        if (problem := problem_of(history, way, expected)) is not None:
            return made_small(history, way, problem, patience)
        if (problem := ending_problem_of(split, way, expected)) is not None:
            return made_small(split, way, problem, patience)
    return None


def made_small(history: History, way: Way, problem: str, patience: float) -> Failure:
    """The failure on the smallest history found on which the same kind of thing goes wrong."""
    kind = _kind(problem)

    def fails(other: History) -> bool:
        expected = Expected(other)
        return expected.accepted and _kind(problem_of(other, way, expected)) == kind

    small = shrink(history, fails, patience)
    expected = Expected(small)
    # A split may fail in the end only by what a reading in between would have shown or hidden.
    problem = problem_of(small, way, expected) or problem
    return Failure(history.seed, way, problem, reproduction(small, way, expected))


def _kind(problem: str | None) -> str | None:
    """What went wrong, roughly: an error of a certain type, an error missing, or wrong answers."""
    if problem is None or "should have failed" in problem:
        return problem and "should have failed"
    error = re.search(r"fails: (\w+)", problem)
    return error[1] if error else "wrong answers"
