"""What the functions of expressions mean: the table, and a reference evaluator.

Every function has one canonical name (`add`, `concat`, ...), whatever the dialect
writes; `program.names` maps what users write to these. Integers are checked: a
result outside its type is a failure, never a wrapped value. Floats follow IEEE
754 (`x / 0.0` is infinite, `float` results are rounded to 32 bits). Executors may
compute faster than this, but never anything else.

Argument orders worth knowing: `contains(s, part)`, `starts_with(s, prefix)`,
`ends_with(s, suffix)`, `substring(s, start, length)`, `replace(s, from, to)`,
`matches(pattern, s)`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from tidelog.program.model import Apply, Const, Expr, Value, Var
from tidelog.program.types import Type

# A bigint is bounded all the same: decimal text of it must stay readable by Python
# (4,300 digits), and a runaway `pow` or `shl` must fail before it eats the memory.
BIGINT_BITS = 13_000


class FunctionFailure(Exception):
    """A function has no result for its arguments; the message says why, without the values."""


# How a function computes: from its application (which has the types) and the arguments' values.
Python = Callable[[Apply, Sequence[Value]], Value]


@dataclass(frozen=True)
class Function:
    """A function: `can_fail` says whether it fails on some arguments of some types."""

    name: str
    can_fail: bool
    python: Python


# --- numbers -----------------------------------------------------------------


def fit(value: int, type: Type) -> int:
    """An integer result, if its type holds it."""
    if type.kind == "int":
        low, high = type.bounds()
        if not low <= value <= high:
            raise FunctionFailure("integer overflow")
    elif type.kind == "bigint" and value.bit_length() > BIGINT_BITS:
        raise FunctionFailure("integer overflow")
    return value


def round_float(value: float, type: Type) -> float:
    """A float result, rounded to 32 bits where its type has no more."""
    if type.bits != 32:
        return value
    try:
        return cast(float, struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _integer_to_float(value: int, type: Type) -> float:
    try:
        return round_float(float(value), type)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _divide_integers(a: int, b: int) -> int:
    """Truncates toward zero."""
    if b == 0:
        raise FunctionFailure("division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder_integers(a: int, b: int) -> int:
    """The sign follows the dividend."""
    if b == 0:
        raise FunctionFailure("division by zero")
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _divide_floats(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _remainder_floats(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


def _power_integers(a: int, b: int) -> int:
    if b < 0:
        raise FunctionFailure("negative exponent")
    if abs(a) > 1 and (abs(a).bit_length() - 1) * b > BIGINT_BITS:
        raise FunctionFailure("integer overflow")
    return cast(int, a ** (b if abs(a) > 1 or b < 2 else 2 + b % 2))


def _power_floats(a: float, b: float) -> float:
    odd = b == math.floor(b) and math.fmod(b, 2.0) != 0.0 if math.isfinite(b) else False
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:  # 0 to a negative power, or a negative number to a broken one
        if a == 0.0:
            return math.copysign(math.inf, a) if odd else math.inf
        return math.nan


def _shift_left(a: int, b: int) -> int:
    if b < 0:
        raise FunctionFailure("negative shift")
    if a and b > BIGINT_BITS:
        raise FunctionFailure("integer overflow")
    return a << b if a else 0


def _shift_right(a: int, b: int) -> int:
    if b < 0:
        raise FunctionFailure("negative shift")
    return a >> min(b, BIGINT_BITS + 1)


def _arithmetic(integers: Callable[..., int], floats: Callable[..., float]) -> Python:
    def compute(node: Apply, args: Sequence[Value]) -> Value:
        if node.type.kind == "float":
            return round_float(floats(*args), node.type)
        return fit(integers(*args), node.type)

    return compute


def _complement(node: Apply, args: Sequence[Value]) -> Value:
    (value,) = cast(tuple[int], args)
    if node.type.kind == "int" and not node.type.signed:
        return value ^ node.type.bounds()[1]
    return ~value


def _extreme(choose: Callable[[Sequence[Value]], Value]) -> Python:
    def compute(node: Apply, args: Sequence[Value]) -> Value:
        if node.type.kind == "float" and any(math.isnan(cast(float, a)) for a in args):
            return math.nan
        return choose(args)

    return compute


# --- strings -----------------------------------------------------------------

NUMERAL = re.compile(r"[+-]?[0-9]+\Z")
FLOATING = re.compile(r"[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|nan)\Z")


def float_text(value: float, type: Type) -> str:
    """The shortest text that reads back as the same value of the type."""
    if type.bits == 32 and math.isfinite(value):
        for digits in range(1, 10):
            short = float(f"{value:.{digits}g}")
            if round_float(short, type) == value:
                return repr(short)
    return repr(value)


def value_text(value: Value, type: Type) -> str:
    """A value as text: what `to_string` gives."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value, type) if isinstance(value, float) else str(value)


def _parse_integer(text: str, type: Type) -> int:
    if not NUMERAL.match(text):
        raise FunctionFailure("not a number")
    if len(text) > 4_200:
        raise FunctionFailure("integer overflow")
    return fit(int(text), type)


def _substring(text: str, start: int, length: int) -> str:
    if start < 0 or length < 0:
        return ""
    return text[start : start + length]


@lru_cache(maxsize=1_000)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        raise FunctionFailure("not a regular expression") from None


def _strings(compute: Callable[..., Value]) -> Python:
    return lambda node, args: compute(*args)


# --- casts -------------------------------------------------------------------


