"""A program on a keeper, and a look at it after every task.

Strata are given by the test, as in the papers, where a stratification is part of the input. An
algorithm is driven as in a commit, but every task that it gives to the keeper is noted with
what the keeper knew right after it: that is the state which the worked examples print.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests import oracle
from tests.papers.notation import ground, named, read, shape, shape_of, written
from tidelog.maintain.protocol import Algorithm, StratumChange
from tidelog.maintain.seminaive import Recompute
from tidelog.plan.executor import Task as Materialising
from tidelog.plan.executor import Watch, unwatched
from tidelog.plan.maintenance import Keeper, Maintaining, PhaseReport, Redeem, Row, Standing, Steps, Sweep
from tidelog.plan.parts import AFTER, Mark
from tidelog.plan.readings import reads_own
from tidelog.program.check import check
from tidelog.program.model import Positive, Program, Stratum, Value, Var
from tidelog.syntax.parser import parse


def program_of(rules: str, *relations: str, column: str = "symbol") -> Program:
    """A checked program; `relations` are like `T/2`, and every column has the type `column`."""
    lines = []
    for relation in relations:
        name, arity = relation.split("/")
        columns = ", ".join(f"c{i}: {column}" for i in range(int(arity)))
        lines.append(f".decl {name}({columns})\n.input {name}\n.output {name}")
    return check(parse("\n".join([*lines, rules])))


def layers(program: Program, *strata: str) -> list[Stratum]:
    """Strata by their relations (`"T", "B"` or `"T B"`); rules go where their heads are."""
    found = []
    for index, names in enumerate(strata):
        own = tuple(names.split())
        rules = [rule for rule in program.rules if rule.head.relation in own]
        base = tuple(rule for rule in rules if not reads_own(rule, own))
        recursive = tuple(rule for rule in rules if reads_own(rule, own))
        found.append(Stratum(index, own, base, recursive))
    return found


@dataclass
class Step:
    """A task, its report, and every stored tuple as it stood afterwards."""

    program: Program
    task: Maintaining | Materialising
    report: PhaseReport
    standing: dict[str, Standing]

    def marked(self, mark: Mark) -> set[str]:
        """The facts with a mark."""
        return {fact for fact, known in self.standing.items() if known.marks & mark}

    @property
    def considered(self) -> Considered:
        """The rule instances considered."""
        texts = [_instance(self.program, entry) for entry in self.report.considered]
        shapes: Counter[str] = Counter()
        for rule in self.program.rules:
            shapes[shape_of(rule)] += self.report.instances.get(rule.id, 0)
        return Considered(self.count, +shapes, texts if len(texts) == self.count else None)

    @property
    def count(self) -> int:
        """How many rule instances were considered."""
        return sum(self.report.instances.values())


@dataclass
class Considered:
    """Rule instances, each as often as it was considered.

    A keeper that remembers instances gives them as `texts`. One that only counts them gives their
    number for each rule (`shapes`), or in all: then equality is equality of these numbers.
    """

    count: int
    shapes: Counter[str] | None = None
    texts: list[str] | None = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Considered):
            if self.texts is not None and other.texts is not None:
                return sorted(self.texts) == sorted(other.texts)
            return self.count == other.count and self.shapes == other.shapes
        if not isinstance(other, list):
            return NotImplemented
        if self.texts is not None:
            return sorted(self.texts) == sorted(other)
        if self.shapes is not None:
            return self.shapes == Counter(map(shape, other))
        return self.count == len(other)

    def __add__(self, other: Considered) -> Considered:
        shapes = None if self.shapes is None or other.shapes is None else self.shapes + other.shapes
        texts = None if self.texts is None or other.texts is None else self.texts + other.texts
        return Considered(self.count + other.count, shapes, texts)

    def has(self, wanted: list[str]) -> bool:
        """Whether all these are among them."""
        return self.count >= len(wanted) if self.texts is None else set(wanted) <= set(self.texts)

    @property
    def repeated(self) -> set[str]:
        """Those considered more than once, as far as they are remembered."""
        return {text for text, n in Counter(self.texts or []).items() if n > 1}


def _instance(program: Program, entry: tuple[object, ...]) -> str:
    number, _, *rows = entry
    [rule] = [rule for rule in program.rules if rule.id == number]
    bound: dict[str, Value] = {}
    for literal, row in zip((lit for lit in rule.body if isinstance(lit, Positive)), rows, strict=True):
        assert isinstance(row, tuple)
        for term, value in zip(literal.atom.terms, row, strict=True):
            if isinstance(term, Var):
                bound[term.name] = value
    return ground(rule, bound)


@dataclass
class Story:
    """The steps of one commit, and what it changed."""

    program: Program
    steps: list[Step] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    gained: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many rule instances were considered in all."""
        return sum(step.count for step in self.steps)

    @property
    def considered(self) -> Considered:
        """The rule instances considered in all."""
        return together(self.steps)

    def of(self, kind: str) -> Considered:
        """Those of a kind: backward, forward, deletion, and so on."""
        texts = [
            _instance(self.program, entry)
            for step in self.steps
            for entry, found in zip(step.report.considered, step.report.kinds, strict=True)
            if found == kind
        ]
        remembered = self.considered.texts is not None
        return Considered(self.details.get(kind, 0), None, texts if remembered else None)

    @property
    def details(self) -> dict[str, int]:
        """How many of them went backward, forward, and so on."""
        total: Counter[str] = Counter()
        for step in self.steps:
            total.update(step.report.details)
        return {name: n for name, n in total.items() if n}

    @property
    def repeated(self) -> set[str]:
        """The rule instances that one task considered more than once."""
        return {text for step in self.steps for text in step.considered.repeated}

    def over(self, relation: str) -> list[Step]:
        """The steps of the stratum that a relation is in."""
        return [step for step in self.steps if relation in _relations(step.task)]


