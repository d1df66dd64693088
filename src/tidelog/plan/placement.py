"""Where tuples are kept when several tasks share a fixpoint.

A *copy* of a relation is spread over tasks by the hash of some of its columns: the tuple is kept by
the task that the hash names, its *owner*. A rule joins two atoms; if both are read from copies
spread by the variables they share, tuples that join meet in one task. So a relation is kept once
for each set of columns on which it is joined, and what a task derives is sent to the owners of each
copy of the head's relation. A copy whose `columns` are None is kept whole by every task.

    p(x, z) :- p(x, y), e(y, z).     reads p@1 and e@0: whoever owns y has both

Two atoms that share several variables meet as well by any one of them; keys are chosen so that
there are few copies. A negated atom is a join like any other, but for `_`: it means "for no
value", so what is placed by must be bound. Where two atoms share nothing, one is read whole.

All copies of a relation take in a new tuple in the same round. So each instance of a rule is found by
one task, in one round.

A key that very many tuples have is *heavy*: its owner would have most of the work. So for a heavy key the
tuples on one side of the join, the one that has more of them, are spread by the hash of the whole tuple,
and those on the other side are kept by every task: each tuple of the first meets all of the second, once.
A negated atom is never the first, for a task must see all that might be against an instance. Copies that
are joined with others may treat other keys so, and are then copies of their own.

A *pivot* is a column that recursion hands on: in each recursive rule the head and all atoms of
the stratum's own relations have the same variable there. Then a task that has all tuples of its
values of the pivot, and everything of the strata below, derives only tuples of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tidelog.plan.binary import break_rule
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.order import Statistics
from tidelog.plan.terms import atom_vars
from tidelog.program.model import Atom, Literal, Negative, Positive, Relation, Rule, Value, Var

Key = tuple[Value, ...]  # values of the columns that a copy is spread by
Skew = Callable[[str, tuple[int, ...]], Mapping[Key, float]]  # heavy keys, and how many tuples have them


def even(_relation: str, _columns: tuple[int, ...]) -> Mapping[Key, float]:
    """No key is heavy."""
    return {}


@dataclass(frozen=True)
class Copy:
    """A relation as tasks keep it: spread by the hash of `columns`, or whole in each task (None).

    The columns are hashed in this order. If there are none, one task has everything. Of heavy keys, some
    have their tuples spread by the hash of all columns, and some have them kept everywhere.
    """

    relation: str
    columns: tuple[int, ...] | None
    spread: frozenset[Key] = frozenset()
    everywhere: frozenset[Key] = frozenset()

    @property
    def name(self) -> str:
        """What it is called among the relations of a task."""
        columns = "*" if self.columns is None else ",".join(map(str, self.columns))
        heavy = [
            f"{mark}{key}" for mark, keys in (("+", self.spread), ("*", self.everywhere)) for key in keys
        ]
        return f"{self.relation}@{columns}{''.join(sorted(heavy))}"

    @property
    def is_once(self) -> bool:
        """Whether each tuple is kept by one task."""
        return self.columns is not None and not self.everywhere


@dataclass(frozen=True)
class Distribution:
    """A fixpoint for several tasks.

    `relations` are all that appear: the stratum's own, the auxiliary ones that hold the first joins of
    long rules, and those of strata below; `derived` are the first two kinds. `forms` are delta forms
    (as in `deltas`) of rules with at most two atoms, whose body atoms name copies and whose
    heads name relations. A form without a DELTA reads strata below alone: it has nothing new to say
    after the first round. Each derived relation has at least one copy that has each of its tuples exactly
    once over all tasks (`is_once`).
    """

    relations: Mapping[str, Relation]
    derived: tuple[str, ...]
    copies: tuple[Copy, ...]
    forms: tuple[RuleForm, ...]


def distribute(
    rules: Sequence[Rule],
    relations: Mapping[str, Relation],
    own: Sequence[str],
    statistics: Statistics,
    broadcast: int = 0,
    skew: Skew = even,
) -> Distribution:
    """Break recursive rules into joins of two, and say where the tuples of each atom are kept.

    Relations of strata below that have fewer than `broadcast` tuples are joined from whole copies.
    `skew` tells of keys that are heavy when the fixpoint begins.
    """
    chains = [break_rule(rule, frozenset(own), statistics) for rule in rules]
    steps = [rule for chain in chains for rule in chain.rules]
    made = {relation.name: relation for chain in chains for relation in chain.relations}
    derived = (*own, *made)
    read = dict.fromkeys(literal.atom.relation for rule in steps for _, literal in _atoms(rule))
    names = dict.fromkeys((*derived, *read))
    known = {name: made[name] if name in made else relations[name] for name in names}

    small = {n for n in read if n not in derived and statistics.size(n, Version.ALL) < broadcast}
    chosen = _choose([list(_placements(rule, small)) for rule in steps], frozenset(derived))
    placements = [_split(rule, placement, skew) for rule, placement in zip(steps, chosen, strict=True)]
    copies = _copies(known, derived, steps, placements)
    recursive = frozenset(copy.name for copy in copies if copy.relation in derived)
    forms: list[RuleForm] = []
    for step, placement in zip(steps, placements, strict=True):
        rule = _placed(step, placement, copies)
        forms += delta_forms(rule, recursive) or (whole_form(rule),)
    return Distribution(known, derived, copies, tuple(forms))


# --- the copies that a rule can be read from --------------------------------------

# The copies that body literals read, by position. An atom that is missing reads any copy that `is_once`.
Placement = Mapping[int, Copy]


def _placements(rule: Rule, small: Set[str]) -> Iterator[Placement]:
    """The ways to read a rule of at most two atoms so that some task has all that makes an instance."""
    atoms = dict(_atoms(rule))
    whole = [i for i, literal in atoms.items() if isinstance(literal, Negative)]
    if len(atoms) == 2 and len(whole) < 2:
        i, j = atoms
        whole = whole or [j, i]  # of a product, `binary` has put the side to keep whole last
        keys = list(_keys(atoms[i].atom, atoms[j].atom))
        light = [at for at in whole if atoms[at].atom.relation in small]
        if keys and not light:
            for ours, theirs in keys:
                yield {i: Copy(atoms[i].atom.relation, ours), j: Copy(atoms[j].atom.relation, theirs)}
            return
        whole = light[:1] if keys else whole[:1]
    yield {at: Copy(atoms[at].atom.relation, None) for at in whole}


def _keys(left: Atom, right: Atom) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Columns of two atoms that hold the same variables: all that they share, or one of them."""
    shared = atom_vars(left) & atom_vars(right)
    if len(shared) > 1:
        pairs = [(_columns(left, name)[0], _columns(right, name)[0]) for name in shared]
        yield _unzip(sorted(pairs))
        yield _unzip(sorted(pairs, key=lambda pair: pair[1]))
    for name in sorted(shared):
        for ours in _columns(left, name):
            for theirs in _columns(right, name):
                yield (ours,), (theirs,)


