"""From a plan to the code that the rule interpreter runs.

`assemble` gives None for a plan with expressions that the interpreter does not
compute; `columns` evaluates those.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from tidelog.execute.local import layout as at
from tidelog.execute.local.codes import Codes
from tidelog.execute.local.join import MAX_ARITY
from tidelog.execute.local.relation import Index, StoredRelation
from tidelog.plan.algebra import AntiJoin, Extend, Join, Node, RulePlan, Scan, Select, Unit
from tidelog.plan.executor import Version
from tidelog.program.model import Apply, Const, Expr, Term, Var, Wildcard
from tidelog.program.types import Type

MAX_STEPS = 64
MAX_REGISTERS = 1000
VERSIONS = {Version.ALL: at.ALL, Version.OLD: at.OLD, Version.DELTA: at.DELTA}
COMPARISONS = {"eq": at.SAME, "ne": at.DIFFERENT, "lt": at.LESS, "le": at.LESS_EQUAL}
MIRRORED = {"gt": "lt", "ge": "le"}

Stored = Callable[[str], StoredRelation]


@dataclass
class Step:
    """A step before it becomes words; offsets of `loads` and `tests` are columns."""

    kind: int
    relation: StoredRelation | None = None
    key: tuple[int, ...] = ()  # columns
    key_registers: list[int] = field(default_factory=list)
    version: int = at.ALL
    loads: list[tuple[int, int]] = field(default_factory=list)  # (column, register)
    tests: list[tuple[int, int]] = field(default_factory=list)
    checks: list[tuple[int, int, list[int]]] = field(default_factory=list)  # (kind, target, registers)

    @property
    def index(self) -> Index | None:
        """The index that a probe uses."""
        if self.kind != at.PROBE or self.relation is None:
            return None
        return self.relation.index(self.key)

    def offset(self, column: int) -> int:
        """Where a column's cell is: in the index entry behind the row's number, or in the row."""
        index = self.index
        if index is None or index.from_row:
            return 4 * column
        return 4 + 4 * index.carried.index(column)


def assemble(plan: RulePlan, stored: Stored, codes: Codes, changing: Set[str], base: int) -> list[int] | None:
    """The code of a plan, to be put at `base`, for relations of which those in `changing` grow meanwhile."""
    return _Assembler(stored, codes, changing, base).assemble(plan)


def pipeline(root: Node) -> list[Node]:
    """The nodes of a left-deep plan, the leaf first."""
    nodes = [root]
    while True:
        node = nodes[-1]
        if isinstance(node, Join | AntiJoin):
            nodes.append(node.left)
        elif isinstance(node, Select | Extend):
            nodes.append(node.source)
        else:
            return nodes[::-1]


class _Assembler:
    def __init__(self, stored: Stored, codes: Codes, changing: Set[str], base: int) -> None:
        self.stored, self.codes, self.changing, self.base = stored, codes, changing, base
        self.registers: dict[str, int] = {}
        self.constants: dict[Const, int] = {}
        self.count = 0
        self.steps: list[Step] = []
        self.checked: list[StoredRelation] = []

    def assemble(self, plan: RulePlan) -> list[int] | None:
        for node in pipeline(plan.root.source):
            if not self.node(node):
                return None
        head = self.stored(plan.form.rule.head.relation)
        code = self.words(head, [self.register(term) for term in plan.root.terms])
        probed = (step.relation for step in self.steps if step.relation is not None)
        widest = max(relation.arity for relation in (head, *probed, *self.checked))
        if len(self.steps) > MAX_STEPS or self.count > MAX_REGISTERS or widest > MAX_ARITY:
            return None
        return code

    # --- registers ---

    def fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def register(self, term: Var | Const) -> int:
        if isinstance(term, Var):
            return self.registers[term.name]
        if term not in self.constants:
            self.constants[term] = self.fresh()
        return self.constants[term]

    def is_bound(self, term: Term) -> bool:
        return isinstance(term, Const) or (isinstance(term, Var) and term.name in self.registers)

    # --- nodes ---

    def node(self, node: Node) -> bool:
        """Add a node; False if the interpreter has no way to do it."""
        match node:
            case Unit():
                self.steps.append(Step(at.UNIT))
            case Scan():
                self.first(node)
            case Join(_, scan):
                self.join(scan)
            case AntiJoin(_, scan):
                self.check_atom(scan, negated=True)
            case Select(_, condition):
                return self.select(condition)
            case Extend(_, var, expr):
                if isinstance(expr, Apply):
                    return False
                self.registers[var.name] = self.register(expr)
        return True

    def first(self, scan: Scan) -> None:
        """The driver: a walk over rows; with constants, a probe that drives itself."""
        if scan.version is Version.ALL and any(isinstance(t, Const) for t in scan.terms):
            self.steps.append(Step(at.UNIT))
            self.join(scan)
        else:
            self.walk(scan)

    def join(self, scan: Scan) -> None:
        bound = tuple(i for i, term in enumerate(scan.terms) if self.is_bound(term))
        if not bound:
            self.walk(scan)
        elif len(bound) == len(scan.terms) and scan.relation not in self.changing:
            self.check_atom(scan, negated=False)
        else:
            relation = self.stored(scan.relation)
            keys = [self.register(t) for t in scan.terms if not isinstance(t, Wildcard) and self.is_bound(t)]
            step = Step(at.PROBE, relation, bound, keys, VERSIONS[scan.version])
            self.load(step, scan, skip=bound)

    def walk(self, scan: Scan) -> None:
        step = Step(at.SCAN, self.stored(scan.relation), version=VERSIONS[scan.version])
        self.load(step, scan, skip=())

    def load(self, step: Step, scan: Scan, skip: tuple[int, ...]) -> None:
        """Add a step that loads the columns it does not skip."""
        for column, term in enumerate(scan.terms):
            if column in skip or isinstance(term, Wildcard):
                continue
            if self.is_bound(term):
                step.tests.append((column, self.register(term)))
            else:
                assert isinstance(term, Var)
                self.registers[term.name] = self.fresh()
                step.loads.append((column, self.registers[term.name]))
        self.steps.append(step)

    def check_atom(self, scan: Scan, *, negated: bool) -> None:
        """Membership of an atom without free variables; `_` stands for any value."""
        relation = self.stored(scan.relation)
        self.checked.append(relation)
        key = tuple(i for i, term in enumerate(scan.terms) if not isinstance(term, Wildcard))
        cells = [self.register(t) for t in scan.terms if not isinstance(t, Wildcard)]
        if len(key) == relation.arity:
            kind, target = (at.NOT_MEMBER if negated else at.MEMBER), relation.address
            cells = cells or [self.register(Const(False, Type("bool")))]
        elif key:
            kind, target = (at.NOT_EXISTS if negated else at.EXISTS), relation.index(key).address
        else:  # whether the relation has rows at all is known before the run
            passes = (relation.holding == 0) == negated
            kind, target = (at.SAME if passes else at.DIFFERENT), 0
            cells = [self.register(Const(False, Type("bool")))] * 2
        self.steps[-1].checks.append((kind, target, cells))

    def select(self, condition: Expr) -> bool:
        """A comparison of variables and constants; nothing else."""
        if not isinstance(condition, Apply) or len(condition.args) != 2:
            return False
        function, (left, right) = condition.function, condition.args
        if function in MIRRORED:
            function, left, right = MIRRORED[function], right, left
        if function not in COMPARISONS or isinstance(left, Apply) or isinstance(right, Apply):
            return False
        if left.type != right.type or not comparable(left.type, equality=function in ("eq", "ne")):
            return False
        self.steps[-1].checks.append((COMPARISONS[function], 0, [self.register(left), self.register(right)]))
        return True

    # --- words ---

    def words(self, head: StoredRelation, head_registers: list[int]) -> list[int]:
        code = [0] * (at.FORM_WORDS + at.STEP_WORDS * len(self.steps))

        def put(values: list[int]) -> int:
            code.extend(values)
            return self.base + len(code) - len(values)

        head_cells = head_registers or [self.register(Const(False, Type("bool")))]
        code[at.HEAD] = head.address
        code[at.STEP_COUNT] = len(self.steps)
        code[at.STEPS] = self.base + at.FORM_WORDS
        code[at.HEAD_REGISTERS] = put(head_cells)
        for number, step in enumerate(self.steps):
            base = at.FORM_WORDS + at.STEP_WORDS * number
            code[base + at.KIND] = step.kind
            code[base + at.VERSION] = step.version
            if step.relation is not None:
                code[base + at.SOURCE] = step.relation.address
            if step.index is not None:
                code[base + at.INDEX] = step.index.address
                code[base + at.FROM_ROW] = int(step.index.from_row)
            code[base + at.STEP_KEYS] = put(step.key_registers)
            code[base + at.LOAD_COUNT] = len(step.loads)
            code[base + at.LOADS] = put([w for column, r in step.loads for w in (step.offset(column), r)])
            code[base + at.TEST_COUNT] = len(step.tests)
            code[base + at.TESTS] = put([w for column, r in step.tests for w in (step.offset(column), r)])
            checks: list[int] = []
            for kind, target, registers in step.checks:
                if kind <= at.NOT_EXISTS:
                    checks += [kind, target, put(registers), 0]
                else:
                    checks += [kind, target, *registers]
            code[base + at.CHECK_COUNT] = len(step.checks)
            code[base + at.CHECKS] = put(checks)
        self.tighten(code, head, head_cells)
        constants = [
            w for const, r in self.constants.items() for w in (r, self.codes.code(const.value, const.type))
        ]
        code[at.CONSTANT_COUNT] = len(self.constants)
        code[at.CONSTANTS] = put(constants)
        return code

    def tighten(self, code: list[int], head: StoredRelation, head_registers: list[int]) -> None:
        """Choose a tight inner loop for the last step where one fits."""
        number = len(self.steps) - 1
        step, base = self.steps[-1], at.FORM_WORDS + at.STEP_WORDS * (len(self.steps) - 1)
        if number == 0 or step.tests or step.checks or code[base + at.FROM_ROW]:
            return
        if step.kind == at.SCAN and step.relation is not None and step.relation.record[at.LEDGER]:
            return  # each row is looked at: it may not hold any more
        places = {register: step.offset(column) for column, register in step.loads}
        moved = [(column, r) for column, r in enumerate(head_registers) if r in places]
        if not moved:
            code[base + at.TIGHT] = at.COUNT_ONLY
        elif head.words <= 2 and len(moved) <= (1 if head.words == 1 else 3):
            code[base + at.TIGHT] = at.ONE_WORD if head.words == 1 else at.TWO_WORDS
            code[base + at.MOVE_COUNT] = len(moved)
            code[base + at.MOVES] = self.base + len(code)
            for column, register in moved:
                code += [places[register], column // 2, 32 * (column % 2)]


def comparable(type: Type, *, equality: bool) -> bool:
    """Whether cells of a type compare as the interpreter does it."""
    if type.kind == "int" and type.bits <= 64:
        return equality or type.signed or type.bits < 64
    return equality and (type.is_string_inside or type.kind in ("bool", "int", "bigint"))
