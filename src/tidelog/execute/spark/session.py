"""Spark sessions: the caller's, or one of our own.

A session of our own belongs to all executors of the process that need one and stops
when the last of them is closed; `opened` is one for a command, which says where Spark is.
What it writes goes to a directory of its own, which goes with it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from tidelog.syntax.errors import TidelogError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTEAD = "or run without Spark, in this process: --engine local"
_BAD_MASTER = ("Master must either be", "Could not parse Master URL", "Invalid master URL")  # what Spark says


class _Own:
    """The session that we made, if there is one, and how many use it."""

    session: SparkSession | None = None
    directory: Path | None = None
    users = 0


def require_pyspark() -> None:
    """Fail with what to install, unless PySpark is there."""
    try:
        with warnings.catch_warnings():
            # PySpark imports the second one sooner or later, and it warns of a pandas that we do not use.
            warnings.simplefilter("ignore", FutureWarning)
            import pyspark.sql
            import pyspark.testing.utils  # noqa: F401
    except ImportError:
        raise UnsupportedError(
            "error[TL0602]: the Spark engine needs PySpark, and it is not installed\n"
            f"  = hint: pip install 'tidelog[spark]', {_INSTEAD}"
        ) from None


def require_java() -> None:
    """Fail with what to install, unless Java is there: a session that is started here needs it."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        looked = f"there is no `java` in JAVA_HOME, {home}/bin" if home else "there is no `java` on the PATH"
        raise UnsupportedError(
            "error[TL0603]: the Spark engine needs Java 17 or later, and it is not installed\n"
            f"  = note: {looked}\n"
            "  = hint: install it (apt install openjdk-17-jre-headless, brew install openjdk@17) and put "
            f"`java` on the PATH or set JAVA_HOME, {_INSTEAD}"
        )


def check_session(spark: object) -> None:
    """Raise TidelogError for what is no session, of this process or of Spark Connect, or has been stopped."""
    kinds = [kind for kind in type(spark).__mro__ if kind.__name__ == "SparkSession"]
    if not any(kind.__module__.startswith("pyspark.sql") for kind in kinds):
        raise TidelogError(f"error[TL0619]: spark is {type(spark).__name__}, and should be a SparkSession")
    session = cast("Any", spark)
    connected = hasattr(type(session), "is_stopped")
    if session.is_stopped if connected else session.sparkContext._jsc is None:
        raise TidelogError(
            "error[TL0619]: the Spark session has been stopped\n"
            "  = hint: what was kept in it is gone; make a new session, and a new Database with it"
        )


def acquire() -> SparkSession:
    """A session for an executor that was given none: the one that is there already, or our own."""
    require_pyspark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        present = SparkSession.active()  # of this thread, or the default one
    except PySparkRuntimeError:
        present = None
    if present is not None and _Own.session is None:
        return present
    if _Own.session is None:
        directory = Path(tempfile.mkdtemp(prefix="tidelog-spark-"))
        try:
            _Own.session = connect(directory) if "SPARK_REMOTE" in os.environ else start(directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        _Own.directory = directory
    _Own.users += 1
    return _Own.session


def release(session: SparkSession) -> None:
    """Give back what `acquire` gave; a session of our own stops with its last user."""
    if session is not _Own.session:
        return
    _Own.users -= 1
    if _Own.users == 0:
        session.stop()
        if _Own.directory is not None:
            shutil.rmtree(_Own.directory, ignore_errors=True)
        _Own.session = _Own.directory = None


@contextmanager
def opened(
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    cores: int | None = None,
) -> Iterator[SparkSession]:
    """A session for one command, which stops with it: of a cluster, a Connect server, or started here.

    Without a place it is the server that SPARK_REMOTE names, else all cores of this machine or some of them.
    """
    require_pyspark()
    remote = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    if master is not None:
        os.environ.pop("SPARK_REMOTE", None)  # which PySpark would follow all the same
    with tempfile.TemporaryDirectory(prefix="tidelog-spark-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        if remote is not None:
            session = connect(directory, remote, settings)
        else:
            session = start(directory, master or f"local[{cores or '*'}]", settings)
        try:
            yield session
        finally:
            session.stop()


def connect(
    directory: Path, remote: str | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """A session with a Spark Connect server (SPARK_REMOTE names it), which has settings of its own."""
    from pyspark.sql import SparkSession

    if (remote or os.environ.get("SPARK_REMOTE", "")).startswith("local"):  # it starts a server here
        require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tidelog")
    if remote is not None:
        builder = builder.remote(remote)
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    with _errors_into(directory / "spark.log"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pandas that we do not use
        return builder.getOrCreate()


def start(
    directory: Path,
    master: str = "local[*]",
    settings: Mapping[str, str] = MappingProxyType({}),
    java_options: str = "",
) -> SparkSession:
    """A new session that is quiet and keeps its files in `directory`.

    `local[*]` is Spark in one process, with all cores of the machine, as someone who asks for Spark
    expects; tests ask for `local[2]`, so that they do the same everywhere. A cluster has settings of its own.
    """
    require_pyspark()
    require_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers have the packages that we have
    java = f"-Djava.io.tmpdir={directory} -XX:-UsePerfData {java_options}"
    given = dict(settings)
    java += " " + given.pop("spark.driver.extraJavaOptions", "")
    here = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.sql.adaptive.enabled": "false",  # on one machine it only lengthens the many short rounds
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.appName("tidelog").master(master)
    for name, value in {
        "spark.driver.extraJavaOptions": java,
        "spark.ui.showConsoleProgress": "false",
        **(here if master.startswith("local") else {}),
        **given,
    }.items():
        builder = builder.config(name, value)
    with _errors_into(directory / "spark.log", master):
        return builder.getOrCreate()


@contextmanager
def _errors_into(path: Path, master: str = "") -> Iterator[None]:
    """Let processes started meanwhile write their errors to a file: Java is never quiet on its own."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    except Exception as error:
        said = path.read_text(encoding="utf-8", errors="replace")
        if any(text in f"{error}\n{said}" for text in _BAD_MASTER):
            raise UnsupportedError(
                f"error[TL0604]: Spark does not start: it does not understand the master {master!r}\n"
                "  = hint: local, local[4], spark://HOST:PORT, yarn and k8s://https://HOST:PORT are such"
            ) from None
        said = said[-2000:].strip()
        hint = f"  = hint: Spark needs Java 17 or later and room to work, {_INSTEAD}"
        raise UnsupportedError(f"error[TL0604]: Spark does not start: {error}\n{said}\n{hint}") from error
    finally:
        os.dup2(kept, 2)
        os.close(kept)
