"""DBSP: facts and rules as streams of weighted changes.

From: B. R. C. A. de Lima, M. Kramer, K. Apinis, K. Micinski, *Incremental Evaluation of
Dynamic Datalog Programs as a Higher-order DBSP Program*, Datalog 2.0 2024 (DYRE),
sections 3 and 4. The operators are from M. Budiu, T. Chajed, F. McSherry, L. Ryzhyk,
V. Tannen, *DBSP: Automatic Incremental View Maintenance for Rich Query Languages*, VLDB 2023.

A *rewrite* binds variables of a rule. Beginning with the empty one, each atom of a body
extends the rewrites that have come so far by every fact it can be made equal to; a rewrite
that is through with the body grounds the head. Facts, rewrites and rules have weights
(they are Z-sets), and time is nested: an epoch t for each commit, and within it iterations t'.

    Circuit(ΔΠ, ΔE), in epoch t
    1  kit: from the changed rules, with their weights, the directions (from each prefix of
       a body to the next), the grounding signals (from the last prefix to the head) and the
       join orders (on which terms an atom meets the prefix before it)
       then, for t' = 1, 2, ...
    2  gatekeep: the rewrites of t'-1 go on in each direction that begins where they are
    3  index: the facts of t'-1, by the terms of the join orders
    4  product: each rewrite with each fact that its next atom can be made equal to
    5  ground: a rewrite that a signal is for makes the head of its rule a fact
    6  distinct: given and grounded facts, each once; what is new in (t, t') has weight 1,
       what is no more has weight -1
    7  the rewrites of 4 and the facts of 6 are those of t', until nothing differs any more
    8  the sum of 6 over all t' is the change of the answers

Steps 2 to 5 are joins and projections, linear in each argument. So what changes at (t, t')
follows from the changes at times up to (t, t') in both coordinates, and from nothing else.

Here each prefix is a relation. `rewriting` turns a rule into rules with two atoms:

    p(x, v) :- p(x, y), e(y, z), f(z, w), g(w, v).       becomes
    p$1(x, z) :- p(x, y), e(y, z).                       product
    p$2(x, w) :- p$1(x, z), f(z, w).                     product
    p(x, v)   :- p$2(x, w), g(w, v).                     product and ground in one

and the stratum of such rules is kept by the executor, as one task, with the *trace* of its
tuples: in how many ways a tuple is derived in each iteration. That is the stream of weights
at (t, t'), summed over the epochs t. A tuple is there from the first iteration with weight:
that is distinct. Bringing the trace from epoch t-1 to epoch t adds the weights of t.

| paper                          | here                                                        |
|--------------------------------|-------------------------------------------------------------|
| Π, ΔΠ                          | `ZSet` of rules; in a change added rules have weight 1, removed ones -1 |
| Σ, the rewrites of a prefix    | a relation; its columns are the variables still needed       |
| P(π, a_j), expected provenance | the name of that relation: a digest of the prefix            |
| dir(Π)                         | the *products* of `kit(Π)`, rules for relations of rewrites  |
| sig(Π)                         | the other rules of `kit(Π)`, which ground heads              |
| jorder(Π), index               | executors index an atom by the terms that a rule joins it on |
| gatekeep                       | `turned`: which rules of the kit are in use before and after |
| product, ground                | instances of these rules                                     |
| t, t'                          | commits; iterations of `Steps`                               |
| ∫ over t'                      | what a relation holds after the commit                       |

Departures:
- Rewrites keep only the variables that the rest of the rule needs, and equal ones become one: an
  answer does not depend on how often a prefix was matched.
- The rewrites of the first atom are the tuples of its relation, and those of the last are at
  once the head, so neither is stored unless `every` prefix is asked for. (Ground follows product
  without delay in the paper, too.)
- A provenance is a chain of digests and not a sum of hashes: prefixes of the same atoms in another
  order are different. Rules share a prefix if they also keep the same variables of it and
  derive the same relation, because strata come and go with rules, and rewrites with their head.
- Gatekeep is decided once for each commit and not by a join in each iteration: a direction is
  in use or not, and how many rules share it does not matter to a set.
- The order of atoms is what the planner would choose for relations that are all alike: mostly that of the
  text, as in the paper, but atoms that share variables come together. It depends on no data, so it stays.
- Conditions, negated atoms and computed variables, which the paper does not have, are applied with
  the first prefix that has their variables, those that can fail as late as possible.
- distinct is printed as todiff(S[t] - z⁻¹(I(S))[t]), which would take back everything that
  does not arrive again. It is toset(I(S)[t]) - toset(I(S)[t-1]), as in DBSP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b

from tidelog.maintain.protocol import StratumChange, misleading
from tidelog.maintain.zsets import ZSet
from tidelog.plan.deltas import whole_form
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Abandoned, Keeper, PhaseReport, Steps
from tidelog.plan.order import Assumed, order_body
from tidelog.plan.readings import reads_own
from tidelog.plan.terms import definitions, fixed_value
from tidelog.program.model import (
    Atom,
    Bind,
    Column,
    Filter,
    Literal,
    Positive,
    Relation,
    Rule,
    Stratum,
    Var,
    variables,
)

MADE_BY = "rewrite"


# --- rules in rewrite product form ----------------------------------------------


@lru_cache(maxsize=4096)
def rewriting(rule: Rule, every: bool = False) -> tuple[Rule, ...]:
    """The products of a rule, one for each prefix of its body, and last the rule that grounds its head.

    Without `every` there are no products for the first atom and for the last one. A rule that
    has no products stays as it is.
    """
    segments = _segments(rule)
    if every and segments:
        through, rest = segments, []
    elif len(segments) > 2:
        through, rest = [segments[0] + segments[1], *segments[2:-1]], segments[-1]
    else:
        return (rule,)
    fixing = _fixing(rule)
    seen: dict[str, Var] = {}  # the variables so far, in the order in which they occur
    previous: list[Literal] = []
    found = []
    for i, segment in enumerate(through):
        seen |= {var.name: var for literal in segment for var in _variables(literal)}
        later = [literal for other in (*through[i + 1 :], rest) for literal in other]
        needed = {var.name for literal in (Positive(rule.head), *later) for var in _variables(literal)}
        kept = tuple(var for name, var in seen.items() if name in needed and name not in fixing)
        found.append(_product(rule, kept, _body(rule, [*previous, *segment])))
        previous = [Positive(found[-1].head)]
    return (*found, replace(rule, body=_body(rule, [*previous, *rest], rule.head)))


def is_product(rule: Rule) -> bool:
    """Whether a rule derives rewrites, and not tuples of the user's own relation."""
    return rule.made_by == MADE_BY


