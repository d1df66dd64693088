"""Whatever the text, parsing ends soon, with a module or a `ProgramError`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.syntax.trees import modules
from tidelog.syntax import ast
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse, read
from tidelog.syntax.printer import print_module

WORDS = """
( ) { } [ ] . , : ; :- := = == != < > <= >= << >> + ++ - * / % ^ | & ~ ! " ' \\ // /* */ _ ? $ @ #
not and or if else as var true false count sum min relation input output Aggregate x Edge edge(x)
.decl .input .output .type .comp .group_by .min() a(1). .x = 1 0x 1.5 1e9 8'd3 bit<3> é \0
"""
PIECES = [
    *WORDS.split(),
    "\n",
    " ",
    '"abc',
    "edge(1, 2).\n",
    "a(x) :- b(x).\n",
    ".decl e(x: number)\n",
    "relation R(x: s64)\n",
]


def survives(text: str) -> None:
    """A module that can be printed and read again, or an error that can be shown."""
    try:
        module = parse(text)
    except ProgramError as error:
        assert str(error)
        assert all(d.code.startswith("TL00") for d in error.diagnostics)
    else:
        assert parse(print_module(module)) == module


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.sampled_from(["", " "]))
def test_pieces(pieces: list[str], between: str) -> None:
    survives(between.join(pieces))


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=60))
def test_any_characters(text: str) -> None:
    survives(text)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(ast.Dialect))
def test_damaged_programs(data: st.DataObject, dialect: ast.Dialect) -> None:
    text = print_module(data.draw(modules(dialect)))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 8)))
        text = text[:start] + data.draw(st.sampled_from([*PIECES, ""])) + text[end:]
    survives(text)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.dl"
    path.write_bytes(data)
    try:
        read(path)
    except ProgramError as error:
        assert str(error)


SIZE = 2_000_000


@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        ("", "("),
        ("", ")"),
        ("", "a"),
        ("", "a("),
        ("", "a(1"),
        ("", "."),
        ("", ". "),
        ("", '"'),
        ("", '"\\'),
        ("", "/*"),
        ("", "/* \n"),
        ("", "\0"),
        ("", "'"),
        ("", "0"),
        ("", "a\n"),
        ("", "a b\n"),
        ("", "relation r\n"),
        ("", "input\n"),
        ("", ".decl "),
        ("", ".type "),
        ("", ".type {\n"),
        ("", "bit<"),
        ("", "count "),
        ("", "a:-"),
        ("a(", "- "),
        ("a(x) :- ", "!"),
        ("a(x) :- ", "not "),
        ("a(x) :- ", "x, "),
        ("a(x) :- ", "count:{"),
        ("a(x) :- ", "sum x:{"),
        ("a(1", "+1"),
        ("a(1", ",1"),
        ("a(", "if (x) 1 else "),
        ("a(", "if ("),
        ("a(1)", ", a(1)"),
        ("a(x) :- var x = ", "v.group_by("),
        ("a(", '"",'),
        ('a("', "\\n"),
        ('a("', "\\q"),
    ],
)
def test_large(start: str, repeated: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse(start + repeated * (SIZE // len(repeated)))
    assert len(str(caught.value)) < 20_000


def test_large_program_file(tmp_path: Path) -> None:
    path = tmp_path / "junk.dl"
    path.write_bytes(bytes(range(256)) * 10_000)
    with pytest.raises(ProgramError):
        read(path)
