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

from tidelog.io.values import a, accept, read_integer, shown, text_int
from tidelog.program.arrow import arrow_schema, arrow_type, is_text
from tidelog.program.model import Column, Relation, Value
from tidelog.program.types import Type

if TYPE_CHECKING:
    import pyarrow as pa

_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_NAMES = ("names", "__fields__", "_fields")  # of the fields of a `Struct`, a row of PySpark's, a named tuple

Outward = tuple[Any, ...]


class Struct(tuple[Any, ...]):
    """A struct that users get: a tuple of its values, which are also found by name.

    `s.x` and `s["x"]` are the same; only the second finds a field that is called as a method of tuples is.
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
        return f"{{{', '.join(f'{name}: {value!r}' for name, value in self.asdict().items())}}}"

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
            raise ValueError(f"{misfit.reason}") from None
        inside = f"{misfit.place} is {shown(misfit.value)}, which {misfit.reason}"
        raise ValueError(f"is not {a(type)}: {inside}") from None
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _read(text: str, type: Type) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _Misfit("", text, f"is not {a(type)} in JSON") from None


def _json(value: object, type: Type, place: str) -> object:
    """A value as what JSON has for it."""
    if type.kind == "array":
        elements = _elements(value)
        if elements is None:
            raise _Misfit(place, value, f"is not {a(type)}")
        return [_json(element, type.element, f"{place}[{i}]") for i, element in enumerate(elements)]
    if type.kind == "struct":
        fields = _fields(value, type)
        if fields is None:
            raise _Misfit(place, value, f"is not {a(type)}")
        return {
            name: _json(field, part, f"{place}.{name}".lstrip("."))
            for field, (name, part) in zip(fields, type.parts, strict=True)
        }
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)  # as Spark and Parquet have long integers
    elif isinstance(value, str) and is_text(type):
        value = read_integer(value) if read_integer(value) is not None else value
    elif isinstance(value, str) and type.kind == "float":
        value = _FLOATS.get(value, value)
    try:
        return accept(value, type)
    except ValueError as error:
        raise _Misfit(place, value, str(error)) from None


def _elements(value: object) -> Sequence[object] | None:
    if value.__class__.__module__ == "numpy":
        value = getattr(value, "tolist", lambda: value)()
    return value if isinstance(value, list | tuple) and not hasattr(value, "names") else None


def _fields(value: object, type: Type) -> Sequence[object] | None:
    """The values of a struct's fields in the order of its type: by name where they have names."""
    names = [name for name, _ in type.parts]
    if isinstance(value, tuple):
        theirs = next((getattr(value, n) for n in _NAMES if hasattr(value, n)), None)
        if theirs is None:
            return value if len(value) == len(names) else None
        value = dict(zip(theirs, value, strict=True))
    if isinstance(value, Mapping) and value.keys() == set(names):
        return [value[name] for name in names]
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


def has_nested(columns: Sequence[Column]) -> bool:
    """Whether there are arrays or structs among the columns."""
    return any(column.type.is_nested for column in columns)


def outward_rows(rows: Iterable[tuple[Value, ...]], columns: Sequence[Column]) -> Iterator[Outward]:
    """The rows as users get them: arrays and structs in the place of their texts."""
    if not has_nested(columns):
        yield from rows
        return
    for row in rows:
        yield tuple(
            value_of(str(value), column.type) if column.type.is_nested else value
            for value, column in zip(row, columns, strict=True)
        )


def outward_table(table: pa.Table, relation: Relation) -> pa.Table:
    """A table as users get it: lists and structs of Arrow's in the place of texts."""
    import pyarrow as pa

    for index, (column, field) in enumerate(zip(relation.columns, arrow_schema(relation), strict=False)):
        if column.type.is_nested:
            type = _nested_arrow(column.type)
            found = [json.loads(text) for text in table.column(index).to_pylist()]
            table = table.set_column(index, field.with_type(type), pa.array(found, type))
    return table


def _nested_arrow(type: Type) -> pa.DataType:
    """The Arrow type in which users get values of a type."""
    import pyarrow as pa

    if type.kind == "array":
        return pa.list_(_nested_arrow(type.element))
    if type.kind == "struct":
        return pa.struct([pa.field(name, _nested_arrow(part)) for name, part in type.parts])
    return arrow_type(type)
