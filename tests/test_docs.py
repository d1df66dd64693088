"""The documentation runs: every code block of README and docs, page by page, from top to bottom.

What a block is follows from the words after its opening fence:

    python              runs; the blocks of a page share one namespace
    pycon               runs as a doctest in the same namespace
    datalog             parses and checks; `datalog error` must not
    console             lines that begin with `$ ` run, and print the lines below them
    ANY NAME.EXT        is first written to that file, in the directory where the page runs

In expected output `...` stands for any text, and on a line of its own for any lines.
Blocks of any other kind are left alone.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidelog.program.check import check
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\[[^\]`]*\]\((?P<target>[^)#\s]+)[^)]*\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, its text, and the line where the text begins."""

    words: tuple[str, ...]
    body: str
    line: int


def blocks_of(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        yield Block(tuple(found["info"].split()), found["body"], text.count("\n", 0, found.start("body")) + 1)


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_python(block: Block, page: str, namespace: dict[str, object]) -> None:
    # Empty lines before the block make the line numbers of a traceback those of the page.
    exec(compile("\n" * (block.line - 1) + block.body, page, "exec"), namespace)


def run_doctest(block: Block, page: str, namespace: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.body, namespace, page, page, block.line - 1)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    assert not report, "".join(report)


def run_datalog(block: Block, page: str) -> None:
    def checked() -> None:
        check(parse(block.body, f"{page}:{block.line}"))

    if "error" in block.words:
        with pytest.raises(ProgramError):
            checked()
    else:
        checked()


def run_console(block: Block, page: str, directory: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",  # Spark starts sooner
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    for step in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert matches(done.stdout, expected), (
            f"{page}:{block.line}: $ {command}\nprinted\n{done.stdout}\nnot\n{expected}"
        )


def matches(output: str, expected: str) -> bool:
    """Whether output is what was expected, white space at the ends of lines apart."""
    pattern = ""
    for line in expected.strip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    text = "".join(line.rstrip() + "\n" for line in output.strip().splitlines())
    return re.fullmatch(pattern, text) is not None


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = page_id(path)
    namespace: dict[str, object] = {"__name__": "__page__"}
    for block in blocks_of(path.read_text(encoding="utf-8")):
        kind = block.words[0] if block.words else ""
        for word in block.words[1:]:
            if "." in word:
                target = tmp_path / word
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.body, encoding="utf-8")
        if kind == "python":
            run_python(block, page, namespace)
        elif kind == "pycon":
            run_doctest(block, page, namespace)
        elif kind == "datalog":
            run_datalog(block, page)
        elif kind == "console":
            run_console(block, page, tmp_path)


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [found["target"] for found in LINK.finditer(text)]
    assert [t for t in targets if "://" not in t and not (path.parent / t).exists()] == []


@pytest.mark.parametrize(
    ("output", "expected", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a  \nb", "a\nb\n", True),
        ("a\nb\n", "a", False),
        ("a\nb\nc\n", "a\n...\nc", True),
        ("a\nc\n", "a\n...\nc", True),
        ("took 1.5 s\n", "took ... s", True),
        ("took 1.5 s\n", "took ... ms", False),
        ("", "", True),
    ],
)
def test_expected_output(output: str, expected: str, same: bool) -> None:
    assert matches(output, expected) is same


def test_blocks_are_found_with_their_lines() -> None:
    text = "# T\n\n```python\nx = 1\n```\n\n```datalog error a.dl\np(x).\n```\n"
    assert list(blocks_of(text)) == [
        Block(("python",), "x = 1\n", 4),
        Block(("datalog", "error", "a.dl"), "p(x).\n", 8),
    ]
