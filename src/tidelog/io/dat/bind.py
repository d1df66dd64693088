"""Records of commands as rows of a relation: fields in order, values checked against types."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from tidelog.io.dat.errors import ScriptError
from tidelog.io.dat.items import Compound, Item
from tidelog.io.dat.script import Script
from tidelog.io.values import a, accept
from tidelog.program.model import Column, Value
from tidelog.program.types import STRING, UNKNOWN
from tidelog.syntax.errors import Diagnostic

Row = tuple[Value, ...]


class Binder:
    """Makes rows of one relation; `columns` is None where nothing is known of it yet."""

    def __init__(self, script: Script, relation: str, columns: Sequence[Column] | None) -> None:
        self._script = script
        self._relation = relation
        self._columns = columns

    def row(self, record: Compound, at: Item) -> Row:
        """The row that a record is; all fields must be there. `at` is what to point at."""
        columns = self._columns
        if columns is None:
            if record.fields is not None:
                message = f"{self._relation} is not declared: it has no field names yet"
                self._refuse(message, record.fields[0], hint="give its values by position")
            return tuple(self._unknown(part) for part in record.parts)
        if record.fields is not None:
            given = self._named(record)
            missing = [c.name for c in columns if c.name not in given]
            if missing:
                self._refuse(f"no value for {', '.join(missing)}", at)
            return tuple(given[column.name] for column in columns)
        self._count(record, at)
        return tuple(map(self._value, record.parts, columns))

    def changes(self, record: Compound, at: Item) -> dict[str, Value]:
        """The fields that a `modify` sets: some by name, or all by position."""
        if self._columns is None:
            self._refuse(f"{self._relation} is not declared: it has no key", at)
        if record.fields is not None:
            return self._named(record)
        self._count(record, at)
        return {c.name: self._value(v, c) for c, v in zip(self._columns, record.parts, strict=True)}

    def key(self, item: Item, key: Sequence[int], at: Item) -> Any:
        """The key that a value is: a tuple, or the value where it is an array or a struct."""
        if self._columns is None or not key:
            hint = "as in `input relation R(id: u64, name: string) primary key (id)`"
            self._refuse(f"{self._relation} has no primary key", at, hint=hint)
        columns = [self._columns[index] for index in key]
        if len(columns) == 1 and columns[0].type.is_nested:
            return self._nested(item, columns[0])
        parts: tuple[Item, ...] = (item,)
        if isinstance(item.value, Compound) and item.value.kind == "tuple":
            parts = item.value.parts
        if len(parts) != len(columns):
            wanted = ", ".join(f"{c.name}: {c.type}" for c in columns)
            self._refuse(f"{_values(len(parts))} for the key ({wanted}) of {self._relation}", item)
        return tuple(map(self._value, parts, columns))

    def _named(self, record: Compound) -> dict[str, Value]:
        assert record.fields is not None and self._columns is not None
        known = {column.name: column for column in self._columns}
        given: dict[str, Value] = {}
        for field, part in zip(record.fields, record.parts, strict=True):
            name = str(field.value)
            if name not in known:
                near = get_close_matches(name, known, n=1)
                names = ", ".join(known) or "none"
                hint = f"did you mean {near[0]}?" if near else f"its fields are {names}"
                self._refuse(f"{self._relation} has no field {name}", field, hint=hint)
            if name in given:
                self._refuse(f"the field {name} is given twice", field)
            given[name] = self._value(part, known[name])
        return given

    def _count(self, record: Compound, at: Item) -> None:
        columns = self._columns or ()
        if len(record.parts) != len(columns):
            wanted = ", ".join(f"{c.name}: {c.type}" for c in columns)
            self._refuse(f"{_values(len(record.parts))} for {self._relation}({wanted})", at)

    def _value(self, item: Item, column: Column) -> Any:
        if isinstance(item.value, str) and column.type.kind == "string":
            return item.value  # needs no closer look
        if column.type == UNKNOWN:
            return self._unknown(item)
        if column.type.is_nested:
            return self._nested(item, column)
        if isinstance(item.value, Compound):
            hint = "a string is written in quotes" if column.type == STRING else None
            self._refuse(f"{_kind(item.value)} is not {a(column.type)}", item, _for(column), hint)
        try:
            accept(item.value, column.type)
        except ValueError as error:
            self._refuse(f"{self._written(item)} {error}", item, _for(column))
        return item.value

    def _nested(self, item: Item, column: Column) -> Any:
        value = self._python(item)
        try:
            accept(value, column.type)
        except ValueError as error:
            self._refuse(f"{self._written(item)} {error}", item, _for(column))
        return value

    def _python(self, item: Item) -> Any:
        """A value as Python has it: arrays are lists, structs with names dictionaries, others tuples."""
        if not isinstance(item.value, Compound):
            return item.value
        parts = [self._python(part) for part in item.value.parts]
        if item.value.fields is None:
            return parts if item.value.kind == "array" else tuple(parts)
        given: dict[object, Any] = {}
        for field, part in zip(item.value.fields, parts, strict=True):
            if field.value in given:
                self._refuse(f"the field {field.value} is given twice", field)
            given[field.value] = part
        return given

    def _unknown(self, item: Item) -> Value:
        if isinstance(item.value, Compound):
            self._refuse(f"{_kind(item.value)} is not a bool, a number or a string", item)
        return item.value

    def _written(self, item: Item) -> str:
        text = self._script.text[item.start : item.end]
        return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"

    def _refuse(self, message: str, item: Item, label: str = "", hint: str | None = None) -> NoReturn:
        span = self._script.span(item.start, item.end)
        raise ScriptError(Diagnostic("TL0702", message, span, label, hint=hint))


def _values(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"


def _for(column: Column) -> str:
    return f"for {column.name}: {column.type}"


def _kind(value: Compound) -> str:
    if value.kind == "struct":
        return f"the struct `{value.name}`"
    return "an array" if value.kind == "array" else "a tuple"
