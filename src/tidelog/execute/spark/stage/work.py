"""What a stage's tasks do with the rows they are fed: functions that Spark calls in Python workers.

Each is made on the driver, pickled, and called once for each task with an iterator over batches in
common columns (`layout`); it yields batches in common columns, the last of which says what was done.
Modules of Spark are imported only where a task runs.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tidelog.execute.spark.stage.layout import Layout
from tidelog.plan.executor import Fixpoint, TaskReport
from tidelog.plan.placement import Distribution
from tidelog.program.model import Relation
from tidelog.syntax.errors import EvaluationError

if TYPE_CHECKING:
    import pyarrow as pa

Work = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
FAILED = "tidelog-failure-in-task:"


def alone(layout: Layout, task: Fixpoint, relations: Mapping[str, Relation], threads: int) -> Work:
    """A whole fixpoint over the rows that a task is given: it yields what is new."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tidelog.execute.local.executor import LocalExecutor

        executor = LocalExecutor(threads)
        try:
            for relation in relations.values():
                executor.create(relation)
            for batch in batches:
                for name, table in layout.tables(batch):
                    executor.insert(name, table)
            before = {name: executor.size(name) for name in task.relations}
            report = _explained(lambda: executor.run(task))
            new: dict[str, int] = {}
            for name in task.relations:
                table = executor.table(name).slice(before[name])
                new[name] = table.num_rows
                yield from layout.batches(name, table)
            yield layout.say(_said(report, new))
        finally:
            executor.close()

    return work


def shared(layout: Layout, distribution: Distribution, secret: bytes) -> Work:
    """A share of a fixpoint: tasks that run at the same time send each other what they derive."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        from tidelog.execute.spark.tasks.exchange import Exchange
        from tidelog.execute.spark.tasks.share import Share

        context = BarrierTaskContext.get()
        me = context.partitionId()
        host = context.getTaskInfos()[me].address.rsplit(":", 1)[0]
        exchange = Exchange(host, secret)
        try:
            addresses = context.allGather(exchange.address)
            exchange.connect(addresses, me)
            share = Share(distribution, me, len(addresses), exchange)
            try:
                for batch in batches:
                    for name, table in layout.tables(batch):
                        share.load(name, table)
                report = _explained(share.run)
                new: dict[str, int] = {}
                for name, table in share.answers():
                    new[name] = new.get(name, 0) + table.num_rows
                    yield from layout.batches(name, table)
                yield layout.say(_said(report, new))
            finally:
                share.close()
        finally:
            exchange.close()

    return work


def _explained(run: Callable[[], TaskReport]) -> TaskReport:
    """Let a failing rule be an error whose message the driver can read (`failure`)."""
    try:
        return run()
    except EvaluationError as error:
        raise RuntimeError(f"{FAILED}{pickle.dumps(error).hex()};") from None


def failure(error: Exception) -> EvaluationError | None:
    """The failing rule that a Spark error tells of, if it tells of one."""
    found = re.search(f"{FAILED}([0-9a-f]+);", str(error))
    return None if found is None else pickle.loads(bytes.fromhex(found[1]))


def is_missing(error: Exception) -> bool:
    """Whether a Spark error tells that the Python of its workers has no Tidelog."""
    return "No module named 'tidelog" in str(error)


def _said(report: TaskReport, new: dict[str, int]) -> dict[str, object]:
    return {"rounds": report.rounds, "new": new, "instances": report.instances}
