"""The workloads: a program, where its facts are, and how many answers it has.

Rules stand in the order in which they are published; nothing here tells the engine
in which order to join. Generated data is made by `../shared/data/generate.py` into
`build/bench-data`; real data is read where it lies, beside the checkout.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("TIDELOG_BENCH_DATA", ROOT.parent / "shared" / "data"))
GENERATED = ROOT / "build" / "bench-data"
PEERS = SHARED / "PEERS.md"


@dataclass(frozen=True)
class Facts:
    """A file of integers: `folder` is `generated` or `shared`."""

    folder: str
    file: str
    delimiter: str = "\t"

    @property
    def path(self) -> Path:
        return (GENERATED if self.folder == "generated" else SHARED) / self.file


@dataclass(frozen=True)
class Workload:
    """A program over facts. `peer` is how the row of `PEERS.md` begins; `long` is over about 20 s."""

    name: str
    peer: str
    program: str
    facts: Mapping[str, Facts]
    expected: Mapping[str, int]
    long: bool = False
    write: bool = True


EDGE = ".decl edge(x: number, y: number)\n.input edge\n"
TC = EDGE + ".decl tc(x: number, y: number)\n.output tc\ntc(x, y) :- edge(x, y).\n"
RIGHT = TC + "tc(x, z) :- edge(x, y), tc(y, z).\n"
LEFT = TC + "tc(x, z) :- tc(x, y), edge(y, z).\n"
NONLINEAR = TC + "tc(x, z) :- tc(x, y), tc(y, z).\n"

SAME_GENERATION = (
    EDGE
    + """\
.decl sg(x: number, y: number)
.output sg
sg(x, y) :- edge(p, x), edge(p, y), x != y.
sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).
"""
)

SOURCE = EDGE + ".decl source(x: number)\n.input source\n"
REACH = (
    SOURCE
    + """\
.decl reach(x: number)
.output reach
reach(x) :- source(x).
reach(y) :- reach(x), edge(x, y).
"""
)
PAIRS = (
    SOURCE
    + """\
