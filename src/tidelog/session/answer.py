"""The tuples of a relation, as they were when asked for.

An answer is a snapshot: a later commit does not change it. It costs nothing until it is
looked at; the database fixes the answers still in use before it moves on. Where Spark has the
tuples they stay there until somebody asks for rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, cast

from tidelog.io.nested import Outward, outward_rows, outward_table
from tidelog.io.values import accept, text_int
from tidelog.program.arrow import is_text
from tidelog.program.model import Relation
from tidelog.session.frames.given import no_frames
from tidelog.session.frames.held import InSpark, taken_there
from tidelog.session.report import html_table, shown_row, text_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame, SparkSession

MOST_SHOWN = 20


class Answer:
    """The tuples of one relation: iterate it, or turn it into a table. Always in sorted order."""

    def __init__(
        self,
        relation: Relation,
        size: int,
        fetch: Callable[[], pa.Table | InSpark],
        lock: AbstractContextManager[object],
        spark: object | None = None,
    ) -> None:
        """`spark` is the session that the database was given, if it was."""
        self.relation = relation
        self._spark = cast("SparkSession | None", spark)
        self._size = size
        self._fetch = fetch
        self._lock = lock  # the database's: held while it replaces the engine
        self._table: pa.Table | None = None
        self._rows: InSpark | None = None  # instead of a table, until one is asked for
        self._is_sorted = False

    def freeze(self) -> None:
        """Take the tuples out of the engine now; called before the engine changes."""
        if self._table is None and self._rows is None:
            with self._lock:
                # Looked at again: a commit may have frozen this answer, and closed the engine, meanwhile.
                if self._table is None and self._rows is None:
                    found = self._fetch()
                    if isinstance(found, InSpark):
                        self._rows = found
                    else:
                        self._table = found

    def _taken(self) -> pa.Table:
        self.freeze()
        if self._table is None:
            assert self._rows is not None
            self._table = self._rows.table()
        return self._table

    def held(self, *, there: bool = False) -> pa.Table | InSpark:
        """The tuples where they are, in no order; or in Spark, if `there` and the database has a session."""
        self.freeze()
        if self._rows is not None and (there or self._table is None):
            return self._rows
        if there and self._spark is not None:
            return taken_there(self._spark, self.relation, self._taken())
        return self._taken()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Outward]:
        if not self.relation.columns:
            return iter([()] * self._size)
        return outward_rows(self.table(), self.relation.columns)

    def __contains__(self, row: object) -> bool:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = self.relation.columns
        if not isinstance(row, (tuple, list)) or len(row) != len(columns):
            return False
        if not columns:
            return self._size > 0
        try:
            cells = [accept(value, column.type) for value, column in zip(row, columns, strict=True)]
        except ValueError:
            return False
        self.freeze()
        if self._table is None and self._rows is not None:
            return self._rows.has(cells)
        mask = None
        for cell, array in zip(cells, self._taken().columns, strict=True):
            # NaN equals itself as a stored value.
            hit = pc.is_nan(array) if cell != cell else pc.equal(array, pa.scalar(cell, array.type))
            mask = hit if mask is None else pc.and_(mask, hit)
        return bool(pc.any(mask).as_py())

    def to_list(self) -> list[Outward]:
        """All tuples, in order."""
        return list(self)

    def to_arrow(self) -> pa.Table:
        """An Arrow table; integers of more than 64 bits are their decimal text."""
        return outward_table(self.table(), self.relation)

    def table(self) -> pa.Table:
        """The tuples in order, as they cross the seams of the engine (`program.arrow`)."""
        table = self._taken()
        if not self._is_sorted:
            from tidelog.io.sort import sorted_table

            self._table, self._is_sorted = sorted_table(table, self.relation.columns), True
        return self._table

    def to_spark(self) -> DataFrame:
        """A Spark DataFrame, in no order; unsigned 64-bit integers are decimals, longer ones are text.

        Only where the database was given a Spark session; what is in Spark already stays there.
        """
        self.freeze()
        if self._rows is not None:
            return self._rows.frame()
        if self._spark is None:
            raise no_frames(
                f"{self.relation.name} is not in a Spark session of yours",
                "Database(program, spark=session) keeps it there; "
                "session.createDataFrame(answer.to_arrow()) brings it there",
            )
        return taken_there(self._spark, self.relation, self._taken()).frame()

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame; integers of more than 64 bits are Python integers."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        for column in self.relation.columns:
            if is_text(column.type):
                frame[column.name] = frame[column.name].map(text_int).astype(object)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame; integers of more than 64 bits are their decimal text."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __repr__(self) -> str:
        columns = ", ".join(f"{c.name}: {c.type}" for c in self.relation.columns)
        heading = f"{self.relation.name}({columns}): {_counted(self._size)}"
        if not self.relation.columns or not self._size:
            return heading
        names = [c.name for c in self.relation.columns]
        lines = [heading, text_table(names, self._shown())]
        if self._size > MOST_SHOWN:
            lines.append(f"... {self._size - MOST_SHOWN:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        caption = f"{self.relation.name}: {_counted(self._size)}"
        if self._size > MOST_SHOWN and self.relation.columns:
            caption += f", the first {MOST_SHOWN} shown"
        return html_table([f"{c.name}: {c.type}" for c in self.relation.columns], self._shown(), caption)

    def _shown(self) -> list[tuple[str, ...]]:
        self.freeze()
        if self._table is None and self._rows is not None and self.relation.columns:
            first = self._rows.first(MOST_SHOWN)
            return [shown_row(row) for row in outward_rows(first, self.relation.columns)]
        return [shown_row(row) for row in islice(self, MOST_SHOWN)]


def _counted(size: int) -> str:
    return f"{size:,} tuple{'' if size == 1 else 's'}"
