"""What a user reads when a program is wrong: one golden file for each program in errors/.

`TIDELOG_REGENERATE=1 pytest tests/program/test_errors.py` writes the golden files anew;
read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tidelog.program.check import check
from tidelog.program.problems import CODES
from tidelog.syntax import ast
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse

ERRORS = Path(__file__).parent / "errors"
PROGRAMS = sorted(ERRORS.glob("*.dl"))
# The parser says the same of a field that is given twice.
BY_PARSER = {"TL0104"}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_problems_of_program(path: Path) -> None:
    with pytest.raises(ProgramError) as raised:
        check(parse(path.read_text(encoding="utf-8"), path.name))
    golden = path.with_suffix(".expected")
    if os.environ.get("TIDELOG_REGENERATE"):
        golden.write_text(f"{raised.value}\n", encoding="utf-8")
    assert f"{raised.value}\n" == golden.read_text(encoding="utf-8")


def test_every_code_has_a_golden_program() -> None:
    shown: set[str] = set()
    for path in ERRORS.glob("*.expected"):
        shown.update(re.findall(r"^error\[(TL\d+)\]", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert shown == set(CODES) - BY_PARSER


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in ERRORS.glob("*.expected")} == {path.stem for path in PROGRAMS}


def test_every_code_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "language.md"
    listed = re.findall(r"^\| (TL0[123]\d\d) \| (.*?) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(listed) == CODES


def test_every_code_of_running_is_documented() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "language.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (root / "src").rglob("*.py")]
    used = {code for text in sources for code in re.findall(r"TL0[4567]\d\d", text)}
    assert set(re.findall(r"^\| (TL0[4567]\d\d) \|", page, re.MULTILINE)) == used


def test_field_given_twice() -> None:
    """The parser refuses this, so the tree is changed after parsing."""
    module = parse("relation A(x: s64, y: s64)\nA(.x = 1, .y = 2).", "p.dl")
    declaration, rule = module.items
    assert isinstance(rule, ast.Rule)
    (head,) = rule.heads
    twice = replace(head, args=(head.args[0], replace(head.args[1], name="x")))
    with pytest.raises(ProgramError) as raised:
        check(replace(module, items=(declaration, replace(rule, heads=(twice,)))))
    assert [(d.code, d.message) for d in raised.value.diagnostics] == [("TL0104", "field `x` is given twice")]