.decl reach(source: number, x: number)
.output reach
reach(s, s) :- source(s).
reach(s, y) :- reach(s, x), edge(x, y).
"""
)

CSPA = """\
.decl assign(x: number, y: number)
.decl dereference(x: number, y: number)
.input assign, dereference
.decl valueFlow(x: number, y: number)
.decl memoryAlias(x: number, y: number)
.decl valueAlias(x: number, y: number)
.output valueFlow, memoryAlias, valueAlias
valueFlow(x, y) :- assign(x, y).
valueFlow(x, z) :- assign(x, y), memoryAlias(y, z).
valueFlow(x, z) :- valueFlow(x, y), valueFlow(y, z).
memoryAlias(x, w) :- dereference(y, x), valueAlias(y, z), dereference(z, w).
valueAlias(y, z) :- valueFlow(x, y), valueFlow(x, z).
valueAlias(y, z) :- valueFlow(x, y), memoryAlias(x, w), valueFlow(w, z).
valueFlow(x, x) :- assign(x, y).
valueFlow(x, x) :- assign(y, x).
memoryAlias(x, x) :- assign(y, x).
memoryAlias(x, x) :- assign(x, y).
"""

GALEN = """\
.decl p(x: number, z: number)
.decl q(x: number, r: number, z: number)
.decl c(y: number, w: number, z: number)
.decl u(w: number, r: number, z: number)
.decl s(r: number, q: number)
.decl r(y: number, u: number, e: number)
.input p, q, c, u, s, r
.output p, q
p(X, Z) :- p(X, Y), p(Y, Z).
q(X, R, Z) :- p(X, Y), q(Y, R, Z).
p(X, Z) :- p(Y, W), u(W, R, Z), q(X, R, Y).
p(X, Z) :- c(Y, W, Z), p(X, W), p(X, Y).
q(X, Q, Z) :- q(X, R, Z), s(R, Q).
q(X, E, O) :- q(X, Y, Z), r(Y, U, E), q(Z, U, O).
"""

CRDT = """\
.decl insert(c: number, n: number, pc: number, pn: number)
.decl remove(c: number, n: number)
.input insert, remove
.decl hasChild(pc: number, pn: number)
.decl laterChild(pc: number, pn: number, c: number, n: number)
.decl firstChild(pc: number, pn: number, c: number, n: number)
.decl laterSibling(c1: number, n1: number, c2: number, n2: number)
.decl laterSibling2(c1: number, n1: number, c2: number, n2: number)
.decl nextSibling(c1: number, n1: number, c2: number, n2: number)
.decl hasNextSibling(c: number, n: number)
.decl nextSiblingAnc(sc: number, sn: number, nc: number, nn: number)
.decl nextElem(pc: number, pn: number, nc: number, nn: number)
.decl hasValue(c: number, n: number)
.decl chain(fc: number, fn: number, tc: number, tn: number)
.decl nextVisible(pc: number, pn: number, nc: number, nn: number)
.decl result(c1: number, c2: number)
.output result
hasChild(PC, PN) :- insert(_, _, PC, PN).
laterChild(PC, PN, C2, N2) :- insert(C1, N1, PC, PN), insert(C2, N2, PC, PN), C1 > C2.
laterChild(PC, PN, C2, N2) :- insert(C1, N1, PC, PN), insert(C2, N2, PC, PN), C1 = C2, N1 > N2.
firstChild(PC, PN, C, N) :- insert(C, N, PC, PN), !laterChild(PC, PN, C, N).
laterSibling(C1, N1, C2, N2) :- insert(C1, N1, PC, PN), insert(C2, N2, PC, PN), C1 > C2.
laterSibling(C1, N1, C2, N2) :- insert(C1, N1, PC, PN), insert(C2, N2, PC, PN), C1 = C2, N1 > N2.
laterSibling2(C1, N1, C3, N3) :- laterSibling(C1, N1, C2, N2), laterSibling(C2, N2, C3, N3).
nextSibling(C1, N1, C2, N2) :- laterSibling(C1, N1, C2, N2), !laterSibling2(C1, N1, C2, N2).
hasNextSibling(C, N) :- laterSibling(C, N, _, _).
nextSiblingAnc(SC, SN, NC, NN) :- nextSibling(SC, SN, NC, NN).
nextSiblingAnc(SC, SN, NC, NN) :-
    insert(SC, SN, PC, PN), !hasNextSibling(SC, SN), nextSiblingAnc(PC, PN, NC, NN).
