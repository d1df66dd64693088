"""DataFrames as facts: what they may look like, and when they are computed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.session.states import GRAPH, TYPED
from tidelog import Database, DataError, TidelogError, UnknownRelationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

Rows = list[tuple[Any, ...]]


def edges(spark: SparkSession, rows: Rows, schema: str = "from long, to long") -> DataFrame:
    return spark.createDataFrame(rows, schema)


def raised(db: Database, relation: str, frame: DataFrame) -> list[str]:
    """The lines of the error of inserting a DataFrame."""
    with pytest.raises(DataError) as caught:
        db.commit(insert={relation: frame})
    return str(caught.value).splitlines()


# --- facts come and go -----------------------------------------------------------


@pytest.mark.usefixtures("place")
def test_insert_and_delete(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db:
        assert db.engine == "spark"
        first = db.commit(insert={"Edge": edges(spark, [(1, 2), (2, 3), (2, 3)])})
        assert first["Path"].inserted == [(1, 2), (1, 3), (2, 3)]
        assert db.report.ignored_inserts == 1
        second = db.commit(
            delete={"Edge": edges(spark, [(1, 2), (7, 7)])}, insert={"Edge": edges(spark, [(2, 3), (3, 4)])}
        )
        assert (second["Edge"].deleted, second["Edge"].inserted) == ([(1, 2)], [(3, 4)])
        assert list(second["Path"]) == [((1, 2), -1), ((1, 3), -1), ((2, 4), 1), ((3, 4), 1)]
        assert (db.report.ignored_inserts, db.report.ignored_deletes) == (1, 1)
        third = db.commit(delete={"Edge": edges(spark, [(2, 3), (3, 4)])})
        assert (len(db["Edge"]), len(db["Path"])) == (0, 0)
        assert third["Path"].deleted == [(2, 3), (2, 4), (3, 4)]


@pytest.mark.usefixtures("place")
def test_rows_of_every_kind_together(spark: SparkSession) -> None:
    """Lists and tables before and after DataFrames, and as many commits as it takes to put parts together."""
    with Database("path(x, y) :- edge(x, y).", spark=spark) as db:
        db.commit(insert={"edge": [(0, 1), (9, 9)]})
        for i in range(1, 7):
            frame = edges(spark, [(i, i + 1), (0, 1)], "a int, b int")
            db.commit(insert={"edge": frame if i % 2 else frame.toArrow()}, delete={"edge": [(9, 9)]})
            assert db.report.ignored_inserts == 1
        assert list(db["edge"]) == list(db["path"]) == [(i, i + 1) for i in range(7)]
        with db.transaction() as tx:
            tx.insert("edge", edges(spark, [(50, 51)]))
            tx.clear("edge")
            tx.insert("edge", [(8, 9)])
            tx.insert("edge", edges(spark, [(9, 10)]))
        assert list(db["path"]) == [(8, 9), (9, 10)]
        assert (len(tx.changes["edge"].deleted), tx.report.ignored_deletes) == (7, 0)


@pytest.mark.usefixtures("place")
def test_facts_of_derived_relations_and_of_the_program(spark: SparkSession) -> None:
    with Database(GRAPH + "edge(1, 2).", spark=spark) as db:
        db.commit(insert={"path": edges(spark, [(1, 2), (5, 6)])})
        db.commit(delete={"edge": edges(spark, [(1, 2)])})
        assert list(db["path"]) == [(1, 2), (5, 6)]


def test_columns_by_name_or_position(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db:
        db.commit(insert={"Edge": edges(spark, [(2, 1)], "to long, from long")})
        db.commit(insert={"Edge": edges(spark, [(4, 3)], "TO long, From long")})
        db.commit(insert={"Edge": edges(spark, [(5, 6)], "`from.x` long, `from.x` long")})
        assert raised(db, "Edge", edges(spark, [(7, 8)], "TO long, x long")) == [
            "error[TL0504]: cannot insert into Edge: the names match 1 of 2 columns only",
            "  = note: the columns of the DataFrame are TO: bigint, x: bigint",
            "  = note: those of Edge are from, to",
            "  = hint: df.withColumnRenamed(...) renames a column, df.toDF(...) all of them",
        ]
        assert list(db["Edge"]) == [(1, 2), (3, 4), (5, 6)]


def test_names_that_differ_in_case_alone(spark: SparkSession) -> None:
    with Database("input relation R(x: s64, X: s64)", spark=spark) as db:
        db.commit(insert={"R": edges(spark, [(2, 1)], "X long, x long")})
        assert db["R"].to_spark().collect() == [(1, 2)]
        assert db["R"].to_spark().columns == ["x", "X"]


@pytest.mark.usefixtures("place")
def test_relations_without_columns(spark: SparkSession) -> None:
    with Database("input relation P()\noutput relation Q(x: s64)\nQ(1) :- P().", spark=spark) as db:
        db.commit(insert={"P": spark.range(3).select()})
        assert (len(db["P"]), list(db["Q"]), db["P"].to_spark().count()) == (1, [(1,)], 1)
        db.commit(delete={"P": spark.range(1).select()})
        assert (len(db["P"]), list(db["Q"]), db["P"].to_spark().count()) == (0, [], 0)


# --- computed once, at commit ----------------------------------------------------


@pytest.mark.usefixtures("place")
def test_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    log = str(tmp_path / "seen")

    def seen(x):  # type: ignore[no-untyped-def]  # hints would be read as those of pandas
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{x}\n")
        return x + 1

    frame = spark.range(5).select("id", F.udf(seen, "long")("id").alias("next"))
    with Database("path(x, z) :- edge(x, y), edge(y, z).", spark=spark) as db:
        with db.transaction() as tx:
            tx.insert("edge", frame)
            assert not (tmp_path / "seen").exists()
        assert len(db["path"]) == 4
        db.commit(insert={"edge": [(7, 8)]})
        assert (len(db["path"]), len(tx.changes["path"]), db["edge"].to_spark().count()) == (4, 4, 6)
    assert sorted((tmp_path / "seen").read_text().split()) == list("01234")


@pytest.mark.usefixtures("place")
def test_a_frame_that_fails(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    with Database(TYPED, spark=spark) as db:
        db.commit(insert={"Edge": edges(spark, [(1, 2)])})
        wrong = edges(spark, [("3", "4"), ("5", "six")], "from string, to string")
        wrong = wrong.select(F.col("from").cast("long"), F.col("to").cast("long"))
        with pytest.raises(DataError) as caught:
            db.commit(
                insert={"Edge": wrong},
                delete={"Edge": edges(spark, [(1, 2)])},
                add_rules=["Path(x, x) :- Edge(x, _)."],
            )
        first, said, last = str(caught.value).splitlines()
        assert first == "error[TL0504]: cannot insert into Edge: Spark cannot compute the DataFrame"
        assert "CAST_INVALID_INPUT" in said and "six" in said
        assert last == "  = note: nothing has been changed"
        assert (list(db["Path"]), db.version, len(db.rules)) == ([(1, 2)], 1, 2)
        assert db.commit(insert={"Edge": edges(spark, [(2, 3)])})["Path"].inserted == [(1, 3), (2, 3)]


@pytest.mark.usefixtures("place")
def test_a_rule_that_fails(spark: SparkSession) -> None:
    with Database("q(10 / x) :- p(x).", spark=spark) as db:
        db.commit(insert={"p": edges(spark, [(2,)], "x int")})
        with pytest.raises(TidelogError, match="TL0401"):
            db.commit(insert={"p": edges(spark, [(0,)], "x int")})
        assert (list(db["p"]), list(db["q"]), db.version) == ([(2,)], [(5,)], 1)


def test_rollback(spark: SparkSession) -> None:
    with Database(GRAPH, spark=spark) as db:
        tx = db.transaction()
        tx.insert("edge", edges(spark, [(1, 2)]))
        tx.rollback()
        assert (db.version, len(db["edge"])) == (0, 0)


def test_unknown_relations(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db, db.transaction() as tx, pytest.raises(UnknownRelationError):
        tx.insert("Edges", edges(spark, [(1, 2)]))
    with Database(GRAPH, spark=spark) as db, db.transaction() as tx:
        with pytest.raises(UnknownRelationError):
            tx.delete("arc", edges(spark, [(1, 2)]))
        tx.delete("edge", edges(spark, [(1, 2)]))  # has no types yet, so it has no facts
    assert db.version == 1


# --- values that do not fit --------------------------------------------------------


def test_nulls(spark: SparkSession) -> None:
    with Database(TYPED, spark=spark) as db:
        assert raised(db, "Edge", edges(spark, [(1, 2), (3, None)])) == [
            "error[TL0504]: cannot insert into Edge: a wrong row",
            "  --> column 2 (to): null, and there are no nulls",
            "  = hint: leave such rows out with df.dropna(), or give them a value with df.fillna()",
        ]
        assert (db.version, list(db["Edge"])) == (0, [])


@pytest.mark.parametrize(
    ("type", "theirs", "good", "bad", "told"),
    [
        ("u8", "int", 255, 256, "256 is outside u8 (0 to 255)"),
        ("u8", "tinyint", 0, -1, "-1 is outside u8 (0 to 255)"),
        (
            "s32",
            "decimal(20,0)",
            -(2**31),
            -(2**31) - 1,
            "-2147483649 is outside s32 (-2147483648 to 2147483647)",
        ),
        (
            "u64",
            "decimal(38,0)",
            2**64 - 1,
            2**64,
            "18446744073709551616 is outside u64 (0 to 18446744073709551615)",
        ),
        ("u64", "bigint", 2**63 - 1, -5, "-5 is outside u64 (0 to 18446744073709551615)"),
        ("u128", "int", 7, -5, f"-5 is outside u128 (0 to {2**128 - 1})"),
        (
            "s128",
            "string",
            str(-(2**127)),
            str(2**127),
            f"{2**127} is outside s128 ({-(2**127)} to {2**127 - 1})",
        ),
        ("bigint", "string", "9" * 60, "007", "'007' is not a bigint as it should be written"),
        ("bigint", "string", "-1", "one", "'one' is not a bigint"),
        ("float", "double", float("inf"), 1e39, "1e+39 is too large for a float"),
    ],
)
def test_values_outside_their_type(
    spark: SparkSession, type: str, theirs: str, good: Any, bad: Any, told: str
) -> None:
    from pyspark.sql import functions as F

    def frame(value: Any) -> DataFrame:
        return spark.range(1).select(F.lit(str(value)).cast(theirs).alias("x"))

    with Database(f"input relation R(x: {type})", spark=spark) as db:
        db.commit(insert={"R": frame(good)})
        [(kept,)] = db["R"]
        assert str(kept) == str(good)
        assert raised(db, "R", frame(bad)) == [
            "error[TL0504]: cannot insert into R: a wrong row",
            f"  --> column 1 (x): {told}",
        ]


def test_columns_that_do_not_fit(spark: SparkSession) -> None:
    program = "input relation R(a: s64, b: string, c: double, d: bool, e: s32, f: s64)"
    frame = spark.sql(
        "select '1' a, named_struct('p', 1) b, array(1.5d) c, true d, 1.5d e, timestamp'2020-01-01' f"
    )
    with Database(program, spark=spark) as db:
        assert raised(db, "R", frame) == [
            "error[TL0504]: cannot insert into R: 5 columns do not fit",
            "  --> column 1 (a) is s64, `a` of the DataFrame is string",
            "  --> column 2 (b) is string, `b` of the DataFrame is struct<p:int>",
            "  --> column 3 (c) is double, `c` of the DataFrame is array<double>",
            "  --> column 5 (e) is s32, `e` of the DataFrame is double",
            "  --> column 6 (f) is s64, `f` of the DataFrame is timestamp",
            '  = hint: a: convert it, as in F.col("a").cast("bigint")',
            '  = hint: b: select its fields, as in F.col("b.p")',
            '  = hint: c: F.explode("c") gives each element a row',
            '  = hint: e: convert it, as in F.col("e").cast("int")',
            '  = hint: f: timestamps have no type in the language; F.unix_micros("f") counts microseconds',
        ]
        assert db.version == 0


def test_types_come_with_the_first_facts(spark: SparkSession) -> None:
    frame = spark.sql(
        "select 1Y a, 2S b, 3 c, 4L d, cast(5 as decimal(18,0)) e, cast(6 as decimal(20,0)) f, "
        "1.5f g, 2.5d h, true i, 'text' j"
    )
    with Database("", spark=spark) as db:
        db.commit(insert={"r": frame})
        types = [str(column.type) for column in db.relations["r"].columns]
        assert types == ["s64"] * 5 + ["bigint", "double", "double", "bool", "string"]
        assert list(db["r"]) == [(1, 2, 3, 4, 5, 6, 1.5, 2.5, True, "text")]
        assert raised(db, "r", frame.withColumn("c", frame.j)) == [
            "error[TL0505]: cannot insert into r: a column does not fit",
            "  --> column 3 (c2) is s64, `c` of the DataFrame is string",
            "  = note: r is not declared: its first facts gave its columns their types",
            '  = hint: c: convert it, as in F.col("c").cast("bigint")',
        ]
        assert raised(db, "s", spark.sql("select date'2020-01-01' d, 1.25 n")) == [
            "error[TL0504]: cannot insert into s: 2 columns do not fit",
            "  --> column 1 (c0) has no type yet, `d` of the DataFrame is date",
            "  --> column 2 (c1) has no type yet, `n` of the DataFrame is decimal(3,2)",
            '  = hint: d: dates have no type in the language; F.unix_date("d") counts the days',
            '  = hint: n: convert it, as in F.col("n").cast("double")',
        ]


def test_strings_are_compared_as_they_are(spark: SparkSession) -> None:
    """Whatever a column of the DataFrame takes for the same."""
    with Database("p(x) :- q(x).", spark=spark) as db:
        db.commit(insert={"q": spark.sql("select collate(s, 'UTF8_LCASE') s from values ('a'), ('A') t(s)")})
        assert list(db["p"]) == [("A",), ("a",)]


def test_streams_are_not_facts(spark: SparkSession) -> None:
    with Database("p(x) :- q(x).", spark=spark) as db:
        assert raised(db, "q", spark.readStream.format("rate").load().select("value")) == [
            "error[TL0504]: cannot insert into q: a stream has no end, so it cannot be computed",
            "  = hint: db.stream(df, relation) commits each of its batches",
        ]


def test_an_empty_frame_gives_types_too(spark: SparkSession) -> None:
    with Database("p(x) :- q(x).", spark=spark) as db:
        db.commit(insert={"q": edges(spark, [], "x string")})
        assert str(db.relations["p"].columns[0].type) == "string"
