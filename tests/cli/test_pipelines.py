"""Pipeline files: what a dry run says of them, and real runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidelog.cli.dry_run import dry_run
from tidelog.cli.where import Where
from tidelog.syntax.errors import TidelogError

PIPELINES = sorted((Path(__file__).parent / "pipelines").glob("*.yaml"))


def tidelog(place: Path, *args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidelog", *args],
        cwd=place,
        capture_output=True,
        text=True,
        env=env or dict(os.environ),
        timeout=240,
    )


def rows(directory: Path) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for part in directory.glob("part-*.parquet"):
        table = pq.ParquetFile(part).read()
        found += zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(found)


REACH = [
    ("Bergen", "Cork"),
    ("Bergen", "Leeds"),
    ("Leeds", "Cork"),
    ("Oslo", "Bergen"),
    ("Oslo", "Cork"),
    ("Oslo", "Leeds"),
]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_dry_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    try:
        said = dry_run(Path(path.name), Where("spark"))
    except TidelogError as error:
        said = str(error)
    assert f"{said}\n" == path.with_suffix(".expected").read_text()


def test_a_pipeline_from_nothing(tmp_path: Path) -> None:
    """Made, checked, and run without Spark."""
    done = tidelog(tmp_path, "init", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == "next: tidelog dry-run demo/tidelog.yaml"
    done = tidelog(tmp_path, "dry-run", "demo/tidelog.yaml", "--engine", "local")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sink      reach to demo/out/reach (parquet), overwrite\n" in done.stdout
    assert not (tmp_path / "demo/out").exists()
    for _ in range(2):
        done = tidelog(tmp_path, "run", "demo/tidelog.yaml", "--engine", "local")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.splitlines()[-2] == "outputs: reach 6"
        assert rows(tmp_path / "demo/out/reach") == REACH
    done = tidelog(tmp_path, "init", "demo")
    assert (done.returncode, done.stderr) == (
        1,
        "error[TL0503]: cannot make demo: there is something already\n",
    )


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java 17 or later")
def test_a_pipeline_on_spark(tmp_path: Path) -> None:
    """CSV in and Parquet out, on a Spark of its own: what was written there this process reads."""
    tidelog(tmp_path, "init", "demo")
    settings = (
        "spark.tidelog.fixpoint=single",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",  # a short run is quicker so
        "spark.sql.codegen.wholeStage=false",
    )
    confs = [word for setting in settings for word in ("--conf", setting)]
    done = tidelog(tmp_path, "run", "demo/tidelog.yaml", "-j", "2", *confs)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    heading, line, *_, outputs, times = done.stderr.splitlines()
    assert heading.split()[-1] == "way" and "single: as set" in line
    assert outputs == "outputs: reach 6"
    assert times.startswith("check ")
    assert rows(tmp_path / "demo/out/reach") == REACH
    assert (tmp_path / "demo/out/reach/_SUCCESS").exists()


@pytest.mark.parametrize(
    "args", [["run", "p.yaml", "-F", "facts"], ["dry-run", "p.dl"], ["dry-run"], ["init"]], ids=" ".join
)
def test_wrong_usage(tmp_path: Path, args: list[str]) -> None:
    done = tidelog(tmp_path, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: tidelog")


def test_no_such_pipeline(tmp_path: Path) -> None:
    done = tidelog(tmp_path, "run", "p.yaml")
    assert (done.returncode, done.stderr) == (
        1,
        "error[TL0901]: cannot read the pipeline p.yaml\n  = note: No such file or directory\n",
    )


def test_without_java_or_pyspark(tmp_path: Path) -> None:
    """A PATH without Java; and a PySpark that is not there."""
    tidelog(tmp_path, "init", "demo")
    (tmp_path / "bin").mkdir()
    env = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_REMOTE")}
    done = tidelog(tmp_path, "run", "demo/tidelog.yaml", env={**env, "PATH": str(tmp_path / "bin")})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[TL0603]: the Spark engine needs Java 17 or later, and it is not ")
    assert done.stderr.endswith("or run without Spark, in this process: --engine local\n")
    (tmp_path / "none/pyspark").mkdir(parents=True)
    (tmp_path / "none/pyspark/__init__.py").write_text("raise ImportError('not installed')\n")
    done = tidelog(tmp_path, "run", "demo/tidelog.yaml", env={**env, "PYTHONPATH": str(tmp_path / "none")})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error[TL0602]: the Spark engine needs PySpark, and it is not installed\n"
        "  = hint: pip install 'tidelog[spark]', or run without Spark, in this process: --engine local\n"
    )
    assert not (tmp_path / "demo/out").exists()
