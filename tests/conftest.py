"""What tests of several layers share: the executors, and one Spark session for all of them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import spark_session
from tidelog.execute import open_executor
from tidelog.plan.executor import Executor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure() -> None:
    """Hear Ctrl-C, which some tests press: a job in the background of a shell is deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest --connect` runs tests that need Spark over Spark Connect."""
    parser.addoption("--connect", action="store_true", help="the Spark session is one of Spark Connect")


# Tests of Spark that need no kernels. They come first: the process beside them compiles these meanwhile.
WITHOUT_KERNELS = ("test_executor.py", "test_expressions.py", "test_lower.py")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the Spark session: `make test` runs them in one process, others in another."""
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: not (item.path.parent.name == "spark" and item.path.name in WITHOUT_KERNELS))


def _needs_spark(item: pytest.Item) -> bool:
    """By its fixtures, or as a page of the documentation that starts a session."""
    given = getattr(item, "callspec", None)
    values = [] if given is None else given.params.values()
    pages = [value for value in values if isinstance(value, Path) and value.suffix == ".md"]
    return (
        "spark" in getattr(item, "fixturenames", ())
        or any(isinstance(value, str) and value == "spark" for value in values)
        or any("SparkSession" in page.read_text(encoding="utf-8") for page in pages)
    )


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small session for the whole run, with its files in a temporary directory."""
    connect = request.config.getoption("--connect")
    if reason := spark_session.missing(connect=connect):
        pytest.skip(reason)
    begin = spark_session.connected if connect else spark_session.classic
    session = begin(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def classic(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """The session, for a test that looks into the driver's JVM, which is out of reach over Spark Connect."""
    if request.config.getoption("--connect"):
        pytest.skip("looks into the driver's JVM")
    return spark


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
