"""The order in which the literals of a body are evaluated.

Atoms are ordered greedily: the DELTA atom first; then, each time, the atom for
which the fewest matches are expected given the variables already bound. An atom
whose columns are all bound is only a check and comes at once; an atom that
shares no variable with what is bound (a cartesian product) comes last. Because the
first steps matter most and greed is short-sighted, every atom is tried as the first
one (where there is no DELTA) and every atom as the second; the order with the fewest
expected tuples along the way wins. Long bodies are given less thought: no second atoms,
and beyond that only the starts with the fewest tuples.

Every other literal comes as soon as its variables are bound; `x == e` computes `x`
where `e` is bound before it, so that atoms are joined on the value. There is one
exception. An expression that can fail comes as late as possible, so that the rest
of the body guards it: `z = x / y, y != 0` never divides by zero, in either order.
Such literals wait for all others that do not depend on them, and are taken in
source order. Only where waiting would mean a product, as in
`p(x), q(x + 1, s), r(s)`, an atom (here `q`) waits for the expression instead, and
the expression for the atoms connected with its variables (here `p`). Which literals
come before a failing one depends on the rule form alone, never on the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.terms import atom_vars, definitions, expr_vars, fixed_value, needs
from tidelog.program.functions import can_fail
from tidelog.program.model import Atom, Bind, Const, Filter, Literal, Positive, Var
from tidelog.syntax.errors import InternalError

# Up to how many atoms every second atom, and every first one, is tried; and how many first ones beyond.
EVERY_SECOND = 10
EVERY_START = 30
FEW_STARTS = 3


class Statistics(Protocol):
    """What the order of joins is chosen from."""

    def size(self, relation: str, version: Version) -> int:
        """The number of tuples."""

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """How many tuples are expected to match when these columns are bound."""


@dataclass(frozen=True)
class Assumed:
    """Statistics for when nothing is known: every relation alike."""

    tuples: int = 10_000

    def size(self, relation: str, version: Version) -> int:
        """A fixed size; a delta is a tenth of it."""
        return self.tuples // 10 if version is Version.DELTA else self.tuples

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        """Each bound column keeps one tuple in a hundred."""
        return float(self.tuples / 100 ** len(columns))


def order_body(form: RuleForm, sizes: Statistics) -> tuple[int, ...]:
    """The body literals of a form in the order of evaluation, as positions."""
    body = _Body(form)
    starts = body.starts()
    if len(body.atoms) > EVERY_START:
        by_size = sorted(starts, key=lambda i: 0.0 if i is None else _matches(body, i, body.fixed, sizes))
        starts = by_size[:FEW_STARTS]
    tried = []
    for start in starts:
        tried.append(_greedy(body, sizes, start, None))
        if 2 < len(body.atoms) <= EVERY_SECOND:
            tried += [_greedy(body, sizes, start, second) for second in body.atoms if second != start]
    return min((order for order in tried if order is not None), key=lambda order: order[0])[1]


class _Body:
    """What is fixed about a form's body before any order is tried."""

    def __init__(self, form: RuleForm) -> None:
        self.form = form
        self.literals: tuple[Literal, ...] = form.rule.body
        everything = range(len(self.literals))
        self.atoms = [i for i in everything if isinstance(self.literals[i], Positive)]
        self.vars = {i: atom_vars(_atom(self.literals[i])) for i in self.atoms}
        fixed: dict[str, int] = {}
        for i in everything:
            if (value := fixed_value(self.literals[i])) is not None:
                fixed.setdefault(value[0].name, i)
        self.fixing = sorted(fixed.values())
        self.fixed = frozenset(fixed)
        self.others = [i for i in everything if i not in self.vars and i not in self.fixing]
        self.failing = frozenset(i for i in self.others if _can_fail(self.literals[i]))
        self.needs = {i: needs(self.literals[i]) for i in self.others}
        # The variables that each literal can compute, each with the variables it is computed from.
        self.definitions = {
            i: [(var.name, frozenset(expr_vars(expr))) for var, expr in definitions(self.literals[i])]
            for i in everything
        }
        self.computed = self._computed()
        self.feeding = self._feeding()
        self.deferred = self._deferred()

    def _computed(self) -> dict[str, int]:
        """Variables that atoms wait for, with the position of the literal that computes each.

        These are the variables of Binds, and those of failing equations without which
        an atom would be a product. A DELTA atom that is joined with what a Bind needs
        is still read first, and the Bind then only checks (see `lower`).
        """
        computed: dict[str, int] = {}
        for i in self.others:
            if isinstance(literal := self.literals[i], Bind) and literal.var.name not in self.fixed:
                computed[literal.var.name] = i
        for delta in (i for i in self.atoms if self.form.reads[i] is Version.DELTA):
            reached = self._reached(self.vars[delta] - computed.keys(), computed.keys())
            for term in _atom(self.literals[delta]).terms:
                if isinstance(term, Var) and term.type.kind != "float" and term.name in computed:
                    inputs = needs(self.literals[computed[term.name]])
                    if inputs & reached:
                        del computed[term.name]
        for i, name, inputs in self._equations(computed):
            others = computed.keys() | self.fixed | {name}
            reached = self._reached(inputs - others, others) - others
            holders = [self.vars[a] for a in self.atoms if name in self.vars[a]]
            if name not in computed and not any(names & reached for names in holders):
                attempt = {**computed, name: i}
                if self._completes(attempt):
                    computed = attempt
        return computed

    def _equations(self, computed: Mapping[str, int]) -> list[tuple[int, str, frozenset[str]]]:
        """Failing filters `x == e` with `x` in an atom: position, `x`, variables of `e`."""
        in_atoms = frozenset(name for names in self.vars.values() for name in names) - self.fixed
        return [
            (i, name, inputs)
            for i in self.others
            if i in self.failing and isinstance(self.literals[i], Filter)
            for name, inputs in self.definitions[i]
            if name in in_atoms and name not in computed
        ]

    def _completes(self, computed: Mapping[str, int]) -> bool:
        """Whether no literal waits forever when atoms wait for these variables."""
        waiting = {i: set(self.inputs(i, computed) - self.fixed) for i in (*self.atoms, *self.others)}
        needed_by: dict[str, list[int]] = {}
        for i, names in waiting.items():
            for name in names:
                needed_by.setdefault(name, []).append(i)
        ready = [i for i, names in waiting.items() if not names]
        for i in ready:
            del waiting[i]
            bound = {name for name, _ in self.definitions[i] if computed.get(name) == i}
            if isinstance(literal := self.literals[i], Bind):
                bound.add(literal.var.name)
            for name in bound | self.vars.get(i, frozenset()):
                for j in needed_by.pop(name, ()):
                    waiting[j].discard(name)
                    if not waiting[j]:
                        ready.append(j)  # also looked at by this loop
        return not waiting

    def inputs(self, position: int, computed: Mapping[str, int] | None = None) -> frozenset[str]:
        """The variables that a literal waits for."""
        known = self.computed if computed is None else computed
        if position in self.vars:
            return self.vars[position] & known.keys()
        for name, inputs in self.definitions[position]:
            if known.get(name) == position:
                return inputs
        return self.needs[position]

    def _reached(self, names: Set[str], without: Set[str]) -> set[str]:
        """The variables connected with `names` by atoms, not counting those in `without`."""
        reached = set(names)
        while more := {n for v in self.vars.values() if v & reached - without for n in v} - reached:
            reached |= more
        return reached

    def _needed_binds(self, names: Iterable[str]) -> set[int]:
        """The Binds that compute these variables, and those that they need in turn."""
        pending, found = list(names), set[int]()
        while pending:
            position = self.computed.get(pending.pop())
            if position is not None and position not in found:
                found.add(position)
                pending += self.inputs(position)
        return found

    def _feeding(self) -> frozenset[int]:
        """The failing literals whose result some atom needs, directly or not."""
        return frozenset(i for a in self.atoms for i in self._needed_binds(self.vars[a]) if i in self.failing)

    def _deferred(self) -> frozenset[int]:
        """Atoms that no feeding literal has to wait for: not connected with its variables."""
        if not self.feeding:
            return frozenset()
        reached = {name for i in self.feeding for name in self.inputs(i)}
        reached |= {n for i in self._needed_binds(reached) for n in self.inputs(i)}
        reached = self._reached(reached - self.fixed, self.computed.keys() | self.fixed)
        free = [a for a in self.atoms if not self._needed_binds(self.vars[a]) & self.failing]
        return frozenset(a for a in free if not self.vars[a] & reached)

    def starts(self) -> Sequence[int | None]:
        """The atoms to try first: the DELTA atom alone, where it waits for nothing."""
        free = [a for a in self.atoms if not self._needed_binds(self.vars[a])]
        delta = [a for a in free if self.form.reads[a] is Version.DELTA]
        return delta or [a for a in free if a not in self.deferred] or [None]


