"""Files that Spark's tasks read and write, beside what this process reads and writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tidelog.execute.spark.state import rows_of
from tidelog.io.facts import read_facts
from tidelog.io.options import Format
from tidelog.io.places import Place, find_facts, output_place
from tidelog.io.rows import table_of_rows
from tidelog.io.spark_files import facts_frame, write_rows
from tidelog.io.writing import Sink, write_all, write_files
from tidelog.program.model import Column, Relation
from tidelog.program.types import parse_type
from tidelog.session.database import Database
from tidelog.syntax.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def relation(types: str, **options: str) -> Relation:
    columns = tuple(Column(f"x{i}", t) for i, t in enumerate(map(parse_type, types.split())) if t is not None)
    given = tuple(options.items())
    return Relation("r", columns, is_input=True, is_output=True, input_options=given, output_options=given)


TEXT = [
    (b"1\ta\n2\tb\n", "s64 string", {}, True),
    (b"1\ta\r\n-007\t\r\n", "s64 string", {}, True),
    (b"\xef\xbb\xbf1\ta\n", "s64 string", {}, True),
    (b"a\n\n\n", "string", {}, True),
    (b'NA\t\nnull\t"q"\n', "string string", {}, True),
    (b"true\t255\n0\t0\n", "bool u8", {}, True),
    (b"18446744073709551615\t-9223372036854775808\n", "u64 s64", {}, True),
    (b"340282366920938463463\t-5\t1e-5\t0.1\n-0\t0\t-0.0\t3\n", "bigint s128 double float", {}, False),
    (b"340282366920938463463\t-5\t1e-5\t0.1\n10\t0\t-0.0\t3\n", "bigint s128 double float", {}, True),
    (b"a|1\nb|2\n", "string s64", {"delimiter": "|"}, True),
    (b"a::1\nb::2\n", "string s64", {"delimiter": "::"}, True),
    (b"x0,x1\n1,a\n2,x1\n", "s64 string", {"format": "csv"}, True),
    (b'x0,x1\n1,"a, ""b"""\n2,\n', "s64 string", {"format": "csv"}, True),
    (b"h\ti\n1\ta\n", "s64 string", {"headers": "true"}, True),
    (b"a,b\nc,d\n", "string string", {"format": "csv"}, True),
    # not written plainly: this process reads these
    (b"0x1f\ta\n", "s64 string", {}, False),
    (b" 7 \ta\n", "s64 string", {}, False),
    (b"1\ta\n\n", "s64 string", {}, False),
    (b"a\rb\tc\n", "string string", {}, False),
    (b"inf\tnan\n", "double double", {}, False),
    (b'1,"two\nlines"\n', "s64 string", {"format": "csv"}, False),
    (b"x0,x1\na,b\nx0,x1\n", "string string", {"format": "csv"}, False),
]


def test_text_is_the_same_whoever_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    for number, (content, types, options, by_spark) in enumerate(TEXT):
        directory = tmp_path / str(number)
        directory.mkdir()
        r = relation(types, **options)
        (directory / f"r.{options.get('format', 'facts')}").write_bytes(content)
        place = find_facts([r], directory)["r"]
        table = read_facts(r, place).table
        frame = facts_frame(spark, r, place, small=0)
        assert (frame is not None) is by_spark, content
        if frame is not None:
            expected = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
            found = sorted(tuple(row) for row in frame.collect())
            assert repr(found).replace("Decimal('18446744073709551615')", "18446744073709551615") == repr(
                expected
            ), content


def test_wrong_text_is_named_with_its_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"1\n2\n300\n" * 2)
    db = Database(".decl r(x0: unsigned)\n.input r\n", spark=spark)
    for content in (b"1\n-2\n", b"1\tb\n"):
        (tmp_path / "r.facts").write_bytes(content)
        assert (
            facts_frame(spark, db.relations["r"], Place("facts", str(tmp_path / "r.facts")), small=0) is None
        )
        with pytest.raises(DataError, match=r"r\.facts:[12]: "):
            db.load(tmp_path)
    db.close()


