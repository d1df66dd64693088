"""Syntax tree to text, in the module's own style of writing.

Reading the text gives the same tree: `parse(print_module(m)) == m` for every `m` that
was parsed. Parentheses stand only where the grammar needs them; a rule that is too
long for a line gets a line for each literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidelog.syntax import ast
from tidelog.syntax.build import FOLDS, TESTS
from tidelog.syntax.dialect import written_type
from tidelog.syntax.literals import write_float, write_string

WIDTH = 100
INDENT = "    "

# How tightly an expression holds together: the levels of grammar.lark, from `expr` to `primary`.
_EXPR, _OR, _AND, _NOT, _COMPARISON, _BITS_OR, _CAST, _UNARY, _POWER, _PRIMARY = (
    0,
    1,
    2,
    3,
    4,
    5,
    11,
    12,
    13,
    14,
)
_LEVEL = {op: level for level, ops in enumerate(ast.BINARY_OPERATORS, 1) for op in ops}
# `not` has a level of its own between `and` and the comparisons
_LEVEL = {op: level + (level >= _NOT) for op, level in _LEVEL.items()}

_DIRECTIVES = {
    *("decl", "input", "output", "printsize", "type", "comp", "init", "include", "limitsize"),
    *("plan", "pragma", "functor", "override", "lattice", "once", "group_by"),
}

_SOUFFLE_OPERATORS = {
    "or": "||",
    "and": "&&",
    "==": "=",
    "|": "bor",
    "^": "bxor",
    "&": "band",
    "<<": "bshl",
    ">>": "bshr",
}


@dataclass(frozen=True)
class _Style:
    """A dialect, and the names that are relations even where they could be tests."""

    dialect: ast.Dialect
    relations: frozenset[str] = frozenset()

    @property
    def souffle(self) -> bool:
        return self.dialect is ast.Dialect.SOUFFLE


def print_module(module: ast.Module) -> str:
    """The text of a module."""
    style = _Style(module.dialect, _relations(module))
    lines: list[str] = []
    previous: ast.Item | None = None
    for item in module.items:
        if previous is not None and isinstance(item, ast.Rule) is not isinstance(previous, ast.Rule):
            lines.append("")
        lines.append(_item(item, style))
        previous = item
    return "\n".join(lines) + "\n" if lines else ""


def print_rule(rule: ast.Rule, dialect: ast.Dialect = ast.Dialect.DDLOG) -> str:
    """The text of a rule or fact."""
    return _rule(rule, _Style(dialect))


def print_literal(literal: ast.Literal, dialect: ast.Dialect = ast.Dialect.DDLOG) -> str:
    """The text of a literal of a body."""
    return _literal(literal, _Style(dialect))


def print_expr(expr: ast.Expr, dialect: ast.Dialect = ast.Dialect.DDLOG) -> str:
    """The text of an expression."""
    return _expr(expr, _Style(dialect))


def _relations(module: ast.Module) -> frozenset[str]:
    """The names that the module itself says are relations."""
    names: set[str] = set()
    for item in module.items:
        match item:
            case ast.RelationDecl(name=name):
                names.add(name)
            case ast.Directive(relations=relations):
                names.update(relations)
            case ast.Rule(heads=heads):
                names.update(head.relation for head in heads)
    return frozenset(names)


# --- items ---------------------------------------------------------------------


def _item(item: ast.Item, style: _Style) -> str:
    match item:
        case ast.RelationDecl():
            return _declaration(item, style)
        case ast.Directive(kind=kind, relations=relations, options=options):
            written = ", ".join(f"{name}={_option(value)}" for name, value in options)
            return f".{kind} {', '.join(relations)}" + (f"({written})" if options else "")
        case ast.Rule():
            return _rule(item, style)


def _declaration(item: ast.RelationDecl, style: _Style) -> str:
    if style.souffle:
        start = f".decl {item.name}("
    else:
        role = "" if item.role is ast.Role.INTERNAL else f"{item.role.value} "
        start = f"{role}relation {item.name}("
    columns = [f"{column.name}: {written_type(column.type, style.dialect)}" for column in item.columns]
    key = _key(item, style)
    line = start + ", ".join(columns) + ")" + key
    if len(line) <= WIDTH:
        return line
    return start + "\n" + ",\n".join(INDENT + column for column in columns) + "\n)" + key


def _key(item: ast.RelationDecl, style: _Style) -> str:
    if not item.key:
        return ""
    names = [column.name for column in item.key]
    if style.souffle or _DIRECTIVES & set(names):  # `x.input` would be read as a directive
        return f" primary key ({', '.join(names)})"
    fields = ", ".join(f"x.{name}" for name in names)
    return f" primary key (x) {fields if len(names) == 1 else f'({fields})'}"


_BARE_OPTION = re.compile(r"(?!_\Z)[^\W\d]\w*\Z")


def _option(value: str) -> str:
    return value if _BARE_OPTION.match(value) else write_string(value)


def _rule(rule: ast.Rule, style: _Style) -> str:
    heads = [_atom(head, style) for head in rule.heads]
    body = [_literal(literal, style) for literal in rule.body]
    line = ", ".join(heads) + (" :- " + ", ".join(body) if body else "") + "."
    if len(line) <= WIDTH:
        return line
    start = ", ".join(heads)
    if len(start) + len(" :-") > WIDTH:
        start = ",\n".join(heads)
    return start + (" :-\n" + ",\n".join(INDENT + literal for literal in body) if body else "") + "."


# --- literals --------------------------------------------------------------------


def _literal(literal: ast.Literal, style: _Style) -> str:
    match literal:
        case ast.Positive(atom=atom):
            return _atom(atom, style)
        case ast.Negation(atom=atom):
            return ("!" if style.souffle else "not ") + _atom(atom, style)
        case ast.Condition(expr=expr):
            return _condition(expr, style)
        case ast.Let(name=name, value=value):
            return f"var {name} = {_expr(value, style)}"
        case ast.GroupBy():
            return _group_by(literal, style)


def _condition(expr: ast.Expr, style: _Style) -> str:
    """A condition; a call in it gets parentheses where it would be taken for an atom."""
    match expr:
        case ast.Call() if _looks_like_atom(expr, style):
            return f"({_expr(expr, style)})"
        case ast.Unary(op="not", operand=ast.Call() as call) if _looks_like_atom(call, style):
            return f"{'!' if style.souffle else 'not '}({_expr(call, style)})"
        case _:
            return _expr(expr, style)


def _looks_like_atom(call: ast.Call, style: _Style) -> bool:
    if style.souffle and _is_power(call):
        return False
    name = call.function
    return name in style.relations or TESTS.get(name) != len(call.args)


def _group_by(group: ast.GroupBy, style: _Style) -> str:
    keys = ", ".join(_expr(key, style) for key in group.keys)
    if group.value is None:
        return f"var {group.name} = Aggregate(({keys}), {group.op}())"
    if len(group.keys) != 1:
        keys = f"({keys})"
    value = _expr(group.value, style, _PRIMARY)
    return f"var {group.name} = {value}.group_by({keys}).{group.op}()"


def _atom(atom: ast.Atom, style: _Style) -> str:
    arguments = [
        (f".{argument.name} = " if argument.name is not None else "") + _expr(argument.value, style)
        for argument in atom.args
    ]
    return f"{atom.relation}({', '.join(arguments)})"


# --- expressions -----------------------------------------------------------------


def _expr(expr: ast.Expr, style: _Style, outer: int = _EXPR) -> str:
    """The text of an expression that stands where the grammar has level `outer`."""
    text, level = _written(expr, style)
    return text if level >= outer else f"({text})"


def _written(expr: ast.Expr, style: _Style) -> tuple[str, int]:
    """The text of an expression, and its level."""
    match expr:
        case ast.Var(name=name):
            return name, _PRIMARY
        case ast.Wildcard():
            return "_", _PRIMARY
        case ast.Const(value=value):
            return _constant(value)
        case ast.Unary(op=op, operand=operand):
            return _unary(op, operand, style)
        case ast.Binary(op=op, left=left, right=right):
            return _binary(op, left, right, style)
        case ast.Call(function=function, args=args):
            if style.souffle and _is_power(expr):
                return f"{_expr(args[0], style, _PRIMARY)} ^ {_expr(args[1], style, _UNARY)}", _POWER
            return f"{function}({', '.join(_expr(arg, style) for arg in args)})", _PRIMARY
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            parts = [_expr(part, style) for part in (condition, then, otherwise)]
            return "if ({}) {} else {}".format(*parts), _EXPR
        case ast.Cast(operand=operand, type=type_name):
            written = written_type(type_name, style.dialect)
            if style.souffle:
                return f"as({_expr(operand, style)}, {written})", _PRIMARY
            return f"{_expr(operand, style, _CAST)} as {written}", _CAST
        case ast.Aggregate():
            return _aggregate(expr, style), _PRIMARY


def _is_power(call: ast.Call) -> bool:
    return call.function == "pow" and len(call.args) == 2


def _constant(value: bool | int | float | str) -> tuple[str, int]:
    if isinstance(value, bool):
        return ("true" if value else "false"), _PRIMARY
    if isinstance(value, str):
        return write_string(value), _PRIMARY
    text = write_float(value) if isinstance(value, float) else str(value)
    return text, _UNARY if text[0] == "-" else _PRIMARY


def _unary(op: str, operand: ast.Expr, style: _Style) -> tuple[str, int]:
    if op == "not":
        if style.souffle:  # `!x = 1` is right but misleading
            return "!" + _expr(operand, style, _PRIMARY), _NOT
        return "not " + _expr(operand, style, _NOT), _NOT
    if op == "~":
        return ("bnot " if style.souffle else "~") + _expr(operand, style, _UNARY), _UNARY
    is_number = isinstance(operand, ast.Const) and not isinstance(operand.value, bool | str)
    return "-" + (f"({_expr(operand, style)})" if is_number else _expr(operand, style, _UNARY)), _UNARY


def _binary(op: str, left: ast.Expr, right: ast.Expr, style: _Style) -> tuple[str, int]:
    level = _LEVEL[op]
    written = _SOUFFLE_OPERATORS.get(op, op) if style.souffle else op
    if level == _COMPARISON:
        start = f"{_expr(left, style, _BITS_OR)} {written}"
        if isinstance(right, ast.Conditional):
            return f"{start} {_expr(right, style)}", _EXPR
        return f"{start} {_expr(right, style, _BITS_OR)}", _COMPARISON
    return f"{_expr(left, style, level)} {written} {_expr(right, style, level + 1)}", level


def _aggregate(aggregate: ast.Aggregate, style: _Style) -> str:
    body = ", ".join(_literal(literal, style) for literal in aggregate.body)
    if aggregate.value is None:
        return f"{aggregate.op} : {{ {body} }}"
    value = _expr(aggregate.value, style)
    is_plain = isinstance(aggregate.value, ast.Var) and value not in FOLDS
    return f"{aggregate.op} {value if is_plain else f'({value})'} : {{ {body} }}"
