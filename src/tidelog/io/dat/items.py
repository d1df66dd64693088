"""Values as DDlog's commands write them, read and written.

Numbers, strings and booleans are read as Python's; tuples, arrays and structs with the places
of their parts, because whether they fit is for what reads the command to say. A struct without
a name of its own is written as a tuple. What is written can be read again as the same value.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from tidelog.io.dat.script import Script
from tidelog.io.values import int_text, text_int
from tidelog.program.model import Column, Value
from tidelog.program.types import Type
from tidelog.syntax.literals import LiteralError, read_string, write_string

NAME = re.compile(r"[^\W\d][\w?]*+(?:::[^\W\d][\w?]*+)*+|\?[\w?]++")
MOST_NESTED = 100

_FLOAT = re.compile(
    r"[+-]?(?:[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++|\.[0-9]++(?:[eE][+-]?[0-9]++)?)"
    r"(?![\w.])"
)
_INTEGER = re.compile(r"(-?)[ \t]*+(?:0[xX]([0-9a-fA-F][0-9a-fA-F_]*+)|([0-9][0-9_]*+))(?![\w.'])")
_STRING = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"')
_INFINITE = re.compile(r"-[ \t]*+inf(?!\w)")
_WORDS: dict[str, Value] = {"true": True, "false": False, "NaN": math.nan, "inf": math.inf}
# What DDlog knows beside our own escapes.
_ESCAPE = re.compile(r"\\(?:([abfv?])|[\s\S])")
_ESCAPES = {"a": "\\u{7}", "b": "\\u{8}", "f": "\\u{c}", "v": "\\u{b}", "?": "?"}


class Compound(NamedTuple):
    """A tuple, an array or a struct; a struct has a `name`, and `fields` if its parts are named."""

    kind: str
    parts: tuple[Item, ...]
    name: str = ""
    fields: tuple[Item, ...] | None = None


class Item(NamedTuple):
    """A value, or a name, and its offsets in the script."""

    value: Value | Compound
    start: int
    end: int


# --- reading -------------------------------------------------------------------


def read_item(script: Script, depth: int = 0) -> Item:
    """The value that comes next."""
    if not script.skip():
        script.refuse_next("a value")
    start = script.at
    if depth > MOST_NESTED:
        script.refuse(f"values nested more than {MOST_NESTED} deep", start, start + 1)
    return Item(_read(script, start, depth), start, script.at)


def _read(script: Script, start: int, depth: int) -> Value | Compound:
    letter = script.text[start]
    if letter == '"':
        return _read_text(script, start)
    if letter in "([":
        script.at += 1
        parts = _read_parts(script, ")" if letter == "(" else "]", depth)
        return Compound("tuple" if letter == "(" else "array", parts)
    if found := script.match(_INTEGER):
        sign, hexadecimal, decimal = found.groups()
        digits = (hexadecimal or decimal).replace("_", "")
        number = int(digits, 16) if hexadecimal else text_int(digits)
        return -number if sign else number
    if found := script.match(_FLOAT):
        real = float(found[0])
        if math.isinf(real):
            script.refuse("number too large for a float", start, script.at, hint="infinity is written `inf`")
        return real
    if script.match(_INFINITE):
        return -math.inf
    if letter in "%@":
        script.refuse(
            "values are not read from files or from JSON here",
            start,
            start + 1,
            hint="write the value itself",
        )
    if found := script.match(NAME):
        if found[0] in _WORDS:
            return _WORDS[found[0]]
        return (
            read_struct(script, found[0], depth) if script.accept("{") else Compound("struct", (), found[0])
        )
    script.refuse_next("a value")


def _read_text(script: Script, start: int) -> str:
    """A string, which may go over several lines."""
    while (found := _STRING.match(script.text, start)) is None:
        if not script.more('"'):
            script.refuse("this string is not closed", start, start + 1)
    script.at = found.end()
    quoted = found[0]
    try:
        return read_string(_ESCAPE.sub(_own_escape, quoted) if "\\" in quoted else quoted)
    except LiteralError as error:
        script.refuse(error.message, start, script.at)


def _own_escape(match: re.Match[str]) -> str:
    return _ESCAPES[match[1]] if match[1] else match[0]


def _read_parts(script: Script, close: str, depth: int) -> tuple[Item, ...]:
    parts: list[Item] = []
    while not script.accept(close):
        if parts and not script.accept(","):
            script.refuse_next(f"`,` or `{close}`")
        if len(parts) == 1 and close == ")" and script.accept(close):
            break  # a tuple of one, `(1,)`
        parts.append(read_item(script, depth + 1))
    return tuple(parts)


def read_struct(script: Script, name: str, depth: int = 0, close: str = "}") -> Compound:
    """The rest of a struct whose bracket has been opened: fields `.x = 1`, or values alone."""
    if not (script.skip() and _NAMED.match(script.text, script.at)):
        return Compound("struct", _read_parts(script, close, depth), name)
    fields: list[Item] = []
    parts: list[Item] = []
    while not fields or not script.accept(close):
        if fields and not script.accept(","):
            script.refuse_next(f"`,` or `{close}`")
        if not script.accept("."):
            script.refuse_next("a field as in `.x = 1`")
        found = script.match(NAME)
        if found is None:
            script.refuse_next("the name of a field")
        fields.append(Item(found[0], found.start(), found.end()))
        if not script.accept("="):
            script.refuse_next("`=`")
        parts.append(read_item(script, depth + 1))
    return Compound("struct", tuple(parts), name, tuple(fields))


_NAMED = re.compile(r"\.\s*+[^\W\d]")


# A value, and what comes after it.
_USUAL = re.compile(r'(-?[0-9]{1,18}|"[^"\\\n]*+"|true|false)[ \t]*+([,)])[ \t]*+')


def read_usual(script: Script, name: str) -> Compound | None:
    """A record as most are, `(1, "a", true)` on one line, in a third of the time; None if it is not so."""
    parts: list[Item] = []
    at = script.at + 1
    while found := _USUAL.match(script.text, at):
        text, after = found.groups()
        value = text[1:-1] if text[0] == '"' else _WORDS[text] if text in _WORDS else int(text)
        parts.append(Item(value, at, found.end(1)))
        at = found.end()
        if after == ")":
            script.at = found.end(2)
            return Compound("struct", tuple(parts), name)
    return None


# --- writing -------------------------------------------------------------------


def write_value(value: Any, type: Type) -> str:
    """A value as DDlog prints it: floats without exponent, 1 for 1.0."""
    if type.kind == "array":
        return f"[{', '.join(write_value(element, type.element) for element in value)}]"
    if type.kind == "struct":
        fields = (write_value(field, part) for field, (_, part) in zip(value, type.parts, strict=True))
        return f"({', '.join(fields)}{',' if len(type.parts) == 1 else ''})"
    if isinstance(value, str):
        return write_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int_text(value)
    return _write_float(value, type.bits)


def _write_float(value: float, bits: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0" if math.copysign(1.0, value) > 0 else "-0.0"  # where `-0` would be read as an integer
    digits = repr(value)
    if bits == 32:
        # The fewest digits that are this number among those of 32 bits.
        digits = next(d for d in (f"{value:.{n}g}" for n in range(1, 10)) if _single(float(d)) == value)
    text = format(Decimal(digits), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _single(value: float) -> float:
    try:
        number: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf
    return number


def write_record(relation: str, columns: Sequence[Column], row: Sequence[Any]) -> str:
    """A row: `R{.x = 1, .s = "a"}`."""
    fields = (f".{c.name} = {write_value(v, c.type)}" for c, v in zip(columns, row, strict=True))
    return f"{relation}{{{', '.join(fields)}}}"
