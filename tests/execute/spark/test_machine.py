"""What is known of where Spark runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tidelog.execute.spark import machine
from tidelog.execute.spark.settings import read_settings
from tidelog.syntax.errors import TidelogError


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,5]", 3),
        ("local[*]", None),
        ("local-cluster[2,3,1024]", 6),
        ("spark://host:7077", None),
    ],
)
def test_cores(master: str, cores: int | None) -> None:
    assert machine._cores(master) == cores


def test_this_machine(spark: SparkSession) -> None:
    assert machine.slots(spark) == machine.limit(spark) == 2
    place = machine.work(spark)
    assert place is not None and Path(place.name).is_dir()


def test_settings(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.tidelog.work", f"file://{tmp_path}")
    session.conf.set("spark.tidelog.checkpoint", "0.5")
    settings = read_settings(session)
    assert settings.work is not None and settings.work.name == str(tmp_path)
    assert settings.checkpoint == 0.5
    session.conf.set("spark.tidelog.checkpoint", "soon")
    with pytest.raises(TidelogError, match=r"TL0609.*checkpoint is 'soon'"):
        read_settings(session)
