"""The order in which a reading's literals are evaluated.

The driver comes first. Then, as in `order`, each literal that is not an atom comes as soon as its
variables are bound, unless it can fail: such a literal waits for all atoms, unless some are to be joined
by its result: then for those that are connected with what is bound. Atoms are taken greedily, the one with
the fewest expected matches next; where there is no driver, every atom is tried as the first.

A computed variable may also be bound by an atom before; then the computed value is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.plan.executor import Version
from tidelog.plan.maintenance import Reading
from tidelog.plan.order import Statistics
from tidelog.plan.terms import atom_vars, definitions, expr_vars, needs
from tidelog.program.functions import can_fail
from tidelog.program.model import Bind, Const, Filter, Literal, Negative, Positive, Var
from tidelog.syntax.errors import InternalError


def order_reading(reading: Reading, sizes: Statistics) -> tuple[int, ...]:
    """The body literals of a reading in the order of evaluation, as positions."""
    body = reading.rule.body
    if reading.driver is not None:
        return _greedy(body, reading.driver, None, sizes)[1]
    starts: list[int | None] = [i for i, literal in enumerate(body) if isinstance(literal, Positive)]
    tried = [_greedy(body, start, None, sizes) for start in starts or [None]]
    return min(tried, key=lambda found: found[0])[1]


def orders_of(reading: Reading, sizes: Statistics, most: int) -> list[tuple[int, ...]]:
    """Orders of a driven reading to choose from when the driver's values are known, the best guess last.

    Each takes another atom that shares a variable with the driver directly behind it. How many
    matches an atom has depends on the values, and with a bad choice a search backwards costs more
    than all that it saves.
    """
    body = reading.rule.body
    best = order_reading(reading, sizes)
    found = [best]
    if len(best) > 1 and isinstance(body[best[1]], Positive):
        for position, literal in enumerate(body):
            if isinstance(literal, Positive) and position not in (reading.driver, best[1]):
                order = _greedy(body, reading.driver, position, sizes)[1]
                if order[1] == position and len(found) < most:
                    found.append(order)
    return found[::-1]


def _greedy(
    body: Sequence[Literal], start: int | None, second: int | None, sizes: Statistics
) -> tuple[float, tuple[int, ...]]:
    """The expected number of tuples along the way, and the order, from a first literal on.

    `second` comes directly behind it, if the two share a variable and nothing else is ready by then.
    """
    bound: set[str] = set()
    waiting = list(range(len(body)))
    order: list[int] = []
    rows, cost = 1.0, 0.0

    def take(position: int) -> None:
        waiting.remove(position)
        order.append(position)
        literal = body[position]
        if isinstance(literal, Positive):
            bound.update(atom_vars(literal.atom))
        elif isinstance(literal, Bind):
            bound.add(literal.var.name)
        else:
            bound.update(var.name for var, expr in definitions(literal) if set(expr_vars(expr)) <= bound)

    def ready(position: int) -> bool:
        """Whether a literal that is not an atom has what it needs."""
        literal = body[position]
        if isinstance(literal, Bind):
            return set(expr_vars(literal.expr)) <= bound
        if needs(literal) <= bound:
            return True
        return any(set(expr_vars(expr)) <= bound for _, expr in definitions(literal))

    if start is not None:
        if order_matches := sizes.size(_relation(body[start]), Version.ALL):
            rows = float(order_matches)
        take(start)
    if second is not None and _bound_columns(body[second], bound):
        take(second)
    while waiting:
        others = [i for i in waiting if not isinstance(body[i], Positive) and ready(i)]
        safe = [i for i in others if not _can_fail(body[i])]
        if safe:
            take(safe[0])
            continue
        expected = {i: _matches(body[i], bound, sizes) for i in waiting if isinstance(body[i], Positive)}
        chosen = [i for i in expected if _bound_columns(body[i], bound)]
        if others and expected:  # they can fail; what comes before them is as in `order`
            chosen = [i for i in expected if _is_tied(body[i], bound)]
            joining = [i for i in others if _joined(body, waiting, [i], expected, bound)]
            if not chosen and joining:
                take(joining[0])
                continue
            if not chosen:
                later = _joined(body, waiting, waiting, expected, bound)
                chosen = [i for i in expected if i not in later]
        if expected:
            position = min(chosen or expected, key=lambda i: (expected[i], i))
            rows *= expected[position]
            cost += rows
            take(position)
        elif others:
            take(others[0])
        else:  # the checker lets no unsafe rule pass
            raise InternalError("no order for a rule's body")
    return cost, tuple(order)


def _joined(
    body: Sequence[Literal], waiting: Sequence[int], of: Sequence[int], atoms: Iterable[int], bound: set[str]
) -> set[int]:
    """The atoms that are joined, directly or not, by the results of those literals that can fail."""
    found = {var.name for i in of if _can_fail(body[i]) for var, _ in definitions(body[i])} - bound
    joined: set[int] = set()
    before = -1
    while before < len(found):
        before = len(found)
        for i in waiting:
            found |= {var.name for var, expr in definitions(body[i]) if found & set(expr_vars(expr))} - bound
        for i in atoms:
            literal = body[i]
            if isinstance(literal, Positive) and found & set(atom_vars(literal.atom)):
                joined.add(i)
                found |= set(atom_vars(literal.atom)) - bound
    return joined


def _is_tied(literal: Literal, bound: set[str]) -> bool:
    """Whether an atom shares a variable with what is bound, or has none."""
    assert isinstance(literal, Positive)
    names = set(atom_vars(literal.atom))
    return bool(names & bound) or not names


def _bound_columns(literal: Literal, bound: set[str]) -> tuple[int, ...]:
    assert isinstance(literal, Positive)
    return tuple(
        i
        for i, term in enumerate(literal.atom.terms)
        if isinstance(term, Const) or (isinstance(term, Var) and term.name in bound)
    )


def _matches(literal: Literal, bound: set[str], sizes: Statistics) -> float:
    """How many tuples of an atom are expected for one binding of `bound`."""
    assert isinstance(literal, Positive)
    columns = _bound_columns(literal, bound)
    if len(columns) == len(literal.atom.terms):
        return 0.5
    if not columns:
        return float(sizes.size(literal.atom.relation, Version.ALL))
    return sizes.fanout(literal.atom.relation, columns)


def _relation(literal: Literal) -> str:
    assert isinstance(literal, Positive | Negative)
    return literal.atom.relation


def _can_fail(literal: Literal) -> bool:
    match literal:
        case Filter(condition):
            return can_fail(condition)
        case Bind(_, expr):
            return can_fail(expr)
        case _:
            return False
