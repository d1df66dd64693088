"""Files and tables that Spark reads and writes.

Text is read line by line and parsed by Spark's own expressions, in the plain ways of writing values
alone; a line that is written in another way is a *doubt*, and whoever asked decides what to do
about it. Text is written by Python workers, so that it looks the same wherever it is written.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, StringType, StructField, StructType

from tidelog.execute.spark.cells import representation
from tidelog.execute.spark.schema import failing, outward_cell
from tidelog.execute.spark.types import column_types, key, spark_type
from tidelog.program.model import Column, Relation
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

_TRUE, _FALSE = ("true", "1"), ("false", "0")
_INTEGER, _NATURAL = "^-?[0-9]+$", "^[0-9]+$"
_DIGITS = "^(0|-?[1-9][0-9]*)$"
_FLOAT = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"


# --- reading -----------------------------------------------------------------------


def read_frame(
    spark: SparkSession,
    format: str,
    path: str,
    table: str,
    options: Mapping[str, str],
    schema: StructType | None = None,
) -> DataFrame:
    """A table, or what is at a path; Spark finds the schema of files itself, unless it is told."""
    reader = spark.read.options(**_checked(format, options))
    reader = reader if schema is None else reader.schema(schema)
    return reader.table(table) if table else reader.format(format).load(path)


def read_stream(
    spark: SparkSession,
    format: str,
    path: str,
    table: str,
    options: Mapping[str, str],
    schema: StructType | None,
) -> DataFrame:
    """A stream of what comes to a table or a path; Spark has to be told the schema of files."""
    reader = spark.readStream.options(**_checked(format, options))
    if table:
        return reader.table(table)
    return (reader if schema is None else reader.schema(schema)).format(format).load(path)


def _checked(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options with which Spark refuses what it cannot read, and does not make nulls of it."""
    return {"mode": "FAILFAST", **options} if format == "json" else dict(options)


def with_floats(schema: StructType, columns: Sequence[Column]) -> StructType:
    """The schema of JSON in which floats may be text: Spark reads `"NaN"` where it is told that it is one."""
    floats = {column.name for column in columns if column.type.kind == "float"}
    return StructType(
        [
            StructField(f.name, DoubleType())
            if f.name in floats and isinstance(f.dataType, StringType)
            else f
            for f in schema.fields
        ]
    )


@dataclass(frozen=True)
class Lines:
    """Lines of text as rows of a relation. `doubts` tells of the lines that are not written plainly."""

    rows: DataFrame
    doubts: DataFrame
    headers: DataFrame


def read_lines(
    spark: SparkSession,
    path: str,
    columns: Sequence[Column],
    delimiter: str,
    quoted: bool,
    header: str | Callable[[str], str] | None,
    *,
    stream: bool = False,
) -> Lines:
    """The lines of text files.

    Those that are exactly `header` are none of the rows; if it is a function, it says of the first line of
    each file whether it is a `header`, a `row`, or `wrong`. In a stream a doubt makes Spark fail: nobody is
    there to decide.
    """
    reader = spark.readStream if stream else spark.read
    whole = reader.option("lineSep", "\n").text(path)
    whole = whole.select(F.col("value").alias("line"), "_metadata.file_path", "_metadata.file_block_start")
    line = F.regexp_replace("line", "\r$", "")
    is_header = line == F.lit(header) if isinstance(header, str) else F.lit(False)
    whole = _without_headers(whole, header) if callable(header) else whole.withColumn("wrong", F.lit(False))
    pieces = _quoted_fields(line, delimiter) if quoted else F.split(line, re.escape(delimiter), -1)
    parsed = whole.filter(~is_header).withColumn("fields", pieces)
    fields = [F.get("fields", F.lit(i)) for i in range(len(columns))]
    values = [_value(field, column.type) for field, column in zip(fields, columns, strict=True)]
    plain = (F.size("fields") == F.lit(len(columns))) & F.is_valid_utf8(F.col("line"))
    plain = plain & ~line.rlike("\r|^\ufeff") & ~F.col("wrong")
    if [column.type.kind for column in columns] != ["string"]:
        plain = plain & (F.col("line") != "")  # blank lines are allowed at the end alone
    for value in values:
        plain = plain & value.isNotNull()
    rows = parsed.withColumn("plain", F.coalesce(plain, F.lit(False)))
    told = _told(line, fields, values)
    if stream:
        fails = failing("line", 0, told)
        values = [F.when(F.col("plain"), value).otherwise(fails) for value in values]
    named = [value.alias(f"v{i}") for i, value in enumerate(values)]
    return Lines(
        rows.select(*named).toDF(*[column.name for column in columns]),
        rows.filter(~F.col("plain")).select(told),
        whole.filter(is_header),
    )


def _told(line: SparkColumn, fields: Sequence[SparkColumn], values: Sequence[SparkColumn]) -> SparkColumn:
    """What is known of a line that is not plain: file, kind, number of fields, a wrong one, and its text."""
    width = F.size("fields")
    kind = F.when(F.col("wrong"), F.lit("header")).otherwise(F.lit("row"))
    index, text = F.lit(-1), F.make_valid_utf8(line)
    for i, (field, value) in reversed(list(enumerate(zip(fields, values, strict=True)))):
        is_wrong = (width == F.lit(len(fields))) & value.isNull()
        index, text = F.when(is_wrong, F.lit(i)).otherwise(index), F.when(is_wrong, field).otherwise(text)
    text = F.when(F.col("wrong"), line).otherwise(text)
    count = F.coalesce(width, F.lit(-1))
    return F.concat_ws("\n", "file_path", kind, count.cast("string"), index.cast("string"), text)


