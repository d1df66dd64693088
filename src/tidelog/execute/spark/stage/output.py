"""How tuples get out of tasks.

Through Spark: rows in common columns (`layout`), which Spark turns into rows of its own and stores. Or, where
there is a work directory, as Parquet files in it, which Spark reads when somebody asks for the tuples;
what is not worth a file is sent to the driver along with what the task says. The files have random
names and are told of by the task that wrote them: those of an attempt that failed count for nothing.

The driver and Python workers both use this module, so it imports nothing of Spark.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.execute.spark.cells import arrow_cell_type
from tidelog.execute.spark.place import Place
from tidelog.execute.spark.stage.layout import Layout
from tidelog.program.model import Relation
from tidelog.program.types import BOOL

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 1 << 22  # bytes that all tasks of a stage together may send to the driver
GROUP = 1 << 20  # rows of a file that are read by one task at least


class Voice(Protocol):
    """What a task can tell the driver something by."""

    def say(self, what: Mapping[str, object]) -> pa.RecordBatch:
        """Tell the driver something."""


class Outlet(Voice, Protocol):
    """Where a task puts what it has to give: batches that it yields to Spark."""

    ddl: str  # the columns of the batches
    keys: Sequence[str]  # columns by which they can be spread
    place: Place | None  # a directory of the stage, if it has one

    def tuples(self, name: str, pieces: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Give the new tuples of a relation."""


class ThroughSpark:
    """Tuples as rows that Spark stores."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.ddl = layout, layout.ddl
        self.keys: Sequence[str] = layout.names
        self.place: Place | None = None

    def tuples(self, name: str, pieces: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Give the new tuples of a relation."""
        for piece in pieces:
            yield from self.layout.batches(name, piece)

    def say(self, what: Mapping[str, object]) -> pa.RecordBatch:
        """Tell the driver something."""
        return self.layout.say(what)


class IntoFiles:
    """Tuples as files in a stage's directory, if they are more than a few."""

    ddl = "told string, rows binary"
    keys: Sequence[str] = ("told",)

    def __init__(self, layout: Layout, place: Place, tasks: int) -> None:
        self.layout = layout
        self.place: Place | None = place
        self._few = FEW // (tasks * len(layout.relations))

    def tuples(self, name: str, pieces: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Give the new tuples of a relation."""
        import pyarrow as pa

        relation = self.layout.relations[self.layout.numbers[name]]
        tables = (cells_of(relation, piece) for piece in pieces if piece.num_rows)
        few: list[pa.Table] = []
        for table in tables:
            few.append(table)
            if sum(held.nbytes for held in few) > self._few:
                yield self._told({"relation": name, **self._written(relation, chain(few, tables))})
                return
        if few:
            yield self._told({"relation": name}, serialized(pa.concat_tables(few)))

    def _written(self, relation: Relation, tables: Iterable[pa.Table]) -> dict[str, object]:
        """Write tables to a new file: its name, and how many rows there are in it."""
        file = f"{self.layout.numbers[relation.name]}-{secrets.token_hex(8)}.parquet"
        assert self.place is not None
        with self.place.open(file) as stream:
            return {"file": file, "count": write_parquet(stream, tables)}

    def say(self, what: Mapping[str, object]) -> pa.RecordBatch:
        """Tell the driver something."""
        return self._told({"said": what})

    def _told(self, what: Mapping[str, object], rows: bytes | None = None) -> pa.RecordBatch:
        import pyarrow as pa

        columns = [pa.array([json.dumps(what)], pa.string()), pa.array([rows], pa.binary())]
        return pa.record_batch(columns, ["told", "rows"])


class Found:
    """What the tasks of a stage have told, as the driver gets it."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.tables: dict[str, list[pa.Table]] = {}
        self.files: dict[str, list[str]] = {}
        self.counts: dict[str, int] = {}

    def add(self, told: str, rows: bytes | None) -> None:
        """Take in a line."""
        import pyarrow as pa

        what = json.loads(told)
        if "said" in what:
            self.said.append(what["said"])
        elif rows is not None:
            self.tables.setdefault(what["relation"], []).append(pa.ipc.open_stream(rows).read_all())
        else:
            name = what["relation"]
            self.files.setdefault(name, []).append(what["file"])
            self.counts[name] = self.counts.get(name, 0) + what["count"]


def cells_of(relation: Relation, table: pa.Table) -> pa.Table:
    """A table as it crosses the seam, with the names and types that DataFrames have."""
    import pyarrow as pa

    types = [column.type for column in relation.columns] or [BOOL]
    fields = [pa.field(f"c{i}", arrow_cell_type(type), nullable=False) for i, type in enumerate(types)]
    return table.rename_columns([field.name for field in fields]).cast(pa.schema(fields))


def write_parquet(stream: pa.NativeFile, tables: Iterable[pa.Table]) -> int:
    """Write tables of cells, of which there is one at least; how many rows there are.

    Little is done to make the file small: Spark takes its size for that of the rows when it decides whether
    to send all of them to the driver for a join.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    tables = iter(tables)
    first = next(tables)
    kinds = {f.name: "snappy" if pa.types.is_string(f.type) else "none" for f in first.schema}
    with pq.ParquetWriter(
        stream,
        first.schema,
        compression=kinds,
        use_dictionary=False,
        write_statistics=False,
    ) as writer:
        for table in chain([first], tables):
            writer.write_table(table, row_group_size=GROUP)
            count += table.num_rows
    return count


def serialized(table: pa.Table) -> bytes:
    """A table as bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
