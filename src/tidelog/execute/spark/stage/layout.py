"""Rows of several relations in one table: what a stage's tasks are fed with, and what they yield.

A stage has one input and one output, so rows of all relations lie in common columns: for each place
`i` in a row an integer `n<i>`, a number with a fraction `d<i>` and a text `s<i>`, as far as some
relation needs them; which one is meant follows from the type of the relation's column. `relation` is
the number of the row's relation. A row with the number -1 is a task telling what it did, in `said`.

The driver and Python workers both use this module, so it imports nothing of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tidelog.execute.spark.cells import representation
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

SAID = -1
BATCH = 100_000  # rows
KINDS = {
    "boolean": "n", "long": "n", "float": "d", "double": "d", "decimal": "s", "digits": "s", "string": "s",
}  # fmt: skip
SPARK_TYPES = {"n": "bigint", "d": "double", "s": "string"}


class Layout:
    """The common columns of some relations."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        self.relations = tuple(relations)
        self.numbers = {relation.name: number for number, relation in enumerate(relations)}
        self.columns = {relation.name: _columns(relation) for relation in relations}
        self.names = sorted({name for names in self.columns.values() for name in names})

    @property
    def ddl(self) -> str:
        """The columns, as Spark writes a schema."""
        common = [f"{name} {SPARK_TYPES[name[0]]}" for name in self.names]
        return ", ".join(["relation int", *common, "said string"])

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow has them."""
        import pyarrow as pa

        types = {"n": pa.int64(), "d": pa.float64(), "s": pa.string()}
        common = [(name, types[name[0]]) for name in self.names]
        return pa.schema([("relation", pa.int32()), *common, ("said", pa.string())])

    # --- in tasks -------------------------------------------------------------------

    def tables(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a batch by relation, as they cross the seam (`program.arrow`)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = batch.column("relation")
        present = pc.unique(numbers).to_pylist()
        for number in present:
            relation = self.relations[number]
            rows = batch if len(present) == 1 else batch.filter(pc.equal(numbers, number))
            schema = arrow_schema(relation)
            arrays = [
                rows.column(name).cast(type)
                for name, type in zip(self.columns[relation.name], schema.types, strict=True)
            ]
            yield relation.name, pa.table(arrays, schema=schema)

    def batches(self, name: str, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """A relation's rows, as they cross the seam, in common columns."""
        import pyarrow as pa

        schema = self.schema
        number = pa.scalar(self.numbers[name], pa.int32())
        for batch in table.to_batches(max_chunksize=BATCH):
            own = dict(zip(self.columns[name], batch.columns, strict=True))
            arrays = [pa.repeat(number, batch.num_rows)]
            for field in list(schema)[1:]:
                column = own.get(field.name)
                arrays.append(
                    pa.nulls(batch.num_rows, field.type) if column is None else column.cast(field.type)
                )
            yield pa.record_batch(arrays, schema=schema)

    def say(self, what: Mapping[str, object]) -> pa.RecordBatch:
        """What a task tells the driver."""
        import pyarrow as pa

        arrays = [pa.nulls(1, field.type) for field in self.schema]
        arrays[0] = pa.array([SAID], pa.int32())
        arrays[-1] = pa.array([json.dumps(what)], pa.string())
        return pa.record_batch(arrays, schema=self.schema)


def _columns(relation: Relation) -> list[str]:
    """The common columns of a relation; that of the hidden column where it has none of its own."""
    kinds = [KINDS[representation(column.type)] for column in relation.columns] or ["n"]
    return [f"{kind}{i}" for i, kind in enumerate(kinds)]
