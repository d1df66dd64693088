"""A driver for tests on a cluster: `python -m tests.execute.spark.cluster_driver MASTER DIRECTORY`.

Two tasks share a long fixpoint: where executors have one core each, it goes over two of them. What
happens is told line by line, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tidelog
from tests.spark_session import JAVA, SETTINGS
from tidelog.execute.spark.session import start

CHAIN = 5_000
PROGRAM = """
.decl begin(x: number)
.decl next(x: number, y: number)
.decl reach(x: number)
reach(x) :- begin(x).
reach(y) :- reach(x), next(x, y).
"""


def say(what: str, **more: object) -> None:
    print(json.dumps({"what": what, **more}), flush=True)


def under_way(moment: tidelog.Moment) -> None:
    say("round", round=moment.round, tuples=moment.tuples)


def main(master: str, directory: Path) -> None:
    settings = {
        **SETTINGS,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.executor.memory": "512m",
        "spark.tidelog.checkpoint": "1",
        "spark.tidelog.fixpoint": "barrier",
        "spark.tidelog.process": "0",
        "spark.tidelog.tasks": "2",
        "spark.tidelog.work": str(directory / "work"),
    }
    spark = start(directory, master, settings, JAVA)
    try:
        with tidelog.Database(PROGRAM, spark=spark, watch=under_way) as db:
            edges = spark.range(CHAIN).selectExpr("id as x", "id + 1 as y")
            db.commit(insert={"begin": [(0,)], "next": edges})
            [found] = db["reach"].to_spark().selectExpr("count(*)", "min(x)", "max(x)").collect()
            say("done", found=list(found), way=db.report.strata[-1].way)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
