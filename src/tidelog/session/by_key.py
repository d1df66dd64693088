"""Changing rows by their primary keys: what is taken away and what comes instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.io.errors import Problems, data_error, wrong_value
from tidelog.io.plain import Row
from tidelog.io.values import accept, shown, text_int
from tidelog.program.arrow import is_text
from tidelog.program.model import Column, Relation, Value
from tidelog.session.keys import Key, KeyedRows, Keys


def replaced(keys: Keys, relation: Relation, rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Rows put in place of those with their keys: the rows that go, and those that come."""
    keyed = keys.of(relation)
    before: dict[Key, Row | None] = {}
    new: dict[Key, Row] = {}
    for row in rows:
        key = keyed.key(row)
        before.setdefault(key, keys.put(keyed, key, row))
        new[key] = row
    gone = [old for key, old in before.items() if old is not None and not keyed.same(old, new[key])]
    return gone, list(new.values())


def read_keys(keys: Keys, relation: Relation, given: Iterable[object]) -> list[Key]:
    """Keys as they were given."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        what = "values" if len(relation.key) == 1 else "tuples"
        raise data_error(
            "TL0504",
            f"cannot delete from {relation.name}: {shown(given)} is not a collection of keys",
            hint=f"give a list of {what}: {_what_a_key_is(relation)}",
        )
    keyed = keys.of(relation)
    return [_key(keyed, key) for key in given]


def delete_keys(keys: Keys, relation: Relation, wanted: Iterable[Key]) -> tuple[list[Row], int]:
    """The rows of some keys, which are taken away, and how many keys had none."""
    keyed = keys.of(relation)
    found = [keys.put(keyed, key, None) for key in wanted]
    gone = [row for row in found if row is not None]
    return gone, len(found) - len(gone)


def modified(keys: Keys, relation: Relation, key: object, values: Mapping[str, object]) -> tuple[Row, Row]:
    """The row of a key, and what it becomes with other values in some columns."""
    if not isinstance(values, Mapping):
        raise data_error(
            "TL0504",
            f"cannot modify {relation.name}: {shown(values)} is not a mapping from columns to values",
            hint=f'write {{"{relation.columns[-1].name}": ...}}',
        )
    keyed = keys.of(relation)
    wanted = _key(keyed, key)
    old = keyed.get(wanted)
    if old is None:
        one = wanted[0] if len(wanted) == 1 else wanted
        raise data_error("TL0512", f"{relation.name} has no row with the primary key {shown(one)}")
    names = [column.name for column in relation.columns]
    new = list(old)
    problems = Problems(f"cannot modify {relation.name}", "TL0504", "wrong")
    for name, value in values.items():
        if name not in names:
            problems.add(f"key {shown(key)}", f"no column is named {name}")
        else:
            place = names.index(name)
            try:
                new[place] = _value(value, relation.columns[place])
            except ValueError as error:
                told = wrong_value(place, relation.columns[place], value, str(error))
                problems.add(f"key {shown(key)}", told)
    problems.raise_if_any()
    row = tuple(new)
    mark = keys.mark()
    keys.put(keyed, wanted, None)
    try:
        keys.insert(relation, [row])
    except BaseException:
        keys.undo(mark)
        raise
    return old, row


def _key(keyed: KeyedRows, given: object) -> Key:
    """A key as it was given: a value, or a tuple of values."""
    relation = keyed.relation
    columns = [relation.columns[i] for i in relation.key]
    is_one = len(columns) == 1 and columns[0].type.is_nested
    values = tuple(given) if isinstance(given, tuple | list) and not is_one else (given,)
    problems = Problems(f"no key of {relation.name}", "TL0504", "wrong")
    if len(values) != len(columns):
        problems.add(f"key {shown(given)}", _what_a_key_is(relation))
        problems.raise_if_any()
    found: list[Value] = []
    for place, value in zip(relation.key, values, strict=True):
        try:
            found.append(_value(value, relation.columns[place]))
        except ValueError as error:
            told = wrong_value(place, relation.columns[place], value, str(error))
            problems.add(f"key {shown(given)}", told)
    problems.raise_if_any()
    return keyed.as_key(found)


def _what_a_key_is(relation: Relation) -> str:
    columns = [relation.columns[i] for i in relation.key]
    names = ", ".join(f"{c.name}: {c.type}" for c in columns)
    return f"a key has {len(columns)} value{'' if len(columns) == 1 else 's'} ({names})"


def _value(value: object, column: Column) -> Value:
    cell = accept(value, column.type)
    return text_int(cell) if is_text(column.type) and isinstance(cell, str) else cell
