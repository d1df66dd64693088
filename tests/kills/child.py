"""The process that is killed: `python -m tests.kills.child DIRECTORY [drain]` follows the streams there.

It says when it is ready. To drain is to take everything that is there and end.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kills.history import INPUTS, PROGRAM
from tests.spark_session import classic
from tidelog import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def follow(spark: SparkSession, directory: Path, *, drain: bool) -> None:
    """Follow both streams; until there is nothing more, or for ever."""
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "100000")  # what batches had is looked at later
    with Database(PROGRAM, store=directory / "store", spark=spark) as db:
        streams = []
        for relation, columns in INPUTS.items():
            schema = ", ".join(
                ["_change_type string", "_commit_version long", *(f"{c} long" for c in columns)]
            )
            reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            streams.append(
                db.stream(
                    reader.json(str(directory / "input" / relation)),
                    relation,
                    checkpoint=directory / "checkpoint" / relation,
                    feed=directory / "feed",
                    trigger="availableNow" if drain else None,
                )
            )
        print("ready", flush=True)
        for stream in streams:
            stream.awaitTermination()


def main() -> None:
    directory = Path(sys.argv[1])
    spark = classic(Path(tempfile.mkdtemp(dir=directory / "work")))
    follow(spark, directory, drain=sys.argv[2:] == ["drain"])
    spark.stop()


if __name__ == "__main__":
    main()
