"""What does not fit the rule interpreter's memory is evaluated all the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.running import Row, run
from tidelog.execute import open_executor
from tidelog.execute.local import rounds
from tidelog.execute.local.assemble import MAX_REGISTERS
from tidelog.execute.local.join import MAX_ARITY
from tidelog.execute.local.memory import SOURCES
from tidelog.program.check import check
from tidelog.syntax.errors import EvaluationError
from tidelog.syntax.parser import parse


def declared(name: str, columns: int) -> str:
    return f".decl {name}({', '.join(f'c{i}: number' for i in range(columns))})\n"


@pytest.mark.parametrize("columns", [MAX_ARITY - 1, MAX_ARITY, MAX_ARITY + 1, 600])
def test_wide_relations(columns: int) -> None:
    variables = ", ".join(f"x{i}" for i in range(columns))
    text = (
        f"{declared('a', columns)}.input a\n{declared('b', columns)}{declared('c', 1)}.output c\n"
        f"b({variables}) :- a({variables}).\n"
        f"c(x0) :- a({variables}), b({variables}), !b(0{', _' * (columns - 1)}).\n"
    )
    rows: list[Row] = [tuple(range(start, start + columns)) for start in (1, 2, 3)]
    for engine in ("local", "substitution"):
        found = run(check(parse(text)), open_executor(engine), {"a": [*rows, *rows]})
        assert found.relations["b"] == set(rows)
        assert found.relations["c"] == {(1,), (2,), (3,)}


def test_more_variables_and_constants_than_registers() -> None:
    columns = MAX_REGISTERS // 5
    body = ", ".join(f"a({', '.join(f'x{k}_{i}' for i in range(columns))})" for k in range(5))
    head = ", ".join(str(i + 7) for i in range(columns))
    text = f"{declared('a', columns)}.input a\n{declared('b', columns)}.output b\nb({head}) :- {body}.\n"
    found = run(check(parse(text)), open_executor("local"), {"a": [tuple(range(columns))]})
    assert found.relations["b"] == {tuple(i + 7 for i in range(columns))}


@pytest.mark.parametrize("values", [(-(2**63), -1), (2**63 - 1, 1), (-(2**62), -(2**62), -1)])
def test_a_sum_never_wraps(values: tuple[int, ...]) -> None:
    text = """
        .decl a(i: number, x: number)
        .input a
        .decl s(n: number)
        .output s
        s(n) :- n = sum x : { a(_, x) }.
    """
    rows: list[Row] = list(enumerate(values))
    for engine in ("local", "substitution"):
        with pytest.raises(EvaluationError, match="integer overflow"):
            run(check(parse(text)), open_executor(engine), {"a": rows})


def test_a_cached_kernel_depends_on_all_sources() -> None:
    """Numba keeps the stamp where `memory.kernel` sets it; a release that moves it must not go unseen."""
    compiled: Any = rounds.run_rounds
    assert compiled._cache._cache_file._source_stamp == SOURCES
