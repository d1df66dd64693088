"""The schemas of DataFrames that users give and get, beside the types of our columns.

| type                          | is given as                           | is got as                      |
|-------------------------------|---------------------------------------|--------------------------------|
| bool                          | boolean                               | boolean                        |
| integers of up to 64 bits     | tinyint to bigint, decimal(p,0)       | the shortest of these it fits  |
| u64                           | tinyint to bigint, decimal(p,0)       | decimal(20,0)                  |
| integers of more than 64 bits | these, or a string of decimal digits  | a string of decimal digits     |
| float, double                 | float, double, tinyint to bigint      | float, double                  |
| string                        | string                                | string                         |
| array, struct                 | array, struct of such; their JSON     | array, struct                  |

What a type does not rule out is looked at row by row, when the DataFrame is computed:
nulls, and numbers outside the range of a column. Such a row makes Spark fail with a
message that `explain` reads.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame as DataFrame  # for those who must not import PySpark
from pyspark.sql import SparkSession as SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark.sql.types import StructField as StructField

from tidelog.execute.spark.cells import ToText, nested_texts, representation
from tidelog.execute.spark.types import column_names, key, spark_type
from tidelog.execute.spark.workers import in_workers
from tidelog.program.arrow import is_text
from tidelog.program.functions import BIGINT_BITS
from tidelog.program.model import Column, Relation
from tidelog.program.types import (
    BIGINT,
    BOOL,
    DOUBLE,
    S64,
    STRING,
    UNKNOWN,
    Type,
    array_of,
    signed,
    struct_of,
)

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
CHANGE_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
ADDS, TAKES = ("insert", "update_postimage"), ("delete", "update_preimage")
ADDED, VERSION = "added", "version"  # columns beside the cells, in a DataFrame of changes

_INTEGERS: tuple[tuple[DataType, int], ...] = (
    (ByteType(), 8),
    (ShortType(), 16),
    (IntegerType(), 32),
    (LongType(), 64),
)
_DIGITS = "^(0|-?[1-9][0-9]*)$"
_MESSAGE = re.compile(r"tidelog-(null|value|nested|change|line):(\d+):([0-9A-F]*);")


# --- types ---------------------------------------------------------------------


def type_of(theirs: DataType) -> Type:
    """Our type for a column that has none yet; UNKNOWN if there is none."""
    bounds = _bounds(theirs)
    if bounds is not None:
        return S64 if bounds[1] <= S64.bounds()[1] else BIGINT
    match theirs:
        case FloatType() | DoubleType():
            return DOUBLE
        case BooleanType():
            return BOOL
        case StringType():
            return STRING
        case ArrayType():
            return array_of(type_of(theirs.elementType))
        case StructType():
            return struct_of(*((field.name, type_of(field.dataType)) for field in theirs.fields))
        case _:
            return UNKNOWN


def takes(ours: Type, theirs: DataType) -> bool:
    """Whether values of a Spark type can be values of ours."""
    match theirs:
        case DecimalType():
            return ours.is_integral and theirs.scale == 0
        case ByteType() | ShortType() | IntegerType() | LongType():
            return ours.is_integral or ours.kind == "float"
        case FloatType() | DoubleType():
            return ours.kind == "float"
        case BooleanType():
            return ours.kind == "bool"
        case StringType():
            return ours.kind == "string" or is_text(ours) or ours.is_nested
        case ArrayType():
            element = theirs.elementType  # void, where all arrays are empty
            return ours.kind == "array" and (isinstance(element, NullType) or takes(ours.element, element))
        case StructType():
            fields = {field.name: field.dataType for field in theirs.fields}
            return (
                ours.kind == "struct"
                and len(ours.parts) == len(theirs.fields)
                and all(name in fields and takes(part, fields[name]) for name, part in ours.parts)
            )
        case _:
            return False


def outward(ours: Type) -> DataType:
    """The Spark type in which users get values of ours."""
    if ours.kind == "array":
        return ArrayType(outward(ours.element))
    if ours.kind == "struct":
        return StructType([StructField(name, outward(part)) for name, part in ours.parts])
    if representation(ours) == "long":
        low, high = ours.bounds()
        return next(t for t, bits in _INTEGERS if _within((low, high), signed(bits).bounds()))
    return spark_type(ours)


def advice(name: str, theirs: DataType, ours: Type) -> str:
    """What to do with a column that does not fit."""
    match theirs:
        case StructType() if not ours.is_nested:
            field = theirs.names[0] if theirs.names else "field"
            return f'{name}: select its fields, as in F.col("{name}.{field}")'
        case ArrayType() if not ours.is_nested:
            return f'{name}: F.explode("{name}") gives each element a row'
        case MapType():
            what = f'F.map_entries("{name}") makes an array of structs of one'
            return f"{name}: maps have no type in the language; {what}"
        case _ if ours.is_nested:
            return f"{name}: it should be {outward(ours).simpleString()}"
        case DateType() if ours.kind != "string":
            return f'{name}: dates have no type in the language; F.unix_date("{name}") counts the days'
        case TimestampType() | TimestampNTZType() if ours.kind != "string":
            what = f'F.unix_micros("{name}") counts microseconds'
            return f"{name}: timestamps have no type in the language; {what}"
        case BinaryType():
            return f'{name}: bytes have no type in the language; F.hex("{name}") is their text'
        case _ if ours == UNKNOWN:
            wanted = "double" if isinstance(theirs, DecimalType) else "string"
        case _:
            wanted = outward(ours).simpleString()
    return f'{name}: convert it, as in F.col("{name}").cast("{wanted}")'


def _bounds(theirs: DataType) -> tuple[int, int] | None:
    """The smallest and largest value of a Spark type of whole numbers."""
    if isinstance(theirs, DecimalType):
        most = 10**theirs.precision - 1
        return (-most, most) if theirs.scale == 0 else None
    return next((signed(bits).bounds() for type, bits in _INTEGERS if type == theirs), None)


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


# --- what is given -------------------------------------------------------------


def places(names: Sequence[str], columns: Sequence[Column]) -> list[int] | None:
    """Where each of our columns is among those given; None if their number is another.

    By name where the names are ours (as Spark has it, whatever their case), else by position.
    """
    if len(names) != len(columns):
        return None
    ours = [column.name for column in columns]
    for spelt in (str, str.casefold):
        there, here = [spelt(name) for name in names], [spelt(name) for name in ours]
        if sorted(there) == sorted(here) and len(set(here)) == len(here):
            return [there.index(name) for name in here]
    return list(range(len(columns)))


def half_matching(names: Sequence[str], columns: Sequence[Column]) -> int:
    """How many of the names are those of our columns, where only some are; 0 where all are, or none."""
    ours = [column.name for column in columns]
    for spelt in (str, str.casefold):
        if sorted(map(spelt, names)) == sorted(map(spelt, ours)):
            return 0
    known = {name.casefold() for name in ours}
    return sum(name.casefold() in known for name in names)


def is_integer(theirs: DataType) -> bool:
    """Whether a Spark type is one of integers that a number of a version may have."""
    return any(type == theirs for type, _ in _INTEGERS)


def cells_of(
    frame: DataFrame, where: Sequence[int], columns: Sequence[Column], nested: ToText, *, of_changes: bool
) -> DataFrame:
    """A DataFrame as a relation's; Spark fails when it meets a value that is not in our type.

    One of changes has two more columns: whether a row comes or goes, and in which version. Arrays and structs
    become text by the function `nested`, in Python workers.
    """
    fields = frame.schema.fields
    renamed = frame.toDF(*[f"given{i}" for i in range(len(fields))])
    chosen = [
        _cell(F.col(f"given{place}"), fields[place].dataType, column.type, i, nested).alias(f"c{i}")
        for i, (place, column) in enumerate(zip(where, columns, strict=True))
    ] or [F.lit(True).alias("c0")]
    names = [field.name for field in fields]
    if of_changes:
        kind = F.col(f"given{names.index(CHANGE_TYPE)}")
        wrong = failing("change", 0, F.coalesce(kind, F.lit("null"))).cast(BooleanType())
        added = F.when(kind.isin(*ADDS), F.lit(True)).when(kind.isin(*TAKES), F.lit(False)).otherwise(wrong)
        version = F.col(f"given{names.index(COMMIT_VERSION)}") if COMMIT_VERSION in names else F.lit(0)
        chosen += [added.alias(ADDED), version.cast(LongType()).alias(VERSION)]
    return renamed.select(*chosen)


def _cell(value: SparkColumn, theirs: DataType, ours: Type, index: int, nested: ToText) -> SparkColumn:
    if ours.is_nested:
        return in_workers(partial(nested_texts, nested, ours, index), [value], STRING)
    wanted = spark_type(ours)
    cell = value.cast(wanted)
    checked = F.when(value.isNull(), failing("null", index, F.lit("")).cast(wanted))
    outside = _outside(value, theirs, ours)
    if outside is not None:
        checked = checked.when(outside, failing("value", index, value.cast(StringType())).cast(wanted))
    return checked.otherwise(cell)


def _outside(value: SparkColumn, theirs: DataType, ours: Type) -> SparkColumn | None:
    """When a value is not one of our type; None if all of their type are."""
    bounds = _bounds(theirs)
    if bounds is not None and ours.kind == "int":
        low, high = ours.bounds()
        tests = [value < _number(low, theirs)] if bounds[0] < low else []
        tests += [value > _number(high, theirs)] if high < bounds[1] else []
        return tests[0] | tests[-1] if tests else None
    if ours.kind == "float" and ours.bits == 32 and isinstance(theirs, DoubleType):
        infinite = ("Infinity", "-Infinity")
        rounded = value.cast(FloatType()).cast(StringType())
        return rounded.isin(*infinite) & ~value.cast(StringType()).isin(*infinite)
    if isinstance(theirs, StringType) and is_text(ours):
        return _no_digits(value, ours)
    return None


def _number(value: int, theirs: DataType) -> SparkColumn:
    return F.lit(str(value)).cast(theirs)


def _no_digits(text: SparkColumn, ours: Type) -> SparkColumn:
    """When a text is not the decimal digits of an integer of our type."""
    if ours.kind == "bigint":  # by their length: the bounds have thousands of digits
        return ~text.rlike(_DIGITS) | (F.length(text) > F.lit(int(BIGINT_BITS * math.log10(2))))
    low, high = ours.bounds()
    negative = text.startswith("-")
    digits = F.regexp_replace(text, "^-", "")
    most = F.when(negative, F.lit(str(-low))).otherwise(F.lit(str(high)))
    longer = F.length(digits) > F.length(most)
    larger = (F.length(digits) == F.length(most)) & (digits > most)
    return ~text.rlike(_DIGITS) | longer | larger


def failing(kind: str, index: int, value: SparkColumn) -> SparkColumn:
    """An expression that makes Spark fail with a message for `explain`."""
    encoded = F.hex(F.encode(value, "UTF-8"))
    return F.raise_error(F.concat(F.lit(f"tidelog-{kind}:{index}:"), encoded, F.lit(";")))


@dataclass(frozen=True)
class Wrong:
    """A value that made Spark stop: a `null`, a `value` outside its type, a `change` of no known type.

    Or it is a `line` of a text file, with what `files` tells of it; or a `nested` value, which comes with
    what is wrong with it, as JSON.
    """

    kind: str
    column: int
    value: str


def explain(error: Exception) -> Wrong | None:
    """The wrong value that a Spark error reports, if it is one of ours."""
    found = _MESSAGE.search(str(error))
    if found is None:
        return None
    return Wrong(found[1], int(found[2]), bytes.fromhex(found[3]).decode())


def last_changes(frame: DataFrame, types: Sequence[Type]) -> DataFrame:
    """For each fact of a DataFrame of changes the last one: of the highest version, there an insertion."""
    names = column_names(types)
    floats = {f"k{i}": key(F.col(names[i]), t) for i, t in enumerate(types) if t.kind == "float"}
    compared = [f"k{i}" if type.kind == "float" else names[i] for i, type in enumerate(types)]
    last = F.max(F.struct(VERSION, ADDED)).getField(ADDED).alias(ADDED)
    values = [F.first(names[i]).alias(names[i]) for i, t in enumerate(types) if t.kind == "float"]
    keyed = frame.withColumns(floats) if floats else frame  # Spark Connect refuses to add none
    return keyed.groupBy(*compared).agg(last, *values).select(*names, ADDED)


# --- what is got ---------------------------------------------------------------


def schema_of(relation: Relation) -> StructType:
    """The schema in which users get a relation."""
    return StructType([StructField(c.name, outward(c.type)) for c in relation.columns])


def outward_cell(cell: SparkColumn, ours: Type) -> SparkColumn:
    """A value of ours as users get it, whatever its width."""
    if not ours.is_nested:
        return cell
    # The name of a field that Spark would fill with what it cannot read, were there one of that name.
    options = {"columnNameOfCorruptRecord": "no field of any struct"}
    return F.from_json(cell, outward(ours), options)  # type: ignore[arg-type]


def outward_frame(spark: SparkSession, relation: Relation, cells: DataFrame | None) -> DataFrame:
    """A relation's DataFrame with the names and types that users know."""
    schema = schema_of(relation)
    if cells is None:
        return spark.createDataFrame([], schema) if schema.fields else spark.range(0).select()
    chosen = [
        outward_cell(F.col(f"c{i}"), column.type).cast(field.dataType)
        for i, (column, field) in enumerate(zip(relation.columns, schema.fields, strict=True))
    ]
    return cells.select(*chosen).toDF(*schema.names) if chosen else cells.select()


def change_frame(frame: DataFrame, kind: str, version: int, microseconds: int) -> DataFrame:
    """A DataFrame with the columns of a change feed."""
    return frame.select(
        "*",
        F.lit(kind).alias(CHANGE_TYPE),
        F.lit(version).cast(LongType()).alias(COMMIT_VERSION),
        F.timestamp_micros(F.lit(microseconds)).alias(COMMIT_TIMESTAMP),
    )
