"""How deep a tree is. Later stages walk trees by recursion, so depth has a limit.

The walk here does not recurse: it has to work on the trees that the limit refuses.
"""

from __future__ import annotations

from tidelog.syntax import ast
from tidelog.syntax.source import Span

MAX_DEPTH = 200

_Node = ast.Expr | ast.Literal | ast.Atom


def too_deep(item: ast.Item) -> Span | None:
    """The span of a node that lies deeper than `MAX_DEPTH`, or None."""
    if not isinstance(item, ast.Rule):
        return None
    stack: list[tuple[_Node, int]] = [(node, 1) for node in (*item.heads, *item.body)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            return node.span
        stack += [(child, depth + 1) for child in children(node)]
    return None


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
