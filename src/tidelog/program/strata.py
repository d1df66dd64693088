"""Strata: relations that depend on one another, in the order of evaluation.

A relation depends on the relations that its rules read. Strongly connected
components of this graph are the strata (Tarjan's algorithm, written with its own
stack so that a chain of any length works); negation and aggregation must not
stand on a cycle, see `program.cycles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidelog.program.model import Negative, Positive, Program, Rule, Stratum


def components(nodes: Iterable[str], reads: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The strongly connected components, what is read before what reads it."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    found: list[list[str]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(reads.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(reads.get(successor, ()))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    start = _from_top(stack, node)
                    component = stack[start:]
                    del stack[start:]
                    on_stack.difference_update(component)
                    found.append(component)
    return found


def _from_top(stack: Sequence[str], node: str) -> int:
    """Where a node stands in the stack, looked for from its top."""
    position = len(stack) - 1
    while stack[position] != node:
        position -= 1
    return position


def body_relations(rule: Rule) -> list[str]:
    """The relations that a rule reads, positively or not, in order."""
    return [lit.atom.relation for lit in rule.body if isinstance(lit, Positive | Negative)]


def stratify(program: Program) -> tuple[Stratum, ...]:
    """The strata of a checked program, in an order that evaluates what is read first."""
    rules: dict[str, list[Rule]] = {}
    reads: dict[str, list[str]] = {}
    aggregates = {a.head: a for a in program.aggregates}
    for rule in program.rules:
        rules.setdefault(rule.head.relation, []).append(rule)
        reads.setdefault(rule.head.relation, []).extend(body_relations(rule))
    for aggregate in program.aggregates:
        reads.setdefault(aggregate.head, []).append(aggregate.source)
    strata: list[Stratum] = []
    order = {name: i for i, name in enumerate(program.relations)}
    for component in components(program.relations, reads):
        members = set(component)
        if not members & reads.keys():
            continue
        mine = sorted((r for name in component for r in rules.get(name, ())), key=lambda r: r.id)
        recursive = [r for r in mine if not members.isdisjoint(body_relations(r))]
        strata.append(
            Stratum(
                index=len(strata),
                relations=tuple(sorted(component, key=order.__getitem__)),
                base=tuple(r for r in mine if members.isdisjoint(body_relations(r))),
                recursive=tuple(recursive),
                aggregate=aggregates.get(component[0]) if len(component) == 1 else None,
            )
        )
    return tuple(strata)
