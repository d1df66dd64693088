"""The functions and operators that users write, and what they mean.

Both dialects share one table; where they use one name for two things, the
dialect decides (`substr` and `contains`, and how long a length is). A signature is
written in words: a type name means that type; `num`, `int`, `add`, `ordered`, `any` mean one
type of that class, the same wherever the word stands again in the signature;
`size` is the dialect's type of lengths and positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelog.program.cells import ADDABLE, ANY, INTEGRAL, NUMERIC, ORDERED, Cell, fixed
from tidelog.program.draft import DApply, DConst, DExpr
from tidelog.program.types import BOOL, S64, U64, Type, parse_type
from tidelog.syntax.ast import Dialect
from tidelog.syntax.source import Span

CLASSES = {"num": NUMERIC, "int": INTEGRAL, "shift": INTEGRAL, "add": ADDABLE, "ordered": ORDERED, "any": ANY}
CLASS_WORDS = {
    "num": "number",
    "int": "integer",
    "shift": "integer",
    "add": "number or string",
    "ordered": "number or string",
}

Build = Callable[[tuple[DExpr, ...], Cell, Span], DExpr]


@dataclass(frozen=True)
class Signature:
    """How a function is called: `variadic` repeats the last parameter, one or more times."""

    name: str
    params: tuple[str, ...]
    result: str
    build: Build
    variadic: bool = False

    def __str__(self) -> str:
        params = [CLASS_WORDS.get(p, p) for p in self.params]
        if self.variadic:
            params.append("...")
        return f"{self.name}({', '.join(params)})"


def size_type(dialect: Dialect) -> Type:
    """The type of lengths and positions in strings."""
    return S64 if dialect is Dialect.SOUFFLE else U64


def instance(signature: Signature, count: int, dialect: Dialect) -> tuple[list[Cell], Cell]:
    """Fresh cells for the parameters of one call, and for its result."""
    classes: dict[str, Cell] = {}

    def cell(word: str) -> Cell:
        if word in CLASSES:
            return classes.setdefault(word, Cell(CLASSES[word]))
        type = size_type(dialect) if word == "size" else parse_type(word)
        assert type is not None
        return fixed(type)

    words = list(signature.params)
    if signature.variadic:
        words += [words[-1]] * (count - len(words))
    return [cell(word) for word in words], cell(signature.result)


# --- how calls are built ------------------------------------------------------


def _plain(function: str, order: tuple[int, ...] | None = None) -> Build:
    def build(args: tuple[DExpr, ...], result: Cell, span: Span) -> DExpr:
        return DApply(function, tuple(args[i] for i in order) if order else args, result, span)

    return build


def _concat(args: tuple[DExpr, ...], result: Cell, span: Span) -> DExpr:
    joined = args[0]
    for arg in args[1:]:
        joined = DApply("concat", (joined, arg), result, span)
    return joined


def _slice(args: tuple[DExpr, ...], result: Cell, span: Span) -> DExpr:
    """`string_substr(s, start, end)`: an end before the start is an empty string."""
    text, start, end = args
    last = DApply("max", (start, end), start.cell, span)
    return DApply("substring", (text, start, DApply("sub", (last, start), start.cell, span)), result, span)


def _logical(function: str) -> Build:
    """Soufflé's `land`, `lor`, `lxor`: on numbers, where 0 is false and 1 is true."""

    def build(args: tuple[DExpr, ...], result: Cell, span: Span) -> DExpr:
        true = [DApply("ne", (a, DConst(0, a.cell, span)), fixed(BOOL), span) for a in args]
        test = DApply(function, tuple(true), fixed(BOOL), span)
        return DApply("if", (test, DConst(1, result, span), DConst(0, result, span)), result, span)

    return build


def _signature(text: str, build: Build | str) -> Signature:
    """From `name(param, ...) -> result`; a last parameter `p*` is repeated."""
    call, result = text.split(" -> ")
    name, params = call[:-1].split("(")
    words = tuple(p.strip() for p in params.split(","))
    variadic = words[-1].endswith("*")
    made = _plain(build) if isinstance(build, str) else build
    return Signature(name, tuple(w.rstrip("*") for w in words), result, made, variadic)


def _table(entries: dict[str, Build | str]) -> dict[str, Signature]:
    made = [_signature(text, build) for text, build in entries.items()]
    return {s.name: s for s in made}


