"""Stratification: negation and aggregation must not stand on a cycle.

A relation that is read through a negation or an aggregate must be complete before
it is read, so it cannot depend on what reads it. The message names the cycle: in
*R3 is negated here but depends on itself: R3 -> R2 -> R3* an arrow means "depends on".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.program.draft import Body, DAtom, DGroup, DLet, DRule, Variable, aggregates_in, expressions
from tidelog.program.model import Negative, Positive, Program, Var
from tidelog.program.problems import Problems
from tidelog.program.strata import components
from tidelog.syntax.errors import Label
from tidelog.syntax.source import Span

MANY = 5  # problems told of one component
BREAK = "break the cycle: derive one of these relations without the others"


@dataclass(frozen=True)
class Edge:
    """`head` reads `relation`; `how` is empty, negated or aggregated."""

    head: str
    relation: str
    how: str
    span: Span | None


def draft_edges(rule: DRule) -> list[Edge]:
    """What the heads of a rule depend on."""
    return [
        Edge(head.relation, atom.relation, how, atom.span)
        for head in rule.heads
        for atom, how in _atoms(rule.body, "")
    ]


def _atoms(body: Body, how: str) -> list[tuple[DAtom, str]]:
    found: list[tuple[DAtom, str]] = []
    for literal in body.literals:
        if isinstance(literal, DAtom):
            found.append((literal, how or ("negated" if literal.negated else "")))
        elif isinstance(literal, DGroup):
            found += _atoms(literal.body, "aggregated")
        for expr in expressions(literal):
            for aggregate in aggregates_in(expr):
                inner = list(aggregate.body.literals)
                if aggregate.value is not None and aggregates_in(aggregate.value):
                    variable = Variable("$value", aggregate.span, aggregate.body.scope)
                    inner.append(DLet(variable, aggregate.value, aggregate.span))
                found += _atoms(Body(inner, aggregate.body.scope), "aggregated")
    return found


def program_edges(program: Program) -> list[Edge]:
    """The same of a checked program, the relations that rewrites made included."""
    edges = [
        Edge(rule.head.relation, lit.atom.relation, "negated" if isinstance(lit, Negative) else "", rule.span)
        for rule in program.rules
        for lit in rule.body
        if isinstance(lit, Positive | Negative)
    ]
    return edges + [Edge(a.head, a.source, "aggregated", a.span) for a in program.aggregates]


def component_numbers(edges: Sequence[Edge]) -> dict[str, int]:
    """Which relations depend on one another: those with the same number."""
    reads: dict[str, list[str]] = {}
    for edge in edges:
        reads.setdefault(edge.head, []).append(edge.relation)
    return {name: i for i, names in enumerate(components(reads, reads)) for name in names}


def check_lowered(program: Program, problems: Problems) -> None:
    """The same for what lowering adds: an aggregate reads the literals that bind its keys."""
    edges = program_edges(program)
    strict = [edge for edge in edges if edge.how == "aggregated"]

    def report(edge: Edge, way: list[Edge]) -> None:
        _report_keys(program, edge, way, problems)

    _check(edges, strict, component_numbers(edges), report)


def check_cycles(edges: Sequence[Edge], component: Mapping[str, int], problems: Problems) -> None:
    """Report every negation and aggregation that stands on a cycle."""

    def report(edge: Edge, way: list[Edge]) -> None:
        _report(edge, way, problems)

    _check(edges, [edge for edge in edges if edge.how], component, report)


def _check(
    edges: Sequence[Edge],
    strict: Sequence[Edge],
    component: Mapping[str, int],
    report: Callable[[Edge, list[Edge]], None],
) -> None:
    told: dict[int, int] = {}
    seen: set[tuple[str, str, str]] = set()
    by_head: dict[str, list[Edge]] = {}
    for edge in edges:
        if component[edge.head] == component[edge.relation]:
            by_head.setdefault(edge.head, []).append(edge)
    for edge in strict:
        key = (edge.head, edge.relation, edge.how)
        if component[edge.head] != component[edge.relation] or key in seen:
            continue
        seen.add(key)
        told[component[edge.head]] = told.get(component[edge.head], 0) + 1
        if told[component[edge.head]] <= MANY:
            report(edge, _way(edge.relation, edge.head, by_head))


def _way(start: str, goal: str, by_head: dict[str, list[Edge]]) -> list[Edge]:
    """The shortest way from one relation to another along what they read."""
    came: dict[str, Edge] = {}
    queue = deque([start])
    while queue and goal not in came and start != goal:
        name = queue.popleft()
        for edge in by_head.get(name, ()):
            if edge.relation not in came and edge.relation != start:
                came[edge.relation] = edge
                queue.append(edge.relation)
    way: list[Edge] = []
    name = goal
    while name != start:
        way.append(came[name])
        name = came[name].head
    return way[::-1]


def _report(edge: Edge, way: list[Edge], problems: Problems) -> None:
    names = _names(edge, way)
    first = names[0]
    negated = edge.how == "negated"
    problems.add(
        "TL0305" if negated else "TL0306",
        f"{first} is {edge.how} here but depends on itself: {' -> '.join(names)}",
        edge.span,
        f"{edge.head.split('$')[0]} needs all of {first} here",
        others=_steps(way[:3]),
        notes=[f"a relation must be complete before it is {edge.how}"],
        hint=BREAK,
    )


def _report_keys(program: Program, edge: Edge, way: list[Edge], problems: Problems) -> None:
    """The values that an aggregate is computed for come from its own cycle."""
    names = _names(edge, way)
    first, head = names[0], edge.head.split("$")[0]
    keys, bound = _keys(program, edge, way[0].relation)
    shared, come = ", ".join(bound or keys), "come from" if bound else "come by way of"
    problems.add(
        "TL0306",
        f"an aggregate is computed for values of {shared} that {come} {first}, but {first} depends on it: "
        f"{' -> '.join(names)}",
        edge.span,
        f"{head} needs all values of {shared} here",
        others=_steps([step for step in way if "$" not in step.head][:3]),
        notes=["a relation must be complete before an aggregate is computed for its values"],
        hint=f"bind {shared} by a relation that does not depend on {head}" if bound else BREAK,
    )


def _keys(program: Program, edge: Edge, relation: str) -> tuple[list[str], list[str]]:
    """The variables that an aggregate shares with its rule, and those of them that a relation binds."""
    columns = program.relations[edge.relation].columns
    keys = [columns[k].name for a in program.aggregates if a.head == edge.head for k in a.keys]
    bound = {
        term.name
        for rule in program.rules
        if rule.head.relation == edge.relation
        for literal in rule.body
        if isinstance(literal, Positive) and literal.atom.relation == relation
        for term in literal.atom.terms
        if isinstance(term, Var)
    }
    return keys, [key for key in keys if key in bound]


def _steps(way: Iterable[Edge]) -> list[Label]:
    return [
        Label(step.span, f"{step.head.split('$')[0]} depends on {step.relation.split('$')[0]} here")
        for step in way
        if step.span is not None and step.head.split("$")[0] != step.relation.split("$")[0]
    ]


def _names(edge: Edge, way: list[Edge]) -> list[str]:
    """The cycle of an edge and the way back, in the user's own relations."""
    return _shown([edge.relation, *(step.relation for step in way), edge.relation])


def _shown(names: Iterable[str]) -> list[str]:
    own = [name for name in names if "$" not in name]
    cycle = own[:-1] if len(own) > 1 and own[0] == own[-1] else own
    return [*cycle, cycle[0]]
