"""The two places where a database with a Spark session keeps its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.tidelog.process"


@pytest.fixture
def process(spark: SparkSession) -> Iterator[Callable[[int], None]]:
    """Says how many tuples databases opened from now on may keep in this process."""
    yield lambda limit: spark.conf.set(SETTING, str(limit))
    spark.conf.unset(SETTING)


@pytest.fixture
def on_spark(process: Callable[[int], None]) -> None:
    """Databases keep their answers on Spark from the beginning."""
    process(0)


@pytest.fixture(params=["in this process", "on Spark"])
def place(request: pytest.FixtureRequest, process: Callable[[int], None]) -> str:
    """Where databases keep their answers; a test that uses this runs once for each."""
    if request.param == "on Spark":
        process(0)
    return str(request.param)
