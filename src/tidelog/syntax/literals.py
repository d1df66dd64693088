"""Numbers and strings as they are written, and back."""

from __future__ import annotations

import math
import re

# More digits than anybody writes (a longer bigint is computed, or comes as a fact); also far below
# where Python's own conversions become slow or refuse.
MAX_NUMBER_LENGTH = 1_000


class LiteralError(Exception):
    """A literal that cannot be read; `start` and `end` are offsets within it."""

    def __init__(self, message: str, start: int, end: int) -> None:
        self.message, self.start, self.end = message, start, end
        super().__init__(message)


def read_number(text: str) -> int | float:
    """The value of an integer (`12`, `1_000`, `0xff`, `0b101`, `5u`) or a float (`1.5`, `2e-3`)."""
    if len(text) > MAX_NUMBER_LENGTH:
        raise LiteralError(f"number of more than {MAX_NUMBER_LENGTH} digits", 0, len(text))
    digits = text.replace("_", "")
    prefix = digits[:2].lower()
    try:
        if prefix == "0x":
            return int(digits[2:], 16)
        if prefix == "0b":
            return int(digits[2:], 2)
        if "." in digits or "e" in digits or "E" in digits:
            value = float(digits)
            if math.isinf(value):
                raise LiteralError("number too large for a float", 0, len(text))
            return value
        return int(digits.removesuffix("u"))
    except ValueError:  # only underscores after 0x
        raise LiteralError("number without digits", 0, len(text)) from None


_BASES = {"d": 10, "h": 16, "o": 8, "b": 2}


def read_sized(text: str) -> tuple[int, str]:
    """The value and type of a literal with a width: `32'd10` is 10 of type `bit<32>`."""
    width, _, rest = text.partition("'")
    kind = "signed" if rest[0] == "s" else "bit"
    rest = rest.removeprefix("s")
    if len(text) > MAX_NUMBER_LENGTH:
        raise LiteralError(f"number of more than {MAX_NUMBER_LENGTH} digits", 0, len(text))
    try:
        value = int(rest[1:].replace("_", ""), _BASES[rest[0]])
    except ValueError:
        raise LiteralError("number without digits", 0, len(text)) from None
    bits = int(width)
    if not 1 <= bits <= 128:
        raise LiteralError("the width of a number is 1 to 128 bits", 0, len(width))
    if value >= 1 << (bits - (kind == "signed")):
        raise LiteralError(f"number does not fit into {bits} bits", 0, len(text))
    return value, f"{kind}<{bits}>"


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|([\s\S]))")


def read_string(quoted: str) -> str:
    """The value of a string in quotes, escapes replaced."""
    if "\\" not in quoted:
        return quoted[1:-1]

    def escaped(match: re.Match[str]) -> str:
        code, letter = match.groups()
        if code is not None:
            point = int(code, 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                raise LiteralError("there is no such character", match.start() + 1, match.end() + 1)
            return chr(point)
        if letter not in _ESCAPES:
            message = "a code is written \\u{...}" if letter == "u" else f"unknown escape '\\{letter}'"
            raise LiteralError(message, match.start() + 1, match.end() + 1)
        return _ESCAPES[letter]

    return _ESCAPE.sub(escaped, quoted[1:-1])


_WRITTEN = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'}


def write_string(value: str) -> str:
    """A string in quotes, with escapes where they are needed."""
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    written = (_WRITTEN.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in value)
    return '"' + "".join(written) + '"'


def write_float(value: float) -> str:
    """A float so that it is read back as the same float."""
    text = repr(value)
    return text if "." in text or "e" in text else text + ".0"
