"""The notions of the DYRE paper, as it defines them: rewrites, streams, nested streams, its two circuits.

This is slow and small on purpose: it recomputes whatever it can. Streams are finite lists,
with nothing behind their end; nested streams are lists of lists. A fact is `("P", ("a", "b"))`, a
Z-set of facts is written `facts("P(a, b) P(b, c)")`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import TypeVar

from tests.papers.notation import read
from tidelog.maintain.zsets import ZSet
from tidelog.program.check import check
from tidelog.program.model import Atom, Const, Positive, Rule, Value, Var
from tidelog.syntax.parser import parse

K = TypeVar("K", bound=Hashable)
L = TypeVar("L", bound=Hashable)
M = TypeVar("M", bound=Hashable)
A = TypeVar("A")
B = TypeVar("B")

Row = tuple[Value, ...]
Fact = tuple[str, Row]
Stream = list[ZSet[K]]
Nested = list[Stream[K]]
Rewrite = frozenset[tuple[str, Value]]

EMPTY: Rewrite = frozenset()  # Σ₀


def facts(text: str, weight: int = 1) -> ZSet[Fact]:
    return ZSet({(name, row): weight for name, rows in read(text).items() for row in rows})


DECLARED = "".join(f".decl {name}(x: symbol, y: symbol)\n.output {name}\n" for name in "PR")


def rules(text: str) -> list[Rule]:
    """Rules over P and R, which have two columns of symbols each."""
    return list(check(parse(DECLARED + text)).rules)


def body(rule: Rule) -> list[Atom]:
    return [literal.atom for literal in rule.body if isinstance(literal, Positive)]


# --- section 3: rewriting -------------------------------------------------------


def rewrite(**values: Value) -> Rewrite:
    return frozenset(values.items())


def extend(sigma: Rewrite, atom: Atom, row: Row) -> Rewrite | None:
    """Σ ⊕ Σ_f, if the fact unifies with the atom to which Σ has been applied."""
    found = dict(sigma)
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(term, Const) and term.value != value:
            return None
        if isinstance(term, Var) and found.setdefault(term.name, value) != value:
            return None
    return frozenset(found.items())


def rewrite_product(sigmas: Iterable[Rewrite], atom: Atom, given: Iterable[Fact]) -> set[Rewrite]:
    """𝕊 ⊗ a (Definition 3.2)."""
    rows = [row for name, row in given if name == atom.relation]
    found = (extend(sigma, atom, row) for sigma in sigmas for row in rows)
    return {sigma for sigma in found if sigma is not None}


def ground(sigma: Rewrite, head: Atom) -> Fact:
    values = dict(sigma)
    return head.relation, tuple(
        term.value if isinstance(term, Const) else values[term.name]
        for term in head.terms
        if isinstance(term, Const | Var)
    )


def consequence(program: ZSet[Rule], given: ZSet[Fact]) -> ZSet[Fact]:
    """𝒯(Π, E): what the rules derive from the facts in one step."""

    def heads(rule: Rule) -> list[Fact]:
        sigmas = {EMPTY}
        for atom in body(rule):
            sigmas = rewrite_product(sigmas, atom, given)
        return [ground(sigma, rule.head) for sigma in sigmas]

    return program.linear(heads).toset()


def materialised(program: ZSet[Rule], given: ZSet[Fact]) -> ZSet[Fact]:
    """The circuit of Figure 1 at its fixed point: the facts and all that follows."""
    found = given
    while (more := (found + consequence(program, found)).toset()) != found:
        found = more
    return found


# --- section 4: Z-sets, streams, nested streams ----------------------------------


def todiff(zset: ZSet[K]) -> ZSet[K]:
    return ZSet({member: 1 if weight > 0 else -1 for member, weight in zset.items()})


def lift(function: Callable[[A], B], stream: Iterable[A]) -> list[B]:
    """↑f."""
    return [function(value) for value in stream]


def delay(stream: Stream[K]) -> Stream[K]:
    """z⁻¹."""
    return [ZSet(), *stream]


def integrate(stream: Stream[K]) -> Stream[K]:
    """I: the sums up to each moment."""
    found: Stream[K] = []
    for value in stream:
        found.append(found[-1] + value if found else value)
    return found


def introduce(value: ZSet[K]) -> Stream[K]:
    """δ₀: the value, and then nothing."""
    return [value]


def total(stream: Iterable[ZSet[K]]) -> ZSet[K]:
    """∫ over a stream."""
    return sum(stream, ZSet())


def at(stream: Sequence[ZSet[K]], time: int) -> ZSet[K]:
    return stream[time] if 0 <= time < len(stream) else ZSet()


def sum_of_streams(nested: Nested[K]) -> Stream[K]:
    """∫ over a nested stream: streams are added moment by moment."""
    return [total(at(stream, i) for stream in nested) for i in range(max(map(len, nested), default=0))]


def integrate_nested(nested: Nested[K]) -> Nested[K]:
    """I, not lifted: at (t, t') the sum over all epochs up to t."""
    return [sum_of_streams(nested[: t + 1]) for t in range(len(nested))]


# --- section 4: the grounding kit -------------------------------------------------


def provenance(rule: Rule, position: int) -> int:
    """𝒫(π, a_j) (Definition 4.2)."""
    return sum(hash(atom) for atom in body(rule)[: position + 1])


def directions(program: ZSet[Rule]) -> ZSet[tuple[int, int, Atom]]:
    """dir(Π) (Definition 4.3), with the atom that lies between the two provenances."""
    return program.linear(
        lambda rule: [(provenance(rule, j - 1), provenance(rule, j), a) for j, a in enumerate(body(rule))]
    )


def signals(program: ZSet[Rule]) -> ZSet[tuple[int, Atom]]:
    """sig(Π) (Definition 4.4)."""
    return program.linear(lambda rule: [(provenance(rule, len(body(rule)) - 1), rule.head)])


def join_order(rule: Rule) -> ZSet[tuple[str, tuple[int, ...]]]:
    """jorder(π) (Definition 4.6): each atom, and the places of the terms that atoms before it have bound."""
    found, bound = [], set[str]()
    for atom in body(rule):
        names = [term.name if isinstance(term, Var) else "" for term in atom.terms]
        found.append((atom.relation, tuple(i for i, name in enumerate(names) if name in bound)))
        bound |= set(names)
    return ZSet.of(found)


# --- Figure 2 -----------------------------------------------------------------------


class Times(dict[tuple[int, int], ZSet[K]]):
    """A nested stream under construction: what changes at (t, t')."""

    def up_to(self, t: int, i: int) -> ZSet[K]:
        """The sum over both times."""
        return total(value for (u, j), value in self.items() if u <= t and j <= i)


def change_at(whole: Callable[[int, int], ZSet[K]], t: int, i: int) -> ZSet[K]:
    """What changes at (t, t') in something that is known as a whole at each time."""
    before = whole(t, i - 1) - whole(t - 1, i - 1)
    return whole(t, i) - whole(t - 1, i) - before


def join(left: Times[K], right: Times[L], function: Callable[[K, L], M | None], t: int, i: int) -> ZSet[M]:
    """π_f((↑(↑⋈)^Δ)^Δ) at (t, t'), by its definition: the change of the join of the whole inputs."""

    def whole(u: int, j: int) -> ZSet[M]:
        found: dict[M, int] = {}
        others = right.up_to(u, j).items()
        for one, weight in left.up_to(u, j).items():
            for other, times in others:
                if (image := function(one, other)) is not None:
                    found[image] = found.get(image, 0) + weight * times
        return ZSet(found)

    return change_at(whole, t, i)


class Circuit:
    """Figure 2, one commit at a time.

    `derived` has the weights before distinct, `held` those after it. The circuit begins with
    iteration 0, in which nothing but the facts that are given arrives.
    """

    def __init__(self) -> None:
        self.epoch = -1
        self.directions: Times[tuple[int, int, Atom]] = Times()
        self.signals: Times[tuple[int, Atom]] = Times()
        self.gate: Times[tuple[int, Atom, Rewrite]] = Times()
        self.products: Times[tuple[int, Rewrite]] = Times()
        self.rewrites: Times[tuple[int, Rewrite]] = Times({(0, 0): ZSet({(0, EMPTY): 1})})  # delayed
        self.derived: Times[Fact] = Times()
        self.held: Times[Fact] = Times()
        self.facts: Times[Fact] = Times()  # delayed
        self.program: ZSet[Rule] = ZSet()
        self.last = 0

    def commit(self, rules: ZSet[Rule], given: ZSet[Fact]) -> ZSet[Fact]:
        """The change of all facts."""
        self.epoch += 1
        t = self.epoch
        before, self.program = self.program, self.program + rules
        self.directions[t, 0] = directions(self.program).toset() - directions(before).toset()
        self.signals[t, 0] = signals(self.program).toset() - signals(before).toset()
        for i in count():
            self.gate[t, i] = join(self.rewrites, self.directions, _go_on, t, i)
            self.products[t, i] = join(self.gate, self.facts, _product, t, i)
            derived = join(self.products, self.signals, _ground, t, i)
            self.derived[t, i] = derived + given if i == 0 else derived
            self.held[t, i] = change_at(lambda u, j: self.derived.up_to(u, j).toset(), t, i)
            self.facts[t, i + 1] = self.held[t, i]
            self.rewrites[t, i + 1] = change_at(lambda u, j: self.products.up_to(u, j).toset(), t, i)
            if not self.held[t, i] and not self.products[t, i] and i > self.last:
                self.last = i
                return total(self.held[t, j] for j in range(i))
        raise AssertionError

    def weights(self) -> dict[Fact, dict[int, int]]:
        """The weights before distinct, summed over epochs, by fact and iteration; the first is 1."""
        found: dict[Fact, dict[int, int]] = {}
        for i in range(self.last):
            changes = [value for (_, j), value in self.derived.items() if i == j]
            for fact, weight in total(changes).items():
                found.setdefault(fact, {})[i + 1] = weight
        return found


def _go_on(left: tuple[int, Rewrite], right: tuple[int, int, Atom]) -> tuple[int, Atom, Rewrite] | None:
    """gatekeep."""
    return (right[1], right[2], left[1]) if left[0] == right[0] else None


def _product(left: tuple[int, Atom, Rewrite], fact: Fact) -> tuple[int, Rewrite] | None:
    """product."""
    if left[1].relation != fact[0]:
        return None
    extended = extend(left[2], left[1], fact[1])
    return None if extended is None else (left[0], extended)


def _ground(left: tuple[int, Rewrite], right: tuple[int, Atom]) -> Fact | None:
    """ground."""
    return ground(left[1], right[1]) if left[0] == right[0] else None