def rewrites(product: Rule) -> Relation:
    """The relation that a product derives into."""
    columns = (Column(term.name, term.type) for term in product.head.terms if isinstance(term, Var))
    return Relation(product.head.relation, tuple(columns), made_by=MADE_BY)


def kit(rules: ZSet[Rule], every: bool = False) -> ZSet[Rule]:
    """The extended grounding kit: the products and grounding rules, with the weights of their rules.

    It is linear in `rules`. The weight of a product is the number of rules that share it.
    """
    return rules.linear(lambda rule: rewriting(rule, every))  # step 1


def _product(rule: Rule, kept: tuple[Var, ...], body: tuple[Literal, ...]) -> Rule:
    """The rule for the rewrites of a prefix; name and id are a digest of all that sharing depends on."""
    content = repr((rule.head.relation, kept, body)).encode()
    provenance = int.from_bytes(blake2b(content, digest_size=7).digest())
    relation = f"{rule.head.relation.split('$')[0]}${provenance:014x}${MADE_BY}"
    return Rule(-1 - provenance, Atom(relation, kept), body, rule.text, rule.span, MADE_BY)


def _segments(rule: Rule) -> list[list[Literal]]:
    """The body in the order of evaluation, cut before each atom but the first."""
    fixing = set(_fixing(rule).values())
    segments: list[list[Literal]] = []
    waiting: list[Literal] = []
    for literal in (rule.body[i] for i in order_body(whole_form(rule), Assumed()) if i not in fixing):
        if isinstance(literal, Positive):
            segments.append([*waiting, literal])
            waiting = []
        else:
            (segments[-1] if segments else waiting).append(literal)
    return segments


def _fixing(rule: Rule) -> dict[str, int]:
    """The variables that the body fixes to a constant (`x = 1`), and where it does.

    Rewrites do not keep these: every rule that has such a variable says again what it is.
    """
    found: dict[str, int] = {}
    for i, literal in enumerate(rule.body):
        if (value := fixed_value(literal)) is not None:
            found.setdefault(value[0].name, i)
    return found


def _body(rule: Rule, literals: Sequence[Literal], *heads: Atom) -> tuple[Literal, ...]:
    """A part of a rule's body, given in the order of evaluation, as the body of a rule of its own.

    It says what the variables are that the rule fixes, as far as the literals or the head have
    them. A variable that `x == e` computes, if no atom here binds it, is bound by a Bind.
    """
    atoms = [literal for literal in literals if isinstance(literal, Positive)]
    bound = {var.name for atom in atoms for var in _variables(atom)}
    mentioned = {v.name for lit in (*literals, *map(Positive, heads)) for v in _variables(lit)}
    fixing = [rule.body[i] for name, i in _fixing(rule).items() if name in mentioned]
    found: list[Literal] = []
    for literal in (*fixing, *literals):
        fresh = [definition for definition in definitions(literal) if definition[0].name not in bound]
        found.append(Bind(*fresh[0]) if fresh else literal)
        bound |= {var.name for var in _variables(literal)}
    return (*found[len(fixing) :], *found[: len(fixing)])


