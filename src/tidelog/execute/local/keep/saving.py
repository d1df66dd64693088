"""A relation's rows with their marks and numbers as a table, and back.

| column                  | is                                                          |
|-------------------------|-------------------------------------------------------------|
| `c0`, `c1`, ...         | the tuple, as in `program.arrow`                            |
| `explicit`              | whether it is an explicit fact; not there: all tuples are   |
| `first`, `count`        | its numbers; not there while none are kept                  |
| `iterations`, `counts`  | its trace; not there while none are kept                    |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local import memory
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep.relation import Ledger, Rows
from tidelog.execute.local.memory import Cells, Words
from tidelog.plan.parts import Mark

if TYPE_CHECKING:
    import pyarrow as pa

EXPLICIT, FIRST, COUNT, ITERATIONS, COUNTS = "explicit", "first", "count", "iterations", "counts"
NODE_CELLS = 4  # of a node of a trace: iteration, count, next, nothing (see `traces`)


def with_numbers(tuples: pa.Table, ledger: Ledger, rows: Rows) -> pa.Table:
    """Tuples, which are those of some rows, with what a ledger knows of them."""
    import pyarrow as pa

    table = tuples.rename_columns([f"c{i}" for i in range(tuples.num_columns)])
    explicit = (ledger.marks_of(rows) & np.uint16(Mark.EXPLICIT)) != 0
    table = table.append_column(EXPLICIT, pa.array(explicit))
    if ledger.record[at.NUMBERS]:
        numbers = ledger.numbers[rows]
        table = table.append_column(FIRST, pa.array((numbers >> 32).astype(np.uint32)))
        table = table.append_column(COUNT, pa.array((numbers & 0xFFFFFFFF).astype(np.uint32)))
    if ledger.record[at.TRACES]:
        ends, iterations, counts = _traces(ledger, rows)
        offsets = pa.array(ends.astype(np.int32))
        for name, values in ((ITERATIONS, iterations), (COUNTS, counts)):
            table = table.append_column(name, pa.ListArray.from_arrays(offsets, pa.array(values)))
    return table


def take_numbers(ledger: Ledger, table: pa.Table) -> None:
    """Have a ledger know of its rows what a table says, which has them in the same order."""
    names = table.column_names
    marks = memory.array_at(int(ledger.record[at.MARKS]), table.num_rows, np.uint16)
    explicit = table.column(EXPLICIT).to_numpy() if EXPLICIT in names else np.True_
    marks |= np.where(explicit, np.uint16(Mark.EXPLICIT), np.uint16(0))
    if FIRST in names:
        ledger.keep_numbers()
        first, count = (table.column(name).to_numpy().astype(np.int64) for name in (FIRST, COUNT))
        ledger.numbers[:] = first << 32 | count
    if ITERATIONS in names:
        ledger.keep_traces()
        _take_traces(ledger, *(table.column(name).combine_chunks() for name in (ITERATIONS, COUNTS)))


def _traces(ledger: Ledger, rows: Rows) -> tuple[Words, Cells, Cells]:
    """The traces of some rows, one behind the other: 0 and where each ends, and what is in them."""
    record = ledger.record
    nodes = _pool(ledger, int(record[at.TRACE_USED]))
    node = memory.array_at(int(record[at.TRACES]), int(rows.max(initial=-1)) + 1, np.uint32)[rows]
    trace = np.arange(len(rows))
    found: list[tuple[Rows, Cells]] = []
    while len(trace := trace[node != 0]):  # all first nodes, then all second ones, ...
        node = node[node != 0]
        found.append((trace, nodes[node, :2]))
        node = nodes[node, 2]
    traces = np.concatenate([np.empty(0, np.int64), *(which for which, _ in found)])
    cells = np.concatenate([np.empty((0, 2), np.uint32), *(cells for _, cells in found)])
    cells = cells[np.argsort(traces, kind="stable")]
    lengths = np.bincount(traces, minlength=len(rows))
    return np.concatenate([[0], np.cumsum(lengths)]), cells[:, 0].copy(), cells[:, 1].copy()


def _take_traces(ledger: Ledger, iterations: pa.ListArray, counts: pa.ListArray) -> None:
    ends = iterations.offsets.to_numpy().astype(np.int64) - iterations.offsets[0].as_py()
    total = int(ends[-1])
    if not total:
        return
    record = ledger.record
    record[at.TRACE_POOL] = memory.allocate_zeroed(4 * NODE_CELLS * (total + 1))
    if not record[at.TRACE_POOL]:
        raise MemoryError
    record[at.TRACE_USED] = record[at.TRACE_CAPACITY] = total + 1
    nodes = _pool(ledger, total + 1)
    nodes[1:, 0], nodes[1:, 1] = iterations.flatten().to_numpy(), counts.flatten().to_numpy()
    nodes[1:, 2] = np.arange(2, total + 2)
    some = np.flatnonzero(np.diff(ends))
    nodes[ends[some + 1], 2] = 0
    heads = memory.array_at(int(record[at.TRACES]), len(ends) - 1, np.uint32)
    heads[some] = ends[some] + 1


def _pool(ledger: Ledger, count: int) -> Cells:
    """The nodes of traces; there is no node 0."""
    cells = memory.array_at(int(ledger.record[at.TRACE_POOL]), NODE_CELLS * count, np.uint32)
    return cells.reshape(count, NODE_CELLS)
