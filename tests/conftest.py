"""What tests of several layers share: the executors, and one Spark session for all of them."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tidelog.execute import open_executor
from tidelog.plan.executor import Executor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small session for the whole run, with its files in a temporary directory."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("needs pyspark: pip install 'tidelog[spark]'")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17 or later")
    from tidelog.execute.spark.session import start

    # Relations in tests are tiny: compiling would take longer than running.
    settings = {
        "spark.default.parallelism": "2",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    java_options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    session = start(tmp_path_factory.mktemp("spark"), "local[2]", settings, java_options)
    yield session
    session.stop()


@pytest.fixture(params=["local", "substitution", "spark"])
def executor(request: pytest.FixtureRequest) -> Callable[[], Executor]:
    """Opens a new, empty executor; a test that asks for it runs once for each kind."""
    if request.param == "spark":
        return partial(open_executor, "spark", spark=request.getfixturevalue("spark"))
    return partial(open_executor, request.param)


@pytest.fixture(params=["local", "substitution"])
def evaluator(request: pytest.FixtureRequest) -> Callable[[], Executor]:
    """Like `executor`, for the two rule evaluators that run in process."""
    return partial(open_executor, request.param)
