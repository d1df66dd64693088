"""What all readings of an executor are assembled with: tables for parts and for expressions.

An expression is a relation here: its inputs and its value, filled as values are asked for. A
cursor that finds no row for its inputs stops, Python computes the value, and it goes on. So
whatever functions a rule calls, it is maintained by the same kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tidelog.execute.local.codes import Codes
from tidelog.execute.local.relation import Index, StoredRelation
from tidelog.plan.parts import COMBINATIONS, EVERYTHING, Part
from tidelog.program.functions import FunctionFailure, evaluate
from tidelog.program.model import Column, Expr, Relation, Rule, variables
from tidelog.program.types import BOOL
from tidelog.syntax.errors import EvaluationError


class Parts:
    """The tables of parts, a byte for each combination of marks."""

    def __init__(self) -> None:
        self._tables: dict[int, npt.NDArray[np.uint8]] = {}
        self._addresses: dict[int, int] = {}

    def table(self, part: Part | None) -> npt.NDArray[np.uint8]:
        """A part's table; None is everything."""
        bits = (part or EVERYTHING).table
        if bits not in self._tables:
            packed = np.frombuffer(bits.to_bytes(COMBINATIONS // 8, "little"), np.uint8)
            self._tables[bits] = np.unpackbits(packed, bitorder="little")
        return self._tables[bits]

    def address(self, part: Part | None) -> int:
        """Where a part's table is."""
        bits = (part or EVERYTHING).table
        if bits not in self._addresses:
            self._addresses[bits] = int(self.table(part).ctypes.data)
        return self._addresses[bits]


class Memo:
    """The values of an expression that have been computed so far."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr
        self.inputs = variables(expr)
        types = [var.type for var in self.inputs] or [BOOL]
        columns = [Column(f"c{i}", type) for i, type in enumerate([*types, expr.type])]
        self.stored = StoredRelation(Relation("expression", tuple(columns)), 1)
        self.index: Index = self.stored.index(tuple(range(len(types))))

    def compute(self, cells: list[int], rule: Rule, codes: Codes) -> None:
        """Add the value for some inputs. Raises EvaluationError if the function fails on them."""
        values = {var.name: codes.value(cell, var.type) for var, cell in zip(self.inputs, cells, strict=True)}
        try:
            value = codes.code(evaluate(self.expr, values), self.expr.type)
        except FunctionFailure as failure:
            shown: dict[str, object] = {n: v for n, v in values.items() if not n.startswith("$")}
            raise EvaluationError(str(failure), rule.text, shown, rule.span) from None
        row = [*(cells or [0]), value]
        self.stored.insert([np.array([cell], np.uint32) for cell in row], 1)


class Workshop:
    """What all readings of an executor are assembled with."""

    def __init__(self, codes: Codes, relations: Mapping[str, StoredRelation]) -> None:
        self.codes, self.relations = codes, relations
        self.parts = Parts()
        self.memos: dict[Expr, Memo] = {}

    def memo(self, expr: Expr) -> Memo:
        """The table of an expression."""
        if expr not in self.memos:
            self.memos[expr] = Memo(expr)
        return self.memos[expr]
