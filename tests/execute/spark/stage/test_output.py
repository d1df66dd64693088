"""Tuples on their way out of tasks: in files, or along with what the task says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.execute.spark.stage.test_layout import ROWS
from tests.running import rows_of, table_of
from tidelog.execute.spark.place import Place
from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.stage.output import FEW, Found, IntoFiles

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tidelog.execute.spark.stage.workdir import StageDirectory
from tidelog.execute.spark.types import cells_schema, from_cells

LAYOUT = Layout(tuple(ROWS))
NEVER_FEW = FEW  # among so many tasks, none has room


def found(outlet: IntoFiles) -> Found:
    all = Found()
    for relation, rows in ROWS.items():
        half = len(rows) // 2
        pieces = [table_of(relation, part) for part in (rows[:half], rows[half:]) if part]
        for batch in outlet.tuples(relation.name, pieces):
            for told, carried in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                all.add(told, carried)
    return all


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "a [b]*{c}, %20"))
    place.make()
    told = found(IntoFiles(LAYOUT, place, NEVER_FEW))
    directory = StageDirectory(place)
    assert not told.tables
    assert told.counts == {relation.name: len(rows) for relation, rows in ROWS.items()}
    for relation, rows in ROWS.items():
        frame = directory.frame(spark, cells_schema(relation), told.files[relation.name])
        table = from_cells(frame.toArrow(), relation)
        assert str(rows_of(relation, table)) == str(rows_of(relation, table_of(relation, rows)))


def test_few(tmp_path: Path) -> None:
    told = found(IntoFiles(LAYOUT, Place(str(tmp_path)), 1))
    assert not told.files and not list(tmp_path.iterdir())
    for relation, rows in ROWS.items():
        table = from_cells(pa.concat_tables(told.tables[relation.name]), relation)
        assert str(rows_of(relation, table)) == str(rows_of(relation, table_of(relation, rows)))


def test_none(tmp_path: Path) -> None:
    assert list(IntoFiles(LAYOUT, Place(str(tmp_path)), 1).tuples("edge", [])) == []
