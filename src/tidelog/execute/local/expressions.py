"""Expressions over whole columns.

A column is an array in the form that suits its type: bool arrays; int64 for integers
up to 64 bits (but u64); float64 for floats; codes for everything else (strings, large
integers, u64). Comparisons and plain arithmetic are computed on whole arrays. All other
functions are called once for each distinct combination of arguments, and mean exactly
what `program.functions` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tidelog.execute.local.codes import CANONICAL_NAN, Codes
from tidelog.execute.local.memory import Cells
from tidelog.program.functions import FUNCTIONS, FunctionFailure
from tidelog.program.model import Apply, Const, Expr, Value, Var
from tidelog.program.types import Type

Array = npt.NDArray[Any]
COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
EXACT_FACTOR = 1 << 31  # products of factors below this fit 64 bits


class FailedRow(Exception):
    """A function failed on a row of the columns; `message` says why."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.message, self.row = message, row


def is_coded(type: Type) -> bool:
    """Whether columns of a type stay codes."""
    if type.kind == "int":
        return type.bits > 64 or (type.bits == 64 and not type.signed)
    return type.kind not in ("bool", "float")


def to_column(cells: Cells, type: Type, codes: Codes) -> Array:
    """The column of a type from its cells."""
    if is_coded(type):
        return cells
    values = codes.decode(cells, type)
    return values.astype(np.bool_) if type.kind == "bool" else values


def to_cells(column: Array, type: Type, codes: Codes) -> Cells:
    """The cells of a column."""
    return cast(Cells, column) if is_coded(type) else codes.encode(column, type)


class Columns:
    """The variables of a frame as columns, decoded when first asked for."""

    def __init__(self, cells: Mapping[str, Cells], count: int, codes: Codes) -> None:
        self.cells, self.count, self.codes = cells, count, codes
        self._decoded: dict[str, Array] = {}

    def evaluate(self, expr: Expr) -> Array:
        """The column of an expression. Raises FailedRow."""
        match expr:
            case Var(name, type):
                if name not in self._decoded:
                    self._decoded[name] = to_column(self.cells[name], type, self.codes)
                return self._decoded[name]
            case Const():
                return self.constant(expr)
            case Apply("if", (condition, then, otherwise), type):
                return self._choose(self.evaluate(condition), then, otherwise, type)
            case Apply("and", (left, right), type):
                return self._choose(self.evaluate(left), right, Const(False, type), type)
            case Apply("or", (left, right), type):
                return self._choose(self.evaluate(left), Const(True, type), right, type)
            case Apply("not", (operand,)):
                return ~self.evaluate(operand)
        args = [self.evaluate(arg) for arg in expr.args]
        if expr.function in COMPARE and _directly_comparable(expr):
            return COMPARE[expr.function](args[0], args[1])
        if expr.type.kind == "float" and expr.function in ("add", "sub", "mul", "neg"):
            return _float_arithmetic(expr, args)
        if expr.function in ("add", "sub", "mul", "neg") and not is_coded(expr.type):
            result = _integer_arithmetic(expr, args)
            if result is not None:
                return result
        return self._each_distinct(expr, args)

    def constant(self, const: Const) -> Array:
        """A constant, as often as there are rows."""
        cell = np.array([self.codes.code(const.value, const.type)], np.uint32)
        return np.repeat(to_column(cell, const.type, self.codes), self.count)

    def part(self, rows: Array) -> Columns:
        """The frame of some of the rows, by a mask or by numbers."""
        cells = {name: column[rows] for name, column in self.cells.items()}
        count = int(rows.sum()) if rows.dtype == np.bool_ else len(rows)
        return Columns(cells, count, self.codes)

    def _choose(self, condition: Array, then: Expr, otherwise: Expr, type: Type) -> Array:
        """Each side is evaluated only for the rows that need it."""
        result = np.empty(self.count, _dtype(type))
        for expr, rows in ((then, condition), (otherwise, ~condition)):
            try:
                result[rows] = self.part(rows).evaluate(expr)
            except FailedRow as failed:
                raise FailedRow(failed.message, int(np.flatnonzero(rows)[failed.row])) from None
        return result

    def _each_distinct(self, node: Apply, args: list[Array]) -> Array:
        keys = np.stack([_key(a) for a in args], axis=1)
        distinct, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        function = FUNCTIONS[node.function].python
        values: list[Value] = []
        failures: list[tuple[int, str]] = []
        for row in first.tolist():
            arguments = [self._value(a[row], arg.type) for a, arg in zip(args, node.args, strict=True)]
            try:
                values.append(function(node, arguments))
            except FunctionFailure as failure:
                failures.append((row, str(failure)))
        if failures:
            row, message = min(failures)
            raise FailedRow(message, row)
        cells = np.array([self.codes.code(value, node.type) for value in values], np.uint32)
        column = to_column(cells, node.type, self.codes)
        return column[inverse.reshape(-1)] if len(distinct) else np.empty(0, _dtype(node.type))

    def _value(self, item: Any, type: Type) -> Value:
        if is_coded(type):
            return self.codes.value(int(item), type)
        return cast(Value, item.item())


def _dtype(type: Type) -> npt.DTypeLike:
    if is_coded(type):
        return np.uint32
    return {"bool": np.bool_, "float": np.float64}.get(type.kind, np.int64)


def _key(column: Array) -> npt.NDArray[np.int64]:
    """A column as numbers that are equal exactly when its values are stored as equal."""
    if column.dtype == np.float64:
        bits = column.view(np.int64).copy()
        bits[np.isnan(column)] = CANONICAL_NAN
        return bits
    return column.astype(np.int64)


def _directly_comparable(node: Apply) -> bool:
    """Codes tell equality only; everything else compares as it is."""
    return not is_coded(node.args[0].type) or node.function in ("eq", "ne")


def _float_arithmetic(node: Apply, args: list[Array]) -> Array:
    with np.errstate(all="ignore"):
        match node.function:
            case "add":
                result = args[0] + args[1]
            case "sub":
                result = args[0] - args[1]
            case "mul":
                result = args[0] * args[1]
            case _:
                result = -args[0]
        return result.astype(np.float32).astype(np.float64) if node.type.bits == 32 else result


def _integer_arithmetic(node: Apply, args: list[Array]) -> Array | None:
    """Checked arithmetic on 64 bits; None where 64 bits may not be enough to check it."""
    low, high = node.type.bounds()
    left = args[0]
    if len(left) == 0:
        return left
    if node.function == "neg":
        left, right = np.zeros_like(args[0]), args[0]
    else:
        right = args[1]
    with np.errstate(all="ignore"):
        if node.function == "mul":
            if any((abs(int(bound)) >= EXACT_FACTOR) for a in (left, right) for bound in (a.min(), a.max())):
                return None
            result = left * right
            wrapped = np.zeros(len(result), np.bool_)
        elif node.function == "add":
            result = left + right
            wrapped = ((left ^ result) & (right ^ result)) < 0
        else:
            result = left - right
            wrapped = ((left ^ right) & (left ^ result)) < 0
    failed = wrapped | (result < low) | (result > high)
    if failed.any():
        raise FailedRow("integer overflow", int(np.argmax(failed)))
    return result
