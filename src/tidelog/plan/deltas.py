"""The delta forms of a rule: how a fixpoint reads it without repeating itself.

A recursive rule with k atoms over the stratum's own relations is read in k ways.
In the j-th, recursive atom j reads DELTA, the recursive atoms before it read OLD
and those after it read ALL:

    p(x, z) :- p(x, y), p(y, z).      p.delta(x, y), p(y, z)
                                      p.old(x, y),   p.delta(y, z)

An instance whose atoms match tuples first derived in several rounds is found by
exactly one form (the one whose DELTA is the first atom matched in the newest of
those rounds) in exactly one round, so no rule instance is considered twice.
"""

from __future__ import annotations

from collections.abc import Set

from tidelog.plan.executor import RuleForm, Version
from tidelog.program.model import Positive, Rule


def whole_form(rule: Rule) -> RuleForm:
    """The rule read at ALL everywhere."""
    return RuleForm(rule, (Version.ALL,) * len(rule.body))


def delta_forms(rule: Rule, recursive: Set[str]) -> tuple[RuleForm, ...]:
    """One form for each body atom over a relation of `recursive`."""
    positions = [
        i
        for i, literal in enumerate(rule.body)
        if isinstance(literal, Positive) and literal.atom.relation in recursive
    ]

    def version(position: int, delta: int) -> Version:
        if position not in positions or position > delta:
            return Version.ALL
        return Version.DELTA if position == delta else Version.OLD

    return tuple(
        RuleForm(rule, tuple(version(i, delta) for i in range(len(rule.body)))) for delta in positions
    )
