"""Well-known programs over real data, against published counts or rows worked out by hand.

The data is not part of the project: a test that needs it looks for `shared/data` beside
the checkout and is skipped where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import Row, run
from tidelog.plan.executor import Executor
from tidelog.program.check import check
from tidelog.program.model import Program
from tidelog.syntax.parser import parse

DATA = Path(__file__).parents[2] / "shared" / "data"
Open = Callable[[], Executor]

CLOSURE = """
.decl edge(x: number, y: number)
.input edge
.decl tc(x: number, y: number)
.output tc
tc(x, y) :- edge(x, y).
tc(x, z) :- tc(x, y), edge(y, z).
"""
SAME_GENERATION = """
.decl edge(x: number, y: number)
.input edge
.decl sg(x: number, y: number)
.output sg
sg(x, y) :- edge(p, x), edge(p, y), x != y.
sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).
"""
# Example 6.1 of "Shapiro: back to basics".
CSPA = """
.decl assign(x: number, y: number)
.decl dereference(x: number, y: number)
.input assign
.input dereference
.decl valueFlow(x: number, y: number)
.decl memoryAlias(x: number, y: number)
.decl valueAlias(x: number, y: number)
.output valueFlow
.output memoryAlias
.output valueAlias
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
CSDA = """
.decl arc(x: number, y: number)
.decl nullEdge(x: number, y: number)
.input arc
.input nullEdge
.decl null(x: number, y: number)
.output null
null(x, y) :- nullEdge(x, y).
null(x, y) :- null(x, w), arc(w, y).
"""
# Figure 3 of "Elastic incrementalization".
POINTERS = """
.decl new(v: symbol, o: symbol)
.decl assign(v: symbol, w: symbol)
.decl load(v: symbol, y: symbol, f: symbol)
.decl store(p: symbol, f: symbol, q: symbol)
.input new
.input assign
.input load
.input store
.decl vpt(v: symbol, o: symbol)
.decl alias(v: symbol, w: symbol)
.output vpt
.output alias
vpt(v, o) :- new(v, o).
vpt(v, o) :- assign(v, w), vpt(w, o).
vpt(v, o) :- load(v, y, f), store(p, f, q), vpt(q, o), vpt(p, o2), vpt(y, o2).
alias(v, w) :- vpt(v, o), vpt(w, o).
"""
# 0 subClassOf, 1 subPropertyOf, 2 domain, 3 range, 4 type: Example 6.3 of "Shapiro" on integers.
RHO_DF = """
.decl tbox(s: number, p: number, o: number)
.decl abox(s: number, p: number, o: number)
.input tbox
.input abox
.decl t(s: number, p: number, o: number)
.decl a(s: number, p: number, o: number)
.output t
.output a
t(x, p, y) :- tbox(x, p, y).
a(x, p, y) :- abox(x, p, y).
t(x, 0, z) :- t(x, 0, y), t(y, 0, z).
t(x, 1, z) :- t(x, 1, y), t(y, 1, z).
a(x, q, y) :- t(p, 1, q), a(x, p, y).
a(y, 4, x) :- t(p, 2, x), a(y, p, _).
a(z, 4, x) :- t(p, 3, x), a(_, p, z).
a(z, 4, y) :- t(x, 0, y), a(z, 4, x).
"""


def program(text: str) -> Program:
    return check(parse(text))


def table(name: str, separator: str | None = None) -> list[Row]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} of the shared data, which is not beside this checkout")
    with path.open(encoding="utf-8") as lines:
        return [tuple(map(int, line.split(separator))) for line in lines if line.strip()]


@pytest.mark.parametrize(("graph", "size"), [("OL.cedge", 146_120)])
def test_transitive_closure(graph: str, size: int, evaluator: Open) -> None:
    result = run(program(CLOSURE), evaluator(), {"edge": table(f"graphs/{graph}.tsv")})
    assert len(result.relations["tc"]) == size


@pytest.mark.parametrize(("graph", "size"), [("cal.cedge", 23_519)])
def test_same_generation(graph: str, size: int, evaluator: Open) -> None:
    result = run(program(SAME_GENERATION), evaluator(), {"edge": table(f"graphs/{graph}.tsv")})
    assert len(result.relations["sg"]) == size


@pytest.mark.parametrize("size", ["tiny", "1k"])
def test_cspa(size: str, evaluator: Open) -> None:
    facts = {"assign": table(f"cspa/{size}/Assign.tsv"), "dereference": table(f"cspa/{size}/Dereference.tsv")}
    result = run(program(CSPA), evaluator(), facts)
    for relation in ("ValueFlow", "MemoryAlias", "ValueAlias"):
        expected = table(f"cspa/{size}/expected/{relation}.tsv")
        assert result.relations[relation[0].lower() + relation[1:]] == set(expected), relation


def test_csda(evaluator: Open) -> None:
    facts = {"arc": table("csda/10k/Arc.tsv"), "nullEdge": table("csda/10k/NullEdge.tsv")}
    assert len(run(program(CSDA), evaluator(), facts).relations["null"]) == 12_456


def test_rho_df(evaluator: Open) -> None:
    facts = {"tbox": table("lubm1_rdf_int/tbox.txt"), "abox": table("lubm1_rdf_int/abox.txt")}
    result = run(program(RHO_DF), evaluator(), facts)
    assert (len(result.relations["t"]), len(result.relations["a"])) == (315, 126_417)


def test_pointer_analysis(evaluator: Open) -> None:
    facts: dict[str, list[Row]] = {
        "new": [("a", "L1"), ("c", "L3"), ("d", "L4")],
        "assign": [("b", "a"), ("a", "b")],
        "load": [("e", "d", "f"), ("b", "c", "f")],
        "store": [("c", "f", "a")],
    }
    result = run(program(POINTERS), evaluator(), facts)
    # b gets L1 from a (r2) and through c.f (r3); e gets nothing, because d and c never meet.
    assert result.relations["vpt"] == {("a", "L1"), ("c", "L3"), ("d", "L4"), ("b", "L1")}
    assert result.relations["alias"] == {
        *(("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")),
        *(("c", "c"), ("d", "d")),
    }
    # r1: three objects; r2: b from a, a from b; r3: b once; r4: 4 pairs on L1, 1 on L3, 1 on L4.
    assert list(result.instances.values()) == [3, 2, 1, 6]
