"""What a commit changes in a relation, kept as cells and decoded when it is read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from tidelog.execute.local.memory import Cells
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

ToTable = Callable[[Relation, Cells], "pa.Table"]


class CellDelta:
    """The tuples that a commit takes away and adds; cells mean the same for ever."""

    def __init__(self, relation: Relation, lost: Cells, gained: Cells, to_table: ToTable) -> None:
        self._relation, self._lost, self._gained, self._to_table = relation, lost, gained, to_table

    @property
    def deleted_count(self) -> int:
        """The number of tuples taken away."""
        return len(self._lost)

    @property
    def inserted_count(self) -> int:
        """The number of tuples added."""
        return len(self._gained)

    @cached_property
    def deleted(self) -> pa.Table:
        """The tuples taken away."""
        return self._to_table(self._relation, self._lost)

    @cached_property
    def inserted(self) -> pa.Table:
        """The tuples added."""
        return self._to_table(self._relation, self._gained)
