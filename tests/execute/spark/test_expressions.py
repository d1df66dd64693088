"""Every function on a table of values: Spark agrees with `program.functions`, failures included."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

import pytest

from tidelog.program.functions import FUNCTIONS, FunctionFailure, evaluate
from tidelog.program.model import Apply, Const, Expr, Value, Var
from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, U64, Type, signed, unsigned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BINARY = ("add", "sub", "mul", "div", "mod", "pow", "min", "max")
BITS = ("band", "bor", "bxor", "shl", "shr")


def numbers(type: Type) -> list[Expr]:
    """Expressions over two numbers, a and b."""
    a, b = Var("a", type), Var("b", type)
    found = [Apply(name, (a, b), BOOL) for name in COMPARISONS]
    found += [Apply(name, (a, b), type) for name in (*BINARY, *(BITS if type.is_integral else ()))]
    found += [Apply(name, (a,), type) for name in ("neg", "abs", *(("bnot",) if type.is_integral else ()))]
    found += [Apply("to_string", (a,), STRING)]
    found += [Apply("cast", (a,), t) for t in (signed(8), S64, U64, BIGINT, FLOAT, DOUBLE, STRING)]
    total, quotient = Apply("add", (a, b), type), Apply("div", (a, b), type)
    small, zero = Apply("lt", (total, b), BOOL), Const(0.0 if type.kind == "float" else 0, type)
    unequal, large = Apply("ne", (b, zero), BOOL), Apply("gt", (quotient, a), BOOL)
    found += [
        Apply("and", (small, large), BOOL),
        Apply("and", (unequal, large), BOOL),
        Apply("or", (Apply("eq", (b, zero), BOOL), large), BOOL),
        Apply("or", (small, Apply("not", (large,), BOOL)), BOOL),
        Apply("if", (unequal, quotient, a), type),
        Apply("if", (large, a, b), type),
        Apply("max", (total, a), type),
        Apply("div", (Const(7 if type.is_integral else 7.5, type), b), type),
        Apply("add", (Const(1 if type.is_integral else -0.0, type), zero), type),
        Apply("div", (zero, zero), type),
    ]
    if type.kind == "float":
        negative = Const(-0.0, type)
        found += [
            Apply("if", (Apply("lt", (a, b), BOOL), negative, zero), type),
            Apply("mul", (a, zero), type),
            Apply("mul", (a, negative), type),
        ]
    return found


def strings() -> list[Expr]:
    a, b = Var("a", STRING), Var("b", STRING)
    one, two = Const(1, S64), Const(2, S64)
    found: list[Expr] = [Apply(name, (a, b), BOOL) for name in COMPARISONS]
    found += [Apply(name, (a, b), BOOL) for name in ("contains", "starts_with", "ends_with", "matches")]
    found += [Apply(name, (a, b), STRING) for name in ("concat", "min", "max")]
    found += [Apply(name, (a,), STRING) for name in ("lower", "upper", "trim", "reverse", "to_string")]
    length = Apply("length", (a,), S64)
    found += [
        length,
        Apply("length", (a,), U64),
        Apply("add", (length, Apply("length", (b,), S64)), S64),
        Apply("substring", (a, one, two), STRING),
        Apply("substring", (a, Apply("neg", (one,), S64), two), STRING),
        Apply("replace", (a, b, Const("<>", STRING)), STRING),
        Apply("to_number", (a,), S64),
        Apply("cast", (a,), U64),
        Apply("cast", (a,), BIGINT),
        Apply("cast", (a,), DOUBLE),
        Apply("if", (Apply("contains", (a, b), BOOL), a, b), STRING),
    ]
    return found


def booleans() -> list[Expr]:
    a, b = Var("a", BOOL), Var("b", BOOL)
    found: list[Expr] = [Apply(name, (a, b), BOOL) for name in (*COMPARISONS, "and", "or")]
    return [*found, Apply("not", (a,), BOOL), Apply("to_string", (a,), STRING), Apply("cast", (a,), S64)]


def around(type: Type) -> list[Value]:
    low, high = type.bounds()
    near = (-7, -2, -1, 0, 1, 2, 3, 10, 64)
    return sorted({low, low + 1, high - 1, high} | {n for n in near if low <= n <= high})


BIG = 10**30
FLOATS = (0.0, -0.0, 1.0, -1.5, 3.0, 0.1, 1e30, -1e30, 5e-324, math.inf, -math.inf, math.nan)
FLOATS32 = (0.0, -0.0, 1.0, -1.5, 0.10000000149011612, 1.0000000150474662e30, math.inf, -math.inf, math.nan)
TEXTS = (
    "",
    "a",
    "B",
    "ab",
    "abab",
    "é",
    "Straße",
    "\U0001f600x",
    "\uffff",
    " t ",
    "12",
    "-7",
    "1.5e3",
    "(",
    ".*",
)

CASES: dict[str, tuple[Type, list[Expr], Sequence[Value]]] = {
    "s64": (S64, numbers(S64), around(S64)),
    "s8": (signed(8), numbers(signed(8)), around(signed(8))),
    "bit<12>": (unsigned(12), numbers(unsigned(12)), around(unsigned(12))),
    "u64": (U64, numbers(U64), around(U64)),
    "s128": (signed(128), numbers(signed(128)), around(signed(128))),
    "bigint": (BIGINT, numbers(BIGINT), (-BIG, -10, -9, -1, 0, 1, 2, 9, 10, BIG, BIG + 1)),
    "double": (DOUBLE, numbers(DOUBLE), FLOATS),
    "float": (FLOAT, numbers(FLOAT), FLOATS32),
    "string": (STRING, strings(), TEXTS),
    "bool": (BOOL, booleans(), (False, True)),
}


def expected(expr: Expr, a: Value, b: Value) -> Value | None:
    try:
        return evaluate(expr, {"a": a, "b": b})
    except FunctionFailure:
        return None


@pytest.fixture(scope="module", params=["interpreted", "compiled"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """Spark evaluates expressions in two ways; on constants it would do so on the driver."""
    compiled = request.param == "compiled"
    settings = {
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
        "spark.sql.codegen.wholeStage": str(compiled).lower(),
        "spark.sql.codegen.factoryMode": "CODEGEN_ONLY" if compiled else "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.mark.parametrize("case", CASES)
def test_agreement(case: str, session: SparkSession) -> None:
    import pyarrow as pa
    from pyspark.sql import functions as F

    from tidelog.execute.spark.cells import decode, encode
    from tidelog.execute.spark.expressions import column_of

    type, exprs, values = CASES[case]
    pairs = list(product(values, values))
    cells = [encode([pair[i] for pair in pairs], type) for i in (0, 1)]
    frame = session.createDataFrame(pa.table(cells, names=["a", "b"]))
    columns = {"a": F.col("a"), "b": F.col("b")}
    # A session that computes in the driver's order keeps the rows in order: one partition.
    chosen = [column_of(expr, columns).alias(f"e{i}") for i, expr in enumerate(exprs)]
    table = frame.coalesce(1).select("a", "b", *chosen).toArrow()
    rows = list(zip(decode(table.column("a"), type), decode(table.column("b"), type), strict=True))
    assert sorted(map(repr, rows)) == sorted(map(repr, pairs))
    for i, expr in enumerate(exprs):
        found = decode(table.column(f"e{i}"), expr.type)
        wrong = [
            (row, got, wanted)
            for row, got in zip(rows, found, strict=True)
            if repr(got) != repr(wanted := expected(expr, row[0], row[1]))  # type: ignore[arg-type]
        ]
        assert wrong == [], expr


def test_every_function_is_tried() -> None:
    def functions(expr: Expr) -> set[str]:
        if not isinstance(expr, Apply):
            return set()
        return {expr.function}.union(*(functions(arg) for arg in expr.args))

    tried = set[str]().union(*(functions(expr) for _, exprs, _ in CASES.values() for expr in exprs))
    assert tried == FUNCTIONS.keys()