def can_cast(source: Type, target: Type) -> bool:
    """Whether values of one type can be read as another at all."""
    if source == target or "unknown" in (source.kind, target.kind) or target.kind == "string":
        return True
    if target.is_numeric:
        return source.is_numeric or source.kind == "string" or (source.kind == "bool" and target.is_integral)
    return False


def _cast(node: Apply, args: Sequence[Value]) -> Value:
    (value,), target = args, node.type
    if target.kind == "string":
        return value_text(value, node.args[0].type)
    if isinstance(value, str):
        if target.is_integral:
            return _parse_integer(value, target)
        if target.kind == "float":
            if not FLOATING.match(value):
                raise FunctionFailure("not a number")
            return round_float(float(value), target)
    if target.kind == "float":
        if isinstance(value, float):
            return round_float(value, target)
        return _integer_to_float(cast(int, value), target)
    if target.is_integral:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise FunctionFailure("cast out of range")
            value = math.trunc(value)
        try:
            return fit(int(value), target)
        except FunctionFailure:
            raise FunctionFailure("cast out of range") from None
    return value


def _cast_can_fail(source: Type, target: Type) -> bool:
    if source == target or target.kind == "string" or source.kind == "bool":
        return False
    if target.kind == "float":
        return source.kind == "string"
    if source.kind == "int" and target.kind == "int":
        return source.bounds()[0] < target.bounds()[0] or source.bounds()[1] > target.bounds()[1]
    return not (source.kind == "int" and target.kind == "bigint")


# --- the table ---------------------------------------------------------------


def _lazy(node: Apply, args: Sequence[Value]) -> Value:
    """`and`, `or`, `not`, `if` on values that are there already."""
    if node.function == "if":
        return args[1] if args[0] else args[2]
    if node.function == "not":
        return not args[0]
    return bool(args[0] and args[1]) if node.function == "and" else bool(args[0] or args[1])


def _table() -> dict[str, Function]:
    integers_can_fail = {
        "add": _arithmetic(lambda a, b: a + b, lambda a, b: a + b),
        "sub": _arithmetic(lambda a, b: a - b, lambda a, b: a - b),
        "mul": _arithmetic(lambda a, b: a * b, lambda a, b: a * b),
        "div": _arithmetic(_divide_integers, _divide_floats),
        "mod": _arithmetic(_remainder_integers, _remainder_floats),
        "neg": _arithmetic(lambda a: -a, lambda a: -a),
        "pow": _arithmetic(_power_integers, _power_floats),
        "abs": _arithmetic(abs, abs),
        "shl": lambda node, args: fit(_shift_left(*cast(list[int], args)), node.type),
        "shr": lambda node, args: fit(_shift_right(*cast(list[int], args)), node.type),
        "matches": _strings(lambda pattern, s: _pattern(pattern).fullmatch(s) is not None),
        "to_number": lambda node, args: _parse_integer(cast(str, args[0]), node.type),
        "cast": _cast,
    }
    total = {
        "eq": _strings(lambda a, b: a == b),
        "ne": _strings(lambda a, b: a != b),
        "lt": _strings(lambda a, b: a < b),
        "le": _strings(lambda a, b: a <= b),
        "gt": _strings(lambda a, b: a > b),
        "ge": _strings(lambda a, b: a >= b),
        "and": _lazy,
        "or": _lazy,
        "not": _lazy,
        "if": _lazy,
        "band": _strings(lambda a, b: a & b),
        "bor": _strings(lambda a, b: a | b),
        "bxor": _strings(lambda a, b: a ^ b),
        "bnot": _complement,
        "min": _extreme(min),
        "max": _extreme(max),
        "concat": _strings(lambda a, b: a + b),
        "length": _strings(len),
        "contains": _strings(lambda s, part: part in s),
        "substring": _strings(_substring),
        "lower": _strings(str.lower),
        "upper": _strings(str.upper),
        "trim": _strings(str.strip),
        "starts_with": _strings(str.startswith),
        "ends_with": _strings(str.endswith),
        "replace": _strings(str.replace),
        "reverse": _strings(lambda s: s[::-1]),
        "to_string": lambda node, args: value_text(args[0], node.args[0].type),
    }
    return {
        **{name: Function(name, True, python) for name, python in integers_can_fail.items()},
        **{name: Function(name, False, python) for name, python in total.items()},
    }


FUNCTIONS: dict[str, Function] = _table()


def evaluate(expr: Expr, env: Mapping[str, Value]) -> Value:
    """The value of an expression; FunctionFailure where it has none."""
    if isinstance(expr, Var):
        return env[expr.name]
    if isinstance(expr, Const):
        return expr.value
    name, args = expr.function, expr.args
    if name == "if":
        return evaluate(args[1] if evaluate(args[0], env) else args[2], env)
    if name == "and":
        return bool(evaluate(args[0], env)) and bool(evaluate(args[1], env))
    if name == "or":
        return bool(evaluate(args[0], env)) or bool(evaluate(args[1], env))
    return FUNCTIONS[name].python(expr, [evaluate(a, env) for a in args])


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression can fail for some values of its variables."""
    if not isinstance(expr, Apply):
        return False
    return _itself_can_fail(expr) or any(can_fail(a) for a in expr.args)


def _itself_can_fail(node: Apply) -> bool:
    if not FUNCTIONS[node.function].can_fail:
        return False
    if node.function == "cast":
        return _cast_can_fail(node.args[0].type, node.type)
    if node.function == "matches" and isinstance(node.args[0], Const):
        return not is_pattern(str(node.args[0].value))
    return node.type.kind != "float"


def is_pattern(text: str) -> bool:
    """Whether the text is a regular expression."""
    try:
        _pattern(text)
    except FunctionFailure:
        return False
    return True
