"""DataFrames that a transaction was given, computed, and their rows where they are wanted.

A DataFrame is computed once. Its rows are in Spark then, and how many there are is known before any of them
is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tidelog.io.plain import Row, rows_of_table
from tidelog.program.model import Relation
from tidelog.session.backend import Operation
from tidelog.session.frames.given import GivenFrame

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import SparkSession
    from tidelog.execute.spark.state import Rows


@dataclass(frozen=True)
class Computed:
    """The rows of a DataFrame, in Spark; those of a DataFrame of changes say whether they come or go."""

    operation: Operation
    rows: Rows
    of_changes: bool

    def there(self) -> list[Operation]:
        """What is to be done, with rows in Spark."""
        if not self.of_changes:
            return [self.operation._replace(rows=cast("pa.Table", self.rows))]
        from tidelog.execute.spark.state import split_changes

        come, gone = split_changes(self.rows)
        return self._gone_and_come(cast("pa.Table", gone), cast("pa.Table", come))

    def here(self) -> list[Operation]:
        """What is to be done, with rows in this process."""
        if not self.of_changes:
            return [self.operation._replace(rows=self.rows.table())]
        return self._gone_and_come(*changes_here(self.rows))

    def _gone_and_come(self, gone: pa.Table, come: pa.Table) -> list[Operation]:
        return [
            self.operation._replace(insert=False, rows=gone),
            self.operation._replace(insert=True, rows=come),
        ]


Given = Sequence[Operation | Computed]


def computed(
    spark: SparkSession, operations: Iterable[Operation], relations: Mapping[str, Relation]
) -> Given:
    """Operations with DataFrames computed; those for relations that are not there are left out.

    Raises DataError for values that do not fit, or when Spark cannot compute one.
    """
    found: list[Operation | Computed] = []
    for operation in operations:
        rows: object = operation.rows
        if not isinstance(rows, GivenFrame):
            found.append(operation)
        elif operation.relation in relations:
            done = rows.computed(spark, relations[operation.relation])
            found.append(Computed(operation, done, rows.of_changes))
    return found


def given_rows(given: Given) -> int:
    """The number of rows of DataFrames."""
    return sum(one.rows.size for one in given if isinstance(one, Computed))


def here(given: Given) -> list[Operation]:
    """Operations with all rows in this process."""
    return [o for one in given for o in (one.here() if isinstance(one, Computed) else [one])]


def there(given: Given) -> list[Operation]:
    """Operations with the rows of DataFrames in Spark."""
    return [o for one in given for o in (one.there() if isinstance(one, Computed) else [one])]


def changes_here(rows: Rows) -> tuple[pa.Table, pa.Table]:
    """The rows that go and those that come; of each fact the last change counts (`schema.last_changes`)."""
    import pyarrow as pa

    from tidelog.execute.spark.schema import ADDED, VERSION
    from tidelog.execute.spark.types import from_cells

    frame = rows.read()
    if frame is None:
        empty = rows.table()
        return empty, empty
    cells = frame.toArrow()
    facts = from_cells(cells, rows.relation)
    versions = cells.column(VERSION).to_pylist()
    added = cells.column(ADDED).to_pylist()
    last: dict[Row, tuple[tuple[bool, int, bool], int]] = {}
    for place, row in enumerate(map(stored, rows_of_table(facts, rows.relation.columns))):
        version = versions[place]
        word = (version is not None, version or 0, added[place])
        if row not in last or last[row][0] < word:
            last[row] = (word, place)
    sides: tuple[list[int], list[int]] = ([], [])
    for word, place in last.values():
        sides[word[2]].append(place)
    gone, come = (facts.take(pa.array(side, pa.int64())) for side in sides)
    return gone, come


def stored(row: Row) -> Row:
    """A row as what it is stored as: NaN is one value, 0.0 and -0.0 are two."""
    return tuple(value.hex() if isinstance(value, float) else value for value in row)
