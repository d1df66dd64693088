"""Facts as Arrow tables of integers: read, drawn at random, compared without regard to order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.workloads import Facts, Workload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Words = npt.NDArray[np.uint64]

Tables = dict[str, "pa.Table"]


def read_table(facts: Facts, schema: pa.Schema) -> pa.Table:
    """A file as a table of the given schema."""
    import pyarrow.csv

    return pyarrow.csv.read_csv(
        facts.path,
        read_options=pyarrow.csv.ReadOptions(column_names=schema.names),
        parse_options=pyarrow.csv.ParseOptions(delimiter=facts.delimiter),
        convert_options=pyarrow.csv.ConvertOptions(column_types=schema),
    )


def read_tables(workload: Workload) -> Tables:
    """All facts of a workload, in the order of the files."""
    from tidelog.program.arrow import arrow_schema
    from tidelog.program.check import check
    from tidelog.syntax.parser import parse

    relations = check(parse(workload.program, workload.name)).relations
    return {name: read_table(facts, arrow_schema(relations[name])) for name, facts in workload.facts.items()}


def distinct(table: pa.Table) -> pa.Table:
    """The rows of a table, each once, in the order in which they first come."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def draw(tables: Mapping[str, pa.Table], count: int, seed: int) -> Tables:
    """So many distinct facts, drawn at random from all relations together."""
    import numpy as np

    sources = {name: distinct(table) for name, table in tables.items()}
    total = sum(table.num_rows for table in sources.values())
    chosen = np.sort(np.random.default_rng((seed, count)).choice(total, min(count, total), replace=False))
    drawn: Tables = {}
    start = 0
    for name, table in sources.items():
        end = start + table.num_rows
        here = chosen[(chosen >= start) & (chosen < end)] - start
        if len(here):
            drawn[name] = table.take(here)
        start = end
    return drawn


def every(table: pa.Table, step: int, first: int) -> pa.Table:
    """The rows number first, first + step, first + 2 x step, ... of a table, counted from 1."""
    import numpy as np

    return table.take(np.arange(first - 1, table.num_rows, step))


def checksum(table: pa.Table) -> int:
    """A number that depends on the rows of a table of integers but not on their order.

    Sums of checksums are checksums of unions: each row is hashed to 64 bits, and these are added.
    """
    import numpy as np

    hashes = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        hashes = _mix(hashes + column.to_numpy().astype(np.int64).view(np.uint64))
    return int(np.add.reduce(hashes, dtype=np.uint64))


def _mix(words: Words) -> Words:
    """The finaliser of SplitMix64, on every word."""
    import numpy as np

    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
