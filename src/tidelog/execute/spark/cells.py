"""Values in Arrow columns, as they lie in DataFrames: used by the driver and by Python workers.

Workers import this module, so it imports nothing of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tidelog.program.arrow import is_text
from tidelog.program.functions import FunctionFailure, evaluate
from tidelog.program.model import Expr, Value, Var
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

ToText = Callable[[Any, Type], str]  # the text of a value of a nested type (`program.types`), or a ValueError


def representation(type: Type) -> str:
    """How values of a type lie in columns: see the table in `types`."""
    if type.kind == "bool":
        return "boolean"
    if type.kind == "float":
        return "float" if type.bits == 32 else "double"
    if is_text(type):
        return "digits"
    if type.kind == "int":
        return "decimal" if type.bits == 64 and not type.signed else "long"
    return "string"


def arrow_cell_type(type: Type) -> pa.DataType:
    """The Arrow type of a column in a DataFrame."""
    import pyarrow as pa

    return {
        "boolean": pa.bool_(),
        "long": pa.int64(),
        "decimal": pa.decimal128(20, 0),
        "float": pa.float32(),
        "double": pa.float64(),
        "digits": pa.string(),
        "string": pa.string(),
    }[representation(type)]


def decode(values: pa.Array, type: Type) -> list[Value | None]:
    """The values of a column, as expressions take them."""
    cells = values.to_pylist()
    if representation(type) in ("decimal", "digits"):
        return [None if cell is None else int(cell) for cell in cells]
    return list(cells)


def encode(values: Sequence[Value | None], type: Type) -> pa.Array:
    """A column of values; None where there is none."""
    import pyarrow as pa

    cells: list[Value | Decimal | None] = list(values)
    if representation(type) == "decimal":
        cells = [None if value is None else Decimal(value) for value in values]
    elif representation(type) == "digits":
        cells = [None if value is None else str(value) for value in values]
    return pa.array(cells, arrow_cell_type(type))


def nested_texts(text: ToText, type: Type, index: int, columns: Sequence[pa.Array]) -> pa.Array:
    """The texts of a column of arrays or structs; what does not fit is raised for `schema.explain`."""
    import pyarrow as pa

    texts: list[str] = []
    for value in columns[0].to_pylist():
        if value is None:
            raise ValueError(f"tidelog-null:{index}:;")
        try:
            texts.append(text(value, type))
        except ValueError as error:
            said = json.dumps([repr(value)[:60], str(error)])
            raise ValueError(f"tidelog-nested:{index}:{said.encode().hex().upper()};") from None
    return pa.array(texts, pa.string())


def evaluate_columns(expr: Expr, variables: Sequence[Var], columns: Sequence[pa.Array]) -> pa.Array:
    """The value of an expression for each row; None where it fails."""
    names = [variable.name for variable in variables]
    rows = zip(*(decode(c, v.type) for c, v in zip(columns, variables, strict=True)), strict=True)
    return encode([_value(expr, names, row) for row in rows], expr.type)


def _value(expr: Expr, names: Sequence[str], row: Sequence[Value | None]) -> Value | None:
    env = {name: value for name, value in zip(names, row, strict=True) if value is not None}
    if len(env) < len(names):  # something failed before, on a row that is not kept
        return None
    try:
        return evaluate(expr, env)
    except FunctionFailure:
        return None
