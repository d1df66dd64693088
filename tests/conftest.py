"""What tests of several layers share: the executors, and one Spark session for all of them."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tidelog.execute import open_executor
from tidelog.plan.executor import Executor

NO_SPARK = importlib.util.find_spec("pyspark") is None or shutil.which("java") is None


@pytest.fixture(scope="session")
def spark_session() -> Iterator[object]:
    """One small session for the whole run; skips where there is no Spark."""
    if NO_SPARK:
        pytest.skip("needs pyspark and java")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("tidelog tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["local", "substitution", "spark"])
def executor(request: pytest.FixtureRequest) -> Callable[[], Executor]:
    """Opens a new, empty executor; a test that asks for it runs once for each kind."""
    if request.param == "spark":
        return partial(open_executor, "spark", spark=request.getfixturevalue("spark_session"))
    return partial(open_executor, request.param)


@pytest.fixture(params=["local", "substitution"])
def evaluator(request: pytest.FixtureRequest) -> Callable[[], Executor]:
    """Like `executor`, for the two rule evaluators that run in process."""
    return partial(open_executor, request.param)
