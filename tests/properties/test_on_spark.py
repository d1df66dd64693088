"""Random histories of commits on Spark: every state and every change is the oracle's, wherever it is kept.

`make property ARGS="--engine spark"` runs more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.properties.cases import HERE, NEVER_HERE, spark_way
from tests.properties.expected import Expected
from tests.properties.histories import generate_history
from tests.properties.on_spark import using
from tests.properties.replay import problem_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = 100_000  # other histories than the local engine's
CASES, BATCH = 200, 25
FORCED = 6


@pytest.fixture(autouse=True)
def sessions(spark: SparkSession) -> Iterator[None]:
    with using(spark):
        yield


def check(seed: int, process: str) -> None:
    history = generate_history(seed)
    way = spark_way(seed, None, process)
    assert problem_of(history, way, Expected(history)) is None, way


@pytest.mark.parametrize("first", range(FIRST, FIRST + CASES, BATCH))
def test_small_state(first: int) -> None:
    """State that fits this process is there, and nobody sees a difference."""
    for seed in range(first, first + BATCH):
        check(seed, HERE)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + FORCED))
def test_state_on_spark(seed: int) -> None:
    """All state is in Spark, and fixpoints run there in one way after the other."""
    check(seed, NEVER_HERE)
