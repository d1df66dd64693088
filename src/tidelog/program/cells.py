"""Types that are still being found out: cells, joined by unification.

A cell stands for one type. It knows which kinds of types are still possible, and
where what it knows came from, so that a conflict can show both places. Literals
adapt: `1` can still become any number, `1.0` any float. A cell is *broken* once a
problem with it has been reported: it then goes with anything, silently.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.program.types import BIGINT, BOOL, DOUBLE, FLOAT, S64, STRING, UNKNOWN, Type
from tidelog.syntax.errors import Label
from tidelog.syntax.source import Span

ORDERED = frozenset({"bool", "int", "bigint", "float", "string"})
ANY = ORDERED | {"array", "struct"}
NUMERIC = frozenset({"int", "bigint", "float"})
INTEGRAL = frozenset({"int", "bigint"})
FLOATING = frozenset({"float"})
ADDABLE = NUMERIC | {"string"}

_KIND_NAMES = {
    ANY: "any type",
    ORDERED: "a bool, a number or a string",
    NUMERIC: "a number",
    INTEGRAL: "an integer",
    FLOATING: "a float",
}


@dataclass(frozen=True)
class Origin:
    """Where knowledge of a type comes from; without a span it is told in a note."""

    span: Span | None
    text: str

    def label(self) -> Label | None:
        """The origin as a label, if it has a place."""
        return Label(self.span, self.text) if self.span is not None else None


class Cell:
    """A type being found out. Always look at it through `find()`."""

    __slots__ = ("broken", "joined", "kinds", "literal", "origin", "type")

    def __init__(
        self,
        kinds: frozenset[str] = ANY,
        type: Type | None = None,
        origin: Origin | None = None,
        literal: bool = False,
    ) -> None:
        self.joined: Cell | None = None
        self.kinds = frozenset({type.kind}) if type is not None and type != UNKNOWN else kinds
        self.type = None if type == UNKNOWN else type
        self.origin = origin
        self.literal = literal
        self.broken = False

    def find(self) -> Cell:
        """The cell that stands for all that were joined with this one."""
        root = self
        while root.joined is not None:
            root = root.joined
        cell = self
        while cell.joined is not None:  # shorten the way for the next time
            cell.joined, cell = root, cell.joined
        return root

    def told(self) -> str:
        """What is known of the type, in words."""
        cell = self.find()
        if cell.type is not None:
            return str(cell.type)
        if cell.literal:
            return "a float" if cell.kinds == FLOATING else "an integer"
        return _KIND_NAMES.get(cell.kinds, "a number or a string")

    def settle(self, default: Type | None) -> Type:
        """The type in the end: literals are s64 or double, the rest is `default` or unknown."""
        cell = self.find()
        if cell.type is not None:
            return cell.type
        if cell.broken:
            return UNKNOWN
        if cell.literal:
            return DOUBLE if cell.kinds == FLOATING else S64
        if default is None:
            return UNKNOWN
        if default.kind in cell.kinds:
            return default
        return next(t for t in (S64, STRING, DOUBLE, BOOL, BIGINT, FLOAT) if t.kind in cell.kinds)


def fixed(type: Type, origin: Origin | None = None) -> Cell:
    """A cell of a known type."""
    return Cell(type=type, origin=origin)


def broken() -> Cell:
    """A cell that goes with anything."""
    cell = Cell()
    cell.broken = True
    return cell


def unify(a: Cell, b: Cell) -> bool:
    """Make two cells one; False (and nothing changed) when their types conflict."""
    a, b = a.find(), b.find()
    if a is b:
        return True
    if not (a.broken or b.broken):
        kinds = a.kinds & b.kinds
        if not kinds or (a.type is not None and b.type is not None and a.type != b.type):
            return False
    else:
        kinds = ANY
    if (a.type is not None, a.literal) < (b.type is not None, b.literal):
        a, b = b, a  # the one that knows more stays, and its origin with it
    b.joined = a
    a.broken = a.broken or b.broken
    a.kinds = kinds if not a.broken else ANY
    a.literal = a.literal or b.literal
    if a.origin is None:
        a.origin = b.origin
    return True
