"""First lines that are headers or should be, and lines that are wrong, whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidelog.io.facts import read_facts
from tidelog.io.lines import first_line, line_problem
from tidelog.io.options import Format
from tidelog.io.places import Place
from tidelog.io.spark_files import facts_frame, stream_frame
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64, STRING
from tidelog.session.database import Database
from tidelog.syntax.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHT = Relation("flight", (Column("origin", STRING), Column("destination", STRING)), is_input=True)


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("origin,destination", "row header header header"),
        ('"origin","destination"', "row header header header"),
        ("destination,origin", "row row wrong wrong"),
        ("Oslo,Bergen", "row row header wrong"),
        ('"origin', "row row header wrong"),
        ("", "row row header wrong"),
    ],
)
def test_first_lines(line: str, kinds: str) -> None:
    rules = ("none", "detect", "skip", "names")
    found = [first_line(FLIGHT.columns, Format(",", True, rule))(line) for rule in rules]
    assert found == kinds.split()


def test_a_header_is_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Read by this process or by Spark's tasks."""
    place = Place("csv", str(tmp_path), text=Format(",", True, "names"))
    (tmp_path / "1.csv").write_text('"origin",destination\r\nOslo,Bergen\r\norigin,destination\r\n')
    (tmp_path / "2.csv").write_text("")
    expected = [("Oslo", "Bergen"), ("origin", "destination")]
    table = read_facts(FLIGHT, place).table
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    (tmp_path / "2.csv").write_text("destination,origin\nBergen,Leeds\n")
    message = (
        "error[TL0501]: cannot read the facts of flight: a header that is not the columns\n"
        f"  --> {tmp_path}/2.csv:1: the header is 'destination,origin'\n"
        "  = note: the columns are 'origin,destination'\n"
        "  = hint: a header has the names of the columns, in their order"
    )
    with pytest.raises(DataError) as here:
        read_facts(FLIGHT, place)
    with pytest.raises(DataError) as there:
        facts_frame(spark, FLIGHT, place, small=0)
    assert str(here.value) == str(there.value) == message


PROGRAM = """
.decl flight(origin: symbol, destination: symbol)
.input flight
.decl reach(origin: symbol, destination: symbol)
.output reach
reach(x, y) :- flight(x, y).
"""


def follow(db: Database, place: Place, checkpoint: Path, *, changes: bool = False) -> None:
    frame = stream_frame(db.spark, db.relations["flight"], place, changes=changes)
    db.stream(frame, "flight", checkpoint=checkpoint, trigger="availableNow").awaitTermination()


@pytest.mark.parametrize("rule", ["names", "detect"])
def test_headers_of_streams(spark: SparkSession, tmp_path: Path, rule: str) -> None:
    files = tmp_path / "a b"
    files.mkdir()
    place = Place("csv", str(files), text=Format(",", True, rule))
    (files / "1.csv").write_text("\ufefforigin,destination\r\nOslo,Bergen\r\norigin,destination\r\n")
    (files / "2.csv").write_text('"origin","destination"\nBergen,Leeds\n')
    (files / "3.csv").write_text("")
    with Database(PROGRAM, spark=spark) as db:
        follow(db, place, tmp_path / "checkpoint")
        expected = [("Bergen", "Leeds"), ("Oslo", "Bergen"), ("origin", "destination")]
        assert list(db["reach"]) == expected
        (files / "4.csv").write_text("destination,origin\nCork,Leeds\n")
        if rule == "detect":
            follow(db, place, tmp_path / "checkpoint")
            assert ("destination", "origin") in db["reach"]
            return
        with pytest.raises(DataError) as caught:
            follow(db, place, tmp_path / "checkpoint")
        assert str(caught.value) == (
            "error[TL0504]: cannot insert into flight: a wrong line\n"
            f"  --> {files}/4.csv:1: the header is 'destination,origin'\n"
            "  = hint: a header has the names of the columns: origin, destination"
        )
        assert list(db["reach"]) == expected


def test_wrong_lines_of_streams(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.csv").write_text("Oslo,Bergen,insert\nx,y\n")
    place = Place("csv", str(tmp_path / "in"), text=Format(",", True, "none"))
    with Database(PROGRAM, spark=spark) as db:
        with pytest.raises(DataError) as caught:
            follow(db, place, tmp_path / "checkpoint", changes=True)
        assert str(caught.value) == (
            "error[TL0504]: cannot change flight: a wrong line\n"
            f"  --> {tmp_path}/in/1.csv: 'x,y' has 2 columns instead of 3"
            " (origin: string, destination: string, _change_type: string)\n"
            "  = hint: numbers have to be in decimal here, and quoted fields within a line"
        )


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("row\n2\n1\ncheap", "column 2 (n): 'cheap' is not an s64"),
        ("row\n2\n1\n0x1f", "column 2 (n): '0x1f' is not written plainly"),
        ("row\n1\n-1\n", "a blank line"),
        ('row\n-1\n-1\n"a', "'\"a' is not well quoted"),
        ("row\n2\n-1\na\rb,1", "'a\\rb,1' is not plain UTF-8 text"),
        ("row\n1\n-1\na", "'a' has 1 column instead of 2 (s: string, n: s64)"),
    ],
)
def test_what_is_wrong_with_a_line(told: str, sentence: str) -> None:
    columns = (Column("s", STRING), Column("n", S64))
    assert line_problem(f"file:///d/a%20b.csv\n{told}", columns)[0] == f"/d/a b.csv: {sentence}"
