"""The seam: what can be asked of an executor.

Algorithms (`maintain/`) describe work as *tasks* over rules whose atoms say which
version of a relation they read. Executors run tasks and know nothing of
algorithms. Three executors stand behind this protocol: `local` (relational
algebra, compiled kernels), `spark` (relational algebra on DataFrames) and
`substitution` (the reference).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from tidelog.program.model import AggregateRule, Relation, Rule

if TYPE_CHECKING:
    import pyarrow as pa


class Version(Enum):
    """Which tuples of a relation an atom reads, in a round of a fixpoint.

    ALL is OLD and DELTA together; DELTA are the tuples first derived in the round
    before. Tuples derived in the current round are in none of them. Outside a
    fixpoint, and for relations that the fixpoint does not derive, only ALL is read.
    """

    ALL = "all"
    OLD = "old"
    DELTA = "delta"


@dataclass(frozen=True)
class RuleForm:
    """A rule read at versions: `reads[i]` is the version that body literal i reads.

    Entries for literals that are not atoms are ALL and mean nothing.
    """

    rule: Rule
    reads: tuple[Version, ...]


@dataclass(frozen=True)
class Derive:
    """Evaluate each form once, adding what is new to the heads' relations.

    No form reads a relation that a form of the same task derives. `ranks`: a fixpoint with ranks follows.
    """

    forms: tuple[RuleForm, ...]
    ranks: bool = False


@dataclass(frozen=True)
class Fixpoint:
    """Run the forms in rounds until a round derives nothing new.

    In the first round the DELTA of each of `relations` is everything it holds. With `ranks`, an
    executor that keeps answers current remembers the round of each tuple (see `plan.maintenance`), and may
    note which of them a single instance derives.
    """

    relations: tuple[str, ...]
    forms: tuple[RuleForm, ...]
    ranks: bool = False


@dataclass(frozen=True)
class Group:
    """Compute an aggregate into its (empty) head relation."""

    rule: AggregateRule


Task = Derive | Fixpoint | Group


@dataclass(frozen=True)
class Progress:
    """A moment of a running task: rounds finished and tuples derived so far.

    `share` is the part of its changes that a gradual task (see `plan.maintenance`) has taken up, or of what
    was deleted that rederivation has looked at.
    """

    round: int
    tuples: int
    share: float = 1.0


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Look at nothing."""


@dataclass
class TaskReport:
    """What a task did.

    `instances` counts, for each rule id, the rule instances considered: the
    bindings of all variables of the body for which every literal holds. A `_` in
    a positive atom is a variable here: each tuple it matches is an instance. `way` says how the
    task was run and why, where an executor has several ways.
    """

    rounds: int = 0
    new: int = 0
    instances: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    way: str = ""


class Executor(Protocol):
    """Holds the relations of one database and runs tasks over them."""

    name: str

    def create(self, relation: Relation) -> None:
        """Make an empty relation."""

    def insert(self, relation: str, rows: pa.Table) -> int:
        """Add rows (see `program.arrow` for the layout); the number that were new."""

    def clear(self, relation: str) -> None:
        """Empty a relation."""

    def run(self, task: Task, watch: Watch = unwatched) -> TaskReport:
        """Run a task. Raises EvaluationError when a rule fails on some values."""

    def size(self, relation: str) -> int:
        """The number of tuples."""

    def table(self, relation: str) -> pa.Table:
        """All tuples, in no order (see `program.arrow` for the layout)."""

    def close(self) -> None:
        """Give back what the executor holds; it is not used afterwards."""
