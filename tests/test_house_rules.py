"""House rules that a tool can check, beside what ruff and mypy do."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST = 600


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_source_file(path: Path) -> None:
    """Each file is short, says what it is about, leaves nothing to do and prints nothing."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    prints = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert len(text.splitlines()) <= LONGEST
    assert (ast.get_docstring(tree) or "").strip(), "a module begins with what it is about"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text), "do it now, or write down why not"
    assert not prints or path.is_relative_to(ROOT / "src/tidelog/cli"), f"print() on lines {prints}"


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: there is no list of tracked files")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listing.stdout.split("\0") if line and (ROOT / line).is_file()]


def test_nothing_built_is_tracked() -> None:
    built = {".venv", "build", "dist", "__pycache__", ".hypothesis", "spark-warehouse"}
    assert [name(path) for path in tracked_files() if built & set(path.relative_to(ROOT).parts)] == []


def test_no_path_of_one_machine() -> None:
    """A tracked text that names somebody's home directory works nowhere else."""
    pattern = re.compile(rb"(/home/|/Users/)[a-z]+/")
    guilty = [name(p) for p in tracked_files() if p != Path(__file__) and pattern.search(p.read_bytes())]
    assert guilty == []