nextElem(PC, PN, NC, NN) :- firstChild(PC, PN, NC, NN).
nextElem(PC, PN, NC, NN) :- nextSiblingAnc(PC, PN, NC, NN), !hasChild(PC, PN).
hasValue(C, N) :- insert(C, N, _, _), !remove(C, N).
chain(FC, FN, TC, TN) :- hasValue(FC, FN), nextElem(FC, FN, TC, TN).
chain(FC, FN, TC, TN) :- chain(FC, FN, VC, VN), !hasValue(VC, VN), nextElem(VC, VN, TC, TN).
nextVisible(PC, PN, NC, NN) :- chain(PC, PN, NC, NN), hasValue(NC, NN).
result(C1, C2) :- nextVisible(C1, _, C2, _).
"""


def _generated(data: str, *relations: str) -> dict[str, Facts]:
    return {relation: Facts("generated", f"{data}/{relation}.facts") for relation in relations}


def _graph(name: str) -> dict[str, Facts]:
    return {"edge": Facts("shared", f"graphs/{name}.tsv")}


def _closure(shape: str, program: str, data: str, answers: int, *, long: bool = False) -> Workload:
    facts = _generated(data, "edge")
    return Workload(
        f"{shape}-{data}", f"closure, {shape}-linear, {data}", program, facts, {"tc": answers}, long
    )


WORKLOADS = (
    _closure("right", RIGHT, "rand1k", 1_000_000),
    _closure("right", RIGHT, "rmat1k", 981_090),
    _closure("right", RIGHT, "chain2k", 1_999_000),
    _closure("right", RIGHT, "grid50", 1_623_125),
    _closure("left", LEFT, "rand1k", 1_000_000),
    _closure("non", NONLINEAR, "rand1k", 1_000_000, long=True),
    _closure("non", NONLINEAR, "chain2k", 1_999_000, long=True),
    _closure("non", NONLINEAR, "grid50", 1_623_125, long=True),
    Workload(
        "right-grid200",
        "closure, right-linear, grid200",
        RIGHT,
        _generated("grid200", "edge"),
        {"tc": 403_970_000},
        long=True,
        write=False,
    ),
    Workload(
        "sg-tree2k",
        "same generation, tree2k",
        SAME_GENERATION,
        _generated("tree2k", "edge"),
        {"sg": 491_494},
    ),
    Workload(
        "sg-bintree10",
        "same generation, bintree10",
        SAME_GENERATION,
        _generated("bintree10", "edge"),
        {"sg": 1_396_054},
    ),
    Workload(
        "reach-rmat100k",
        "reach from 100 sources, rmat100k",
        REACH,
        _generated("rmat100k", "edge", "source"),
        {"reach": 89_490},
    ),
    Workload(
        "pairs-rmat100k",
        "reach pairs (source, node), rmat100k",
        PAIRS,
        _generated("rmat100k", "edge", "source"),
        {"reach": 8_858_140},
    ),
    Workload(
        "pairs-grid200",
        "reach pairs, grid200",
        PAIRS,
        _generated("grid200", "edge", "source"),
        {"reach": 1_063_132},
    ),
    Workload(
        "cspa",
        "CSPA, cspa (",
        CSPA,
        _generated("cspa", "assign", "dereference"),
        {"valueFlow": 45_968, "memoryAlias": 18_159, "valueAlias": 288_039},
    ),
    Workload(
        "cspa_big",
        "CSPA, cspa_big",
        CSPA,
        _generated("cspa_big", "assign", "dereference"),
        {"valueFlow": 184_559, "memoryAlias": 79_455, "valueAlias": 970_039},
    ),
    Workload(
        "luxembourg_osm",
        "closure, left-linear, luxembourg_osm",
        LEFT,
        _graph("luxembourg_osm"),
        {"tc": 5_022_084},
    ),
    Workload(
        "ego-Facebook",
        "closure, left-linear, ego-Facebook",
        LEFT,
        _graph("ego-Facebook"),
        {"tc": 2_508_102},
    ),
    Workload("wiki-Vote", "closure, left-linear, wiki-Vote", LEFT, _graph("wiki-Vote"), {"tc": 11_947_132}),
    Workload(
        "galen",
        "galen",
        GALEN,
        {relation: Facts("shared", f"galen/{relation}.txt", ",") for relation in "pqcusr"},
        {"p": 7_560_179, "q": 16_595_494},
        long=True,
    ),
    Workload(
        "crdt",
        "crdt",
        CRDT,
        {relation: Facts("shared", f"crdt/{relation}.txt", " ") for relation in ("insert", "remove")},
        {
            "nextVisible": 104_851,
            "result": 104_653,
            "nextElem": 182_315,
            "nextSiblingAnc": 181_836,
            "firstChild": 178_874,
            "nextSibling": 3_441,
            "hasValue": 104_852,
            "chain": 182_314,
        },
        long=True,
    ),
)


def find_workload(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


def make_data() -> None:
    """Generate what is not there yet."""
    done = GENERATED / ".made"
    if done.exists():
        return
    script = SHARED / "generate.py"
    if not script.exists():
        sys.exit(f"no {script}: set TIDELOG_BENCH_DATA to the directory with generate.py and PEERS.md")
    GENERATED.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, script, GENERATED], check=True, stdout=subprocess.DEVNULL)
    done.touch()
