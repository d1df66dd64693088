"""DataFrames without their lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def checkpointed(frame: DataFrame, *, eager: bool = True) -> DataFrame:
    """The DataFrame, computed once, and kept where it is computed.

    Over Spark Connect a checkpoint comes as a DataFrame of the active session, whichever made it
    (PySpark 4.3), and the server does not know it there.
    """
    done, spark = frame.localCheckpoint(eager=eager), frame.sparkSession
    if not type(done).__module__.startswith("pyspark.sql.connect") or done.sparkSession is spark:
        return done
    plan = cast("Any", done)._plan
    plan._spark_session = spark  # which is told when nobody refers to the rows any more
    return cast("DataFrame", cast("Any", type(done))(plan, spark))
