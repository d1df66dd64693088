"""When all types are known: literals, casts, and expressions without variables.

Also the one place where draft expressions become expressions of the model.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping

from tidelog.program import model
from tidelog.program.cells import Cell
from tidelog.program.draft import DAggregate, DApply, DConst, DExpr, DVar, DWild, Variable, parts
from tidelog.program.expressions import Expressions
from tidelog.program.functions import BIGINT_BITS, FunctionFailure, can_cast, evaluate, round_float
from tidelog.program.problems import Problems
from tidelog.program.types import Type
from tidelog.syntax.errors import InternalError, Label

Results = Mapping[DAggregate, model.Expr]


class Settled:
    """Types in the end; what is left open is `default`, or unknown."""

    def __init__(self, default: Type | None) -> None:
        self.default = default

    def type(self, cell: Cell) -> Type:
        """The type of a cell."""
        return cell.settle(self.default)

    def var(self, variable: Variable) -> model.Var:
        """A variable of the model."""
        return model.Var(variable.name, self.type(variable.cell))

    def const(self, literal: DConst) -> model.Const:
        """A constant of the type that the literal has met."""
        type = self.type(literal.cell)
        return model.Const(self.value(literal.value, type), type)

    def value(self, value: model.Value, type: Type) -> model.Value:
        """A literal's value in a type: a number becomes a float where the type is one."""
        if type.kind == "float" and isinstance(value, int | float):
            return round_float(float(value), type)
        return value

    def expr(self, expr: DExpr, results: Results) -> model.Expr:
        """An expression of the model; `results` stands in for aggregates."""
        if isinstance(expr, DVar):
            return self.var(expr.variable)
        if isinstance(expr, DConst):
            return self.const(expr)
        if isinstance(expr, DAggregate):
            return results[expr]
        if isinstance(expr, DWild):
            raise InternalError("a wildcard was left in an expression")
        args = tuple(self.expr(arg, results) for arg in expr.args)
        type = self.type(expr.cell)
        if expr.function == "cast" and args[0].type == type:
            return args[0]
        function = "concat" if expr.function == "add" and type.kind == "string" else expr.function
        return model.Apply(function, args, type, expr.span)

    def constant(self, expr: DExpr) -> model.Const | None:
        """The value of an expression without variables; FunctionFailure where it has none."""
        if isinstance(expr, DConst):
            return self.const(expr)
        if any(not isinstance(part, DConst | DApply) for part in parts(expr)):
            return None
        made = self.expr(expr, {})
        return model.Const(evaluate(made, {}), made.type)


def check_values(found: Expressions, settled: Settled, problems: Problems) -> None:
    """Report literals out of range, casts that cannot be, constant expressions that fail."""
    for literal in found.literals:
        if not literal.cell.find().broken:
            check_range(literal, settled.type(literal.cell), problems)
    for operand, target, span in found.casts:
        source = settled.type(operand.cell)
        if not operand.cell.find().broken and not can_cast(source, target):
            problems.add("TL0207", f"{source} cannot be cast to {target}", span)
    faulty = sorted(problem.span.start for problem in problems.found if problem.span is not None)
    for expr in found.computed:
        place = bisect_left(faulty, expr.span.start)
        if place < len(faulty) and faulty[place] < expr.span.end:
            continue  # something in it is reported already
        if any(part.cell.find().broken for part in parts(expr)):
            continue
        try:
            settled.constant(expr)
        except FunctionFailure as failure:
            problems.add("TL0208", f"this has no value: {failure}", expr.span)


def in_range(value: model.Value, type: Type) -> bool:
    """Whether a type holds the value of a literal that fits it otherwise."""
    if isinstance(value, bool | str):
        return True
    if type.kind == "float":
        try:
            return math.isfinite(round_float(float(value), type))
        except OverflowError:
            return False
    if isinstance(value, int) and type.kind == "int":
        low, high = type.bounds()
        return low <= value <= high
    return not isinstance(value, int) or value.bit_length() <= BIGINT_BITS


def check_range(literal: DConst, type: Type, problems: Problems) -> None:
    """Report a literal that its type does not hold."""
    if in_range(literal.value, type):
        return
    text = literal.span.text
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    origin = literal.cell.find().origin
    place = Label(origin.span, origin.text) if origin is not None and origin.span is not None else None
    notes = []
    if type.kind == "int":
        low, high = type.bounds()
        notes.append(f"{type} holds {low} to {high}")
    problems.add("TL0203", f"{shown} is out of range for {type}", literal.span, others=[place], notes=notes)
