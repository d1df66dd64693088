"""One value at a time: the exact meaning of a field of text and of a Python value.

Both functions give a *cell*, what the Arrow column of the type holds: big integers
(and integers wider than 64 bits) are their decimal text, arrays and structs their JSON
(`nested`), everything else is itself.
They raise `ValueError` with the end of a sentence that begins with the value.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal

from tidelog.program.arrow import is_text
from tidelog.program.functions import BIGINT_BITS
from tidelog.program.model import Value
from tidelog.program.types import Type

_DECIMAL = re.compile(r"[+-]?[0-9]+\Z")
_HEX = re.compile(r"0[xX]([0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
# What Arrow's reader takes, C's `nan(payload)` included.
_INFINITE = re.compile(r"([+-]?)(inf|nan)(inity|\([a-z0-9_]*\))?\Z", re.IGNORECASE)
_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def a(type: Type) -> str:
    """The type with its article: `an s64`, `a string`."""
    name = str(type)
    if type.is_nested:
        return f"{'an' if type.kind == 'array' else 'a'} {type.kind} {name}"
    return f"an {name}" if re.match(r"s\d", name) else f"a {name}"


def shown(value: object) -> str:
    """A value for a message, cut when long."""
    if isinstance(value, int) and value.bit_length() > BIGINT_BITS:
        return f"an integer of {value.bit_length():,} bits"  # whose text Python may refuse to make
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def int_text(value: int) -> str:
    """The decimal text of an integer of any length (Python's own `str` has a limit)."""
    try:
        return str(value)
    except ValueError:
        return format(Decimal(value), "f")


def text_int(text: str) -> int:
    """The integer of a decimal text of any length."""
    try:
        return int(text)
    except ValueError:
        return int(Decimal(text))


def read_integer(word: str) -> int | None:
    """The integer that a word is, of any length; None if it is none."""
    if m := _HEX.match(word):
        return int(m[1], 16)
    return text_int(word) if _DECIMAL.match(word) else None


def parse_text(text: str, type: Type) -> Value:
    """The cell of a field of a text file."""
    if type.kind in ("string", "unknown"):
        return _checked_string(text)
    if type.is_nested:
        from tidelog.io.nested import text_of

        return text_of(text, type)
    # Blanks around numbers are allowed because Arrow's reader allows them.
    word = text.strip(" \t")
    if type.kind == "bool":
        if word in _BOOLS:
            return _BOOLS[word]
    elif type.kind == "float":
        if _FLOAT.match(word):
            return _rounded(float(word), type)
        if m := _INFINITE.match(word):
            return float(m[1] + m[2])
    elif (number := read_integer(word)) is not None:
        return _integer_cell(number, type)
    raise ValueError(f"is not {a(type)}")


def accept(value: object, type: Type) -> Value:
    """The cell of a Python value. A bool is not an integer; an integer is a float, not the reverse."""
    if type.is_nested:
        from tidelog.io.nested import text_of

        return text_of(value, type)
    if value.__class__.__module__ == "numpy":
        value = getattr(value, "item", lambda: value)()
    if type.kind == "bool":
        if isinstance(value, bool):
            return value
    elif type.kind == "float":
        if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
            try:
                number = float(value)
            except OverflowError:
                raise ValueError(f"is too large for {a(type)}") from None
            return number if number in (float("inf"), float("-inf")) else _rounded(number, type)
    elif type.is_integral:
        if isinstance(value, int) and not isinstance(value, bool):
            return _integer_cell(int(value), type)
    elif type.kind == "unknown":
        if isinstance(value, list | tuple | dict):
            raise ValueError("does not tell the types of its parts: declare the relation")
        raise ValueError("is not a bool, a number or a string")
    elif isinstance(value, str):
        return _checked_string(str(value))
    raise ValueError(f"is not {a(type)}")


def _integer_cell(value: int, type: Type) -> Value:
    if type.kind == "int":
        low, high = type.bounds()
        if not low <= value <= high:
            raise ValueError(f"is outside {type} ({low} to {high})")
    elif value.bit_length() > BIGINT_BITS:
        raise ValueError(f"is outside {type} ({BIGINT_BITS:,} bits)")
    return int_text(value) if is_text(type) else value


def _rounded(value: float, type: Type) -> float:
    """The value in the width of the type. A finite text or number never becomes infinite."""
    try:
        result: float = struct.unpack("f", struct.pack("f", value))[0] if type.bits == 32 else value
    except OverflowError:
        result = float("inf")
    if result in (float("inf"), float("-inf")):
        raise ValueError(f"is too large for {a(type)}")
    return result


def _checked_string(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid UTF-8 text") from None
    return text
