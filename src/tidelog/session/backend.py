"""What a database asks of the way in which its answers are kept: three ways stand behind this protocol.

`maintained` keeps one engine and brings its answers up to date; `placed` has two of these, one in this
process and one on Spark; `recomputed` derives everything in a new engine, for a single evaluation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tidelog.io.plain import Row
from tidelog.program.model import Relation
from tidelog.session.batches import Batch
from tidelog.session.definition import Definition
from tidelog.session.report import Reporting

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.plan.maintenance import Delta
    from tidelog.session.frames.held import InSpark


class Operation(NamedTuple):
    """Rows to be inserted or deleted; they fit the relation's columns.

    `counted` says whether the report counts those that have no effect.
    """

    insert: bool
    relation: str
    rows: Sequence[Row] | pa.Table
    counted: bool = True


Changed = Mapping[str, tuple[Relation, "Delta", tuple[int, int]]]


@dataclass(frozen=True)
class Work:
    """A commit to be made: from one definition to another (from none, the first time), and rows.

    `forgettable` are relations that are dropped if they hold nothing and nothing speaks of them any more.
    `batch` is what a commit comes from, to be kept with it.
    """

    old: Definition | None
    new: Definition
    operations: Sequence[Operation]
    version: int
    forgettable: Collection[str] = ()
    ignored_deletes: int = 0
    batch: Batch | None = None


@dataclass(frozen=True)
class Outcome:
    """What a commit comes to; `time` is when."""

    definition: Definition
    report: Reporting
    changed: Changed
    dropped: frozenset[str] = field(default_factory=frozenset)
    time: datetime = field(default_factory=lambda: datetime.now(UTC))


class Backend(Protocol):
    """Holds the answers of a database. `prepare`, then `commit` or `rollback`.

    One that works `in_place` leaves relations that a commit does not change as they are.
    """

    in_place: bool

    def prepare(self, work: Work) -> Outcome:
        """Do a commit's work; what can be read stays as it was. When it raises, `rollback` has to follow."""

    def commit(self) -> None:
        """What was prepared is what holds."""

    def rollback(self) -> None:
        """Everything is as it was before `prepare`."""

    def size(self, relation: Relation) -> int:
        """The number of tuples of a relation."""

    def table(self, relation: Relation) -> pa.Table:
        """The tuples of a relation."""

    def held(self, relation: Relation) -> pa.Table | InSpark:
        """The tuples of a relation, where they are: in Spark if they can stay there."""

    def close(self) -> None:
        """Give back what the engine holds."""
