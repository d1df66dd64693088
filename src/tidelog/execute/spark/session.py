"""Spark sessions: the caller's, or one of our own.

A session of our own belongs to all executors of the process that need one and stops
when the last of them is closed. What it writes goes to a directory of its own, which
goes with it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tidelog.syntax.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTEAD = "or use the engine in this process: --engine local"

_LOGGING = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n
"""


class _Own:
    """The session that we made, if there is one, and how many use it."""

    session: SparkSession | None = None
    directory: Path | None = None
    users = 0


def require_spark() -> None:
    """Fail with what to install, unless PySpark and Java are there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about versions of pandas, which we do not use
            import pyspark.sql  # noqa: F401
    except ImportError:
        raise UnsupportedError(
            f"the Spark engine needs PySpark: pip install 'tidelog[spark]', {_INSTEAD}"
        ) from None
    home = os.environ.get("JAVA_HOME")
    if (
        shutil.which("java", path=f"{home}/bin" if home else None) is None
        and "SPARK_REMOTE" not in os.environ
    ):
        raise UnsupportedError(
            "the Spark engine needs Java 17 or later: install it and put `java` on the PATH "
            f"or set JAVA_HOME, {_INSTEAD}"
        )


def acquire() -> SparkSession:
    """A session for an executor that was given none: the one that is active, or our own."""
    require_spark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and active is not _Own.session:
        return active
    if _Own.session is None:
        _Own.directory = Path(tempfile.mkdtemp(prefix="tidelog-spark-"))
        _Own.session = start(_Own.directory)
    _Own.users += 1
    return _Own.session


def release(session: SparkSession) -> None:
    """Give back what `acquire` gave; a session of our own stops with its last user."""
    if session is not _Own.session:
        return
    _Own.users -= 1
    if _Own.users == 0:
        session.stop()
        _Own.session = None
        if _Own.directory is not None:
            shutil.rmtree(_Own.directory, ignore_errors=True)


def start(
    directory: Path, master: str = "local[*]", settings: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """A new session that is quiet and keeps its files in `directory`."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers have the packages that we have
    logging = directory / "log4j2.properties"
    logging.write_text(_LOGGING, encoding="utf-8")
    java = f"-Dlog4j2.configurationFile={logging.as_uri()} -Djava.io.tmpdir={directory} -XX:-UsePerfData"
    builder = SparkSession.builder.appName("tidelog").master(master)
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **settings,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
