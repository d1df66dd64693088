"""A rule with many atoms as a chain of rules with at most two.

    sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).

    sg/2/1(b, x) :- sg(a, b), edge(a, x).
    sg(x, y) :- sg/2/1(b, x), edge(b, y).

The rule is planned as one, and its plan is cut: what stands before the cut derives an *auxiliary*
relation, whose columns are the variables that the rest still needs. There is a cut

- before each atom that would be the third of its rule, negated ones included;
- before an atom that is joined on computed values alone: `p(x), y = x + 1, q(y)` becomes
  `p/1/1(x, y) :- p(x), y = x + 1` and a join on `y`.

Conditions and computed variables stay between the atoms where the plan has them, so one that can
fail is guarded by what guarded it there. `y = x` needs no column: `y` is called `x` from there on.

Two atoms that share no variable are a product. The one that stands last is to be compared with
everything: it is the one without columns, or else the one that recursion does not reach, or the right
one. If not all of it is needed it gets an auxiliary relation of its own:
`p(x) :- p(x), p(3)` becomes `p/1/1() :- p(3)` and `p(x) :- p(x), p/1/1()`.

A rule has one chain, whichever of its atoms is new. It follows one of the plans of its delta forms,
which begin with a recursive atom, or that of the whole rule: the one with the fewest
products, then the fewest joins without recursion, the fewest expressions that fail early, the
smallest auxiliary relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tidelog.plan.algebra import AntiJoin, Extend, Join, Project, Scan, Select, Unit
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.lower import plan_form
from tidelog.plan.order import Statistics
from tidelog.plan.terms import atom_vars, expr_vars
from tidelog.program.functions import can_fail
from tidelog.program.model import (
    Apply,
    Atom,
    Bind,
    Column,
    Const,
    Expr,
    Filter,
    Literal,
    Negative,
    Positive,
    Relation,
    Rule,
    Term,
    Var,
)

MADE_BY = "binary joins"


@dataclass(frozen=True)
class Chain:
    """Rules that together derive what one rule does, and the auxiliary relations between them.

    All have the id, the text and the span of that rule. The last one has its head; each of the others
    derives an auxiliary relation.
    """

    rules: tuple[Rule, ...]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The auxiliary relations: their columns are the variables in their heads."""
        return tuple(
            Relation(
                rule.head.relation,
                tuple(Column(term.name, term.type) for term in rule.head.terms if isinstance(term, Var)),
                made_by=MADE_BY,
            )
            for rule in self.rules[:-1]
        )


def break_rule(rule: Rule, own: Set[str], statistics: Statistics) -> Chain:
    """The chain of a rule of a stratum whose relations are `own`.

    A rule that needs no cut is its own chain.
    """
    if sum(1 for _ in _atoms(rule.body)) < 2:
        return Chain((rule,))
    forms = (*delta_forms(rule, own), whole_form(rule))
    price, chain = min((_follow(form, own, statistics) for form in forms), key=lambda found: found[0])
    return _narrow(chain, own) if price[0] else chain


# --- one plan ------------------------------------------------------------------

Price = tuple[int, int, int, float]


def _follow(form: RuleForm, own: Set[str], statistics: Statistics) -> tuple[Price, Chain]:
    """The chain that a form's plan leads to, and what there is to say against it."""
    root = plan_form(form, statistics).root
    literals, names = _renamed(_literals(root))
    head = Atom(form.rule.head.relation, tuple(_rename(term, names) for term in root.terms))
    chain = _cut(replace(form.rule, head=head, body=tuple(literals), made_by=MADE_BY))
    price = (
        sum(_is_product(rule) for rule in chain.rules),
        _unreached(chain, own),
        _fail_early(literals),
        _expected(literals, statistics),
    )
    return price, chain if len(chain.rules) > 1 or names else Chain((form.rule,))


def _literals(root: Project) -> Iterator[Literal]:
    """A plan as a body, in the order of evaluation."""
    nodes = [root.source]
    while isinstance(node := nodes[-1], Join | AntiJoin | Select | Extend):
        nodes.append(node.left if isinstance(node, Join | AntiJoin) else node.source)
    for node in reversed(nodes):
        match node:
            case Scan(relation, _, terms) | Join(_, Scan(relation, _, terms)):
                yield Positive(Atom(relation, terms))
            case AntiJoin(_, Scan(relation, _, terms)):
                yield Negative(Atom(relation, terms))
            case Select(_, condition):
                yield Filter(condition)
            case Extend(_, var, expr):
                yield Bind(var, expr)
            case Unit():
                pass


def _renamed(literals: Iterable[Literal]) -> tuple[list[Literal], dict[str, Var]]:
    """The literals without those that only give a variable a second name, and the names replaced."""
    names: dict[str, Var] = {}
    found: list[Literal] = []
    for literal in literals:
        match literal:
            case Bind(var, Var() as other):
                names[var.name] = names.get(other.name, other)
            case Bind(var, expr):
                found.append(Bind(var, _rename_in(expr, names)))
            case Filter(condition):
                found.append(Filter(_rename_in(condition, names)))
            case Positive(atom) | Negative(atom):
                terms = tuple(_rename(term, names) for term in atom.terms)
                found.append(replace(literal, atom=Atom(atom.relation, terms)))
    return found, names


def _rename(term: Term, names: Mapping[str, Var]) -> Term:
    return names.get(term.name, term) if isinstance(term, Var) else term


def _rename_in(expr: Expr, names: Mapping[str, Var]) -> Expr:
    if isinstance(expr, Apply) and names:
        return replace(expr, args=tuple(_rename_in(arg, names) for arg in expr.args))
    return names.get(expr.name, expr) if isinstance(expr, Var) else expr


