"""A reading of a rule as a query: each literal over a DataFrame of its own.

It is the lowering of `lower`, with three differences. Relations in the plan are positions of the
body, since two atoms of one relation may read different parts. An atom may have one column more
than its relation: the rank or first iteration of the tuple. And what a driver leads to is expected to
be little, so it is sent to where the large relations are, instead of moving these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidelog.execute.spark.expressions import column_of
from tidelog.execute.spark.failures import Guards
from tidelog.execute.spark.keep.base import FIRST
from tidelog.execute.spark.lower import Bindings, Lowering, Nothing, Source
from tidelog.execute.spark.types import key
from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, Project, RulePlan, Scan, Select, Unit
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.maintenance import Reading
from tidelog.plan.reading_order import order_reading
from tidelog.plan.terms import definitions, fixed_value, substitute, substitute_term
from tidelog.program.functions import can_fail
from tidelog.program.model import Apply, Atom, Bind, Const, Expr, Filter, Negative, Positive, Term, Var
from tidelog.program.types import BOOL, S64

BROADCAST = 200_000  # rows that are expected at most of what is sent to all tasks
COMPUTED = "computed"


@dataclass(frozen=True)
class Literal:
    """What an atom reads: a DataFrame, about how many rows it has, and whether numbers come with them."""

    frame: DataFrame
    size: int
    numbers: bool = False


@dataclass(frozen=True)
class Agree:
    """Tuples whose variable is what an expression gives, as it would be stored."""

    source: Tree
    var: Var
    expr: Expr


Tree = Node | Agree


def number_of(position: int) -> Var:
    """The variable for the rank or first iteration of the tuple that a literal matches."""
    return Var(f"#{position}", S64)


class Sizes:
    """Statistics for the join order, by position; `reading` names its relations, so they are looked up."""

    def __init__(self, sizes: Mapping[str, int], arities: Mapping[str, int]) -> None:
        self._sizes, self._arities = sizes, arities

    def size(self, relation: str, version: Version) -> int:
        """The number of tuples."""
        return self._sizes[relation]

    def fanout(self, relation: str, columns: Sequence[int]) -> float:
        """A guess: each column is as selective as the others."""
        return fanout(self._sizes[relation], len(columns), self._arities[relation])


def fanout(size: int, bound: int, arity: int) -> float:
    """How many of so many tuples match when some of their columns are bound."""
    return float(max(1, size) ** (1 - bound / max(1, arity)))


def query(
    spark: SparkSession,
    reading: Reading,
    sources: Mapping[int, Literal | None],
    outputs: Sequence[Var | Const],
    guards: Guards,
) -> DataFrame | None:
    """The values of `outputs` for each instance of a reading; None if there is none.

    `sources` has what each atom reads, by position; None: nothing.
    """
    body = reading.rule.body
    values: dict[str, Const] = {}
    fixing = set()
    for i, literal in enumerate(body):
        fixed = fixed_value(literal)
        if fixed is not None and fixed[0].name not in values:
            values[fixed[0].name] = fixed[1]
            fixing.add(i)
    sizes: dict[str, int] = {}
    arities: dict[str, int] = {}
    for i, source in sources.items():
        atom = _atom(body[i])
        arities[atom.relation] = len(atom.terms)
        sizes[atom.relation] = max(sizes.get(atom.relation, 0), 0 if source is None else source.size)
    order = [i for i in order_reading(reading, Sizes(sizes, arities)) if i not in fixing]
    tree = _tree(reading, order, values, sources)
    terms = tuple(t for term in outputs if isinstance(t := substitute_term(term, values), Var | Const))
    return _Lowering(spark, reading, sources, guards).run(tree, terms)


def _atom(literal: object) -> Atom:
    assert isinstance(literal, Positive | Negative)
    return literal.atom


def _tree(
    reading: Reading,
    order: Sequence[int],
    values: Mapping[str, Const],
    sources: Mapping[int, Literal | None],
) -> Tree:
    bound: set[str] = set()
    node: Tree = Unit()

    def scan(position: int, atom: Atom) -> Scan:
        terms: tuple[Term, ...] = tuple(substitute_term(term, values) for term in atom.terms)
        source = sources[position]
        if source is not None and source.numbers:
            if not terms:  # the hidden column of a relation without columns
                terms = (Const(True, BOOL),)
            terms = (*terms, number_of(position))
        return Scan(str(position), Version.ALL, terms)

    for position in order:
        match reading.rule.body[position]:
            case Positive(atom):
                right = scan(position, atom)
                node = right if isinstance(node, Unit) else Join(node, right)  # type: ignore[arg-type]
                bound.update(term.name for term in atom.terms if isinstance(term, Var))
            case Negative(atom):
                node = AntiJoin(node, scan(position, atom))  # type: ignore[arg-type]
            case Filter(condition) as literal:
                unbound = [d for d in definitions(literal) if d[0].name not in bound | values.keys()]
                if unbound:
                    node = Extend(node, unbound[0][0], substitute(unbound[0][1], values))  # type: ignore[arg-type]
                    bound.add(unbound[0][0].name)
                else:
                    node = Select(node, substitute(condition, values))  # type: ignore[arg-type]
            case Bind(var, expr) if var.name in values:
                same = Apply("eq", (values[var.name], substitute(expr, values)), BOOL)
                node = Select(node, same)  # type: ignore[arg-type]
            case Bind(var, expr) if var.name in bound:
                node = Agree(node, var, substitute(expr, values))
            case Bind(var, expr):
                node = Extend(node, var, substitute(expr, values))  # type: ignore[arg-type]
                bound.add(var.name)
    return node


class _Lowering(Lowering):
    """The lowering of one reading; it keeps an eye on how many rows are to be expected."""

    def __init__(
        self, spark: SparkSession, reading: Reading, sources: Mapping[int, Literal | None], guards: Guards
    ) -> None:
        form = RuleForm(reading.rule, ())
        super().__init__(RulePlan(form, Project(Unit(), ())), Source(spark, self._read, guards))
        self._sources = sources
        self._driven = reading.driver is not None
        self._rows = 1.0

    def run(self, tree: Tree, terms: tuple[Var | Const, ...]) -> DataFrame | None:
        """The values of some terms for each row of a tree; None if there are none."""
        try:
            return self.project(Project(tree, terms))  # type: ignore[arg-type]
        except Nothing:
            return None

    def _read(self, relation: str, version: Version) -> DataFrame | None:
        source = self._sources[int(relation)]
        if source is None or not source.numbers:
            return None if source is None else source.frame
        return source.frame.withColumnRenamed(FIRST, f"c{len(source.frame.columns) - 1}")

    def node(self, node: Tree) -> Bindings:
        """The rows of any node."""
        if isinstance(node, Agree):
            return self._agree(node)
        if isinstance(node, Scan):
            self._rows = float(self._size(node))
        return super().node(node)

    def _size(self, node: Scan) -> int:
        source = self._sources[int(node.relation)]
        return 0 if source is None else source.size

    def _agree(self, node: Agree) -> Bindings:
        rows = self.node(node.source)
        frame = rows.frame.withColumn(COMPUTED, column_of(node.expr, rows.columns()))
        if can_fail(node.expr):
            frame = self.source.guards.expression(
                frame, F.col(COMPUTED), node.expr, self.rule, rows.columns()
            )
        same = key(F.col(COMPUTED), node.var.type) == key(rows.column(node.var.name), node.var.type)
        return rows.replace(frame.filter(same).drop(COMPUTED))

    def join(self, node: Join) -> Bindings:
        """⋈: few rows go to where many are."""
        left, right = self.node(node.left), self.scan(node.right)
        shared = left.variables.keys() & right.variables.keys()
        if self._driven and self._rows <= BROADCAST:
            left = left.replace(F.broadcast(left.frame))
        bound = len(shared) + sum(isinstance(term, Const) for term in node.right.terms)
        self._rows *= fanout(self._size(node.right), bound, len(node.right.terms))
        variables = {**left.variables, **right.variables}
        if not shared:
            return Bindings(left.frame.crossJoin(right.frame), variables, self.names)
        joined = left.frame.join(*self._matching(left, right), "inner")
        return Bindings(joined.select(*[self.name(v) for v in variables]), variables, self.names)

    def anti_join(self, node: AntiJoin) -> Bindings:
        """▷: where many rows are to be denied to few, only those that concern them are moved."""
        left = self.node(node.left)
        try:
            right = self.scan(node.right)
        except Nothing:
            return left
        frame, condition = self._matching(left, right)
        if self._driven and self._rows <= BROADCAST:
            shared = [v for v in left.variables if v in right.variables]
            if shared:
                few = left.frame.select(*[left.column(v) for v in shared])
                frame = frame.join(F.broadcast(few), condition, "left_semi")
            else:
                frame = frame.limit(1)
            frame = F.broadcast(frame)
        return left.replace(left.frame.join(frame, condition, "left_anti"))