_SHARED = _table(
    {
        # strings
        "cat(string*) -> string": _concat,
        "strlen(string) -> size": "length",
        "string_len(string) -> size": "length",
        "len(string) -> size": "length",
        "string_contains(string, string) -> bool": "contains",
        "string_substr(string, size, size) -> string": _slice,
        "string_to_lowercase(string) -> string": "lower",
        "to_lowercase(string) -> string": "lower",
        "string_to_uppercase(string) -> string": "upper",
        "to_uppercase(string) -> string": "upper",
        "string_starts_with(string, string) -> bool": "starts_with",
        "starts_with(string, string) -> bool": "starts_with",
        "string_ends_with(string, string) -> bool": "ends_with",
        "ends_with(string, string) -> bool": "ends_with",
        "string_trim(string) -> string": "trim",
        "trim(string) -> string": "trim",
        "string_replace(string, string, string) -> string": "replace",
        "replace(string, string, string) -> string": "replace",
        "string_reverse(string) -> string": "reverse",
        "reverse(string) -> string": "reverse",
        "match(string, string) -> bool": "matches",
        "matches(string, string) -> bool": "matches",
        "to_string(any) -> string": "to_string",
        "to_number(string) -> s64": "to_number",
        "to_unsigned(string) -> u64": "cast",
        "to_float(string) -> double": "cast",
        # numbers
        "min(ordered*) -> ordered": "min",
        "max(ordered*) -> ordered": "max",
        "abs(num) -> num": "abs",
        "pow(num, num) -> num": "pow",
        "pow32(int, shift) -> int": "pow",
        "band(int, int) -> int": "band",
        "bor(int, int) -> int": "bor",
        "bxor(int, int) -> int": "bxor",
        "bnot(int) -> int": "bnot",
        "bshl(int, shift) -> int": "shl",
        "bshr(int, shift) -> int": "shr",
        "land(int, int) -> int": _logical("and"),
        "lor(int, int) -> int": _logical("or"),
        "lxor(int, int) -> int": _logical("ne"),
        "itou(s64) -> u64": "cast",
        "itof(s64) -> double": "cast",
        "utoi(u64) -> s64": "cast",
        "utof(u64) -> double": "cast",
        "ftoi(double) -> s64": "cast",
        "ftou(double) -> u64": "cast",
    }
)

# One name, two meanings: Soufflé's are (part, whole) and (start, length).
_BY_DIALECT = {
    Dialect.SOUFFLE: _table(
        {
            "contains(string, string) -> bool": _plain("contains", (1, 0)),
            "substr(string, size, size) -> string": "substring",
        }
    ),
    Dialect.DDLOG: _table(
        {
            "contains(string, string) -> bool": "contains",
            "substr(string, size, size) -> string": _slice,
        }
    ),
}

SIGNATURES: dict[Dialect, dict[str, Signature]] = {d: {**_SHARED, **own} for d, own in _BY_DIALECT.items()}

# Functions that people look for and that cannot be, with the reason.
ABSENT = {
    "ord": "`ord` is Soufflé's internal number of a symbol, which has no meaning between runs",
    "autoinc": "`autoinc` numbers tuples in the order of evaluation, which answers must not depend on",
}

BINARY: dict[str, Signature] = {
    op: Signature(op, (param, second), result, _plain(function))
    for op, param, second, result, function in (
        ("or", "bool", "bool", "bool", "or"),
        ("and", "bool", "bool", "bool", "and"),
        ("==", "any", "any", "bool", "eq"),
        ("!=", "any", "any", "bool", "ne"),
        ("<", "ordered", "ordered", "bool", "lt"),
        ("<=", "ordered", "ordered", "bool", "le"),
        (">", "ordered", "ordered", "bool", "gt"),
        (">=", "ordered", "ordered", "bool", "ge"),
        ("|", "int", "int", "int", "bor"),
        ("^", "int", "int", "int", "bxor"),
        ("&", "int", "int", "int", "band"),
        ("<<", "int", "shift", "int", "shl"),
        (">>", "int", "shift", "int", "shr"),
        ("+", "add", "add", "add", "add"),
        ("-", "num", "num", "num", "sub"),
        ("++", "string", "string", "string", "concat"),
        ("*", "num", "num", "num", "mul"),
        ("/", "num", "num", "num", "div"),
        ("%", "num", "num", "num", "mod"),
    )
}

UNARY: dict[str, Signature] = {
    "-": Signature("-", ("num",), "num", _plain("neg")),
    "not": Signature("not", ("bool",), "bool", _plain("not")),
    "~": Signature("~", ("int",), "int", _plain("bnot")),
}
