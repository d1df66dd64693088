"""Imports go one way: a module imports from its own row of the pipeline and from rows before it.

The imports are read from the source, so that an import inside a function counts too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

ROWS = ("syntax", "program", "plan", "maintain", "execute", "io", "session", "cli")
EXECUTORS = ("local", "spark", "substitution")

# No executor imports another, but for what runs in Spark's tasks: the kernels of the local one.
BORROWERS = {"tidelog.execute.spark.tasks": "local", "tidelog.execute.spark.stage": "local"}

# Third parties that only some part of the package may import, and that part.
RESERVED = {"pyspark": "tidelog.execute.spark", "numba": "tidelog.execute.local", "lark": "tidelog.syntax"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((SRC / "tidelog").rglob("*.py"))}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def imports_of(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports; `from a import b` counts as `a.b`.

    `b` may be a function or a module: for the questions asked here it does not matter.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: (1 if is_package else 0) - node.level or None]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def row(module: str) -> int:
    """The row of a module; the package itself gathers what users import, so it stands before `cli`."""
    parts = module.split(".")
    if module == "tidelog.__main__":
        return ROWS.index("cli")
    return ROWS.index(parts[1]) if len(parts) > 1 and parts[1] in ROWS else ROWS.index("session")


def executor(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if parts[:2] == ["tidelog", "execute"] and parts[2:3] and parts[2] in EXECUTORS else None


def faults(module: str, tree: ast.AST, *, is_package: bool) -> list[str]:
    """What is wrong with the imports of a module, one line each."""
    found = []
    for line, target in imports_of(tree, module, is_package=is_package):
        if within(target, "tidelog"):
            if row(target) > row(module):
                found.append(f"{module}:{line} imports {target}, which is in a later row")
            here, there = executor(module), executor(target)
            lent = [lender for part, lender in BORROWERS.items() if within(module, part)]
            if here is not None and there not in (None, here, *lent):
                found.append(f"{module}:{line} imports {target}, of another executor")
        for party, home in RESERVED.items():
            if within(target, party) and not within(module, home):
                found.append(f"{module}:{line} imports {target}, which is for {home} alone")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    path = MODULES[module]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert faults(module, tree, is_package=path.name == "__init__.py") == []


def test_every_package_is_a_row() -> None:
    packages = {path.parent.name for path in (SRC / "tidelog").glob("*/__init__.py")}
    assert packages == set(ROWS)


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("tidelog.plan.order", "from tidelog.program.model import Rule", []),
        (
            "tidelog.plan.order",
            "def f():\n    from tidelog import execute",
            ["tidelog.plan.order:2 imports tidelog.execute, which is in a later row"],
        ),
        (
            "tidelog.maintain.seminaive",
            "from ..execute.local import executor",
            ["tidelog.maintain.seminaive:1 imports tidelog.execute.local.executor, which is in a later row"],
        ),
        (
            "tidelog.execute.local.executor",
            "import tidelog.execute.spark",
            ["tidelog.execute.local.executor:1 imports tidelog.execute.spark, of another executor"],
        ),
        (
            "tidelog.execute.spark.executor",
            "import tidelog.execute.local",
            ["tidelog.execute.spark.executor:1 imports tidelog.execute.local, of another executor"],
        ),
        ("tidelog.execute.spark.tasks.share", "import tidelog.execute.local", []),
        (
            "tidelog.session.database",
            "from pyspark.sql import DataFrame",
            [
                "tidelog.session.database:1 imports pyspark.sql.DataFrame, "
                "which is for tidelog.execute.spark alone"
            ],
        ),
        (
            "tidelog.plan.order",
            "import importlib\nimportlib.import_module('numba')",
            ["tidelog.plan.order:2 imports numba, which is for tidelog.execute.local alone"],
        ),
        (
            "tidelog",
            "from tidelog.session.database import Database\nfrom tidelog.cli.main import main",
            ["tidelog:2 imports tidelog.cli.main.main, which is in a later row"],
        ),
    ],
)
def test_faults_are_found(module: str, text: str, expected: list[str]) -> None:
    assert faults(module, ast.parse(text), is_package=module == "tidelog") == expected
