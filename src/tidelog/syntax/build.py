# ruff: noqa: D102  (the grammar says what each method reads)
"""From the grammar's rules to nodes of the syntax tree.

One method of `Builder` for each rule (or alias) of `grammar.lark`. A method gets the
values of the rule's children (words as text, without plain punctuation) and the
range of characters the rule covers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tidelog.syntax import ast
from tidelog.syntax.dialect import canonical_type
from tidelog.syntax.errors import Diagnostic, Label
from tidelog.syntax.literals import LiteralError, read_number, read_sized, read_string
from tidelog.syntax.source import Source, Span

# The parser's stack holds values of every kind; what a method unpacks is fixed by its grammar rule.
Values = list[Any]
Action = Callable[[Values, int, int], Any]

# A test may stand alone in a body, written like an atom, when no relation has its name.
TESTS = {"contains": 2, "starts_with": 2, "ends_with": 2, "matches": 2, "match": 2}

_OLD_FOLDS = {"group_count": "count", "group_sum": "sum", "group_min": "min", "group_max": "max"}
FOLDS = ("count", "sum", "min", "max", "mean")


class Builder:
    """Makes nodes of one source; `relations` are names that are certainly no tests.

    The methods below mirror the grammar, where each rule is explained.
    """

    def __init__(self, source: Source, dialect: ast.Dialect, relations: frozenset[str] = frozenset()) -> None:
        self.source = source
        self.dialect = dialect
        self.relations = relations
        self.defined: set[str] = set()  # tests' names that turned out to be relations
        self.tested: set[str] = set()
        self.items: list[ast.Item] = []
        self.problems: list[Diagnostic] = []

    def actions(self) -> dict[str, Action]:
        """The methods by the name the grammar uses."""
        return {name: getattr(self, name) for name in dir(self) if not name.startswith("__")}

    def _report(self, code: str, message: str, start: int, end: int, **more: Any) -> None:
        self.problems.append(Diagnostic(code, message, Span(self.source, start, end), **more))

    def define(self, name: str) -> None:
        """Note that a name is a relation's."""
        if name in TESTS:
            self.defined.add(name)

    # --- declarations ----------------------------------------------------------

    def relation(self, v: Values, start: int, end: int) -> list[ast.Item]:
        key = v.pop() if type(v[-1]) is _Key else ()
        *words, (name, name_span), columns = v
        role = ast.Role(words[0]) if len(words) == 2 else ast.Role.INTERNAL
        self.define(name)
        return [ast.RelationDecl(name, columns, role, Span(self.source, start, end), name_span, key)]

    def decl(self, v: Values, start: int, end: int) -> list[ast.Item]:
        columns = next(value for value in v if type(value) is _Columns)
        key = v[-1] if type(v[-1]) is _Key else ()
        span = Span(self.source, start, end)
        items: list[ast.Item] = []
        for value in v[1 : v.index(columns)]:
            self.define(value[0])
            items.append(ast.RelationDecl(value[0], tuple(columns), ast.Role.INTERNAL, span, value[1], key))
        return items

    def relation_name(self, v: Values, start: int, end: int) -> tuple[str, Span]:
        return v[0], Span(self.source, start, end)

    def key(self, v: Values, start: int, end: int) -> tuple[ast.KeyColumn, ...]:
        return _Key(v[1:])

    def key_of(self, v: Values, start: int, end: int) -> tuple[ast.KeyColumn, ...]:
        row = v[0][v[0].index("(") + 1 : -1].strip()
        for name, column in v[1:]:
            if name != row:
                at = column.span.start - len(name) - 1
                self._report("TL0003", f"expected '{row}.', found '{name}.'", at, column.span.end)
        return _Key(column for _, column in v[1:])

    def key_column(self, v: Values, start: int, end: int) -> ast.KeyColumn:
        return ast.KeyColumn(v[0], Span(self.source, start, end))

    def key_field(self, v: Values, start: int, end: int) -> tuple[str, ast.KeyColumn]:
        return v[0], ast.KeyColumn(v[1], Span(self.source, end - len(v[1]), end))

    def columns(self, v: Values, start: int, end: int) -> tuple[ast.Column, ...]:
        return _Columns(v)

    def column(self, v: Values, start: int, end: int) -> ast.Column:
        return ast.Column(v[0], v[1], Span(self.source, start, end))

    def type(self, v: Values, start: int, end: int) -> str:
        return canonical_type(v[0], self.dialect)

    def array_type(self, v: Values, start: int, end: int) -> str:
        return f"[{v[0]}]"

    def struct_type(self, v: Values, start: int, end: int) -> str:
        return f"{{{', '.join(v)}}}"

    def type_field(self, v: Values, start: int, end: int) -> str:
        name = v[0] if v[0][0] != '"' else json.dumps(self._text(v[0], start), ensure_ascii=False)
        return f"{name}: {v[1]}"

    def directive(self, v: Values, start: int, end: int) -> list[ast.Item]:
        options: tuple[tuple[str, str], ...] = ()
        if isinstance(v[-1], tuple):
            options = v.pop()
        kind, *relations = v
        for name in relations:
            self.define(name)
        return [ast.Directive(kind[1:], tuple(relations), options, Span(self.source, start, end))]

    def options(self, v: Values, start: int, end: int) -> tuple[tuple[str, str], ...]:
        return tuple(v)

    def option_string(self, v: Values, start: int, end: int) -> tuple[str, str]:
        return v[0], self._text(v[1], end - len(v[1]))

    def option_word(self, v: Values, start: int, end: int) -> tuple[str, str]:
        return v[0], v[1]

    def option_true(self, v: Values, start: int, end: int) -> tuple[str, str]:
        return v[0], "true"

    def option_false(self, v: Values, start: int, end: int) -> tuple[str, str]:
        return v[0], "false"

    # --- rules -----------------------------------------------------------------

    def fact(self, v: Values, start: int, end: int) -> list[ast.Item]:
        return [ast.Rule(v[0], (), Span(self.source, start, end))]

    def rule(self, v: Values, start: int, end: int) -> list[ast.Item]:
        return [ast.Rule(v[0], v[1], Span(self.source, start, end))]

    def heads(self, v: Values, start: int, end: int) -> tuple[ast.Atom, ...]:
        return tuple(v)

    def head(self, v: Values, start: int, end: int) -> ast.Atom:
        atom = self._atom(v[0])
        self.define(atom.relation)
        return atom

    def body(self, v: Values, start: int, end: int) -> tuple[ast.Literal, ...]:
        return tuple(v)

    def literal(self, v: Values, start: int, end: int) -> ast.Literal:
        expr = v[0]
        span = Span(self.source, start, end)
        if type(expr) is ast.Call:
            if self._is_atom(expr, start, end):
                return ast.Positive(self._atom(expr), span)
        elif type(expr) is ast.Unary and expr.op == "not" and expr.span.start == start:
            inner = expr.operand
            if type(inner) is ast.Call and self._is_atom(inner, inner.span.start, end):
                return ast.Negation(self._atom(inner), span)
        return ast.Condition(expr, span)

    def _is_atom(self, call: ast.Call, start: int, end: int) -> bool:
        """Whether a call is an atom: not in parentheses (those are outside its span), and not a test."""
        if call.span.start != start or call.span.end != end:
            return False
        name = call.function
        if name in TESTS and TESTS[name] == len(call.args) and name not in self.relations:
            self.tested.add(name)
            return False
        return True

    def _atom(self, call: ast.Call | ast.Atom) -> ast.Atom:
        if isinstance(call, ast.Atom):
            return call
        span = call.span
        name_span = Span(self.source, span.start, span.start + len(call.function))
        args = tuple([ast.Argument(None, arg, arg.span) for arg in call.args])
        return ast.Atom(call.function, args, span, name_span)

    def positive(self, v: Values, start: int, end: int) -> ast.Literal:
        return ast.Positive(v[0], Span(self.source, start, end))

    def negation(self, v: Values, start: int, end: int) -> ast.Literal:
        return ast.Negation(v[0], Span(self.source, start, end))

    def let(self, v: Values, start: int, end: int) -> ast.Literal:
        return ast.Let(v[0], v[1], Span(self.source, start, end))

    def group_by(self, v: Values, start: int, end: int) -> ast.Literal:
        name, value, _, keys, op = v
        return ast.GroupBy(name, op, value, keys, Span(self.source, start, end))

    def group_all(self, v: Values, start: int, end: int) -> ast.Literal:
        name, keys, op, *values = v
        if not values and op != "count":
            self._report("TL0012", f"{op} needs a value", start, end, hint=f"write Aggregate((k), {op}(v))")
        return ast.GroupBy(name, op, values[0] if values else None, keys, Span(self.source, start, end))

    def fold_name(self, v: Values, start: int, end: int) -> str:
        word: str = v[0]
        name = _OLD_FOLDS.get(word, word)
        if name not in FOLDS:
            hint = f"the aggregates are {', '.join(FOLDS)}"
            self._report("TL0012", f"unknown aggregate '{name}'", start, end, hint=hint)
        return name

    def keys(self, v: Values, start: int, end: int) -> tuple[ast.Expr, ...]:
        return v[0] if isinstance(v[0], tuple) else (v[0],)

    def key_tuple(self, v: Values, start: int, end: int) -> tuple[ast.Expr, ...]:
        return v[0] if isinstance(v[0], tuple) else (v[0],)

    def pair(self, v: Values, start: int, end: int) -> tuple[ast.Expr, ...]:
        return tuple(v)

    def record(self, v: Values, start: int, end: int) -> ast.Atom:
        name, *fields = v
        seen: dict[str, ast.Argument] = {}
        for field in fields:
            if field.name in seen:
                earlier = Label(seen[field.name].span, "first given here")
                message = f"field '{field.name}' is given twice"
                self._report("TL0013", message, field.span.start, field.span.end, others=(earlier,))
            seen[field.name] = field
        name_span = Span(self.source, start, start + len(name))
        return ast.Atom(name, tuple(fields), Span(self.source, start, end), name_span)

    def field(self, v: Values, start: int, end: int) -> ast.Argument:
        return ast.Argument(v[0], v[1], Span(self.source, start, end))

    # --- expressions -------------------------------------------------------------

    def conditional(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Conditional(v[0], v[1], v[2], Span(self.source, start, end))

    def binary(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Binary(v[1], v[0], v[2], Span(self.source, start, end))

    def compare(self, v: Values, start: int, end: int) -> str:
        return "==" if v[0] == "=" else v[0]

    def _operator(self, op: str, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Binary(op, v[0], v[1], Span(self.source, start, end))

    def or_(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator("or", v, start, end)

    def and_(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator("and", v, start, end)

    def not_(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Unary("not", v[0], Span(self.source, start, end))

    def bit_or(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator("|", v, start, end)

    def bit_xor(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator("^", v, start, end)

    def bit_and(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator("&", v, start, end)

    def shift_left(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator("<<", v, start, end)

    def shift_right(self, v: Values, start: int, end: int) -> ast.Expr:
        return self._operator(">>", v, start, end)

    def cast(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Cast(v[0], v[1], Span(self.source, start, end))

    def negative(self, v: Values, start: int, end: int) -> ast.Expr:
        operand = v[0]
        span = Span(self.source, start, end)
        # -5 is a constant; -(5), whose operand does not end with the whole, and - -5 are not
        if type(operand) is ast.Const and operand.span.end == end and operand.span.text[:1].isdigit():
            number: int | float = operand.value  # type: ignore[assignment]
            return ast.Const(-number, span)
        return ast.Unary("-", operand, span)

    def bit_not(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Unary("~", v[0], Span(self.source, start, end))

    def power(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Call("pow", (v[0], v[2]), Span(self.source, start, end))

    def call(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Call(v[0], tuple(v[1:]), Span(self.source, start, end))

    def parenthesised(self, v: Values, start: int, end: int) -> ast.Expr:
        expr: ast.Expr = v[0]
        return expr

    def variable(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Var(v[0], Span(self.source, start, end))

    def wildcard(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Wildcard(Span(self.source, start, end))

    def integer(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Const(self._number(v[0], start), Span(self.source, start, end))

    def real(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Const(self._number(v[0], start), Span(self.source, start, end))

    def _number(self, text: str, start: int) -> int | float:
        try:
            return read_number(text)
        except LiteralError as error:
            self._report("TL0006", error.message, start + error.start, start + error.end)
            return 0

    def sized(self, v: Values, start: int, end: int) -> ast.Expr:
        span = Span(self.source, start, end)
        try:
            value, type_name = read_sized(v[0])
        except LiteralError as error:
            self._report("TL0006", error.message, start + error.start, start + error.end)
            return ast.Const(0, span)
        return ast.Cast(ast.Const(value, span), canonical_type(type_name, self.dialect), span)

    def string(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Const(self._text(v[0], start), Span(self.source, start, end))

    def _text(self, quoted: str, start: int) -> str:
        try:
            return read_string(quoted)
        except LiteralError as error:
            hint = r"the escapes are \n \t \r \0 \\ \" \' and \u{...} with a hexadecimal code"
            self._report("TL0007", error.message, start + error.start, start + error.end, hint=hint)
            return ""

    def true(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Const(True, Span(self.source, start, end))

    def false(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Const(False, Span(self.source, start, end))

    # --- aggregates --------------------------------------------------------------

    def count(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Aggregate("count", None, v[1], Span(self.source, start, end))

    def fold(self, v: Values, start: int, end: int) -> ast.Expr:
        return ast.Aggregate(v[0], v[1], v[2], Span(self.source, start, end))

    def group(self, v: Values, start: int, end: int) -> tuple[ast.Literal, ...]:
        body: tuple[ast.Literal, ...] = v[0]
        return body

    def group_atom(self, v: Values, start: int, end: int) -> tuple[ast.Literal, ...]:
        return (ast.Positive(self._atom(v[0]), Span(self.source, start, end)),)

    def group_record(self, v: Values, start: int, end: int) -> tuple[ast.Literal, ...]:
        return (ast.Positive(v[0], Span(self.source, start, end)),)


class _Key(tuple[ast.KeyColumn, ...]):
    """The primary key of a declaration."""


class _Columns(tuple[ast.Column, ...]):
    """The columns of a declaration, told apart from the other values of its rule."""
