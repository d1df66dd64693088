"""From a rule form to relational algebra, in the order that `order` chose.

    tc(x, z) :- tc(x, y), edge(y, z).   as   π[x, z](tc.delta(x, y) ⋈ edge(y, z))

Variables that the body fixes to a constant (`x = 1`) are replaced by it
everywhere, so that the constant selects within the scans.
"""

from __future__ import annotations

from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, Project, RulePlan, Scan, Select, Unit
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.order import Statistics, order_body
from tidelog.plan.terms import definitions, fixed_value, substitute, substitute_term
from tidelog.program.model import Apply, Atom, Bind, Const, Filter, Negative, Positive, Var
from tidelog.program.types import BOOL


def plan_form(form: RuleForm, statistics: Statistics) -> RulePlan:
    """The plan of a form."""
    values: dict[str, Const] = {}
    bound: set[str] = set()
    node: Node = Unit()

    def scan(atom: Atom, version: Version) -> Scan:
        return Scan(atom.relation, version, tuple(substitute_term(term, values) for term in atom.terms))

    for position in order_body(form, statistics):
        literal = form.rule.body[position]
        fixed = fixed_value(literal)
        if fixed is not None and fixed[0].name not in values:
            values[fixed[0].name] = fixed[1]
            continue
        match literal:
            case Positive(atom):
                right = scan(atom, form.reads[position])
                node = right if isinstance(node, Unit) else Join(node, right)
                bound.update(term.name for term in atom.terms if isinstance(term, Var))
            case Negative(atom):
                node = AntiJoin(node, scan(atom, form.reads[position]))
            case Filter(condition):
                unbound = [
                    d for d in definitions(literal) if d[0].name not in bound and d[0].name not in values
                ]
                if unbound:
                    node = Extend(node, unbound[0][0], substitute(unbound[0][1], values))
                    bound.add(unbound[0][0].name)
                else:
                    node = Select(node, substitute(condition, values))
            case Bind(var, expr) if var.name in bound or var.name in values:
                # An atom read before has bound the variable already: compare.
                node = Select(node, Apply("eq", (substitute(var, values), substitute(expr, values)), BOOL))
            case Bind(var, expr):
                node = Extend(node, var, substitute(expr, values))
                bound.add(var.name)
    terms = (substitute_term(term, values) for term in form.rule.head.terms)
    return RulePlan(form, Project(node, tuple(term for term in terms if isinstance(term, Var | Const))))
