"""How deep a tree is. Later stages walk trees by recursion, so depth has a limit.

The walk here does not recurse: it has to work on the trees that the limit refuses.
"""

from __future__ import annotations

from tidelog.syntax import ast
from tidelog.syntax.errors import Diagnostic
from tidelog.syntax.source import Span

MAX_DEPTH = 200

_Node = ast.Expr | ast.Literal | ast.Atom


def too_deep(item: ast.Item) -> Diagnostic | None:
    """What to say of a node that lies deeper than `MAX_DEPTH`, or None."""
    if not isinstance(item, ast.Rule):
        return None
    # A node, its depth, and how much of that comes from operations in a row: `a + b + c` is `(a + b) + c`.
    stack: list[tuple[_Node, int, int]] = [(node, 1, 0) for node in (*item.heads, *item.body)]
    while stack:
        node, depth, in_a_row = stack.pop()
        if depth > MAX_DEPTH:
            return operations(node.span) if 2 * in_a_row > depth else nesting(node.span)
        for child in children(node):
            chained = isinstance(node, ast.Binary) and child is node.left
            stack.append((child, depth + 1, in_a_row + chained))
    return None


def nesting(span: Span) -> Diagnostic:
    """Too many brackets, conditionals and the like within each other."""
    return Diagnostic("TL0008", f"nested more than {MAX_DEPTH} deep", span)


def operations(span: Span) -> Diagnostic:
    """Too long a sum, say."""
    return Diagnostic(
        "TL0008",
        f"an expression of about {MAX_DEPTH} operations in a row, or more",
        span,
        hint="put parts of it in parentheses, or give them names: `x = ...`",
    )


def children(node: _Node) -> tuple[_Node, ...]:
    """The nodes directly below a node."""
    match node:
        case ast.Unary() | ast.Cast():
            return (node.operand,)
        case ast.Binary():
            return (node.left, node.right)
        case ast.Call():
            return node.args
        case ast.Conditional():
            return (node.condition, node.then, node.otherwise)
        case ast.Aggregate():
            return (*((node.value,) if node.value is not None else ()), *node.body)
        case ast.Atom():
            return tuple(argument.value for argument in node.args)
        case ast.Positive() | ast.Negation():
            return (node.atom,)
        case ast.Condition():
            return (node.expr,)
        case ast.Let():
            return (node.value,)
        case ast.GroupBy():
            return (*((node.value,) if node.value is not None else ()), *node.keys)
        case _:
            return ()
