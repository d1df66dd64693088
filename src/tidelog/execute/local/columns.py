"""Evaluating a plan column by column, for rules with expressions.

One function for each algebra node, from frame to frame. A frame maps the variables
bound so far to columns of cells. The driver's rows come in batches, and a join whose
result would be large goes on with a part of its left side at a time, so memory grows with
the matches of a single key at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import numpy as np

from tidelog.execute.local import layout as at
from tidelog.execute.local import probes
from tidelog.execute.local.assemble import VERSIONS, pipeline
from tidelog.execute.local.codes import Codes
from tidelog.execute.local.expressions import Array, Columns, FailedRow, to_cells
from tidelog.execute.local.memory import Cells
from tidelog.execute.local.relation import StoredRelation
from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, RulePlan, Scan, Select, Unit
from tidelog.plan.terms import expr_vars
from tidelog.program.model import Const, Expr, Rule, Term, Var, Wildcard
from tidelog.syntax.errors import EvaluationError

BATCH = 1 << 16

Relations = Mapping[str, StoredRelation]


def evaluate(plan: RulePlan, relations: Relations, codes: Codes, changing: Set[str]) -> int:
    """Run a plan once; new rows go to the head's output. The number of rule instances."""
    steps = pipeline(plan.root.source)
    evaluation = _Evaluation(plan.form.rule, relations, codes, changing)
    head = relations[plan.form.rule.head.relation]
    instances = 0
    for frame in evaluation.flow(steps, Columns({}, 1, codes)):
        instances += frame.count
        cells = [_cells_of(frame, term) for term in plan.root.terms]
        packed = _pack(cells, frame.count, head.words)
        if not probes.insert_into(
            head.address, packed.ctypes.data, frame.count, int(head.record[at.OUTPUTS])
        ):
            raise MemoryError
    return instances


