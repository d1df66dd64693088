"""Checking: from a syntax tree to a checked, typed program, or all its problems at once.

The passes, one file each:

    declare     the relations there are
    elaborate   names resolved, types collected by unification   (drafts)
    settle      literals, casts and constants, now that types are known
    safety      every variable is bound
    cycles      negation and aggregation are stratified
    lower       drafts become rules of the model; aggregates become relations
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.program.cycles import check_cycles, check_lowered, component_numbers, draft_edges
from tidelog.program.declare import Earlier, RelationInfo, declare
from tidelog.program.draft import DRule
from tidelog.program.elaborate import Elaborator
from tidelog.program.facts import PlainFacts
from tidelog.program.lower import Lowering
from tidelog.program.model import Column, Program, Relation
from tidelog.program.problems import Problems
from tidelog.program.safety import check_safety
from tidelog.program.settle import Settled, check_values
from tidelog.program.types import Type
from tidelog.syntax import ast
from tidelog.syntax.errors import ProgramError

NOTHING_KNOWN: Mapping[str, tuple[Type, ...]] = {}
NOTHING_EARLIER = Earlier()


def check(
    module: ast.Module,
    known: Mapping[str, tuple[Type, ...]] = NOTHING_KNOWN,
    *,
    default: Type | None = None,
    earlier: Earlier = NOTHING_EARLIER,
) -> Program:
    """Check a parsed program; raises ProgramError with every problem found.

    `known` has the column types of undeclared relations, as their facts show them; `earlier`
    what commits before this one have settled.
    Columns that nothing determines get the type `default`, or UNKNOWN.
    """
    problems = Problems()
    relations = declare(module, known, problems, earlier)
    elaborator = Elaborator(relations, problems, module.dialect)
    plain = PlainFacts(relations)
    rules = [item for item in module.items if isinstance(item, ast.Rule)]
    drafts: dict[int, DRule] = {}
    # Facts first: they say most plainly what type a column of an untyped program has.
    for is_fact in (True, False):
        for index, rule in enumerate(rules):
            if is_fact is not bool(rule.body) and not (is_fact and plain.take(index, rule)):
                draft = elaborator.rule(rule)
                if draft is not None:
                    drafts[index] = draft
    relations.report_unknown()
    relations.report_derived_keys()
    elaborator.report_unknown()
    settled = Settled(default)
    check_values(elaborator, settled, problems)
    plain.check(settled, problems)
    in_order = [drafts[index] for index in sorted(drafts)]
    for draft in in_order:
        check_safety(draft, problems)
    edges = [edge for draft in in_order for edge in draft_edges(draft)]
    component = component_numbers(edges)
    check_cycles(edges, component, problems)
    _stop(problems)

    lowering = Lowering(settled, component)
    facts = plain.facts(settled)
    for index in sorted(drafts):
        lowering.rule(drafts[index])
        facts += [(index, fact) for fact in lowering.take_facts()]
    relations.settle_roles()
    program = Program(
        {
            **{info.name: _relation(info, settled) for info in relations.by_name.values()},
            **lowering.made,
        },
        tuple(lowering.rules),
        tuple(lowering.aggregates),
        tuple(fact for _, fact in sorted(facts, key=lambda entry: entry[0])),
    )
    check_lowered(program, problems)
    _stop(problems)
    return program


def _stop(problems: Problems) -> None:
    if problems.found:
        raise ProgramError(problems.in_order())


def _relation(info: RelationInfo, settled: Settled) -> Relation:
    return Relation(
        info.name,
        tuple(Column(c.name, c.type if c.type is not None else settled.type(c.cell)) for c in info.columns),
        is_input=info.is_input,
        is_output=info.is_output,
        span=info.span,
        input_options=tuple(info.input_options.items()),
        output_options=tuple(info.output_options.items()),
        printsize=info.printsize,
        key=info.key,
    )
