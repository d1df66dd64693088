"""What a user is told about each mistake: `mistakes/NAME.dl` and, word for word, `NAME.expected`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse, read

MISTAKES = sorted((Path(__file__).parent / "mistakes").glob("*.dl"))


def told(text: str, name: str = "program.dl") -> str:
    with pytest.raises(ProgramError) as caught:
        parse(text, name)
    return str(caught.value)


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_mistake(path: Path) -> None:
    expected = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert told(path.read_text(encoding="utf-8"), path.name) + "\n" == expected


def test_only_some_problems_are_shown() -> None:
    with pytest.raises(ProgramError) as caught:
        parse("a(x.\n" * 27)
    diagnostics = caught.value.diagnostics
    assert [d.code for d in diagnostics] == ["TL0011"] * 20 + ["TL0000"]
    assert diagnostics[-1].message == "7 more problems, not shown"


def test_parsing_stops_when_it_makes_no_sense() -> None:
    assert told("a(x.\n" * 100_000).endswith("error[TL0000]: at least 980 more problems, not shown")


def test_problems_are_in_the_order_of_the_text() -> None:
    with pytest.raises(ProgramError) as caught:
        parse('a("\\q").\nb(x :- c(x).\nd(1e999).\n.decl e(x: number)\nrelation F(x: s64)\n')
    assert [d.code for d in caught.value.diagnostics] == ["TL0007", "TL0011", "TL0006", "TL0002"]


def test_nesting() -> None:
    deep = "(" * 250 + "1" + ")" * 250
    parse(f"a({deep}).")  # parentheses alone leave no trace in the tree
    for nested in (
        "f(" * 250 + "1" + ")" * 250,
        "- " * 250 + "x",
        "if (x) 1 else " * 250 + "2",
    ):
        with pytest.raises(ProgramError) as caught:
            parse(f"a({nested}).\nb(1).\nc(.\n")
        assert [(d.code, d.message) for d in caught.value.diagnostics] == [
            ("TL0008", "nested more than 200 deep"),
            ("TL0011", "'(' without ')'"),
        ]


def test_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "program.dl"
    path.write_bytes(b"a(1).\nb(\xff).\n")
    with pytest.raises(ProgramError) as caught:
        read(path)
    assert str(caught.value) == (
        "error[TL0001]: the file is not UTF-8 text\n"
        f" --> {path}:2:3\n"
        "  |\n"
        "2 | b(\ufffd\n"
        "  |   ^\n"
        "  = note: byte 8 (hexadecimal ff) is not part of any character"
    )


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProgramError) as caught:
        read(tmp_path / "none.dl")
    assert str(caught.value) == f"error[TL0001]: cannot read {tmp_path}/none.dl: No such file or directory"


def test_lone_surrogate() -> None:
    assert told("a(1).\nb(\udc80).") == (
        "error[TL0001]: half of a character (a lone surrogate)\n"
        " --> program.dl:2:3\n"
        "  |\n"
        "2 | b(\ufffd).\n"
        "  |   ^"
    )
