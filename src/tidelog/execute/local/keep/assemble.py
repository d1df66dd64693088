"""From readings to the code that cursors run."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

import numpy as np

from tidelog.execute.local import layout as local
from tidelog.execute.local.assemble import COMPARISONS, MIRRORED, comparable
from tidelog.execute.local.join import MAX_ARITY, SCRATCH_BYTES
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep.workshop import Memo, Workshop
from tidelog.execute.local.memory import Words
from tidelog.execute.local.relation import Index, StoredRelation
from tidelog.plan.maintenance import Reading
from tidelog.plan.order import Statistics
from tidelog.plan.parts import Part
from tidelog.plan.reading_order import order_reading, orders_of
from tidelog.plan.terms import definitions
from tidelog.program.model import (
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Negative,
    Positive,
    Rule,
    Term,
    Var,
    Wildcard,
    variables,
)
from tidelog.program.types import BOOL
from tidelog.syntax.errors import UnsupportedError

MAX_ORDERS = 4
MAX_OWN = 255  # atoms of a rule over relations of its own stratum
FALSE, TRUE = Const(False, BOOL), Const(True, BOOL)


@dataclass
class Step:
    """A step before it becomes words; offsets are columns."""

    kind: int
    relation: StoredRelation | None = None
    index: Index | None = None  # None: it is still to be made
    columns: tuple[int, ...] = ()  # of the index
    part: Part | None = None
    keys: list[int] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)  # (column, register)
    tests: list[tuple[int, int]] = field(default_factory=list)
    checks: list[tuple[int, int, int]] = field(default_factory=list)  # (kind, register, register)
    body: bool = False
    slot: int = 0
    flip: bool = False
    memo: Memo | None = None


@dataclass
class Reserve:
    """An order of a reading that waits until the indexes it needs are worth making.

    Places in the code: of the reading, and of the order; how many matches its second step should have; and
    where it needs indexes: the place of the step, the relation, the columns.
    """

    form: int
    order: int
    expected: int
    probes: list[tuple[int, str, tuple[int, ...]]]


@dataclass
class Call:
    """Where a cursor may ask for a value: the table, the registers of its inputs, and for whom."""

    memo: Memo
    registers: list[int]
    rule: Rule


class Code:
    """The readings of one task, one behind the other."""

    def __init__(self, workshop: Workshop, statistics: Statistics, own: Set[str]) -> None:
        self.workshop, self.statistics, self.own = workshop, statistics, own
        self.words = [0]  # nothing is at place 0, which stands for none
        self.calls: dict[int, Call] = {}  # by the place of the step
        self.rules: list[int] = []  # rule id of each reading
        self.read: set[str] = set()
        self.probed: set[tuple[str, tuple[int, ...]]] = set()  # relations and columns of indexes
        self.looked_up: set[str] = set()  # relations whose map of rows is asked
        self.reserves: list[Reserve] = []
        self.registers = self.steps = 1

    def add(
        self, reading: Reading, *, backward: bool = False, sign: int = 0, runs: int = 3, flip: bool = False
    ) -> tuple[int, str | None]:
        """Assemble a reading; where it begins, and the relation that drives it.

        `flip`: the driver stands for a negated atom, and counts where its tuple is missing.
        """
        number = len(self.rules)
        self.rules.append(reading.rule.id)

        def assemble(order: tuple[int, ...] | None, *, in_reserve: bool) -> tuple[int, _Assembler]:
            assembler = _Assembler(self, reading, backward, flip, in_reserve)
            place = assembler.assemble(number, sign, runs, order)
            self.registers = max(self.registers, assembler.count)
            self.steps = max(self.steps, len(assembler.steps))
            return place, assembler

        *others, best = orders_of(reading, self.statistics, MAX_ORDERS) if backward else [None]
        form, _ = assemble(best, in_reserve=False)
        for order in others:
            place, assembler = assemble(order, in_reserve=True)
            self.reserves.append(Reserve(form, place, assembler.second_matches(), assembler.lacking))
        driver = None if reading.driver is None else _atom(reading, reading.driver).relation
        return form, driver

    def array(self) -> Words:
        """The code as words."""
        return np.array(self.words, np.int64)


class Cursor:
    """The memory of a cursor."""

    def __init__(self, code: Code) -> None:
        self.registers: Words = np.zeros(code.registers + 1, np.int64)
        self.stack: Words = np.zeros(at.STACK_WORDS * (code.steps + 1), np.int64)
        self.rows: Words = np.zeros(code.steps + 1, np.int64)
        self.scratch: Words = np.zeros(SCRATCH_BYTES // 8, np.int64)
        self.possible: Words = np.zeros(code.steps + 2, np.int64)
        self.record: Words = np.zeros(at.C_WORDS, np.int64)
        for field_, array in (
            (at.C_REGISTERS, self.registers),
            (at.C_STACK, self.stack),
            (at.C_ROWS, self.rows),
            (at.C_SCRATCH, self.scratch),
            (at.C_POSSIBLE, self.possible),
        ):
            self.record[field_] = array.ctypes.data
        self.address = int(self.record.ctypes.data)


class _Assembler:
    def __init__(self, code: Code, reading: Reading, backward: bool, flip: bool, in_reserve: bool) -> None:
        self.code, self.reading, self.backward, self.flip = code, reading, backward, flip
        self.in_reserve = in_reserve
        self.workshop = code.workshop
        self.names: dict[str, int] = {}
        self.constants: dict[Const, int] = {}
        self.count = 0
        self.steps: list[Step] = []
        self.lacking: list[tuple[int, str, tuple[int, ...]]] = []  # as in `Reserve`

    def second_matches(self) -> int:
        """How many matches the second step should have."""
        second = self.steps[1]
        if second.kind != at.PROBE or second.relation is None:
            return 1
        return max(1, int(self.code.statistics.fanout(second.relation.relation.name, second.columns)))

    def assemble(self, number: int, sign: int, runs: int, order: tuple[int, ...] | None) -> int:
        rule = self.reading.rule
        for position in order or order_reading(self.reading, self.code.statistics):
            self.literal(position)
        if not self.steps:
            self.steps.append(Step(at.UNIT))
        head = self.workshop.relations[rule.head.relation]
        self.code.looked_up.add(rule.head.relation)
        terms = [term for term in rule.head.terms if isinstance(term, Var | Const)]
        registers = [self.register(term) for term in terms] or [self.register(FALSE)]
        if max(len(registers), *(len(step.keys) for step in self.steps)) > MAX_ARITY:
            raise UnsupportedError(
                f"error[TL0605]: a relation with more than {MAX_ARITY} columns cannot be kept up to date"
            )
        return self.put_words(head, registers, number, sign, runs)

    # --- registers ---

    def fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def register(self, term: Var | Const) -> int:
        if isinstance(term, Var):
            return self.names[term.name]
        if term not in self.constants:
            self.constants[term] = self.fresh()
        return self.constants[term]

    def is_bound(self, term: Term) -> bool:
        return isinstance(term, Const) or (isinstance(term, Var) and term.name in self.names)

    def are_bound(self, expr: Expr) -> bool:
        return all(var.name in self.names for var in variables(expr))

    # --- literals ---

    def literal(self, position: int) -> None:
        match self.reading.rule.body[position]:
            case Positive(atom):
                self.positive(atom, position)
            case Negative(atom):
                step = self.lookup(at.ABSENT, atom)
                step.part = self.reading.parts[position]
                self.steps.append(step)
            case Filter(condition) as literal:
                unbound = [
                    (var, expr)
                    for var, expr in definitions(literal)
                    if var.name not in self.names and self.are_bound(expr)
                ]
                if unbound:
                    self.define(*unbound[0])
                else:
                    self.condition(condition)
            case Bind(var, expr):
                self.define(var, expr)

    def positive(self, atom: Atom, position: int) -> None:
        relation = self.workshop.relations[atom.relation]
        self.code.read.add(atom.relation)
        bound = tuple(i for i, term in enumerate(atom.terms) if self.is_bound(term))
        skip: tuple[int, ...] = ()
        if position == self.reading.driver:
            step = Step(at.GIVEN, relation)
        elif len(bound) == len(atom.terms):
            step, skip = self.lookup(at.LOOKUP, atom), bound
        elif not bound:
            step = Step(at.SCAN, relation)
        else:
            keys = [self.register(t) for t in atom.terms if not isinstance(t, Wildcard) and self.is_bound(t)]
            step, skip = Step(at.PROBE, relation, columns=bound, keys=keys), bound
            if not self.in_reserve:
                step.index = relation.index(bound)
                self.code.probed.add((atom.relation, bound))
        step.part = self.reading.parts[position]
        step.body = self.is_own(position)
        step.slot = sum(self.is_own(i) for i in range(position))
        step.flip = self.flip and position == self.reading.driver
        for column, term in enumerate(atom.terms):
            if column in skip or isinstance(term, Wildcard):
                continue
            if self.is_bound(term):
                step.tests.append((column, self.register(term)))
            else:
                assert isinstance(term, Var)
                self.names[term.name] = self.fresh()
                step.loads.append((column, self.names[term.name]))
        self.steps.append(step)

    def is_own(self, position: int) -> bool:
        """Whether a literal is an atom of the body over one of the task's own relations."""
        literal = self.reading.rule.body[position]
        if self.backward and position == self.reading.driver:
            return False
        return isinstance(literal, Positive) and literal.atom.relation in self.code.own

    def lookup(self, kind: int, atom: Atom) -> Step:
        """A step that looks for one tuple."""
        self.code.read.add(atom.relation)
        self.code.looked_up.add(atom.relation)
        keys = [self.register(term) for term in atom.terms if not isinstance(term, Wildcard)]
        return Step(kind, self.workshop.relations[atom.relation], keys=keys or [self.register(FALSE)])

    def define(self, var: Var, expr: Expr) -> None:
        """Compute a variable, or compare where something has bound it before."""
        result = self.call(expr) if isinstance(expr, Apply) else self.register(expr)
        if var.name in self.names:
            self.check(local.SAME, self.names[var.name], result)
        else:
            self.names[var.name] = result

    def condition(self, condition: Expr) -> None:
        if isinstance(condition, Apply) and len(condition.args) == 2:
            function, (left, right) = condition.function, condition.args
            if function in MIRRORED:
                function, left, right = MIRRORED[function], right, left
            if (
                function in COMPARISONS
                and not isinstance(left, Apply)
                and not isinstance(right, Apply)
                and left.type == right.type
                and comparable(left.type, equality=function in ("eq", "ne"))
            ):
                self.check(COMPARISONS[function], self.register(left), self.register(right))
                return
        result = self.call(condition) if isinstance(condition, Apply) else self.register(condition)
        self.check(local.SAME, result, self.register(TRUE))

    def call(self, expr: Expr) -> int:
        """Look a value up; the register it is in."""
        memo = self.workshop.memo(expr)
        keys = [self.register(var) for var in memo.inputs] or [self.register(FALSE)]
        result = self.fresh()
        step = Step(at.CALL, memo.stored, memo.index, keys=keys, loads=[(len(keys), result)], memo=memo)
        self.steps.append(step)
        return result

    def check(self, kind: int, left: int, right: int) -> None:
        if not self.steps:
            self.steps.append(Step(at.UNIT))
        self.steps[-1].checks.append((kind, left, right))

    # --- words ---

    def put(self, values: Iterable[int]) -> int:
        place = len(self.code.words)
        self.code.words.extend(values)
        return place

    def put_words(self, head: StoredRelation, registers: list[int], number: int, sign: int, runs: int) -> int:
        words, parts = self.code.words, self.workshop.parts
        form = self.put([0] * at.F_WORDS)
        steps = self.put([0] * (at.STEP_WORDS * len(self.steps)))
        for level, step in enumerate(self.steps):
            base = steps + at.STEP_WORDS * level
            words[base + at.KIND] = step.kind
            if step.relation is not None:
                words[base + at.SOURCE] = step.relation.address
            if step.index is not None:
                words[base + at.INDEX] = step.index.address
            elif step.kind == at.PROBE and step.relation is not None:
                self.lacking.append((base, step.relation.relation.name, step.columns))
            words[base + at.PART] = parts.address(step.part)
            words[base + at.KEYS] = self.put(step.keys)
            words[base + at.KEY_CELLS] = len(step.keys)
            words[base + at.LOADS] = self.put(w for column, r in step.loads for w in (4 * column, r))
            words[base + at.LOAD_COUNT] = len(step.loads)
            words[base + at.TESTS] = self.put(w for column, r in step.tests for w in (4 * column, r))
            words[base + at.TEST_COUNT] = len(step.tests)
            words[base + at.CHECKS] = self.put(w for kind, a, b in step.checks for w in (kind, 0, a, b))
            words[base + at.CHECK_COUNT] = len(step.checks)
            words[base + at.BODY] = int(step.body)
            words[base + at.SLOT] = step.slot
            words[base + at.FLIP] = int(step.flip)
            if step.memo is not None:
                inputs = step.keys if step.memo.inputs else []
                self.code.calls[base] = Call(step.memo, inputs, self.reading.rule)
        words[form + at.F_HEAD] = head.address
        words[form + at.F_STEP_COUNT] = len(self.steps)
        words[form + at.F_STEPS] = steps
        words[form + at.F_HEAD_REGISTERS] = self.put(registers)
        codes = self.workshop.codes
        words[form + at.F_CONSTANTS] = self.put(
            w for const, r in self.constants.items() for w in (r, codes.code(const.value, const.type))
        )
        words[form + at.F_CONSTANT_COUNT] = len(self.constants)
        if self.reading.driver is not None:
            driver = _atom(self.reading, self.reading.driver).relation
            words[form + at.F_DRIVER] = self.workshop.relations[driver].address
            words[form + at.F_DRIVER_PART] = parts.address(self.reading.parts[self.reading.driver])
        words[form + at.F_NUMBER] = number
        words[form + at.F_SIGN] = sign
        words[form + at.F_RUNS] = runs
        own = [i for i in range(len(self.reading.rule.body)) if self.is_own(i)]
        if len(own) > MAX_OWN:
            raise UnsupportedError(
                f"error[TL0605]: a rule with more than {MAX_OWN} recursive atoms cannot be kept up to date"
            )
        words[form + at.F_OWN] = len(own)
        words[form + at.F_SLOT] = own.index(self.reading.driver) if self.reading.driver in own else -1
        return form


def _atom(reading: Reading, position: int) -> Atom:
    literal = reading.rule.body[position]
    assert isinstance(literal, Positive)
    return literal.atom
