"""Expressions as Spark columns.

A column is null where the expression fails; nothing else makes a null, because
relations hold none. What fails and why is found again on the driver, from the
values (see `failures`).

An expression is computed by Spark itself where each of its functions there means
exactly what `program.functions` says, and else as a whole by `evaluate` in a Python
worker: Spark evaluates a worker's function before the expression around it, so that
a part of a conditional would be computed for rows it does not concern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidelog.execute.spark.cells import evaluate_columns, representation
from tidelog.execute.spark.types import literal, spark_type
from tidelog.execute.spark.workers import in_workers
from tidelog.program.functions import FunctionFailure, can_fail, evaluate
from tidelog.program.model import Apply, Const, Expr, Var, variables
from tidelog.program.types import S64, Type

Columns = Sequence[Column]


def column_of(expr: Expr, columns: Mapping[str, Column]) -> Column:
    """The expression over the columns of its variables; null where it fails."""
    native = _native(expr, columns)
    column = _python(expr, columns) if native is None else native
    return column.cast(spark_type(expr.type))


# --- in Python workers ---------------------------------------------------------


def _python(expr: Expr, columns: Mapping[str, Column]) -> Column:
    used = variables(expr)
    if not used:  # Spark has no function without arguments to call for each row
        try:
            return literal(evaluate(expr, {}), expr.type)
        except FunctionFailure:
            return F.lit(None)

    compute = partial(evaluate_columns, expr, used)
    return in_workers(compute, [columns[v.name] for v in used], expr.type)


# --- in Spark ------------------------------------------------------------------


def _native(expr: Expr, columns: Mapping[str, Column]) -> Column | None:
    if isinstance(expr, Var):
        return columns[expr.name]
    if isinstance(expr, Const):
        # Spark's optimiser takes -0.0 and 0.0 as one, and so what is computed from them.
        return None if repr(expr.value) == "-0.0" else literal(expr.value, expr.type)
    build = _NATIVE.get(expr.function)
    if build is None:
        return None
    args = [_native(arg, columns) for arg in expr.args]
    found = [arg for arg in args if arg is not None]
    return build(expr, found) if len(found) == len(args) else None


def _kind(node: Apply) -> str | None:
    """How all arguments of a node lie in columns; None if they differ."""
    kinds = {representation(arg.type) for arg in node.args}
    return kinds.pop() if len(kinds) == 1 else None


def _fit(column: Column, type: Type) -> Column | None:
    """A bigint as a value of a narrower type; null where it does not fit."""
    if representation(type) != "long":
        return None
    if type == S64:
        return column
    low, high = type.bounds()
    return F.when((column >= F.lit(low)) & (column <= F.lit(high)), column)


def _compare(operator: Callable[[Column, Column], Column]) -> Callable[[Apply, Columns], Column | None]:
    def build(node: Apply, args: Columns) -> Column | None:
        left, right = args
        kind = _kind(node)
        if kind is None or (kind == "digits" and node.function not in ("eq", "ne")):
            return None
        if kind not in ("float", "double"):
            return operator(left, right)
        if node.function == "ne":  # Spark holds NaN equal to itself and larger than all numbers
            return F.isnan(left) | F.isnan(right) | (left != right)
        return ~F.isnan(left) & ~F.isnan(right) & operator(left, right)

    return build


def _arithmetic(
    integers: Callable[[Column, Column], Column], floats: Callable[[Column, Column], Column] | None = None
) -> Callable[[Apply, Columns], Column | None]:
    def build(node: Apply, args: Columns) -> Column | None:
        left, right = args
        if _kind(node) == "long":
            return _fit(integers(left, right), node.type)
        if floats is not None and _kind(node) == representation(node.type) in ("float", "double"):
            return floats(left, right)
        return None

    return build


def _quotient(left: Column, right: Column) -> Column:
    whole = F.call_function("div", left, right)
    lowest = (left == F.lit(S64.bounds()[0])) & (right == F.lit(-1))
    return F.when((right != F.lit(0)) & ~lowest, whole)


def _remainder(left: Column, right: Column) -> Column:
    return F.when(right == F.lit(-1), F.lit(0).cast("bigint")).when(right != F.lit(0), left % right)


def _negate(node: Apply, args: Columns) -> Column | None:
    if _kind(node) in ("float", "double"):
        return -args[0]
    return (
        _fit(F.try_subtract(F.lit(0).cast("bigint"), args[0]), node.type) if _kind(node) == "long" else None
    )


def _absolute(node: Apply, args: Columns) -> Column | None:
    if _kind(node) in ("float", "double"):
        return F.abs(args[0])
    negated = _negate(node, args)
    if negated is None:
        return None
    return F.when(args[0] >= F.lit(0), args[0]).when(args[0] < F.lit(0), negated)


def _bits(operator: Callable[[Column, Column], Column]) -> Callable[[Apply, Columns], Column | None]:
    return lambda node, args: operator(args[0], args[1]) if _kind(node) == "long" else None


def _complement(node: Apply, args: Columns) -> Column | None:
    if _kind(node) != "long":
        return None
    return args[0].bitwiseXOR(F.lit(-1 if node.type.signed else node.type.bounds()[1]))


def _extreme(choose: Callable[..., Column]) -> Callable[[Apply, Columns], Column | None]:
    def build(node: Apply, args: Columns) -> Column | None:
        # Spark passes over nulls, and has its own view of NaN.
        if _kind(node) not in ("long", "decimal", "string") or any(can_fail(arg) for arg in node.args):
            return None
        return choose(*args) if len(args) > 1 else args[0]

    return build


def _both(node: Apply, args: Columns) -> Column:
    # Not `&`: a failure on the left is a failure even if the right side is false.
    return F.when(args[0], args[1]).when(~args[0], F.lit(False)) if can_fail(node) else args[0] & args[1]


def _either(node: Apply, args: Columns) -> Column:
    return F.when(args[0], F.lit(True)).when(~args[0], args[1]) if can_fail(node) else args[0] | args[1]


def _conditional(node: Apply, args: Columns) -> Column | None:
    if {representation(arg.type) for arg in node.args[1:]} != {representation(node.type)}:
        return None
    return F.when(args[0], args[1]).when(~args[0], args[2])


def _to_string(node: Apply, args: Columns) -> Column | None:
    return None if _kind(node) in ("float", "double", None) else args[0].cast("string")


def _cast(node: Apply, args: Columns) -> Column | None:
    source, target = _kind(node), representation(node.type)
    if node.type == node.args[0].type:
        return args[0]
    if target == "string":
        return _to_string(node, args)
    if source == "long" and target == "double":
        return args[0].cast("double")
    return _fit(args[0], node.type) if source == target == "long" else None


def _plain(build: Callable[..., Column]) -> Callable[[Apply, Columns], Column | None]:
    return lambda node, args: build(*args)


_NATIVE: dict[str, Callable[[Apply, Columns], Column | None]] = {
    "eq": _compare(lambda a, b: a == b),
    "ne": _compare(lambda a, b: a != b),
    "lt": _compare(lambda a, b: a < b),
    "le": _compare(lambda a, b: a <= b),
    "gt": _compare(lambda a, b: a > b),
    "ge": _compare(lambda a, b: a >= b),
    "add": _arithmetic(F.try_add, lambda a, b: a + b),
    "sub": _arithmetic(F.try_subtract, lambda a, b: a - b),
    "mul": _arithmetic(F.try_multiply, lambda a, b: a * b),
    "div": _arithmetic(_quotient),
    "mod": _arithmetic(_remainder),
    "neg": _negate,
    "abs": _absolute,
    "band": _bits(lambda a, b: a.bitwiseAND(b)),
    "bor": _bits(lambda a, b: a.bitwiseOR(b)),
    "bxor": _bits(lambda a, b: a.bitwiseXOR(b)),
    "bnot": _complement,
    "min": _extreme(F.least),
    "max": _extreme(F.greatest),
    "and": _both,
    "or": _either,
    "not": _plain(lambda a: ~a),
    "if": _conditional,
    "concat": _plain(F.concat),
    "length": lambda node, args: F.length(args[0]).cast(spark_type(node.type)),
    "contains": _plain(F.contains),
    "starts_with": _plain(F.startswith),
    "ends_with": _plain(F.endswith),
    "reverse": _plain(F.reverse),
    "to_string": _to_string,
    "cast": _cast,
}
