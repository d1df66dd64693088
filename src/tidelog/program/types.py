"""The types of columns and expressions.

Types are compared by value. `UNKNOWN` stands for a column of an undeclared
relation whose facts have not been seen yet.

An array `[s64]` and a struct `{x: s64, y: string}` are made of other types. Inside the
engine a value of such a type is its text (`io.nested`), so that whoever stores, joins or
sends it has a string before him.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """A type: `kind` is bool, int, bigint, float, string, array, struct or unknown.

    `bits` and `signed` are meaningful for int (1..128 bits) and float (32 or 64). `parts` are the
    fields of a struct, by name; of an array its elements, under no name.
    """

    kind: str
    bits: int = 0
    signed: bool = False
    parts: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        if self.kind == "array":
            return f"[{self.element}]"
        if self.kind == "struct":
            return f"{{{', '.join(f'{field_name(name)}: {type}' for name, type in self.parts)}}}"
        if self.kind == "int":
            if self.bits in (8, 16, 32, 64, 128):
                return f"{'s' if self.signed else 'u'}{self.bits}"
            return f"{'signed' if self.signed else 'bit'}<{self.bits}>"
        if self.kind == "float":
            return "double" if self.bits == 64 else "float"
        return self.kind

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic applies."""
        return self.kind in ("int", "bigint", "float")

    @property
    def is_integral(self) -> bool:
        """Whether values are whole numbers."""
        return self.kind in ("int", "bigint")

    @property
    def is_nested(self) -> bool:
        """Whether values are made of others."""
        return bool(self.parts)

    @property
    def is_string_inside(self) -> bool:
        """Whether the engine has a string of a value: of arrays and structs too, and of unknown types."""
        return self.kind in ("string", "unknown") or self.is_nested

    @property
    def element(self) -> Type:
        """The type of an array's elements."""
        return self.parts[0][1]

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value of an int type."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


def signed(bits: int) -> Type:
    """A signed integer type."""
    return Type("int", bits, True)


def unsigned(bits: int) -> Type:
    """An unsigned integer type."""
    return Type("int", bits, False)


BOOL = Type("bool")
S64 = signed(64)
U64 = unsigned(64)
BIGINT = Type("bigint")
FLOAT = Type("float", 32, True)
DOUBLE = Type("float", 64, True)
STRING = Type("string")
UNKNOWN = Type("unknown")

_PLAIN = {"bool": BOOL, "bigint": BIGINT, "float": FLOAT, "double": DOUBLE, "string": STRING}
_SHORT = re.compile(r"([su])(8|16|32|64|128)\Z")
_LONG = re.compile(r"(bit|signed)<(\d{1,3})>\Z")
_WORD = re.compile(r"[\w<>]*")
_FIELD = re.compile(r'([^\W\d][\w?]*|\?[\w?]+|"(?:[^"\\]|\\.)*"): ')


def array_of(element: Type) -> Type:
    """The type of arrays of one type; unknown if that is."""
    return UNKNOWN if element == UNKNOWN else Type("array", parts=(("", element),))


def struct_of(*fields: tuple[str, Type]) -> Type:
    """The type of structs with some fields, in this order; unknown if one is, or two have the same name."""
    types = dict(fields)
    usable = 0 < len(fields) == len(types) and UNKNOWN not in types.values()
    return Type("struct", parts=fields) if usable else UNKNOWN


def field_name(name: str) -> str:
    """The name of a struct's field as it is written in a type."""
    return name if _FIELD.fullmatch(f"{name}: ") and name[0] != '"' else json.dumps(name, ensure_ascii=False)


def parse_type(name: str) -> Type | None:
    """The type of a canonical name (`s64`, `bit<12>`, `[string]`, `{x: s64, y: [s64]}`), or None."""
    type, end = _parsed(name, 0)
    return type if end == len(name) else None


def _parsed(text: str, at: int) -> tuple[Type | None, int]:
    """The type that stands at a place of a text, and where it ends."""
    opening = text[at : at + 1]
    if opening == "[":
        element, end = _parsed(text, at + 1)
        return (array_of(element), end + 1) if element and text[end : end + 1] == "]" else (None, at)
    if opening != "{":
        word = _WORD.match(text, at)
        assert word is not None
        return _plain(word[0]), word.end()
    fields: dict[str, Type] = {}
    at += 1
    while found := _FIELD.match(text, at):
        name = json.loads(found[1]) if found[1][0] == '"' else found[1]
        type, at = _parsed(text, found.end())
        if type is None or name in fields:
            return None, at
        fields[name] = type
        if text[at : at + 2] != ", ":
            return (struct_of(*fields.items()), at + 1) if text[at : at + 1] == "}" else (None, at)
        at += 2
    return None, at


def _plain(name: str) -> Type | None:
    if name in _PLAIN:
        return _PLAIN[name]
    if m := _SHORT.match(name):
        return Type("int", int(m[2]), m[1] == "s")
    if (m := _LONG.match(name)) and 1 <= int(m[2]) <= 128:
        return Type("int", int(m[2]), m[1] == "signed")
    return None
