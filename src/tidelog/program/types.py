"""The types of columns and expressions.

Types are compared by value. `UNKNOWN` stands for a column of an undeclared
relation whose facts have not been seen yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """A type: `kind` is bool, int, bigint, float, string or unknown.

    `bits` and `signed` are meaningful for int (1..128 bits) and float (32 or 64).
    """

    kind: str
    bits: int = 0
    signed: bool = False

    def __str__(self) -> str:
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


def parse_type(name: str) -> Type | None:
    """The type of a canonical name (`s64`, `bit<12>`, `string`), or None."""
    if name in _PLAIN:
        return _PLAIN[name]
    if m := _SHORT.match(name):
        return Type("int", int(m[2]), m[1] == "s")
    if (m := _LONG.match(name)) and 1 <= int(m[2]) <= 128:
        return Type("int", int(m[2]), m[1] == "signed")
    return None
