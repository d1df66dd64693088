"""Arrays and structs in DataFrames, files and streams: they come, and go out as what they came as."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.session.spark.test_facts import raised
from tidelog import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

HOME = "{street: symbol, at: [float], n: u64, big: bigint, rooms: [{size: s8}]}"
PROGRAM = f"""
.decl person(id: number, home: {HOME}, tags: [symbol])
.decl together(a: number, b: number, home: {HOME})
.decl tagged(tags: [symbol], n: number)
.input person
.output together, tagged
together(a, b, h) :- person(a, h, _), person(b, h, _).
together(a, c, h) :- together(a, b, h), together(b, c, h).
tagged(t, n) :- person(_, _, t), n = count : {{ person(_, _, t) }}.
"""
SCHEMA = (
    "id bigint, home struct<street:string,at:array<double>,n:decimal(20,0),big:string,"
    "rooms:array<struct<size:tinyint>>>, tags array<string>"
)
LANE: Any = (
    'Mill\n"Lane"\\é\u2028',
    [1.0, float("nan"), -0.0],
    Decimal(2**64 - 1),
    "1" * 40,
    [(1,), (-128,)],
)
ROAD: Any = ("", [1e300, float("-inf"), 1e-5, 0.1], Decimal(0), "-1", [])
ROWS = [(1, LANE, ["a", "a"]), (2, LANE, []), (3, ROAD, ["a", "a"])]


def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA)


@pytest.mark.usefixtures("place")
def test_in_and_out(spark: SparkSession) -> None:
    given = people(spark)
    with Database(PROGRAM, spark=spark) as db:
        first = db.commit(insert={"person": given})
        out = db["person"].to_spark()
        assert [(f.name, f.dataType) for f in out.schema] == [(f.name, f.dataType) for f in given.schema]
        assert (out.exceptAll(given).count(), given.exceptAll(out).count()) == (0, 0)
        pairs = db["together"].to_spark().selectExpr("a", "b", "home.street", "get(home.rooms, 1).size")
        lane = (LANE[0], -128)
        expected = [(1, 1, *lane), (1, 2, *lane), (2, 1, *lane), (2, 2, *lane), (3, 3, "", None)]
        assert sorted(map(tuple, pairs.collect())) == expected
        feed = first.to_spark("tagged").select("tags", "n", "_change_type").collect()
        assert sorted(map(tuple, feed)) == [([], 1, "insert"), (["a", "a"], 2, "insert")]
        [row] = [row for row in db["person"] if row[0] == 1]
        assert row[1].asdict() | {"at": ()} == {
            "street": LANE[0],
            "at": (),
            "n": 2**64 - 1,
            "big": int("1" * 40),
            "rooms": ((1,), (-128,)),
        }
        second = db.commit(delete={"person": given.where("id = 2")})
        assert second["tagged"].deleted == [((), 1)]
        assert [row[:2] for row in second["together"].deleted] == [(1, 2), (2, 1), (2, 2)]
        changed = spark.createDataFrame([(9, LANE, [], "insert")], f"{SCHEMA}, _change_type string")
        with db.transaction() as tx:
            tx.apply("person", changed)
        assert [row[0] for row in tx.changes["person"].inserted] == [9]


@pytest.mark.parametrize("way", ["single", "barrier", "shuffle"])
def test_every_way_of_a_fixpoint(spark: SparkSession, on_spark: None, way: str) -> None:
    """Keys of joins and of the exchange are arrays and structs."""
    rows = [([i % 4, i // 4], {"a": [i + 1, 0]}) for i in range(20)]
    program = """
    .decl edge(x: [number], y: {a: [number]})
    .decl next(y: {a: [number]}, x: [number])
    .decl path(x: [number], y: {a: [number]})
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), next(y, w), edge(w, z).
    """
    facts = {"edge": rows, "next": [({"a": [i, 0]}, [i % 4, i // 4]) for i in range(20)]}
    with Database(program) as here:
        here.commit(insert=facts)
        expected = list(here["path"])
    spark.conf.set("spark.tidelog.fixpoint", way)
    try:
        with Database(program, spark=spark) as db:
            db.commit(insert=facts)
            assert list(db["path"]) == expected
    finally:
        spark.conf.unset("spark.tidelog.fixpoint")


@pytest.mark.parametrize(
    ("select", "told"),
    [
        ("id, cast(null as struct<x: int>) home", "column 2 (home): null, and there are no nulls"),
        (
            "id, named_struct('x', cast(null as int)) home",
            "column 2 (home): {'x': None} is not a struct {x: u8}: x is None, which is not a u8",
        ),
        (
            "id, named_struct('x', 256) home",
            "column 2 (home): {'x': 256} is not a struct {x: u8}: x is 256, which is outside u8 (0 to 255)",
        ),
    ],
)
@pytest.mark.usefixtures("place")
def test_values_that_do_not_fit(spark: SparkSession, select: str, told: str) -> None:
    with Database("input relation R(id: s64, home: {x: u8})", spark=spark) as db:
        db.commit(insert={"R": spark.sql("select 1L id, named_struct('x', 255) home")})
        before = list(db["R"])
        lines = raised(db, "R", spark.range(2).selectExpr(*select.split(", ", 1)))
        assert lines[:2] == ["error[TL0504]: cannot insert into R: a wrong row", f"  --> {told}"]
        assert list(db["R"]) == before == [(1, (255,))]


def test_types_that_do_not_fit(spark: SparkSession) -> None:
    program = "input relation R(a: [s64], b: {x: s64, y: string}, c: {x: s64}, d: [[s64]])"
    frame = spark.sql(
        "select array('x') a, named_struct('x', 1) b, map('x', 1) c, array(named_struct('x', 1)) d"
    )
    with Database(program, spark=spark) as db:
        assert raised(db, "R", frame) == [
            "error[TL0504]: cannot insert into R: 4 columns do not fit",
            "  --> column 1 (a) is [s64], `a` of the DataFrame is array<string>",
            "  --> column 2 (b) is {x: s64, y: string}, `b` of the DataFrame is struct<x:int>",
            "  --> column 3 (c) is {x: s64}, `c` of the DataFrame is map<string,int>",
            "  --> column 4 (d) is [[s64]], `d` of the DataFrame is array<struct<x:int>>",
            "  = hint: a: it should be array<bigint>",
            "  = hint: b: it should be struct<x:bigint,y:string>",
            "  = hint: c: maps have no type in the language; "
            'F.map_entries("c") makes an array of structs of one',
            "  = hint: d: it should be array<array<bigint>>",
        ]


def test_names_of_fields(spark: SparkSession) -> None:
    """Also those that Spark has a use of its own for."""
    with Database("input relation R(x: {_corrupt_record: string, a: s64})", spark=spark) as db:
        db.commit(insert={"R": spark.sql("select named_struct('a', 1, '_corrupt_record', 'b') x")})
        assert [tuple(row.x) for row in db["R"].to_spark().collect()] == [("b", 1)]


def test_empty_arrays_have_no_type_of_their_own(spark: SparkSession) -> None:
    with Database("input relation R(x: [s64])", spark=spark) as db:
        db.commit(insert={"R": spark.sql("select array() x")})
        assert list(db["R"]) == [((),)]


def test_types_come_with_the_first_facts(spark: SparkSession) -> None:
    with Database("", spark=spark) as db:
        db.commit(insert={"r": spark.sql("select array(1Y) a, named_struct('x y', array(1.5f)) b")})
        assert [str(column.type) for column in db.relations["r"].columns] == ["[s64]", '{"x y": [double]}']
        assert list(db["r"]) == [((1,), ((1.5,),))]
        assert raised(db, "s", spark.sql("select array(date'2020-01-01') a"))[1:2] == [
            "  --> column 1 (c0) has no type yet, `a` of the DataFrame is array<date>"
        ]


@pytest.mark.parametrize("format", ["parquet", "orc", "json", "csv"])
@pytest.mark.usefixtures("place")
def test_files(spark: SparkSession, tmp_path: Path, format: str) -> None:
    """What one database writes, whoever does it, another reads."""
    names = {"person": ".input person", "tagged": ".output together, tagged"}
    text = PROGRAM.replace(names["person"], "").replace(
        names["tagged"], f'.output person(format="{format}", filename="person.{format}")'
    )
    with Database(text, spark=spark) as db:
        db.commit(insert={"person": people(spark)})
        db.write(tmp_path)
        expected = repr(list(db["person"]))
    back = PROGRAM.replace(names["person"], f'.input person(format="{format}", filename="person.{format}")')
    for session in (spark, None):
        with Database(back, spark=session) as db:
            with db.transaction() as tx:
                tx.load(tmp_path)
            assert repr(list(db["person"])) == expected


def test_text_that_spark_reads(
    spark: SparkSession, on_spark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidelog.io import spark_files

    (tmp_path / "r.facts").write_text('1\t{"x": [1, 2]}\n2\t{"x":[]}\n1\t{ "x":[1,2] }\n', encoding="utf-8")
    monkeypatch.setattr(spark_files.facts_frame, "__defaults__", (0,))
    with Database(".decl r(i: number, s: {x: [number]})\n.input r", spark=spark) as db:
        with db.transaction() as tx:
            tx.load(tmp_path)
        assert list(db["r"]) == [(1, ((1, 2),)), (2, ((),))]


@pytest.mark.usefixtures("place")
def test_a_store_keeps_them(spark: SparkSession, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with Database(PROGRAM, spark=spark, store=store) as db:
        db.commit(insert={"person": people(spark)})
        expected = {name: repr(list(db[name])) for name in ("person", "together", "tagged")}
        db.commit(delete={"person": people(spark).where("id = 1")})
    with Database(PROGRAM, spark=spark, store=store) as db:
        assert [row[0] for row in db["person"]] == [2, 3]
        db.commit(insert={"person": people(spark).where("id = 1")})
        assert {name: repr(list(db[name])) for name in expected} == expected
        assert repr(list(db.as_of(1)["together"])) == expected["together"]
    with Database(PROGRAM, store=store) as db:
        assert repr(list(db["person"])) == expected["person"]


def test_a_stream_of_them(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    people(spark).write.parquet(str(source))
    stream: Any = spark.readStream.schema(people(spark).schema).parquet(str(source))
    with Database(PROGRAM, spark=spark, store=str(tmp_path / "store")) as db:
        feed = tmp_path / "feed"
        db.stream(stream, "person", trigger="availableNow", feed=feed).awaitTermination()
        assert len(db["together"]) == 5
    told = spark.read.parquet(str(feed / "together")).select("a", "b", "home.rooms", "_change_type")
    rooms = [{"size": 1}, {"size": -128}]
    assert sorted((r.a, r.b) for r in told.collect() if [x.asDict() for x in r.rooms] == rooms) == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