def _cut(rule: Rule) -> Chain:
    """The chain of a rule whose body stands in the order of evaluation."""
    rules: list[Rule] = []
    step: list[Literal] = []
    for position, literal in enumerate(rule.body):
        if isinstance(literal, Positive | Negative) and _is_cut(step, literal.atom):
            rules.append(_auxiliary(rule, _name(rule, len(rules) + 1), step, rule.body[position:]))
            step = [Positive(rules[-1].head)]
        step.append(literal)
    return Chain((*rules, replace(rule, body=tuple(step))))


def _name(rule: Rule, number: int) -> str:
    """A name that no user can give."""
    return f"{rule.head.relation}/{rule.id}/{number}"


def _auxiliary(rule: Rule, name: str, body: Sequence[Literal], others: Sequence[Literal]) -> Rule:
    """A rule that derives what other literals, and the head, need of a part of a rule's body."""
    needed = {name for literal in (*others, Positive(rule.head)) for name in _names(literal)}
    kept = tuple(var for var in _bound(body) if var.name in needed)
    return replace(rule, head=Atom(name, kept), body=tuple(body), made_by=MADE_BY)


def _is_cut(step: Sequence[Literal], atom: Atom) -> bool:
    """Whether what has been gathered so far ends before an atom."""
    before, names = list(_atoms(step)), atom_vars(atom)
    if len(before) != 1:
        return len(before) > 1
    return names.isdisjoint(atom_vars(before[0])) and not names.isdisjoint(var.name for var in _bound(step))


def _narrow(chain: Chain, own: Set[str]) -> Chain:
    """The chain with the last atom of each product being the one to keep whole, and no wider than needed."""
    derived = own | {relation.name for relation in chain.relations}
    rules: list[Rule] = []
    made = len(chain.relations)
    for step in chain.rules:
        if _is_product(step):
            sides = [(i, lit) for i, lit in enumerate(step.body) if isinstance(lit, Positive)]
            at, whole = min(reversed(sides), key=lambda side: _growth(side[1].atom, derived))
            others = (*step.body[:at], *step.body[at + 1 :])
            narrow = _auxiliary(step, _name(chain.rules[-1], made + 1), [whole], others)
            if len(narrow.head.terms) < len(whole.atom.terms):
                made += 1
                rules.append(narrow)
                step = replace(step, body=(*others, Positive(narrow.head)), made_by=MADE_BY)
            elif at != sides[-1][0]:
                step = replace(step, body=(*others, whole), made_by=MADE_BY)
        rules.append(step)
    return Chain(tuple(rules))


def _growth(atom: Atom, derived: Set[str]) -> tuple[bool, bool]:
    """How much what an atom reads may grow: one tuple, or what is given, or what is derived."""
    return bool(atom.terms), atom.relation in derived


# --- what is against it ----------------------------------------------------------


def _is_product(rule: Rule) -> bool:
    """Whether a rule joins two atoms that share no variable."""
    names = [atom_vars(literal.atom) for literal in rule.body if isinstance(literal, Positive)]
    return len(names) == 2 and names[0].isdisjoint(names[1])


def _unreached(chain: Chain, own: Set[str]) -> int:
    """How many rules derive what recursion does not reach, or only through an atom without variables."""
    reached = set(own)
    for rule in chain.rules:
        if any(atom.relation in reached and atom_vars(atom) for atom in _atoms(rule.body)):
            reached.add(rule.head.relation)
    return sum(rule.head.relation not in reached for rule in chain.rules)


def _fail_early(literals: Sequence[Literal]) -> int:
    """How many expressions that can fail come before the last atom."""
    waiting = early = 0
    for literal in literals:
        match literal:
            case Filter(expr) | Bind(_, expr):
                waiting += can_fail(expr)
            case _:
                early, waiting = early + waiting, 0
    return early


def _expected(literals: Sequence[Literal], statistics: Statistics) -> float:
    """The tuples to be expected along the way, not counting those of the whole body."""
    bound: set[str] = set()
    rows, total = 1.0, 0.0
    for literal in literals:
        if isinstance(literal, Positive):
            total += rows
            atom = literal.atom
            columns = tuple(
                i
                for i, term in enumerate(atom.terms)
                if isinstance(term, Const) or (isinstance(term, Var) and term.name in bound)
            )
            if len(columns) == len(atom.terms):
                rows *= 0.5  # a check, as in `order`
            elif columns:
                rows *= statistics.fanout(atom.relation, columns)
            else:
                rows *= statistics.size(atom.relation, Version.ALL)
        bound.update(var.name for var in _bound([literal]))
    return total


# --- questions about literals ------------------------------------------------------


def _atoms(literals: Sequence[Literal]) -> Iterator[Atom]:
    """The atoms, negated ones included."""
    return (literal.atom for literal in literals if isinstance(literal, Positive | Negative))


def _bound(literals: Sequence[Literal]) -> list[Var]:
    """The variables that literals bind, each once, in the order in which they do."""
    found: dict[Var, None] = {}
    for literal in literals:
        if isinstance(literal, Positive):
            found |= dict.fromkeys(term for term in literal.atom.terms if isinstance(term, Var))
        elif isinstance(literal, Bind):
            found[literal.var] = None
    return list(found)


def _names(literal: Literal) -> Iterator[str]:
    """The variables that a literal speaks of."""
    match literal:
        case Positive(atom) | Negative(atom):
            yield from atom_vars(atom)
        case Filter(condition):
            yield from expr_vars(condition)
        case Bind(var, expr):
            yield var.name
            yield from expr_vars(expr)