def _variables(literal: Literal) -> tuple[Var, ...]:
    match literal:
        case Filter(condition):
            return variables(condition)
        case Bind(var, expr):
            return (*variables(expr), var)
        case _:
            return tuple(term for term in literal.atom.terms if isinstance(term, Var))


# --- the algorithm ----------------------------------------------------------------


@dataclass(frozen=True)
class Circuit:
    """A stratum in rewrite product form, on its way from its rules before a commit to those after it."""

    steps: Steps
    before: Mapping[str, Relation]  # the relations of rewrites
    after: Mapping[str, Relation]
    owners: Mapping[int, int]  # for each product the user's rule that its instances count for


def circuit(change: StratumChange, every: bool = False) -> Circuit:
    """The circuit of a stratum for an epoch in which its rules change so."""
    rules = ZSet.of((*change.kept, *change.removed))  # Π[t-1]
    changes = ZSet.of(change.added) - ZSet.of(change.removed)  # ΔΠ[t]
    before = kit(rules, every)
    after = before + kit(changes, every)
    turned = after.toset() - before.toset()  # step 2: 1 for what the gate lets in, -1 for what it shuts out
    kept = [rule for rule in before.toset() if not turned[rule]]
    relations = _rewrites_of((*before, *after))
    everything = change.own | relations.keys()
    steps = Steps(
        relations=(*change.stratum.relations, *relations),
        base=tuple(rule for rule in kept if not reads_own(rule, everything)),
        recursive=tuple(rule for rule in kept if reads_own(rule, everything)),
        removed=tuple(rule for rule, weight in turned.items() if weight < 0),
        added=tuple(rule for rule, weight in turned.items() if weight > 0),
        keep="trace",
        phase="circuit",
    )
    owners: dict[int, int] = {}
    for rule in sorted((*rules, *changes), key=lambda rule: rule.id):
        for part in rewriting(rule, every):
            owners.setdefault(part.id, rule.id)
    return Circuit(steps, _rewrites_of(before), _rewrites_of(after), owners)


def _rewrites_of(rules: Iterable[Rule]) -> dict[str, Relation]:
    """The relations that the products among some rules derive into."""
    return {rule.head.relation: rewrites(rule) for rule in rules if is_product(rule)}


class DBSP:
    """The circuit over the rewrite products of a stratum's rules."""

    name = "dbsp"

    def __init__(self, every: bool = False) -> None:
        self.every = every
        self.state = "weights of every prefix" if every else "weights"
        self._steady: dict[tuple[str, ...], tuple[Stratum, Circuit]] = {}

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """The first epoch: all facts and all rules arrive at once."""
        whole = self._circuit(StratumChange(stratum))
        for relation in whole.after.values():
            keeper.create(relation)
        return [_attributed(keeper.keep_going(whole.steps, watch), whole)]

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """One more epoch."""
        turning = self._circuit(change)
        made = [name for name in turning.after if name not in turning.before]
        for name in made:
            keeper.create(turning.after[name])
        try:
            with misleading():
                report = keeper.keep_going(turning.steps, watch, budget)  # steps 2 to 8
        except Abandoned as given_up:  # the stratum's own relations are for the caller to undo
            given_up.reports = [_attributed(report, turning) for report in given_up.reports]
            keeper.undo(list(turning.before))
            for name in made:
                keeper.drop(name)
            raise
        for name in turning.before:
            if name not in turning.after:
                keeper.drop(name)
        return [_attributed(report, turning)]

    def owned(self, stratum: Stratum) -> Mapping[str, Relation]:
        """The rewrites of a stratum, given as it was when it was last brought up to date."""
        return self._circuit(StratumChange(stratum)).after

    def forget(self, stratum: Stratum, keeper: Keeper) -> None:
        """Give up the rewrites of a stratum."""
        for name in self.owned(stratum):
            keeper.drop(name)

    def _circuit(self, change: StratumChange) -> Circuit:
        """The circuit for a change; where only facts change it is made once and then found again."""
        if change.added or change.removed:
            return circuit(change, self.every)
        known = self._steady.get(change.stratum.relations)
        if known is None or known[0] is not change.stratum:
            known = self._steady[change.stratum.relations] = (change.stratum, circuit(change, self.every))
        return known[1]


def _attributed(report: PhaseReport, circuit: Circuit) -> PhaseReport:
    """A report in which the instances of products count for the user's rules."""
    instances: dict[int, int] = {}
    for rule, count in report.instances.items():
        owner = circuit.owners[rule]
        instances[owner] = instances.get(owner, 0) + count
    return replace(report, instances=instances)