def _columns(atom: Atom, name: str) -> list[int]:
    return [i for i, term in enumerate(atom.terms) if isinstance(term, Var) and term.name == name]


def _unzip(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(ours for ours, _ in pairs), tuple(theirs for _, theirs in pairs)


def _choose(choices: Sequence[Sequence[Placement]], derived: Set[str]) -> list[Placement]:
    """A placement for each rule, such that there are few copies, above all of relations that grow.

    Rules with little choice go first; then each may think again, knowing what all others read.
    """
    chosen: dict[int, Placement] = {}

    def price(placement: Placement, there: Set[Copy]) -> tuple[int, int, int]:
        new = set(placement.values()) - there
        width = sum(len(copy.columns or ()) for copy in placement.values())
        return sum(copy.relation in derived for copy in new), len(new), -width

    for _ in range(2):
        for i in sorted(range(len(choices)), key=lambda i: len(choices[i])):
            there = {copy for j, placement in chosen.items() if j != i for copy in placement.values()}
            chosen[i] = min(choices[i], key=lambda placement: price(placement, there))
    return [chosen[i] for i in range(len(choices))]


def _split(rule: Rule, placement: Placement, skew: Skew) -> Placement:
    """The placement of a join, with what is done about heavy keys."""
    if len(placement) < 2:
        return placement
    (i, left), (j, right) = placement.items()
    if left.columns is None or right.columns is None:
        return placement
    ours = {} if isinstance(rule.body[i], Negative) else skew(left.relation, left.columns)
    theirs = {} if isinstance(rule.body[j], Negative) else skew(right.relation, right.columns)
    more = frozenset(key for key, count in ours.items() if count >= theirs.get(key, 0))
    less = frozenset(theirs) - more
    return {i: replace(left, spread=more, everywhere=less), j: replace(right, spread=less, everywhere=more)}


# --- what follows from the choice --------------------------------------------------


def _copies(
    relations: Mapping[str, Relation],
    derived: Sequence[str],
    rules: Sequence[Rule],
    placements: Sequence[Placement],
) -> tuple[Copy, ...]:
    """All copies, by relation: first those with each tuple once, and among them by the most columns."""
    found = {copy for placement in placements for copy in placement.values()}
    once = {copy.relation for copy in found if copy.is_once}
    anywhere = set(derived)
    for rule, placement in zip(rules, placements, strict=True):
        anywhere |= {literal.atom.relation for i, literal in _atoms(rule) if i not in placement}
    found |= {Copy(name, tuple(range(relations[name].arity))) for name in anywhere - once}
    order = {name: i for i, name in enumerate(relations)}

    def place(copy: Copy) -> tuple[int, bool, int, tuple[int, ...], str]:
        columns = copy.columns or ()
        return order[copy.relation], not copy.is_once, -len(columns), columns, copy.name

    return tuple(sorted(found, key=place))


def _placed(rule: Rule, placement: Placement, copies: Sequence[Copy]) -> Rule:
    """The rule with the names of copies in its body."""
    first = {copy.relation: copy for copy in reversed(copies) if copy.is_once}
    body: list[Literal] = list(rule.body)
    for i, literal in _atoms(rule):
        copy = placement[i] if i in placement else first[literal.atom.relation]
        body[i] = replace(literal, atom=Atom(copy.name, literal.atom.terms))
    return replace(rule, body=tuple(body))


def _atoms(rule: Rule) -> Iterator[tuple[int, Positive | Negative]]:
    """The atoms of a body with their positions."""
    return ((i, lit) for i, lit in enumerate(rule.body) if isinstance(lit, Positive | Negative))


# --- pivots --------------------------------------------------------------------------


def pivot(rules: Sequence[Rule], own: Sequence[str]) -> Mapping[str, int] | None:
    """A column of each own relation that recursion hands on; None if there is no such choice."""
    column = dict.fromkeys(own, -1)  # none so far
    # For each relation, the recursive rules that it is in: the head and the own atoms of each.
    groups: dict[str, list[list[Atom]]] = {name: [] for name in own}
    arity: dict[str, int] = {}
    for rule in rules:
        atoms = [literal.atom for _, literal in _atoms(rule) if literal.atom.relation in column]
        group = [rule.head, *atoms] if atoms else []
        for name in dict.fromkeys(atom.relation for atom in group):
            groups[name].append(group)
        arity |= {atom.relation: len(atom.terms) for atom in group}
    order = _connected(groups)

    def agree(group: Sequence[Atom]) -> bool:
        """Whether the columns chosen so far hold one variable."""
        terms = {atom.terms[column[atom.relation]] for atom in group if column[atom.relation] >= 0}
        return len(terms) <= 1 and all(isinstance(term, Var) for term in terms)

    position = 0
    while 0 <= position < len(order):
        name = order[position]
        column[name] += 1
        if column[name] >= arity.get(name, 0):
            column[name] = -1
            position -= 1  # the relation before has to make another choice
        elif all(map(agree, groups[name])):
            position += 1
    return column if position == len(order) else None


def _connected(groups: Mapping[str, Sequence[Sequence[Atom]]]) -> list[str]:
    """The relations, each after one that a rule connects it with: then it has hardly a choice left."""
    order: dict[str, None] = {}
    for start in groups:
        pending = [start]
        for name in pending:  # also takes what is added on the way
            if name not in order:
                order[name] = None
                pending += [atom.relation for group in groups[name] for atom in group]
    return list(order)