def values(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_what_either_side_writes_both_read(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [(-1, '\u00e9, "q"', 0), (2, "b", 2**32 - 1), (7, "", 5)]
    for format in ("parquet", "orc", "json", "csv"):
        r = relation("s64 string u32", format=format)
        table = table_of_rows("r", r.columns, rows)[0]
        for name, tuples in (("here", table), ("spark", rows_of(spark, r, table))):
            place = replace(find_place(r, tmp_path / name), text=Format(",", True, "detect"))
            write_all([Sink(r, tuples, place, parts=name == "spark")])
            assert values(read_facts(r, place).table) == rows, (format, name)
            frame = facts_frame(spark, r, place, small=0)
            assert frame is not None and sorted(tuple(row) for row in frame.collect()) == rows, (format, name)
    assert (tmp_path / "spark/r.parquet/_SUCCESS").exists() and (tmp_path / "here/r.parquet").is_file()


def find_place(r: Relation, directory: Path) -> Place:
    place = output_place(r, directory)
    assert place is not None
    return place


def test_long_integers_in_columns(spark: SparkSession, tmp_path: Path) -> None:
    r = relation("u64 bigint s8")
    rows: list[tuple[object, ...]] = [(2**64 - 1, str(10**30), -5), (1, "-7", 127)]
    table = table_of_rows("r", r.columns, [(a, int(str(b)), c) for a, b, c in rows])[0]
    for format in ("parquet", "orc"):
        for name, tuples in (("here", table), ("spark", rows_of(spark, r, table))):
            place = Place(format, str(tmp_path / f"{name}.{format}"))
            write_all([Sink(r, tuples, place)])
            assert values(read_facts(r, place).table) == sorted(rows), (format, name)


def test_json_goes_round(spark: SparkSession, tmp_path: Path) -> None:
    """Numbers for which JSON has no plain way, and text that looks like a time, from either side to both."""
    r = relation("u64 double float bigint string")
    inf, nan = float("inf"), float("nan")
    rows: list[tuple[object, ...]] = [
        (1, nan, -inf, -7, "NaN"),
        (2, inf, 0.5, 10**30, "2026-11-16"),
        (2**64 - 1, -0.5, nan, 1, ""),
    ]
    table = table_of_rows("r", r.columns, rows)[0]
    for name, tuples in (("here", table), ("spark", rows_of(spark, r, table))):
        place = Place("json", str(tmp_path / name))
        write_all([Sink(r, tuples, place)])
        assert repr(values(read_facts(r, place).table)) == repr(values(table)), name
        frame = facts_frame(spark, r, place, small=0)
        assert frame is not None
        with Database(
            "input relation r(x0: u64, x1: double, x2: float, x3: bigint, x4: string)", spark=spark
        ) as db:
            db.commit(insert={"r": frame})
            assert repr(list(db["r"])) == repr(rows), name


def test_json_that_is_wrong(tmp_path: Path) -> None:
    r, place = relation("u64 double"), Place("json", str(tmp_path / "r.json"))
    for line, message in (
        (b'{"x0": -1, "x1": 0.5}', r"row 2: column 1 \(x0\): -1 is outside u64"),
        (b'{"x0": 1, "x1": "inf"}', r"row 2: column 2 \(x1\): 'inf' is not a double"),
        (b'{"x0": 1}', "row 2: "),
        (b'{"x0": 1, "x1": 0.5', r"r\.json:2"),
        (b"[1, 0.5, 2]", "row 2: 3 columns instead of 2"),
        (b'{"x0": 1, "x1": 0.5, "y": \xff}', r"r\.json:2"),
    ):
        (tmp_path / "r.json").write_bytes(b'{"x0": 18446744073709551615, "x1": NaN}\n' + line + b"\n")
        with pytest.raises(DataError, match=message):
            read_facts(r, place)


def test_large_text_becomes_one_file_in_order(spark: SparkSession, tmp_path: Path) -> None:
    """The same file that this process writes, byte by byte, though tasks wrote it in pieces."""
    r = relation("bigint double string u64", headers="true", rfc4180="true")
    inf, nan = float("inf"), float("nan")
    rows: list[tuple[object, ...]] = [
        (i * j, v, f's{i % 3}\n"', 2**64 - 1 - i)
        for i in range(1, 9)
        for j in (-(10**20), 7, -3, 10**20)
        for v in (0.0, -0.0, 1.5, -inf, nan, 1e300)
    ]
    table = table_of_rows("r", r.columns, rows)[0]
    write_files([(r, table)], tmp_path / "here")
    place = find_place(r, tmp_path / "spark")
    sink = Sink(r, rows_of(spark, r, table), place)
    assert place.here is not None
    place.here.parent.mkdir()
    write_rows(sink, place.here)
    assert place.here.read_bytes() == (tmp_path / "here/r.csv").read_bytes()


def test_tables_and_modes(spark: SparkSession, tmp_path: Path) -> None:
    program = """
        .decl edge(x: number, y: number)
        .input edge(table="tidelog_edges")
        .decl path(x: number, y: number)
        .output path(table="tidelog_paths")
        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).
    """
    spark.createDataFrame([(1, 2), (2, 3)], "x long, y long").write.saveAsTable("tidelog_edges")
    try:
        with Database(program, spark=spark, maintained=False) as db:
            db.load(tmp_path)
            assert db.write(tmp_path) == []
            assert sorted(map(tuple, spark.table("tidelog_paths").collect())) == [(1, 2), (1, 3), (2, 3)]
            r, rows = db.relations["path"], db["path"].held()
        with Database(program, spark=spark) as db:  # has few answers in this process
            db.load(tmp_path)
            db.commit(insert={"edge": [(3, 4)]})
            assert db.write(tmp_path) == []
            assert spark.table("tidelog_paths").count() == 6
        place = Place("parquet", str(tmp_path / "more"))
        for mode in ("overwrite", "append", "ignore"):
            write_all([Sink(r, rows, place, mode, parts=True)])
        assert spark.read.parquet(str(tmp_path / "more")).count() == 6
        with pytest.raises(DataError, match="is there already"):
            write_all([Sink(r, rows, place, "error")])
        write_all([Sink(r, rows, place)])
        assert spark.read.parquet(str(tmp_path / "more")).count() == 3
        assert [p.name for p in tmp_path.iterdir()] == ["more"]
    finally:
        for name in ("tidelog_edges", "tidelog_paths"):
            spark.sql(f"drop table if exists {name}")


def test_what_spark_cannot_read_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        facts_frame(spark, relation("s64"), Place(table="nowhere.at_all"))
    assert str(caught.value).startswith(
        "error[TL0503]: cannot read the facts of r in table nowhere.at_all\n"
        "  = note: [TABLE_OR_VIEW_NOT_FOUND] "
    )
    with pytest.raises(DataError, match=r"TL0507.*table of Spark's catalog"):
        read_facts(relation("s64"), Place(table="t"))
