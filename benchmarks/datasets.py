"""Data sets for updates: a workload, and the updates it goes through.

An update is a commit and its reverse. Most delete facts and insert them again: facts drawn
at random from all relations, as many as in Table 2 of "Elastic incrementalization", or
every hundredth edge of a graph. There are several sets of such facts, as in the paper, and each goes and
comes once: an update that has been made before is cheaper, and nobody makes the same one again and again.
The update of `redist` was recorded: it inserts, its reverse deletes, and there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.facts import Tables, distinct, draw, every
from benchmarks.live import Change
from benchmarks.workloads import CSPA, LEFT, SAME_GENERATION, SHARED, Facts, Workload, find_workload

if TYPE_CHECKING:
    import pyarrow as pa

SETS = 5
HUNDREDTH = "hundredth"
RECORDED = "recorded"

REDIST = """\
.decl node(n: number)
.decl dependency(c: number, p: number)
.decl binding(t: number, e: number)
.input node, dependency, binding
.decl span(p: number, t: number)
.output span
span(e, t) :- binding(t, e).
span(p, t) :- dependency(c, p), span(c, t).
"""
RECORDING = SHARED / "redist" / "txn4.ops.csv"


@dataclass(frozen=True)
class DataSet:
    """A workload and the names of its updates, small ones first: a number of facts, or a word.

    `after` has the sizes of the answers after an update's first commit, where they are known.
    """

    workload: Workload
    updates: tuple[str, ...]
    after: Mapping[str, Mapping[str, int]]

    @property
    def name(self) -> str:
        return self.workload.name

    def sets(self, update: str) -> int:
        """How many sets of facts there are for an update."""
        return 1 if update == RECORDED else SETS

    def change(self, update: str, tables: Tables, seed: int, number: int) -> Change:
        """The first commit of an update with a set of facts; the second is its reverse."""
        if update == RECORDED:
            return recorded(tables)
        if HUNDREDTH in self.updates:  # a graph
            first = 100 - number * (100 // SETS)
            tables = {name: every(distinct(table), 100, first) for name, table in tables.items()}
        if update == HUNDREDTH:
            return Change(delete=tables)
        return Change(delete=draw(tables, int(update), seed + number))


def recorded(tables: Tables) -> Change:
    """The recorded transaction of `redist`; its lines are `+|-,relation,values`."""
    rows: dict[tuple[str, str], list[list[int]]] = {}
    for line in RECORDING.read_text(encoding="ascii").splitlines():
        sign, relation, *values = line.split(",")
        rows.setdefault((sign, relation), []).append([int(value) for value in values])
    changes: dict[str, Tables] = {"+": {}, "-": {}}
    for (sign, relation), found in rows.items():
        changes[sign][relation] = _table(found, tables[relation].schema)
    return Change(delete=changes["-"], insert=changes["+"])


def _table(rows: list[list[int]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _plain(workload: Workload, *updates: str) -> DataSet:
    return DataSet(workload, updates, {})


def _graph(kind: str, graph: str, answers: int) -> DataSet:
    program, relation = (LEFT, "tc") if kind == "closure" else (SAME_GENERATION, "sg")
    facts = {"edge": Facts("shared", f"graphs/{graph}.tsv")}
    return _plain(Workload(f"{kind}-{graph}", "", program, facts, {relation: answers}), "10", HUNDREDTH)


DATA_SETS = (
    _plain(find_workload("crdt"), "10", "40", "70", "100"),
    _graph("closure", "OL.cedge", 146_120),
    _graph("closure", "TG.cedge", 481_121),
    _graph("closure", "wing", 329_438),
    _graph("closure", "ego-Facebook", 2_508_102),
    _graph("closure", "luxembourg_osm", 5_022_084),
    _graph("sg", "cal.cedge", 23_519),
    _graph("sg", "OL.cedge", 285_431),
    _graph("sg", "wing", 647_999),
    DataSet(
        Workload(
            "redist",
            "",
            REDIST,
            {
                relation: Facts("shared", f"redist/{relation}.base.csv", ",")
                for relation in ("node", "dependency", "binding")
            },
            {"span": 8_573_578},
            long=True,
        ),
        ("10", RECORDED),
        {RECORDED: {"span": 13_512_056}},
    ),
    _plain(find_workload("galen"), "10", "10000", "40000", "70000", "100000"),
)

CSPA_10K = Workload(
    "cspa-10k",
    "",
    CSPA,
    {
        "assign": Facts("shared", "cspa/10k/Assign.tsv"),
        "dereference": Facts("shared", "cspa/10k/Dereference.tsv"),
    },
    {"valueFlow": 30_152, "memoryAlias": 112_761, "valueAlias": 384_485},
)


def find_data_set(name: str) -> DataSet:
    return next(data for data in DATA_SETS if data.name == name)
