"""Answers kept current where that is best: in this process while they are few, on Spark from then on.

An update of a few facts takes Spark seconds and the engine in this process less than a millisecond, while
there is room. So a database begins here. A commit whose DataFrames have more rows than the limit
(`spark.tidelog.process`), or that leads to more tuples in all, is taken back here and prepared anew on
Spark, from all explicit facts: it happens as a whole or not at all, like any other. From then on all
commits are made there.

| before the commit | it leads to             | is prepared             | and committed                  |
|-------------------|-------------------------|-------------------------|--------------------------------|
| here              | no more than the limit  | here                    | here                           |
| here              | more than that          | there, in a new engine  | there; the engine here is gone |
| there             | anything                | there                   | there                          |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tidelog.execute import open_executor
from tidelog.execute.spark.delta import FrameDelta
from tidelog.execute.spark.session import acquire, check_session, release, require_pyspark
from tidelog.execute.spark.settings import PREFIX, process_limit
from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.maintain.notes import Unfit
from tidelog.maintain.update import Maintenance
from tidelog.program.model import Relation
from tidelog.session.backend import Operation, Outcome, Work
from tidelog.session.bounded import Outgrown
from tidelog.session.definition import Definition
from tidelog.session.frames.changes import FrameComparison
from tidelog.session.frames.computed import Given, computed, given_rows, here, there
from tidelog.session.frames.given import GivenFrame
from tidelog.session.frames.held import InSpark, taken_there
from tidelog.session.maintained import Maintained
from tidelog.session.on_spark import PLACE, OnSpark
from tidelog.session.report import Watch
from tidelog.session.saved import Facts, Saved
from tidelog.syntax.errors import UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import SparkSession
    from tidelog.execute.spark.state import Rows
    from tidelog.maintain.protocol import Algorithm
    from tidelog.plan.maintenance import Keeper

HERE = "in this process"


class Placed:
    """An engine in this process, until one on Spark takes its place."""

    def __init__(
        self,
        spark: object | None,
        threads: int,
        algorithm: Callable[[], str | Algorithm],
        watch: Watch | None,
    ) -> None:
        """`spark` is the caller's session; without one there is one of our own, which ends with this."""
        if spark is not None:
            require_pyspark()
            check_session(spark)
        self._given = spark
        self._session = cast("SparkSession", acquire() if spark is None else spark)
        self._threads, self._algorithm, self._watch = threads, algorithm, watch
        self._closed = False
        self.in_place = True
        try:
            self._limit = process_limit(self._session)
            self._current = self._here() if self._limit else self._there()
        except BaseException:
            self._release()
            raise
        self._next: OnSpark | None = None  # while a commit is under way that moves there

    def _here(self) -> Maintained:
        keeper = cast("Keeper", open_executor("local", threads=self._threads, keep=True))
        return Maintained(keeper, self._algorithm(), self._watch, place=HERE, limit=self._limit)

    def _there(self) -> OnSpark:
        return OnSpark(self._given, self._algorithm(), self._watch)

    @property
    def maintenance(self) -> Maintenance:
        """What brings answers up to date now."""
        return self._current.maintenance

    # --- commits ---------------------------------------------------------------------

    def prepare(self, work: Work) -> Outcome:
        """Do a commit's work, here or there."""
        if any(isinstance(operation.rows, GivenFrame) for operation in work.operations):
            check_session(self._session)
        self._check_there()
        given = computed(self._session, work.operations, work.new.relations)
        if isinstance(self._current, OnSpark):
            outcome = self._current.prepare(replace(work, operations=there(given)))
            outcome.report.placed(PLACE if self._limit else f"{PLACE}, as {PREFIX}process is 0")
            return outcome
        rows = given_rows(given)
        if rows > self._limit:
            return self._move(work, given, f"{rows:,} rows were given, more than {self._most}")
        try:
            outcome = self._current.prepare(replace(work, operations=here(given)))
        except Outgrown:
            why = f"there are more tuples than {self._most}"
        except UnsupportedError as error:
            if not str(error).startswith(("error[TL0605]", "error[TL0606]")):
                raise
            why = "the engine in this process cannot have so many rows, columns or strings"
        else:
            outcome.report.placed(f"{HERE}: there are no more tuples than {self._most}")
            return outcome
        with Uninterrupted():
            self._current.rollback()
        return self._move(work, given, why)

    @property
    def _most(self) -> str:
        return f"{self._limit:,} ({PREFIX}process)"

    def _move(self, work: Work, given: Given, why: str) -> Outcome:
        """Prepare a commit on Spark, from the explicit facts that there are here."""
        near, far = self._current, self._there()
        self._next, self.in_place = far, False
        live = work.new.live.relations
        facts = [(name, near.keeper.facts(name)) for name in near.stored if name in live]
        operations = [Operation(True, name, table, counted=False) for name, table in facts if table.num_rows]
        outcome = far.prepare(replace(work, old=None, operations=[*operations, *there(given)]))
        outcome.report.placed(f"{PLACE} from now on: {why}")
        if work.old is None:
            return outcome
        known = work.old.relations
        old = {name: self._brought(relation) for name, relation in known.items()}
        new = {name: cast("FrameDelta", delta).come for name, (_, delta, _) in outcome.changed.items()}
        changed = FrameComparison(old, new)
        far.fetch_later(changed)
        dropped = outcome.dropped | (known.keys() - outcome.definition.relations.keys())
        return replace(outcome, changed=changed, dropped=dropped)

    def _brought(self, relation: Relation) -> Callable[[], Rows]:
        """What a relation holds before the commit, to be brought to Spark when it is asked for."""
        table = self._current.table(relation)
        return lambda: taken_there(self._session, relation, table)

    def commit(self) -> None:
        """What was prepared is what holds."""
        if self._next is None:
            return self._current.commit()
        self._next.commit()
        near, self._current, self._next = self._current, self._next, None
        self.in_place = True
        near.close()

    def rollback(self) -> None:
        """Everything is as it was before `prepare`."""
        far, self._next, self.in_place = self._next, None, True
        if far is None:
            self._current.rollback()
        else:
            far.close()

    # --- reading -----------------------------------------------------------------------

    def size(self, relation: Relation) -> int:
        """The number of tuples."""
        return self._current.size(relation)

    def table(self, relation: Relation) -> pa.Table:
        """The tuples of a relation."""
        self._check_there()
        return self._current.table(relation)

    def held(self, relation: Relation) -> pa.Table | InSpark:
        """The tuples of a relation, where they are."""
        self._check_there()
        return self._current.held(relation)

    def _check_there(self) -> None:
        if isinstance(self._current, OnSpark):
            check_session(self._session)

    def fetched(self, frame: GivenFrame, relation: Relation) -> list[Operation] | None:
        """What a DataFrame says, with rows in this process; None where they are to stay in Spark."""
        if isinstance(self._current, OnSpark):
            return None
        operation = Operation(True, relation.name, cast("pa.Table", frame))
        given = computed(self._session, [operation], {relation.name: relation})
        return here(given) if given_rows(given) <= self._limit else None

    # --- from one process to another ---------------------------------------------------

    def saved(self) -> Saved | None:
        """What it holds, between commits; None: that could only be read while this session lasts."""
        return None if self._given is None and isinstance(self._current, OnSpark) else self._current.saved()

    def restore(self, definition: Definition, saved: Saved, facts: Facts) -> None:
        """Hold what was saved, where it was: here or there. Raises Unfit."""
        if saved.kind == "spark" and not isinstance(self._current, OnSpark) and self._given is not None:
            self._current.close()
            self._current = self._there()
        self._current.restore(definition, saved, facts)
        if not isinstance(self._current, OnSpark):
            tuples = sum(self._current.keeper.size(name) for name in self._current.stored)
            if tuples > self._limit:
                raise Unfit(f"there are more tuples than {self._most}")

    # --- the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Give back what the engine holds."""
        if not self._closed:
            self._closed = True
            try:
                self._current.close()
            finally:
                self._release()

    def _release(self) -> None:
        if self._given is None:
            release(self._session)