def _greedy(
    body: _Body, sizes: Statistics, start: int | None, second: int | None
) -> tuple[float, tuple[int, ...]] | None:
    """Expected tuples along the way, and the order that begins with `start` and `second`.

    None where `second` would not be an atom to take then.
    """
    order = list(body.fixing)
    bound = set(body.fixed)
    waiting = [i for i in range(len(body.literals)) if i not in body.fixing]
    rows, cost = 1.0, 0.0

    def take(position: int) -> None:
        waiting.remove(position)
        order.append(position)
        bound.update(body.vars.get(position, ()))
        for name, inputs in body.definitions[position]:
            if inputs <= bound:
                bound.add(name)

    def ready(position: int) -> bool:
        return body.inputs(position) <= bound

    def computes(position: int) -> bool:
        """Whether a literal has what it needs to compute a variable that nothing has bound."""
        return any(inputs <= bound for _, inputs in body.definitions[position])

    def take_atom(position: int) -> None:
        nonlocal rows, cost
        rows *= _matches(body, position, bound, sizes)
        cost += rows
        take(position)

    def take_cheap() -> None:
        while cheap := [
            i for i in waiting if i in body.others and i not in body.failing and (ready(i) or computes(i))
        ]:
            take(cheap[0])

    if start is not None:
        take_atom(start)
    while waiting:
        take_cheap()
        atoms = [i for i in waiting if i in body.vars and ready(i)]
        linked = [i for i in atoms if body.vars[i] & (bound - body.fixed) or _is_ground(body.literals[i])]
        plain = [i for i in atoms if i not in body.deferred]
        feeding = [i for i in waiting if i in body.feeding and ready(i)]
        late = [i for i in waiting if i not in body.vars and ready(i)]
        if choice := linked or plain:
            if second is None:
                take_atom(min(choice, key=lambda i: (_matches(body, i, bound, sizes), i)))
            elif second in choice:
                take_atom(second)
                second = None
            else:
                return None
        elif feeding:
            take(feeding[0])
        elif atoms:
            take_atom(min(atoms, key=lambda i: (_matches(body, i, bound, sizes), i)))
        elif late:
            take(late[0])
        elif waiting:  # the checker lets no unsafe rule pass
            raise InternalError(f"no order for the body of {body.form.rule.text}")
    return (cost, tuple(order)) if second is None else None


def _matches(body: _Body, position: int, bound: Set[str], sizes: Statistics) -> float:
    """How many tuples of an atom are expected for one binding of `bound`."""
    atom, version = _atom(body.literals[position]), body.form.reads[position]
    columns = tuple(
        i
        for i, t in enumerate(atom.terms)
        if isinstance(t, Const) or (isinstance(t, Var) and t.name in bound)
    )
    if len(columns) == len(atom.terms):
        return 0.5  # a check: at most one tuple, often none
    if not columns:
        return float(sizes.size(atom.relation, version))
    return sizes.fanout(atom.relation, columns)


def _is_ground(literal: Literal) -> bool:
    return all(isinstance(term, Const) for term in _atom(literal).terms)


def _can_fail(literal: Literal) -> bool:
    match literal:
        case Filter(condition):
            return can_fail(condition)
        case Bind(_, expr):
            return can_fail(expr)
        case _:
            return False


def _atom(literal: Literal) -> Atom:
    assert isinstance(literal, Positive)
    return literal.atom
