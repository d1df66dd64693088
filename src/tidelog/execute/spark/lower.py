"""Plans as DataFrame operations: one function for each node of the algebra.

The columns of a node's DataFrame are the rule's variables. As with the columns of
relations, Spark sees made names (`x_0`), since it does not tell `X` from `x`.
A DataFrame keeps repetitions: each row is one instance of the body so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.expressions import column_of
from tidelog.execute.spark.failures import Guards
from tidelog.execute.spark.types import key, literal
from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, Project, RulePlan, Scan, Select, Unit
from tidelog.plan.executor import Version
from tidelog.program.functions import can_fail
from tidelog.program.model import Const, Var
from tidelog.program.types import Type

CONDITION = "condition"


@dataclass(frozen=True)
class Source:
    """Where a plan reads from: the session, and the DataFrames of relations at versions.

    `read` gives None for a version that holds nothing.
    """

    spark: SparkSession
    read: Callable[[str, Version], DataFrame | None]
    guards: Guards


@dataclass(frozen=True)
class Bindings:
    """The rows of a node: a DataFrame with one column for each variable."""

    frame: DataFrame
    variables: Mapping[str, Type]
    names: Mapping[str, str]

    def column(self, variable: str) -> Column:
        """The column of a variable."""
        return F.col(self.names[variable])

    def columns(self) -> dict[str, Column]:
        """The columns of all variables."""
        return {variable: self.column(variable) for variable in self.variables}

    def replace(self, frame: DataFrame) -> Bindings:
        """The same variables with other rows."""
        return Bindings(frame, self.variables, self.names)


class Nothing(Exception):
    """Raised inside `lower` when a plan reads a version without rows: there is nothing to compute."""


def lower(plan: RulePlan, source: Source) -> DataFrame | None:
    """The head rows of all instances of a rule form, repetitions included; None if there are none."""
    try:
        return Lowering(plan, source).project(plan.root)
    except Nothing:
        return None


class Lowering:
    """The lowering of one plan."""

    def __init__(self, plan: RulePlan, source: Source) -> None:
        self.rule = plan.form.rule
        self.source = source
        self.names: dict[str, str] = {}

    def name(self, variable: str) -> str:
        """What the column of a variable is called: unique, and readable in Spark's plans."""
        letters = "".join(c for c in variable if c.isascii() and c.isalnum())
        return self.names.setdefault(variable, f"{letters}_{len(self.names)}")

    def node(self, node: Node) -> Bindings:
        """The rows of any node."""
        match node:
            case Unit():
                return self.unit()
            case Scan():
                return self.scan(node)
            case Join():
                return self.join(node)
            case AntiJoin():
                return self.anti_join(node)
            case Select():
                return self.select(node)
            case Extend():
                return self.extend(node)

    def unit(self) -> Bindings:
        """One row without columns."""
        return Bindings(self.source.spark.range(1, numPartitions=1).select(), {}, self.names)

    def scan(self, node: Scan) -> Bindings:
        """σ and renaming: rows that match the pattern, one column for each variable in it."""
        frame = self.source.read(node.relation, node.version)
        if frame is None:
            raise Nothing
        first: dict[str, str] = {}
        types: dict[str, Type] = {}
        conditions: list[Column] = []
        for i, term in enumerate(node.terms):
            column = f"c{i}"
            match term:
                case Const(value, type):
                    conditions.append(_same(F.col(column), literal(value, type), type))
                case Var(name, type) if name in first:
                    conditions.append(_same(F.col(column), F.col(first[name]), type))
                case Var(name, type):
                    first[name], types[name] = column, type
                case _:
                    pass
        if conditions:
            frame = frame.filter(_all(conditions))
        chosen = [F.col(column).alias(self.name(name)) for name, column in first.items()]
        return Bindings(frame.select(*chosen), types, self.names)

    def join(self, node: Join) -> Bindings:
        """⋈: on the variables that both sides have."""
        left, right = self.node(node.left), self.scan(node.right)
        variables = {**left.variables, **right.variables}
        if not left.variables.keys() & right.variables.keys():
            return Bindings(left.frame.crossJoin(right.frame), variables, self.names)
        joined = left.frame.join(*self._matching(left, right), "inner")
        return Bindings(joined.select(*[self.name(v) for v in variables]), variables, self.names)

    def anti_join(self, node: AntiJoin) -> Bindings:
        """▷: rows for which the right side has no match."""
        left = self.node(node.left)
        try:
            right = self.scan(node.right)
        except Nothing:
            return left
        return left.replace(left.frame.join(*self._matching(left, right), "left_anti"))

    def _matching(self, left: Bindings, right: Bindings) -> tuple[DataFrame, Column]:
        """The right side with its shared variables renamed, and the condition that joins it."""
        shared = left.variables.keys() & right.variables.keys()
        chosen = [
            right.column(v).alias(f"r_{self.name(v)}") if v in shared else right.column(v)
            for v in right.variables
        ]
        conditions = [
            _same(left.column(v), F.col(f"r_{self.name(v)}"), type)
            for v, type in right.variables.items()
            if v in shared
        ]
        return right.frame.select(*chosen), _all(conditions)

    def select(self, node: Select) -> Bindings:
        """σ: rows for which the condition is true."""
        rows = self.node(node.source)
        condition = column_of(node.condition, rows.columns())
        if not can_fail(node.condition):
            return rows.replace(rows.frame.filter(condition))
        frame = rows.frame.withColumn(CONDITION, condition)
        frame = self.source.guards.expression(
            frame, F.col(CONDITION), node.condition, self.rule, rows.columns()
        )
        return rows.replace(frame.filter(F.col(CONDITION)).drop(CONDITION))

    def extend(self, node: Extend) -> Bindings:
        """ε: each row with the value of an expression."""
        rows = self.node(node.source)
        name = self.name(node.var.name)
        frame = rows.frame.withColumn(name, column_of(node.expr, rows.columns()))
        if can_fail(node.expr):
            frame = self.source.guards.expression(frame, F.col(name), node.expr, self.rule, rows.columns())
        return Bindings(frame, {**rows.variables, node.var.name: node.var.type}, self.names)

    def project(self, node: Project) -> DataFrame:
        """π: the head's terms, as columns of its relation; a hidden column where it has none."""
        rows = self.node(node.source)
        columns = [
            literal(term.value, term.type) if isinstance(term, Const) else rows.column(term.name)
            for term in node.terms
        ] or [F.lit(True)]
        return rows.frame.select(*[column.alias(f"c{i}") for i, column in enumerate(columns)])


def _same(left: Column, right: Column, type: Type) -> Column:
    return key(left, type) == key(right, type)


def _all(conditions: list[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions) if conditions else F.lit(True)
