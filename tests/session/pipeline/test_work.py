"""Pipelines on a Spark session: batches, what is new, and streams that go on."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.session.database import Database
from tidelog.session.pipeline.check import check_columns, check_pipeline
from tidelog.session.pipeline.model import Pipeline, read_pipeline
from tidelog.session.pipeline.work import catch_up, follow, load, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl price(x: number, p: float)
.input price
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z), price(y, _).
"""


def pipeline(directory: Path, text: str) -> Pipeline:
    (directory / "p.dl").write_text(PROGRAM)
    (directory / "tidelog.yaml").write_text(f"name: paths\nprogram: p.dl\n{text}")
    found = read_pipeline(directory / "tidelog.yaml")
    assert check_pipeline(found, "spark")[1] == []
    return found


def edges(path: Path, *rows: tuple[int, int]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{x},{y}\n" for x, y in rows))


def prices(path: Path, *nodes: int) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"x": nodes, "p": [0.5] * len(nodes)}), path)


def feed(directory: Path) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for file in sorted((directory / "path").glob("*.parquet")):
        table = pq.ParquetFile(file).read()
        rows += zip(*(table.column(n).to_pylist() for n in ("_change_type", "x", "y")), strict=True)
    return sorted(rows)


SOURCES = """
sources:
  edge: {format: csv, path: edges}
  price: {format: parquet, path: prices}
"""


def test_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    edges(tmp_path / "edges/1.csv", (1, 2), (2, 3))
    prices(tmp_path / "prices/1.parquet", 1, 2)
    text = """
sinks:
  path:
    - {format: parquet, path: out/path}
    - {format: csv, path: out/text, options: {header: true}}
  edge: {format: json, path: out/edge}
"""
    found = pipeline(tmp_path, SOURCES + text)
    program = check_pipeline(found, "spark")[0]
    assert program is not None
    assert check_columns(found.sources, program, spark) == []
    with Database(found.program, spark=spark, maintained=False) as db:
        load(found, db)
        assert write(found, db) == [("path", 3), ("path", 3), ("edge", 2)]
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "out/path")).collect())) == [
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    lines = [part.read_text().splitlines() for part in (tmp_path / "out/text").glob("part-*")]
    assert {line for part in lines for line in part} == {"x,y", "1,2", "1,3", "2,3"}
    assert spark.read.json(str(tmp_path / "out/edge")).count() == 2


def test_with_a_store_only_what_is_new_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    edges(tmp_path / "edges/1.csv", (1, 2), (2, 3))
    prices(tmp_path / "prices/1.parquet", 2)
    text = """
store: state
sinks:
  path:
    - {format: parquet, path: out/path}
    - {format: parquet, path: out/changes, write: changes}
"""
    found = pipeline(tmp_path, SOURCES + text)

    def run() -> tuple[int, list[tuple[object, ...]]]:
        with Database(found.program, spark=spark, store=found.store) as db:
            catch_up(found, db)
            write(found, db)
            return db.version, sorted(map(tuple, spark.read.parquet(str(tmp_path / "out/path")).collect()))

    version, first = run()
    assert first == [(1, 2), (1, 3), (2, 3)]
    assert run() == (version, first)
    edges(tmp_path / "edges/2.csv", (3, 4))
    prices(tmp_path / "prices/2.parquet", 3)
    assert run() == (version + 2, [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)])
    assert feed(tmp_path / "out/changes") == [("insert", *row) for row in run()[1]]


def test_a_continuous_pipeline_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    edges(tmp_path / "edges/1.csv", (1, 2))
    prices(tmp_path / "prices/1.parquet", 2)
    text = """
store: state
trigger: {continuous: 100 milliseconds}
sinks: {path: {format: parquet, path: out, write: changes}}
"""
    found = pipeline(tmp_path, SOURCES + text)

    class Enough(Exception):
        pass

    def told(version: int) -> None:
        if ("insert", 1, 2) in feed(tmp_path / "out"):
            edges(tmp_path / "edges/2.csv", (2, 3))
        if ("insert", 1, 3) in feed(tmp_path / "out"):
            raise Enough

    ended: list[BaseException] = []

    def run() -> None:
        with Database(found.program, spark=spark, store=found.store) as db:
            try:
                follow(found, db, told, wait=0.1)
            except BaseException as error:
                ended.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(120)
    assert [type(error) for error in ended] == [Enough], ended
    assert feed(tmp_path / "out") == [("insert", 1, 2), ("insert", 1, 3), ("insert", 2, 3)]
