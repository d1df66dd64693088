"""The Spark session of a test run: small, and with its files in one directory.

A process has classic sessions or those of Spark Connect, never both.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Relations in tests are tiny: compiling would take longer than running.
SETTINGS = {
    "spark.default.parallelism": "2",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def missing(*, connect: bool = False) -> str | None:
    """What has to be installed before Spark can start here; None if nothing has to."""
    if importlib.util.find_spec("pyspark") is None:
        return "needs pyspark: pip install 'tidelog[spark]'"
    if connect and importlib.util.find_spec("grpc") is None:
        return "needs the client of Spark Connect: pip install 'tidelog[connect]'"
    return "needs Java 17 or later" if shutil.which("java") is None else None


def classic(directory: Path) -> SparkSession:
    """A session whose driver is in a JVM of this process."""
    from tidelog.execute.spark.session import start

    return start(directory, "local[2]", SETTINGS, JAVA)


def connected(directory: Path) -> SparkSession:
    """A session with a Connect server that starts with it, on the port that such servers have."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    java = f"-Djava.io.tmpdir={directory} -XX:-UsePerfData {JAVA}"
    builder = SparkSession.builder.remote("local[2]")
    for name, value in {
        **SETTINGS,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the server has these settings, the client cannot
        return builder.getOrCreate()
