"""The golden programs: one set of expected files for every executor.

A directory of `programs/` has `program.dl`, a `.facts` file for each input relation
that has any, and `expected/R.csv` for each relation whose answers are pinned: tab
separated, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.running import Row, Run, run
from tidelog.plan.executor import Executor
from tidelog.program.check import check
from tidelog.program.model import Program, Relation, Value
from tidelog.program.types import Type
from tidelog.syntax.parser import read

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.name for path in PROGRAMS.iterdir() if (path / "program.dl").exists())


def value(text: str, type: Type) -> Value:
    if type.kind == "string":
        return text
    if type.kind == "bool":
        return {"true": True, "false": False}[text]
    return float(text) if type.kind == "float" else int(text)


def rows(relation: Relation, path: Path) -> Iterable[Row]:
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = line.split("\t")
        yield tuple(value(cell, column.type) for cell, column in zip(cells, relation.columns, strict=True))


def load(name: str) -> tuple[Program, dict[str, list[Row]]]:
    program = check(read(PROGRAMS / name / "program.dl"))
    files = {path.stem: path for path in (PROGRAMS / name).glob("*.facts")}
    assert files.keys() <= program.relations.keys(), "facts for a relation that is not there"
    return program, {r: list(rows(program.relations[r], path)) for r, path in files.items()}


def matches_expected(name: str, program: Program, result: Run) -> None:
    expected = sorted((PROGRAMS / name / "expected").glob("*.csv"))
    assert expected
    for path in expected:
        wanted = list(rows(program.relations[path.stem], path))
        assert len(set(wanted)) == len(wanted), f"{path.name} has a row twice"
        assert result.relations[path.stem] == set(wanted), path.stem


@pytest.mark.parametrize("name", NAMES)
def test_program(name: str, executor: Callable[[], Executor]) -> None:
    program, facts = load(name)
    matches_expected(name, program, run(program, executor(), facts))


@pytest.mark.parametrize("name", NAMES)
def test_every_output_is_expected(name: str) -> None:
    """No answer of a golden program goes unlooked at, but for relations without columns."""
    program, _ = load(name)
    outputs = {r.name for r in program.relations.values() if r.is_output and r.columns}
    assert outputs == {path.stem for path in (PROGRAMS / name / "expected").glob("*.csv")}