def _without_headers(lines: DataFrame, kind: Callable[[str], str]) -> DataFrame:
    """Lines without the headers of files; of each line, whether it is a wrong header.

    A task reads block after block: where one begins that is the first of its file, there is the first line.
    """

    def kept(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        last = None
        for batch in batches:
            if not batch.num_rows:
                continue
            _, paths, starts = batch.columns
            changed = pc.or_(
                pc.not_equal(paths.slice(1), paths.slice(0, len(paths) - 1)),
                pc.not_equal(starts.slice(1), starts.slice(0, len(starts) - 1)),
            )
            begins = [i + 1 for i in pc.indices_nonzero(changed).to_pylist()]
            if last != (paths[0].as_py(), starts[0].as_py()):
                begins.insert(0, 0)
            last = paths[-1].as_py(), starts[-1].as_py()
            keep, wrong = [True] * len(paths), [False] * len(paths)
            for i in begins:
                if starts[i].as_py() == 0:
                    first = batch.column(0)[i].as_buffer().to_pybytes().removeprefix(b"\xef\xbb\xbf")
                    found = kind(first.decode(errors="replace").removesuffix("\r"))
                    keep[i], wrong[i] = found != "header", found == "wrong"
            marked = batch.append_column("wrong", pa.array(wrong))
            yield marked if all(keep) else marked.filter(pa.array(keep))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pandas that we do not use
        schema = StructType([*lines.schema.fields, StructField("wrong", BooleanType())])
        return lines.mapInArrow(kept, schema)


def _quoted_fields(line: SparkColumn, delimiter: str) -> SparkColumn:
    """The fields of a line in which every quoted field ends; null for any other line."""
    d = re.escape(delimiter)
    inside = r'[^"]*+(?:""[^"]*+)*+'
    field = rf'(?:"{inside}"|[^"{d}]*+)'
    whole = rf"^{field}(?:{d}{field})*+$"
    # A delimiter before the first field makes every match longer than nothing.
    found = F.regexp_extract_all(F.concat(F.lit(delimiter), line), F.lit(rf"{d}({field})"), F.lit(1))
    return F.when(line.rlike(whole), F.transform(found, _unquoted))


def _unquoted(text: SparkColumn) -> SparkColumn:
    inner = F.substring(text, F.lit(2), F.length(text) - F.lit(2))
    return F.when(text.startswith('"'), F.replace(inner, F.lit('""'), F.lit('"'))).otherwise(text)


def _value(text: SparkColumn, type: Type) -> SparkColumn:
    """The value of a field; null where it is not written plainly."""
    wanted = spark_type(type)
    match representation(type):
        case "string":
            return text
        case "boolean":
            return F.when(text.isin(*_TRUE), F.lit(True)).when(text.isin(*_FALSE), F.lit(False))
        case "long" | "decimal" as kind:
            number = F.when(text.rlike(_INTEGER if kind == "long" else _NATURAL), text.try_cast(wanted))
            low, high = (F.lit(str(bound)).cast(wanted) for bound in type.bounds())
            return F.when((number >= low) & (number <= high), number)
        case "digits":
            longest = 38 if type.kind == "bigint" else len(str(type.bounds()[1])) - 1
            pattern = _DIGITS if type.kind == "bigint" or type.signed else _NATURAL
            return F.when(text.rlike(pattern) & text.rlike(_DIGITS) & (F.length(text) <= longest), text)
        case _:
            number = F.when(text.rlike(_FLOAT), text.try_cast(wanted))
            return F.when(F.abs(number) < F.lit(float("inf")), number)


# --- writing -----------------------------------------------------------------------


def write_frame(
    frame: DataFrame, format: str, path: str, table: str, mode: str, options: Mapping[str, str]
) -> None:
    """Write a DataFrame to a table, or to part files at a path."""
    writer = frame.write.mode(mode).options(**options)
    if table:
        writer.saveAsTable(table)
    else:
        writer.format(format).save(path)


def write_lines(
    frame: DataFrame,
    lines: Callable[[pa.RecordBatch], pa.Array],
    header: str | None,
    path: str,
    mode: str,
) -> None:
    """Write a relation's DataFrame of cells as part files of text; each begins with the header."""

    def text(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if header is not None:
            yield pa.record_batch([pa.array([header])], names=["value"])
        for batch in batches:
            yield pa.record_batch([lines(batch).cast(pa.string())], names=["value"])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pandas that we do not use
        lined = frame.mapInArrow(text, StructType([StructField("value", StringType())]))
    lined.write.mode(mode).text(path)


def sorted_frame(frame: DataFrame, relation: Relation) -> DataFrame:
    """A relation's DataFrame of cells in the order of its values, as `io.sort` has it.

    But long integers inside arrays and structs go by their digits, and zeros there are alike.
    """
    keys: list[SparkColumn] = []
    for i, type in enumerate(column_types(relation)):
        cell = F.col(f"c{i}")
        match representation(type):
            case "digits":
                negative = cell.startswith("-")
                length = F.length(cell)
                mirrored = F.translate(cell, "0123456789", "9876543210")
                keys += [
                    F.when(negative, -length).otherwise(length),
                    F.when(negative, mirrored).otherwise(cell),
                ]
            case "float" | "double":
                keys += [cell, key(cell, type) != F.lit("-0.0")]
            case _ if type.is_nested:
                keys += [outward_cell(cell, type), cell]
            case _:
                keys.append(cell)
    return frame.sort(*keys)
