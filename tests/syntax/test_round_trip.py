"""Parse, print, parse again: the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.syntax.trees import modules
from tidelog.syntax import ast
from tidelog.syntax.parser import parse, read
from tidelog.syntax.printer import print_module

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*/*.dl"))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules(ast.Dialect.SOUFFLE))
def test_souffle_trees(module: ast.Module) -> None:
    assert parse(print_module(module)) == module


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(modules(ast.Dialect.DDLOG))
def test_ddlog_trees(module: ast.Module) -> None:
    assert parse(print_module(module)) == module


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.parent.name)
def test_programs(path: Path) -> None:
    module = read(path)
    text = print_module(module)
    assert parse(text) == module
    assert print_module(parse(text)) == text
