"""Relational algebra over versioned relations.

A plan is a left-deep tree. Its attributes are the rule's variables, so joins are
natural joins: on the variables both sides share. A `Scan` takes a pattern of
terms, one for each column: a constant selects by value, a repeated variable
selects by column, `_` drops the column. Each executor has one function per node.

    π[x, z](tc.delta(x, y) ⋈ edge(y, z))
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.plan.executor import RuleForm, Version
from tidelog.program.model import Const, Expr, Term, Var


@dataclass(frozen=True)
class Unit:
    """The relation with one empty tuple: the start of a body without atoms."""


@dataclass(frozen=True)
class Scan:
    """The tuples of a relation's version that match a pattern (σ and renaming)."""

    relation: str
    version: Version
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Join:
    """⋈: natural join."""

    left: Node
    right: Scan


@dataclass(frozen=True)
class AntiJoin:
    """▷: tuples of the left side that match nothing on the right."""

    left: Node
    right: Scan


@dataclass(frozen=True)
class Select:
    """σ: tuples for which the condition is true."""

    source: Node
    condition: Expr


@dataclass(frozen=True)
class Extend:
    """ε: each tuple with one more attribute."""

    source: Node
    var: Var
    expr: Expr


Node = Unit | Scan | Join | AntiJoin | Select | Extend


@dataclass(frozen=True)
class Project:
    """π: the head's terms of each tuple; always the root, and the only projection."""

    source: Node
    terms: tuple[Var | Const, ...]


@dataclass(frozen=True)
class RulePlan:
    """A rule form with its plan: what is derived goes to the head's relation."""

    form: RuleForm
    root: Project
