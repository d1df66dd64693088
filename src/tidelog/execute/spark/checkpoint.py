"""DataFrames without their lineage: computed once, and kept by Spark.

Where Spark runs in one process, or nothing is said, its executors keep them (`localCheckpoint`). On a
cluster these may be lost, and with them what they keep. Where a work directory is named that all
see (`spark.tidelog.work`), DataFrames are kept there, as Parquet files, and outlast any executor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.execute.spark.letting_go import is_connected, let_go, referring
from tidelog.execute.spark.place import Place, place_of
from tidelog.execute.spark.stage.workdir import work_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checkpointed(frame: DataFrame, *, eager: bool = True) -> DataFrame:
    """The DataFrame, computed once."""
    place = _work(frame.sparkSession)
    return _in_executors(frame, eager) if place is None else _in_files(frame, place)


def _work(spark: SparkSession) -> Place | None:
    """Where DataFrames are to be kept, if not in executors."""
    name = spark.conf.get("spark.tidelog.work", "")
    if not name or (spark.conf.get("spark.master", "") or "").startswith("local"):
        return None
    return place_of(name)


def _in_files(frame: DataFrame, place: Place) -> DataFrame:
    directory = work_directory(place).begin()
    try:
        frame.write.mode("append").parquet(directory.place.for_spark)
        files = [name for name in directory.place.names() if name.endswith(".parquet")]
        return directory.frame(frame.sparkSession, frame.schema, files)
    finally:
        directory.settle()


def _in_executors(frame: DataFrame, eager: bool) -> DataFrame:
    """A checkpoint by Spark itself."""
    spark = frame.sparkSession
    let_go(spark)
    done = frame.localCheckpoint(eager=eager)
    return referring(done, spark) if is_connected(done) else done