class _Evaluation:
    def __init__(self, rule: Rule, relations: Relations, codes: Codes, changing: Set[str]) -> None:
        self.rule, self.relations, self.codes, self.changing = rule, relations, codes, changing

    def flow(self, steps: list[Node], frame: Columns) -> Iterator[Columns]:
        """The frames that come out of the steps for one that goes in."""
        if frame.count == 0:
            return
        if not steps:
            yield frame
            return
        for result in self.step(steps[0], frame):
            yield from self.flow(steps[1:], result)

    def step(self, node: Node, frame: Columns) -> Iterator[Columns]:
        match node:
            case Unit():
                yield frame
            case Scan():
                yield from self.join(frame, node)
            case Join(_, scan):
                yield from self.join(frame, scan)
            case AntiJoin(_, scan):
                yield frame.part(~self.exists(frame, scan))
            case Select(_, condition):
                yield frame.part(self.compute(frame, condition))
            case Extend(_, var, expr):
                cells = to_cells(self.compute(frame, expr), expr.type, self.codes)
                yield Columns({**frame.cells, var.name: cells}, frame.count, self.codes)

    # --- joins ---

    def join(self, frame: Columns, scan: Scan) -> Iterator[Columns]:
        stored = self.relations[scan.relation]
        bound = tuple(i for i, term in enumerate(scan.terms) if _is_bound(frame, term))
        if len(bound) == len(scan.terms) and scan.relation not in self.changing:
            yield frame.part(self.exists(frame, scan))
            return
        if not bound:
            yield from self.product(frame, scan, stored)
            return
        index = stored.index(bound)
        keys = _pack([_cells_of(frame, scan.terms[i]) for i in bound], frame.count, (len(bound) + 1) // 2)
        places, counts = np.empty(frame.count, np.int64), np.empty(frame.count, np.int64)
        probes.find_matches(index.address, keys.ctypes.data, VERSIONS[scan.version], places, counts)
        for low, high in _slices(counts):
            left, rows = _room(int(counts[low:high].sum()))
            probes.list_matches(index.address, places[low:high], counts[low:high], left, rows)
            yield from self.matches(frame.part(left + low), scan, stored, rows, bound)

    def product(self, frame: Columns, scan: Scan, stored: StoredRelation) -> Iterator[Columns]:
        """Every row of a version with every row of the frame."""
        low, high = _row_range(stored, VERSIONS[scan.version])
        holding = stored.rows_now
        for start in range(low, high, BATCH):
            rows = np.arange(start, min(high, start + BATCH))
            if holding is not None:
                rows = holding[(holding >= start) & (holding < min(high, start + BATCH))]
                if not len(rows):
                    continue
            for part in range(0, frame.count, max(1, BATCH // len(rows))):
                left = np.arange(part, min(frame.count, part + max(1, BATCH // len(rows))))
                pairs = frame.part(np.repeat(left, len(rows)))
                yield from self.matches(pairs, scan, stored, np.tile(rows, len(left)), ())

    def matches(
        self, frame: Columns, scan: Scan, stored: StoredRelation, rows: Array, bound: tuple[int, ...]
    ) -> Iterator[Columns]:
        """The frame with the columns of its matching rows; repeated variables must agree."""
        cells = dict(frame.cells)
        agree = np.ones(frame.count, np.bool_)
        for column, term in enumerate(scan.terms):
            if column in bound or isinstance(term, Wildcard):
                continue
            values = stored.cells[rows, column]
            if isinstance(term, Const):
                agree &= values == self.codes.code(term.value, term.type)
            elif term.name in cells:
                agree &= values == cells[term.name]
            else:
                cells[term.name] = values
        result = Columns(cells, frame.count, self.codes)
        yield result if agree.all() else result.part(agree)

    def exists(self, frame: Columns, scan: Scan) -> Array:
        """For each row of the frame, whether the atom has a match; `_` stands for any value."""
        stored = self.relations[scan.relation]
        key = tuple(i for i, term in enumerate(scan.terms) if not isinstance(term, Wildcard))
        if not key and stored.arity:
            return np.full(frame.count, stored.holding > 0)
        cells = [_cells_of(frame, scan.terms[i]) for i in key]
        if len(key) == stored.arity:
            packed = _pack(cells, frame.count, stored.words)
            found = np.empty(frame.count, np.bool_)
            probes.find_members(stored.address, packed.ctypes.data, found)
            return found
        packed = _pack(cells, frame.count, (len(key) + 1) // 2)
        places, counts = np.empty(frame.count, np.int64), np.empty(frame.count, np.int64)
        probes.find_matches(stored.index(key).address, packed.ctypes.data, at.ALL, places, counts)
        return counts > 0

    # --- expressions ---

    def compute(self, frame: Columns, expr: Expr) -> Array:
        try:
            return frame.evaluate(expr)
        except FailedRow as failed:
            values: dict[str, object] = {}
            for var in _variables(expr):
                values[var.name] = self.codes.value(int(frame.cells[var.name][failed.row]), var.type)
            raise EvaluationError(failed.message, self.rule.text, values, self.rule.span) from None


def _variables(expr: Expr) -> list[Var]:
    names = dict.fromkeys(expr_vars(expr))
    found: dict[str, Var] = {}

    def visit(node: Expr) -> None:
        if isinstance(node, Var):
            found[node.name] = node
        elif not isinstance(node, Const):
            for arg in node.args:
                visit(arg)

    visit(expr)
    return [found[name] for name in names]


def _is_bound(frame: Columns, term: Term) -> bool:
    return isinstance(term, Const) or (isinstance(term, Var) and term.name in frame.cells)


def _cells_of(frame: Columns, term: Term) -> Cells:
    if isinstance(term, Var):
        return frame.cells[term.name]
    assert isinstance(term, Const)
    return np.full(frame.count, frame.codes.code(term.value, term.type), np.uint32)


def _pack(columns: list[Cells], count: int, words: int) -> Cells:
    """Columns of cells as rows of words."""
    packed: Cells = np.zeros((count, 2 * max(1, words)), np.uint32)
    for i, column in enumerate(columns):
        packed[:, i] = column
    return packed


def _row_range(stored: StoredRelation, version: int) -> tuple[int, int]:
    low, high = int(stored.record[at.DELTA_LO]), int(stored.record[at.DELTA_HI])
    return {at.ALL: (0, high), at.OLD: (0, low), at.DELTA: (low, high)}[version]


def _room(count: int) -> tuple[Array, Array]:
    return np.empty(count, np.int64), np.empty(count, np.int64)


def _slices(counts: Array) -> Iterator[tuple[int, int]]:
    """Ranges of the left side with about BATCH matches each; a single key may have more."""
    ends = np.cumsum(counts)
    low = 0
    while low < len(counts):
        done = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, done + BATCH, side="right")))
        if ends[high - 1] > done:
            yield low, high
        low = high
