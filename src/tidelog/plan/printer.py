"""Plans as text, in the notation of relational algebra.

    π[x, z](tc.delta(x, y) ⋈ edge(y, z))

π project, σ select, ε extend by a computed attribute, ⋈ join, ▷ antijoin, γ group.
A relation's version follows its name; ALL is not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, Project, RulePlan, Scan, Select, Unit
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Version
from tidelog.plan.lower import plan_form
from tidelog.plan.order import Assumed, Statistics
from tidelog.program.model import (
    AggregateRule,
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Literal,
    Negative,
    Positive,
    Program,
    Rule,
    Stratum,
    Term,
    Var,
)

_INFIX = {
    "or": ("or", 1),
    "and": ("and", 2),
    "eq": ("==", 3),
    "ne": ("!=", 3),
    "lt": ("<", 3),
    "le": ("<=", 3),
    "gt": (">", 3),
    "ge": (">=", 3),
    "bor": ("|", 4),
    "bxor": ("^", 5),
    "band": ("&", 6),
    "shl": ("<<", 7),
    "shr": (">>", 7),
    "add": ("+", 8),
    "sub": ("-", 8),
    "concat": ("++", 8),
    "mul": ("*", 9),
    "div": ("/", 9),
    "mod": ("%", 9),
}
_PREFIX = {"neg": "-", "not": "not ", "bnot": "~"}


def print_expr(expr: Expr, outer: int = 0) -> str:
    """An expression, with parentheses only where they are needed."""
    match expr:
        case Var(name):
            return name
        case Const(value):
            return _constant(value)
        case Apply(function, (left, right)) if function in _INFIX:
            sign, level = _INFIX[function]
            text = f"{print_expr(left, level)} {sign} {print_expr(right, level + 1)}"
            return f"({text})" if level < outer else text
        case Apply(function, (operand,)) if function in _PREFIX:
            return _PREFIX[function] + print_expr(operand, 10)
        case Apply("cast", (operand,), type):
            return f"({print_expr(operand, 10)} as {type})"
        case Apply(function, args):
            return f"{function}({', '.join(print_expr(arg) for arg in args)})"


def _constant(value: bool | int | float | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
        return '"' + "".join(escapes.get(c, c) for c in value) + '"'
    return repr(value)


def _term(term: Term) -> str:
    return print_expr(term) if isinstance(term, Var | Const) else "_"


def print_rule(rule: Rule) -> str:
    """A rule of a checked program, as later stages see it."""
    body = ", ".join(map(_literal, rule.body))
    return f"{_atom(rule.head)} :- {body}."


def _literal(literal: Literal) -> str:
    match literal:
        case Positive(atom):
            return _atom(atom)
        case Negative(atom):
            return f"not {_atom(atom)}"
        case Filter(condition):
            return print_expr(condition)
        case Bind(var, expr):
            return f"{var.name} = {print_expr(expr)}"


def _atom(atom: Atom) -> str:
    return f"{atom.relation}({', '.join(map(_term, atom.terms))})"


def print_plan(node: Node | Project) -> str:
    """A plan on one line."""
    match node:
        case Unit():
            return "{()}"
        case Scan(relation, version, terms):
            suffix = "" if version is Version.ALL else f".{version.value}"
            return f"{relation}{suffix}({', '.join(map(_term, terms))})"
        case Join(left, right):
            return f"{print_plan(left)} ⋈ {print_plan(right)}"
        case AntiJoin(left, right):
            return f"{print_plan(left)} ▷ {print_plan(right)}"
        case Select(source, condition):
            return f"σ[{print_expr(condition)}]({print_plan(source)})"
        case Extend(source, var, expr):
            return f"ε[{var.name} = {print_expr(expr)}]({print_plan(source)})"
        case Project(source, terms):
            return f"π[{', '.join(map(_term, terms))}]({print_plan(source)})"


def print_aggregate(rule: AggregateRule, program: Program) -> str:
    """An aggregate as a grouping of its source relation."""
    columns = [column.name for column in program.relations[rule.source].columns]
    keys = ", ".join(columns[i] for i in rule.keys)
    value = "" if rule.value is None else columns[rule.value]
    return f"γ[{keys}; {rule.op.value}({value})]({rule.source}({', '.join(columns)}))"


def print_strata(program: Program, strata: Sequence[Stratum], statistics: Statistics | None = None) -> str:
    """A whole program: its strata in order, their rules, and a plan for each form of each rule."""
    known = Assumed() if statistics is None else statistics
    return "\n".join(line for stratum in strata for line in _stratum(program, stratum, known))


def _stratum(program: Program, stratum: Stratum, statistics: Statistics) -> Iterator[str]:
    yield f"stratum {stratum.index + 1}: {', '.join(stratum.relations)}"
    if stratum.aggregate is not None:
        yield from _rule("aggregate", stratum.aggregate.text)
        yield f"    {stratum.aggregate.head} ← {print_aggregate(stratum.aggregate, program)}"
    for rule in stratum.base:
        yield from _rule("base", _text(rule))
        yield _form(plan_form(whole_form(rule), statistics), rule)
    for rule in stratum.recursive:
        yield from _rule("recursive", _text(rule))
        for form in delta_forms(rule, frozenset(stratum.relations)):
            yield _form(plan_form(form, statistics), rule)
    yield ""


def _text(rule: Rule) -> str:
    """The rule as the user wrote it; one that a rewrite made, as it was made."""
    return rule.text if rule.made_by is None else print_rule(rule)


def _rule(kind: str, text: str) -> Iterator[str]:
    first, *more = text.strip().splitlines() or [""]
    yield f"  {kind}: {first.strip()}"
    for line in more:
        yield f"  {' ' * len(kind)}  {line.strip()}"


def _form(plan: RulePlan, rule: Rule) -> str:
    return f"    {rule.head.relation} ← {print_plan(plan.root)}"
