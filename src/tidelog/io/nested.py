"""Arrays and structs: what users give and get, and the text that the engine has of them.

The text is JSON without blanks, with the fields of a struct in the order of its type: equal values have
equal texts. An integer of more than 64 bits is its digits in quotes; floats that are no number are NaN,
Infinity and -Infinity. Users get an array as a tuple, and a struct as a `Struct`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tidelog.io.plain import rows_of_table
from tidelog.io.values import a, accept, read_integer, shown, text_int
from tidelog.program.arrow import arrow_schema, arrow_type, is_text
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import Type, field_name

if TYPE_CHECKING:
    import pyarrow as pa

_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Outward = tuple[Any, ...]


class Struct(tuple[Any, ...]):
    """A struct that users get: a tuple of its values, which are also found by name.

    `s.x` and `s["x"]` are the same; only the second finds a field that is called as what every struct has:
    `names`, `asdict`, `count`, `index`.
    """

    names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], values: Iterable[object]) -> Struct:
        """A struct with these fields."""
        made = super().__new__(cls, values)
        made.names = tuple(names)
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(key)
            key = self.names.index(key)
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[self.__dict__["names"].index(name)]
        except (KeyError, ValueError):
            raise AttributeError(f"the struct has no field {name!r}") from None

    def asdict(self) -> dict[str, Any]:
        """The values by the names of their fields."""
        return dict(zip(self.names, self, strict=True))

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{field_name(name)}: {value!r}' for name, value in self.asdict().items())}}}"

    def __reduce__(self) -> tuple[object, ...]:
        return Struct, (self.names, tuple(self))


# --- in --------------------------------------------------------------------------


class _Misfit(Exception):
    """A value inside another does not fit: where it is, and the end of a sentence about it."""

    def __init__(self, place: str, value: object, reason: str) -> None:
        self.place, self.value, self.reason = place, value, reason


def text_of(value: object, type: Type) -> str:
    """The text of an array or a struct; a string is read as JSON. Raises ValueError as `accept` does."""
    try:
        found = _json(_read(value, type) if isinstance(value, str) else value, type, "")
    except _Misfit as misfit:
        if not misfit.place:
            raise ValueError(misfit.reason) from None
        inside = f"{misfit.place} is {shown(misfit.value)}, which {misfit.reason}"
        raise ValueError(f"is not {a(type)}: {inside}") from None
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _read(text: str, type: Type) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _Misfit("", text, f"is not {a(type)} in JSON") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The fields of an object, none of which may be there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _json(value: object, type: Type, place: str) -> object:
    """A value as what JSON has for it."""
    if type.kind == "array":
        elements = _elements(value)
        if elements is None:
            raise _Misfit(place, value, f"is not {a(type)}")
        return [_json(element, type.element, f"{place}[{i}]") for i, element in enumerate(elements)]
    if type.kind == "struct":
        fields = _fields(value, type, place)
        return {name: _json(fields[name], part, f"{place}.{name}".lstrip(".")) for name, part in type.parts}
    try:
        return accept(_plain(value, type), type)
    except ValueError as error:
        raise _Misfit(place, value, str(error)) from None


def _plain(value: object, type: Type) -> object:
    """A number as Python has it, where files and Spark have it as something else."""
    if isinstance(value, Decimal) and type.is_integral and value.is_finite() and value % 1 == 0:
        return int(value)
    if isinstance(value, str) and is_text(type):
        number = read_integer(value)
        return value if number is None else number
    return _FLOATS.get(value, value) if isinstance(value, str) and type.kind == "float" else value


def _elements(value: object) -> Sequence[object] | None:
    if value.__class__.__module__ == "numpy":
        value = getattr(value, "tolist", lambda: value)()
    return value if isinstance(value, list | tuple) and by_name(value) is None else None


def _fields(value: object, type: Type, place: str) -> Mapping[str, object]:
    """The values of a struct's fields by name; a tuple without names has them in the order of the type."""
    names = [name for name, _ in type.parts]
    fields = by_name(value)
    if fields is None and isinstance(value, tuple) and len(value) == len(names):
        return dict(zip(names, value, strict=True))
    if fields is None:
        raise _Misfit(place, value, f"is not {a(type)}")
    missing = [name for name in names if name not in fields]
    others = [str(name) for name in fields if name not in names]
    if missing or others:
        wrong = [f"it has no {missing[0]}"] if missing else []
        wrong += [f"it has {others[0]} too"] if others else []
        raise _Misfit(place, value, f"is not {a(type)}: {', and '.join(wrong)}")
    return fields


def by_name(value: object) -> Mapping[str, object] | None:
    """The fields of what is a struct in Python: a mapping, a `Struct`, a named tuple, a row of PySpark's."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, Struct):
        return value.asdict()
    if isinstance(value, tuple):
        names = getattr(type(value), "_fields", None) or getattr(value, "__fields__", None)
        return None if names is None else dict(zip(names, value, strict=True))
    return None


# --- out -------------------------------------------------------------------------


def value_of(text: str, type: Type) -> Any:
    """An array or a struct, from its text."""
    return _outward(json.loads(text), type)


def _outward(found: Any, type: Type) -> Any:
    if type.kind == "array":
        return tuple(_outward(element, type.element) for element in found)
    if type.kind == "struct":
        return Struct([name for name, _ in type.parts], [_outward(found[n], part) for n, part in type.parts])
    return text_int(found) if is_text(type) else found


def order_key(value: Any) -> Any:
    """What values of a type are sorted by: -0.0 is before 0.0 and NaN last, inside others too."""
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1.0, value)
    return tuple(map(order_key, value)) if isinstance(value, tuple) else value


def outward_rows(table: pa.Table, columns: Sequence[Column]) -> Iterator[Outward]:
    """The rows of a table as users get them: arrays and structs in the place of their texts."""
    rows = rows_of_table(table, columns)
    if not any(column.type.is_nested for column in columns):
        return rows
    return (outward_row(row, columns) for row in rows)


def outward_row(row: Sequence[Value], columns: Sequence[Column]) -> Outward:
    """A row as users get it."""
    return tuple(
        value_of(str(value), column.type) if column.type.is_nested else value
        for value, column in zip(row, columns, strict=True)
    )


def outward_table(table: pa.Table, relation: Relation) -> pa.Table:
    """A table as users get it: lists and structs of Arrow's in the place of texts."""
    for index, (column, field) in enumerate(zip(relation.columns, arrow_schema(relation), strict=False)):
        if column.type.is_nested:
            array = outward_array(table.column(index), column.type)
            table = table.set_column(index, field.with_type(array.type), array)
    return table


def outward_array(column: pa.Array | pa.ChunkedArray, type: Type) -> pa.Array | pa.ChunkedArray:
    """A column as users get it."""
    import pyarrow as pa

    if not type.is_nested:
        return column
    return pa.array([json.loads(text) for text in column.to_pylist()], outward_type(type))


def outward_type(type: Type) -> pa.DataType:
    """The Arrow type in which users get values of a type."""
    import pyarrow as pa

    if type.kind == "array":
        return pa.list_(outward_type(type.element))
    if type.kind == "struct":
        return pa.struct([pa.field(name, outward_type(part)) for name, part in type.parts])
    return arrow_type(type)
