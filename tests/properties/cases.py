"""Cases: which histories are replayed how, so that every algorithm and engine has its share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.properties.expected import Expected
from tests.properties.histories import History, generate_history, splits
from tests.properties.replay import ALGORITHMS, SPARK, Way, ending_problem_of, problem_of, reproduction
from tests.properties.shrink import PATIENCE, shrink
from tidelog.execute.spark import settings

PLACES = HERE, NEVER_HERE = "", "0"  # small state is in this process, or all of it in Spark
FIXPOINTS = ("auto", *(way for way in settings.Way if way is not settings.Way.frames))


@dataclass(frozen=True)
class Failure:
    """A case that fails, made small."""

    seed: int
    way: Way
    problem: str
    script: str

    def __str__(self) -> str:
        how = f"algorithm {self.way.algorithm}, engine {self.way.engine}"
        if self.way.engine == SPARK:
            how += f" (fixpoint {self.way.fixpoint}, process {self.way.process or 'as it is'})"
        return f"history {self.seed}, {how}: {self.problem}\n\n{self.script}"


def ways_of(seed: int, algorithm: str | None = None, engine: str | None = None) -> list[Way]:
    """How the history of a seed is replayed: algorithms take turns from seed to seed, unless given.

    The reference is slow, so it has every second history, and is half a turn ahead. Spark has to be asked
    for.
    """
    if engine == SPARK:
        return [spark_way(seed, algorithm, PLACES[seed % 2])]
    count = len(ALGORITHMS)
    ways = [Way(algorithm or ALGORITHMS[seed % count], "local")]
    if seed % 2 == 0 or engine == "substitution":
        ways.append(Way(algorithm or ALGORITHMS[(seed // 2 + count // 2) % count], "substitution"))
    return [way for way in ways if engine in (None, way.engine)]


def spark_way(seed: int, algorithm: str | None, process: str) -> Way:
    """How the history of a seed is replayed on Spark: ways of fixpoints take turns too."""
    ways = FIXPOINTS if process == NEVER_HERE else FIXPOINTS[:1]
    return Way(algorithm or ALGORITHMS[seed % len(ALGORITHMS)], SPARK, ways[seed // 2 % len(ways)], process)


def failure_of(
    seed: int, algorithm: str | None = None, engine: str | None = None, patience: float = PATIENCE
) -> Failure | None:
    """The first failure of the history of a seed: as it is, then (every third) split into other commits."""
    history = generate_history(seed)
    expected = Expected(history)
    for way in ways_of(seed, algorithm, engine):
        if (problem := problem_of(history, way, expected)) is not None:
            return made_small(history, way, problem, patience)
    if seed % 3 == 0:
        turn = seed // 3
        split = splits(history)[turn // len(ALGORITHMS) % 3]
        [way, *_] = ways_of(turn, algorithm, engine)
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
