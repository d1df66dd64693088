"""What a stage's tasks do with the rows they are fed: functions that Spark calls in Python workers.

Each is made on the driver, pickled, and called once for each task with an iterator over batches in
common columns (`layout`); it yields what an outlet makes of the new tuples (`output`), and in the end
says what was done. A task that fails in a way that it can explain says so too, and ends as others do:
it would be in vain if Spark tried it again. Modules of Spark are imported only where a task runs.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.stage.output import Outlet, Voice
from tidelog.execute.spark.stage.progress import Teller
from tidelog.plan.executor import Fixpoint, TaskReport
from tidelog.plan.placement import Distribution
from tidelog.program.model import Relation, Rule
from tidelog.syntax.errors import EvaluationError, ResourceError, TidelogError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.local.executor import LocalExecutor

Work = Callable[[Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
MOST = 1 << 20  # rows that are turned into a table at once
SHOWN = 5  # rules
MORE_MEMORY = (
    "share the work among more tasks (spark.tidelog.tasks), or leave Python workers more memory "
    "(spark.executor.memoryOverhead, spark.executor.pyspark.memory)"
)


def alone(
    layout: Layout, outlet: Outlet, task: Fixpoint, relations: Mapping[str, Relation], threads: int
) -> Work:
    """A whole fixpoint over the rows that a task is given: it yields what is new."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from tidelog.execute.local.executor import LocalExecutor

        context = TaskContext.get()
        assert context is not None
        executor = LocalExecutor(threads)
        try:
            for relation in relations.values():
                executor.create(relation)
            for batch in batches:
                for name, table in layout.tables(batch):
                    executor.insert(name, table)
            before = {name: executor.size(name) for name in task.relations}
            report = executor.run(task, Teller(outlet.place, context.partitionId()))
            new = {name: executor.size(name) - before[name] for name in task.relations}
            for name in task.relations:
                yield from outlet.tuples(name, _pieces(executor, name, before[name]))
            yield outlet.say(_said(report, new))
        finally:
            executor.close()

    rules = dict.fromkeys(form.rule for form in task.forms)
    return lambda batches: explained(outlet, tuple(rules), work(batches))


def _pieces(executor: LocalExecutor, name: str, start: int) -> Iterator[pa.Table]:
    """The tuples of a relation from a number on."""
    stored = executor.relations[name]
    for at in range(start, len(stored), MOST):
        yield executor.to_table(stored.relation, stored.cells[at : at + MOST])


def shared(
    layout: Layout,
    outlet: Outlet,
    distribution: Distribution,
    rules: Sequence[Rule],
    secret: bytes,
    checkpoint: float,
) -> Work:
    """A share of a fixpoint: tasks that run at the same time send each other what they derive.

    Where there is a directory for it, they write checkpoints, after so many seconds; 0: never.
    """
    saved = outlet.place / "checkpoints" if outlet.place is not None and checkpoint else None

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import BarrierTaskContext

        from tidelog.execute.spark.tasks.checkpoint import Checkpoints, last_chain
        from tidelog.execute.spark.tasks.exchange import Exchange
        from tidelog.execute.spark.tasks.share import Share

        context = BarrierTaskContext.get()
        me = context.partitionId()
        host = context.getTaskInfos()[me].address.rsplit(":", 1)[0]
        exchange = Exchange(host, secret)
        try:
            mine: dict[str, Any] = {"address": exchange.address, "word": token_hex(8), "chain": []}
            tasks = len(context.getTaskInfos())
            if me == 0 and saved is not None:
                mine["chain"] = last_chain(saved, tasks)
            told = [json.loads(message) for message in context.allGather(json.dumps(mine))]
            exchange.connect([one["address"] for one in told], me)
            share = Share(distribution, me, tasks, exchange)
            word, chain = told[0]["word"], told[0]["chain"]  # the first says for all where to go on from
            checkpoints = None if saved is None else Checkpoints(saved, checkpoint, word, chain)
            try:
                for batch in batches:
                    for name, table in layout.tables(batch):
                        share.load(name, table)
                report = share.run(Teller(outlet.place, me), checkpoints)
                new: dict[str, int] = {}
                for name, pieces in groupby(share.answers(), key=itemgetter(0)):
                    yield from outlet.tuples(name, _counted(name, pieces, new))
                resumed = 0 if checkpoints is None else checkpoints.resumed
                yield outlet.say({**_said(report, new), "resumed": resumed})
            finally:
                share.close()
        finally:
            exchange.close()

    return lambda batches: explained(outlet, rules, work(batches))


def _counted(name: str, pieces: Iterable[tuple[str, pa.Table]], counts: dict[str, int]) -> Iterator[pa.Table]:
    for _, table in pieces:
        counts[name] = counts.get(name, 0) + table.num_rows
        yield table


def _said(report: TaskReport, new: dict[str, int]) -> dict[str, object]:
    return {"rounds": report.rounds, "new": new, "instances": report.instances}


# --- failures --------------------------------------------------------------------


def explained(
    outlet: Voice, rules: Sequence[Rule], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a task yields; if it fails in a way that it can explain, the last thing it says is why."""
    try:
        yield from batches
    except EvaluationError as error:
        yield outlet.say(_failed(error))
    except MemoryError:
        yield outlet.say(_failed(out_of_memory(rules)))
    except TidelogError as error:
        if getattr(error, "told", None) is None:
            raise
        yield outlet.say({"because": _failed(error)["failed"]})  # another task has failed, and told so


def _failed(error: TidelogError) -> dict[str, object]:
    return {"failed": pickle.dumps(error).hex()}


def failure_said(said: Iterable[Mapping[str, Any]]) -> TidelogError | None:
    """The failure that tasks tell of, if they tell of one."""
    told = sorted((key, words[key]) for words in said for key in ("failed", "because") if key in words)
    return pickle.loads(bytes.fromhex(told[-1][1])) if told else None


def out_of_memory(rules: Sequence[Rule]) -> ResourceError:
    """A task has no memory for what some rules derive."""
    return ResourceError(f"in a Spark task, with {_shown(rules)}\n  = hint: {MORE_MEMORY}")


def worker_lost(rules: Sequence[Rule]) -> TidelogError:
    """A Python worker has ended without a word, again and again."""
    return TidelogError(
        f"error[TL0615]: a Python worker of Spark was lost, with {_shown(rules)}\n"
        "  = note: a machine that is out of memory ends processes\n"
        f"  = hint: {MORE_MEMORY}"
    )


def _shown(rules: Sequence[Rule]) -> str:
    more = [f"{len(rules) - SHOWN} more"] if len(rules) > SHOWN else []
    texts = "; ".join([*(rule.text for rule in rules[:SHOWN]), *more])
    return f"the rule{'s' if len(rules) > 1 else ''} {texts}"


def is_missing(error: Exception) -> bool:
    """Whether a Spark error tells that the Python of its workers has no Tidelog."""
    return "No module named 'tidelog" in str(error)


def is_without_slots(error: Exception) -> bool:
    """Whether a Spark error tells that the tasks of a barrier stage cannot run at once."""
    said = str(error)
    return "SPARK-24819" in said or "SPARK-24942" in said or "barrier stage that requires more slots" in said


def is_worker_lost(error: Exception) -> bool:
    """Whether a Spark error tells that a Python worker has ended without a word."""
    return "Python worker exited unexpectedly" in str(error) or "Python worker process terminated" in str(
        error
    )