def together(steps: Iterable[Step]) -> Considered:
    """The rule instances that several tasks considered."""
    total = Considered(0, Counter(), [])
    for step in steps:
        total += step.considered
    return total


def _relations(task: object) -> tuple[str, ...]:
    return tuple(getattr(task, "relations", ()))


class Observed:
    """A keeper that notes what every task did; everything else is the keeper's own.

    Without `look` the tuples are left out: in the middle of a renewal they are not to be read.
    """

    def __init__(self, keeper: Keeper, program: Program, story: Story, look: bool) -> None:
        self._keeper, self._program, self._story, self._look = keeper, program, story, look

    def __getattr__(self, name: str) -> object:
        return getattr(self._keeper, name)

    def keep_going(
        self, task: Maintaining | Materialising, watch: Watch = unwatched, budget: int | None = None
    ) -> PhaseReport:
        report = self._keeper.keep_going(task, watch, budget)
        known = standing(self._keeper, self._program) if self._look else {}
        self._story.steps.append(Step(self._program, task, report, known))
        return report


def standing(keeper: Keeper, program: Program) -> dict[str, Standing]:
    """What the keeper knows of every stored tuple."""
    return {
        written(name, row): known
        for name in program.relations
        for row, known in keeper.standing(name).items()
    }


class Kept:
    """A program whose answers a keeper holds."""

    def __init__(self, keeper: Keeper, program: Program, *strata: str) -> None:
        self.keeper, self.program, self.strata = keeper, program, layers(program, *strata)
        keeper.remember(True)
        for relation in program.relations.values():
            keeper.create(relation)
        keeper.derives([name for stratum in self.strata for name in stratum.relations])

    def start(self, algorithm: Algorithm, facts: str) -> Story:
        """Derive everything from the facts."""
        story = Story(self.program)
        self.begin(plus=facts)
        for stratum in self.strata:
            self.keeper.renew(stratum.relations)
            algorithm.start(stratum, self._observed(story, look=False), unwatched)
            self.keeper.renewed(stratum.relations)
        return self._end(story)

    def update(self, algorithm: Algorithm, minus: str = "", plus: str = "") -> Story:
        """Bring every stratum up to date after facts are taken away and added."""
        story = Story(self.program)
        self.begin(minus, plus)
        for stratum in self.strata:
            keeper = self._observed(story, look=not isinstance(algorithm, Recompute))
            algorithm.update(StratumChange(stratum), keeper, unwatched, None)
        return self._end(story)

    def begin(self, minus: str = "", plus: str = "") -> None:
        """Start a commit that takes facts away and adds facts."""
        self.keeper.begin()
        for name, rows in read(minus).items():
            assert self.keeper.retract_rows(name, rows) == len(rows), f"not all of {name} are there"
        for name, rows in read(plus).items():
            assert self.keeper.assert_rows(name, rows) == len(rows), f"some of {name} are there"

    @property
    def held(self) -> set[str]:
        """The facts that hold: I."""
        found = named({name: self.rows(name) for name in self.program.relations})
        known = standing(self.keeper, self.program)
        assert found == {fact for fact, state in known.items() if state.marks in AFTER}
        return found

    def rows(self, relation: str) -> Iterable[Row]:
        """The rows of a relation."""
        table = self.keeper.table(relation)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def standing(self) -> dict[str, Standing]:
        """What the keeper knows of every stored tuple."""
        return standing(self.keeper, self.program)

    def _observed(self, story: Story, look: bool) -> Keeper:
        return Observed(self.keeper, self.program, story, look)  # type: ignore[return-value]

    def _end(self, story: Story) -> Story:
        for name in self.program.relations:
            delta = self.keeper.delta(name)
            story.lost |= _rows(name, delta.deleted)
            story.gained |= _rows(name, delta.inserted)
        self.keeper.commit()
        return story


def _rows(name: str, table: object) -> set[str]:
    columns: Sequence[Sequence[Value]] = [column.to_pylist() for column in table.columns]  # type: ignore[attr-defined]
    return {written(name, row) for row in zip(*columns, strict=True)}


def model(program: Program, facts: str) -> set[str]:
    """mat(Π, E), by the oracle."""
    return named(oracle.model_of(program, read(facts)))


def fired(program: Program, facts: str) -> set[str]:
    """inst(Π, mat(Π, E)), by the oracle: the rule instances that fire."""
    found = oracle.instances(program, oracle.model_of(program, read(facts)))
    return {_instance(program, entry) for entry in found}


def optimum(program: Program, before: str, after: str) -> list[str]:
    """Definition 26, by the oracle: the rule instances that fire before or after an update, but not both."""
    return sorted(fired(program, before) ^ fired(program, after))


def kinds(steps: Iterable[Step]) -> list[type]:
    """The kinds of tasks, in order."""
    return [type(step.task) for step in steps]


DRED = [Sweep, Redeem, Sweep]  # overdelete, rederive, insert
COUNTING = [Steps]
