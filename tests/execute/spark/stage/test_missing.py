"""Spark's Python workers without Tidelog: recursion goes on without them, or says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

SCRIPT = """
import os, sys, tempfile
from pathlib import Path
os.environ["PYSPARK_PYTHON"] = sys.argv[1]
import tidelog
from tests.spark_session import classic
spark = classic(Path(sys.argv[2]))
spark.conf.set("spark.tidelog.process", "0")
db = tidelog.Database(
    ".decl e(x: number, y: number)\\n.decl p(x: number, y: number)\\n"
    "p(x, y) :- e(x, y).\\np(x, z) :- p(x, y), e(y, z).", spark=spark,
)
db.commit(insert={"e": [(1, 2), (2, 3)]})
print(sorted(db["p"]), db.report.strata[-1].way)
spark.conf.set("spark.tidelog.fixpoint", "single")
db.algorithm = "recompute"
try:
    db.commit(insert={"e": [(3, 4)]})
except tidelog.TidelogError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with nothing but what Spark's workers need."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place, with_pip=False)
    import pyarrow

    packages = Path(pyarrow.__file__).parent.parent
    own = next((place / "lib").glob("python*")) / "site-packages"
    for name in ("pyarrow", "numpy", "numpy.libs", "pandas", "dateutil", "six.py", "pytz", "tzdata"):
        if (packages / name).exists():
            (own / name).symlink_to(packages / name)
    return place / "bin" / "python"


def outcome(bare: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(bare), str(directory)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[4],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )


def test_auto_goes_on(bare: Path, tmp_path: Path) -> None:
    done = outcome(bare, tmp_path)
    assert done.stdout.startswith("[(1, 2), (1, 3), (2, 3)] ")
    assert "frames: the Python of Spark's workers has no Tidelog" in done.stdout
    assert "error[TL0611]: the Python of Spark's workers has no Tidelog" in done.stdout  # the way was set
    assert "TL0611" in done.stderr  # a warning
