"""Fixpoints for several tasks, run on simulated ones: sets in Python, and rows handed from one to another."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.workloads import CSPA, GALEN, SAME_GENERATION
from tests.oracle import Model, Row, bindings, derived, model_of, value_of
from tests.plan.building import fails, holds, let, rule
from tests.plan.test_binary import Drawn
from tests.random_programs import generate
from tidelog.plan.executor import RuleForm, Version
from tidelog.plan.lower import plan_form
from tidelog.plan.order import Assumed, Statistics
from tidelog.plan.placement import Copy, Distribution, Key, Skew, distribute, even, pivot
from tidelog.plan.printer import print_rule
from tidelog.program.check import check
from tidelog.program.model import Atom, Const, Literal, Negative, Positive, Program, Rule, Stratum, Var
from tidelog.program.strata import stratify
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse

TASKS = (1, 2, 3)


# --- a machine for distributions ---------------------------------------------------


def owners(copy: Copy, row: Row, tasks: int) -> Iterable[int]:
    """Who keeps a tuple of a copy."""
    if copy.columns is None:
        return range(tasks)
    key = tuple(row[i] for i in copy.columns)
    if key in copy.everywhere:
        return range(tasks)
    return [number_of(row if key in copy.spread else key) % tasks]


def number_of(what: object) -> int:
    return zlib.crc32(repr(what).encode())


def drawn_skew(model: Model) -> Skew:
    """Half of all keys are heavy, by numbers that are drawn."""

    def skew(relation: str, columns: tuple[int, ...]) -> Mapping[Key, float]:
        keys = {tuple(row[i] for i in columns) for row in model.get(relation, ())}
        counts = {key: number_of((relation, columns, key)) % 100 for key in keys}
        return {key: count for key, count in counts.items() if count >= 50}

    return skew


class Task:
    """What one task has: its part of each copy, by version, and what it has derived so far."""

    def __init__(self, distribution: Distribution) -> None:
        self.old: dict[str, set[Row]] = {copy.name: set() for copy in distribution.copies}
        self.delta: dict[str, set[Row]] = {copy.name: set() for copy in distribution.copies}
        self.outbox: dict[str, set[Row]] = {name: set() for name in distribution.derived}

    def rows(self, copy: str, version: Version = Version.ALL) -> set[Row]:
        old = set() if version is Version.DELTA else self.old[copy]
        return old | (set() if version is Version.OLD else self.delta[copy])

    def instances(self, form: RuleForm) -> list[Row]:
        """The head of each instance of a form; every literal reads a relation of its own."""
        body: list[Literal] = []
        model: Model = {}
        for i, (literal, version) in enumerate(zip(form.rule.body, form.reads, strict=True)):
            if isinstance(literal, Positive | Negative):
                model[str(i)] = self.rows(literal.atom.relation, version)
                body.append(replace(literal, atom=Atom(str(i), literal.atom.terms)))
            else:
                body.append(literal)
        envs = bindings(replace(form.rule, body=tuple(body)), model)
        head = [term for term in form.rule.head.terms if isinstance(term, Var | Const)]
        return [tuple(value_of(term, env) for term in head) for env in envs]


class Tasks:
    """A fixpoint that tasks share, run to its end."""

    def __init__(self, distribution: Distribution, given: Mapping[str, set[Row]], count: int) -> None:
        self.distribution = distribution
        self.tasks = [Task(distribution) for _ in range(count)]
        self.instances: Counter[Rule] = Counter()
        below = {name for name in distribution.relations if name not in distribution.derived}
        self._send({name: given[name] for name in below})
        self._settle()
        new = self._send({name: given.get(name, set()) for name in distribution.derived})
        first = True
        while first or new:
            new = self._round(first=first)
            first = False

    def _round(self, *, first: bool) -> bool:
        found: dict[str, set[Row]] = {name: set() for name in self.distribution.derived}
        for task in self.tasks:
            for form in self.distribution.forms:
                if first or Version.DELTA in form.reads:
                    heads = task.instances(form)
                    self.instances[form.rule] += len(heads)
                    found[form.rule.head.relation] |= set(heads) - task.outbox[form.rule.head.relation]
                    task.outbox[form.rule.head.relation] |= set(heads)
        self._settle()
        return self._send(found)

    def _settle(self) -> None:
        for task in self.tasks:
            task.old = {name: rows | task.delta[name] for name, rows in task.old.items()}
            task.delta = {name: set() for name in task.delta}

    def _send(self, rows: Mapping[str, Iterable[Row]]) -> bool:
        """Bring rows to their owners; whether any of them was new there."""
        news = False
        for copy in self.distribution.copies:
            for row in rows.get(copy.relation, ()):
                for owner in owners(copy, row, len(self.tasks)):
                    if row not in self.tasks[owner].old[copy.name]:
                        self.tasks[owner].delta[copy.name].add(row)
                        news = True
        return news

    def answers(self) -> dict[str, set[Row]]:
        """The derived relations, from the first copy of each in which no row is twice."""
        found = {}
        for name in self.distribution.derived:
            copies = [c for c in self.distribution.copies if c.relation == name and c.is_once]
            rows = [row for task in self.tasks for row in task.rows(copies[0].name)]
            found[name] = set(rows)
            assert len(rows) == len(found[name]), f"{copies[0].name} has a row twice"
        return found


def check_copies(tasks: Tasks, model: Mapping[str, set[Row]]) -> None:
    """Each copy has every tuple, at its owners and nowhere else."""
    for copy in tasks.distribution.copies:
        for number, task in enumerate(tasks.tasks):
            mine = {row for row in model[copy.relation] if number in owners(copy, row, len(tasks.tasks))}
            assert task.rows(copy.name) == mine, copy.name


def check_instances(tasks: Tasks, model: Mapping[str, set[Row]]) -> None:
    """Each instance of each rule has been found, by one task, in one round."""
    copies = {copy.name: model[copy.relation] for copy in tasks.distribution.copies}
    for form in tasks.distribution.forms:
        atoms = [literal for literal in form.rule.body if isinstance(literal, Positive)]
        times = 1 if atoms else len(tasks.tasks)
        assert tasks.instances[form.rule] == times * len(bindings(form.rule, copies)), print_rule(form.rule)


def check_stratum(program: Program, stratum: Stratum, model: Model, statistics: Statistics) -> None:
    """The oracle's answers, from the recursive rules behind the others, and from all rules together."""
    facts = {name: {f.row for f in program.facts if f.relation == name} for name in stratum.relations}
    based = {name: set(rows) for name, rows in facts.items()}
    for base in stratum.base:
        based[base.head.relation].update(derived(base, model))
    every = (*stratum.base, *stratum.recursive)
    skewed = drawn_skew(model)
    for rules, own, broadcast, skew in (
        (stratum.recursive, based, 0, even),
        (every, facts, 0, even),
        (every, facts, 500, even),
        (every, facts, 0, skewed),
    ):
        distribution = distribute(rules, program.relations, stratum.relations, statistics, broadcast, skew)
        for form in distribution.forms:
            assert sum(isinstance(literal, Positive | Negative) for literal in form.rule.body) <= 2
            assert plan_form(form, statistics)
        for count in TASKS:
            tasks = Tasks(distribution, {**model, **own}, count)
            answers = tasks.answers()
            assert {name: answers[name] for name in stratum.relations} == {
                name: model[name] for name in stratum.relations
            }
            check_copies(tasks, {**model, **answers})
            check_instances(tasks, {**model, **answers})


def check_program(program: Program, statistics: Statistics) -> None:
    model = model_of(program)
    for stratum in stratify(program):
        if stratum.aggregate is None:
            check_stratum(program, stratum, model, statistics)


# --- programs ----------------------------------------------------------------------

EDGES = " ".join(
    f"edge({x}, {y})." for x, y in ((1, 2), (2, 3), (3, 4), (4, 2), (4, 5), (6, 7), (7, 6), (5, 5))
)
EDGE = f".decl edge(x: number, y: number)\n{EDGES}\n"
PATH = EDGE + ".decl path(x: number, y: number)\npath(x, y) :- edge(x, y).\n"

PROGRAMS = {
    "left": PATH + "path(x, z) :- path(x, y), edge(y, z).",
    "right": PATH + "path(x, z) :- edge(x, y), path(y, z).",
    "nonlinear": PATH + "path(x, z) :- path(x, y), path(y, z).",
    "three": PATH + "path(x, w) :- path(x, y), path(y, z), path(z, w), x != w.",
    "mutual": EDGE
    + """
        .decl odd(x: number, y: number)
        .decl even(x: number, y: number)
        odd(x, y) :- edge(x, y).
        odd(x, z) :- even(x, y), edge(y, z).
        even(x, z) :- odd(x, y), edge(y, z).
        odd(x, w) :- odd(x, y), even(y, z), edge(z, w).
    """,
    "same generation": SAME_GENERATION
    + "edge(1, 2). edge(1, 3). edge(2, 4). edge(3, 5). edge(3, 6). edge(6, 2).",
    "cspa": CSPA
    + "assign(1, 2). assign(2, 3). assign(4, 3). assign(5, 1). dereference(1, 6). dereference(3, 7)."
    + "dereference(4, 8). dereference(6, 2). assign(7, 8).",
    "galen": GALEN
    + "p(1, 2). p(2, 3). p(3, 1). q(1, 1, 2). q(2, 2, 3). c(1, 2, 3). c(2, 3, 1). u(3, 1, 4). u(1, 2, 2)."
    + "s(1, 2). s(2, 3). r(1, 2, 3). r(2, 3, 1). r(3, 1, 1).",
    "negation": PATH
    + """
        .decl blocked(x: number, y: number)
        blocked(4, 2). blocked(5, 1).
        .decl free(x: number, y: number)
        free(x, y) :- edge(x, y), !blocked(x, y).
        free(x, z) :- free(x, y), edge(y, z), !blocked(z, _), !blocked(_, x), !blocked(y, z), !blocked(9, _).
        free(x, x) :- free(x, _), free(_, x), !blocked(_, _).
    """,
    "constants": PATH
    + """
        path(9, z) :- path(1, y), edge(y, z), edge(4, z).
        path(x, 8) :- path(x, y), y = 5, edge(y, y), path(u, x), u = 4.
        path(8, 9) :- path(x, 8), path(9, x).
    """,
    "repeated": PATH
    + """
        path(x, x) :- path(x, y), path(y, x).
        path(y, x) :- path(x, x), edge(x, y), edge(y, y).
    """,
    "product": PATH
    + """
        .decl pair(x: number, y: number)
        pair(1, 2).
        pair(x, y) :- pair(x, _), edge(y, y).
        pair(y, x) :- edge(y, 7), pair(_, x).
        pair(x, z) :- pair(x, x), pair(z, _), edge(z, _).
        pair(x, y) :- pair(5, x), pair(y, 5).
    """,
    "arity 0": EDGE
    + """
        .decl on()
        .decl off()
        .decl seen(x: number)
        seen(1).
        seen(y) :- seen(x), edge(x, y).
        on() :- seen(4), seen(3).
        seen(6) :- on().
        seen(x) :- edge(x, y), on(), seen(y).
        off() :- on(), seen(7).
        on() :- off(), on().
        seen(8) :- on(), off(), seen(_).
    """,
    "expressions": EDGE
    + """
        .decl far(x: number, d: number)
        far(1, 0).
        far(y, d + 1) :- far(x, d), edge(x, y), d < 6.
        far(x, e) :- far(x, d), far(x, d - 1), e = d / (d - 2), d > 2.
        far(x + 1, d) :- far(x, d), edge(x + 1, y), edge(y + 1, _), x < 5.
        far(z, d) :- far(x, d), far(y, d), z = x, z != y, edge(z, y).
        far(x, d) :- edge(u, v), x = u + v, far(x, e), d = e % 3, !edge(x, d + 1).
    """,
    "no atoms": """
        .decl a(x: number)
        .decl b(x: number)
        .decl p(x: number)
        a(3). b(4). p(7).
        p(x) :- x = 1 + 1, !a(x), !b(x).
        p(x) :- x = 1 + 2, !a(x), !b(x).
        p(x) :- x = 2 + 2, !a(x), !b(x).
        p(x) :- x = 2 + 3, !a(x), p(y), y > x.
        p(x) :- x = 2 + 4, !a(x), p(x - 1), !b(_).
    """,
    "strings": """
        .decl word(x: symbol, n: number)
        .decl sub(x: symbol, y: symbol)
        word("a", 1). word("bc", 2). word("abc", 3). word("", 0).
        sub(x, y) :- word(x, n), word(y, m), n < m.
        sub(x, cat(x, y)) :- sub(x, y), word(y, n), word(x, n - 1), strlen(x) < 3.
    """,
    "only heads": EDGE
    + """
        .decl a(x: number)
        .decl b(x: number, y: number)
        a(1).
        a(y) :- a(x), b(x, y).
        b(x, y) :- a(x), edge(x, y), edge(y, _).
    """,
}  # fmt: skip


@pytest.mark.parametrize("tuples", [10_000, 100])
@pytest.mark.parametrize("name", PROGRAMS)
def test_tasks_find_what_the_oracle_finds(name: str, tuples: int) -> None:
    check_program(check(parse(PROGRAMS[name])), Assumed(tuples))


@pytest.mark.parametrize("first", range(0, 75, 25))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 25):
        try:
            program = check(parse(generate(seed).text))
        except ProgramError:
            continue
        try:
            check_program(program, Drawn(seed))
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}") from problem


# --- copies ------------------------------------------------------------------------


def placed(text: str) -> tuple[list[str], list[str]]:
    """The rules of the last stratum's recursion over copies, and the names of all copies."""
    program = check(parse(text))
    stratum = stratify(program)[-1]
    found = distribute(stratum.recursive, program.relations, stratum.relations, Assumed())
    return list(dict.fromkeys(print_rule(form.rule) for form in found.forms)), [c.name for c in found.copies]


def test_closure_is_joined_where_y_is() -> None:
    rules, copies = placed(PROGRAMS["left"])
    assert rules == ["path(x, z) :- path@1(x, y), edge@0(y, z)."]
    assert copies == ["path@1", "edge@0"]


def test_two_copies_of_one_relation() -> None:
    rules, copies = placed(PROGRAMS["nonlinear"])
    assert rules == ["path(x, z) :- path@1(x, y), path@0(y, z)."]
    assert copies == ["path@0", "path@1"]


def test_forms_of_a_join_of_copies() -> None:
    program = check(parse(PROGRAMS["nonlinear"]))
    [stratum] = stratify(program)
    found = distribute(stratum.recursive, program.relations, stratum.relations, Assumed())
    assert [form.reads for form in found.forms] == [
        (Version.DELTA, Version.ALL),
        (Version.OLD, Version.DELTA),
    ]
    assert found.derived == ("path",)


def test_auxiliary_relations_are_derived_too() -> None:
    program = check(parse(PROGRAMS["same generation"]))
    [stratum] = stratify(program)
    [r] = stratum.recursive
    found = distribute(stratum.recursive, program.relations, stratum.relations, Assumed())
    made = f"sg/{r.id}/1"
    assert found.derived == ("sg", made)
    assert [column.name for column in found.relations[made].columns] == ["b", "x"]
    assert [copy.name for copy in found.copies] == ["sg@0", f"{made}@0", "edge@0"]
    assert [form.reads for form in found.forms] == [(Version.DELTA, Version.ALL)] * 2


CHOICE = ".decl p(x: number, y: number)\n.decl e(x: number, y: number)\np(1, 2)."


def test_one_shared_variable_will_do() -> None:
    rules, copies = placed(CHOICE + "p(y, x) :- p(x, y), e(x, y). p(z, y) :- p(x, y), e(z, x).")
    assert rules == ["p(y, x) :- p@0(x, y), e@0(x, y).", "p(z, y) :- p@0(x, y), e@1(z, x)."]
    assert copies == ["p@0", "e@0", "e@1"]


def test_all_shared_variables_where_nothing_speaks_for_one() -> None:
    rules, copies = placed(CHOICE + "p(y, x) :- p(x, y), e(y, x).")
    assert rules == ["p(y, x) :- p@0,1(x, y), e@1,0(y, x)."]
    assert copies == ["p@0,1", "e@1,0"]


def test_keys_in_the_order_that_is_there() -> None:
    _, copies = placed(CHOICE + "p(x, y) :- p(x, y), e(x, y). p(y, x) :- e(x, y), p(x, y), x < y.")
    assert copies == ["p@0,1", "e@0,1"]
    rules, copies = placed(CHOICE + "p(y, x) :- p(y, x), p(x, y).")
    assert rules == ["p(y, x) :- p@0,1(y, x), p@1,0(x, y)."]
    other = ".decl q(x: number, y: number)\np(y, x) :- q(x, y), e(x, y). q(x, y) :- p(x, y), e(y, x)."
    assert placed(CHOICE + other)[1] == ["p@1,0", "q@0,1", "e@0,1"]


def test_a_rule_thinks_again_when_it_knows_what_others_read() -> None:
    text = """
        .decl p(x: number, y: number, z: number)
        .decl e(x: number, y: number)
        .decl f(x: number, y: number)
        p(x, y, 1) :- p(x, y, _), e(x, y).
        p(1, y, z) :- p(_, y, z), f(y, z).
        .decl q(x: number)
        q(y) :- q(x), f(x, y).
        q(x) :- p(x, _, _).
        p(x, x, x) :- q(x).
    """
    assert placed(text)[1] == ["p@1", "q@0", "e@1", "f@0"]


def test_negation_is_placed_by_what_is_bound() -> None:
    rules, copies = placed(CHOICE + "p(y, x) :- p(x, y), !e(y, _).")
    assert rules == ["p(y, x) :- p@1(x, y), not e@0(y, _)."]
    rules, copies = placed(CHOICE + "p(y, x) :- p(x, y), !e(3, _).")
    assert rules == ["p(y, x) :- p@0,1(x, y), not e@*(3, _)."]
    assert copies == ["p@0,1", "e@*"]


def test_a_product_has_one_side_whole() -> None:
    rules, copies = placed(CHOICE + ".decl f(x: number)\np(x, y) :- f(x), p(_, y).")
    assert rules == ["p(x, y) :- p@0,1(_, y), f@*(x)."]
    assert copies == ["p@0,1", "f@*"]
    rules, copies = placed(CHOICE + "p(u, y) :- p(x, u), p(v, y), x < v.")
    assert rules == ["p(u, y) :- p@0,1(x, u), p@*(v, y), x < v."]
    assert copies == ["p@0,1", "p@*"]


def test_of_a_product_tasks_have_no_more_than_they_need() -> None:
    rules, copies = placed(CHOICE + "p(x, y) :- p(x, 5), p(_, y).")
    assert rules == ["p/1/1(y) :- p@0,1(_, y).", "p(x, y) :- p@0,1(x, 5), p/1/1@*(y)."]
    assert copies == ["p@0,1", "p/1/1@0", "p/1/1@*"]
    rules, copies = placed(CHOICE + "p(y, x) :- p(x, y), e(7, 8).")
    assert rules == ["p/1/1() :- e@0,1(7, 8).", "p(y, x) :- p@0,1(x, y), p/1/1@*()."]
    assert copies == ["p@0,1", "p/1/1@", "p/1/1@*", "e@0,1"]


def test_small_relations_are_joined_whole() -> None:
    program = check(parse(CHOICE + "p(x, z) :- p(x, y), e(y, z). p(y, x) :- p(x, y), !e(x, y)."))
    [stratum] = stratify(program)
    found = distribute(stratum.recursive, program.relations, ("p",), Assumed(99), broadcast=100)
    assert [copy.name for copy in found.copies] == ["p@0,1", "e@*"]
    found = distribute(stratum.recursive, program.relations, ("p",), Assumed(100), broadcast=100)
    assert [copy.name for copy in found.copies] == ["p@1", "e@0", "e@1"]
    program = check(parse(CHOICE + "p(x, z) :- e(x, y), p(y, z)."))
    found = distribute(program.rules, program.relations, ("p",), Assumed(99), broadcast=100)
    assert [copy.name for copy in found.copies] == ["p@0,1", "e@*"]


def skewed(text: str, heavy: Mapping[str, Mapping[int, float]]) -> list[Copy]:
    """The copies of the last stratum's recursion; `heavy` are values of single columns, as in "path@1"."""
    program = check(parse(text))
    stratum = stratify(program)[-1]

    def skew(relation: str, columns: tuple[int, ...]) -> Mapping[Key, float]:
        return {(value,): count for value, count in heavy.get(Copy(relation, columns).name, {}).items()}

    found = distribute(stratum.recursive, program.relations, stratum.relations, Assumed(), 0, skew)
    return list(found.copies)


def test_a_heavy_key_is_spread_where_there_are_more_of_it() -> None:
    one, two = frozenset([(1,)]), frozenset([(2,)])
    assert skewed(PROGRAMS["left"], {"edge@0": {1: 9, 2: 5}, "path@1": {2: 6}}) == [
        Copy("path", (0, 1)),  # has each tuple once
        Copy("path", (1,), two, one),
        Copy("edge", (0,), one, two),
    ]


def test_a_join_with_itself_needs_both() -> None:
    text = EDGE + ".decl p(x: number, y: number)\np(x, y) :- edge(x, y).\np(x, y) :- p(z, x), p(z, y)."
    heavy = frozenset([(4,)])
    spread, everywhere = Copy("p", (0,), heavy), Copy("p", (0,), frozenset(), heavy)
    assert skewed(text, {}) == [Copy("p", (0,))]
    assert skewed(text, {"p@0": {4: 7}}) == [spread, everywhere]
    assert (spread.name, everywhere.name) == ("p@0+(4,)", "p@0*(4,)")


def test_what_is_negated_is_never_spread() -> None:
    text = PATH + ".decl shut(x: number, y: number)\nshut(1, 2).\npath(y, x) :- path(x, y), !shut(x, _)."
    heavy = frozenset([(3,)])
    assert Copy("shut", (0,)) in skewed(text, {"shut@0": {3: 9}})
    assert Copy("shut", (0,), frozenset(), heavy) in skewed(text, {"shut@0": {3: 9}, "path@0": {3: 1}})


def test_a_relation_without_columns_has_one_owner() -> None:
    text = ".decl on()\n.decl p(x: number)\np(1). on() :- p(x), x > 3. p(x) :- on(), p(x). p(5) :- on()."
    rules, copies = placed(text)
    assert rules == ["on() :- p@0(x), x > 3.", "p(x) :- p@0(x), on@*().", "p(5) :- on@()."]
    assert copies == ["on@", "on@*", "p@0"]


def test_joins_below_are_read_once() -> None:
    """`f` waits for `n - 1`: number and its guard are joined before, without recursion."""
    text = """
        .decl number_(n: number)
        .decl guard(n: number)
        .decl f(n: number)
        f(n) :- number_(n), guard(n), f(n - 1).
    """
    program = check(parse(text))
    [stratum] = stratify(program)
    found = distribute(stratum.recursive, program.relations, stratum.relations, Assumed())
    assert [form.reads.count(Version.DELTA) for form in found.forms] == [0, 1, 1]


# --- pivots ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule("p x z", holds("p x y"), holds("e y z"))], {"p": 0}),
        ([rule("p x z", holds("e x y"), holds("p y z"))], {"p": 1}),
        ([rule("p x z", holds("p x y"), holds("p y z"))], None),
        ([rule("p x y z", holds("p x y u"), holds("p x v z"))], {"p": 0}),
        ([rule("p y x", holds("p x y"))], None),
        ([rule("p x y", holds("p x y")), rule("p z y", holds("p x y"), holds("e z x"))], {"p": 1}),
        ([rule("p 3 y", holds("p x y"), holds("e x y"))], {"p": 1}),
        ([rule("p x 3", holds("p x 3"))], {"p": 0}),
        ([rule("p 3", holds("p 3"))], None),
        ([rule("p x", holds("p _"), holds("e x"))], None),
        ([rule("p", holds("p"))], None),
        ([rule("p x y", holds("e x y")), rule("p x y", holds("p x y"), fails("e x y"))], {"p": 0}),
        ([rule("p x y", holds("p x z"), let("y", "z"))], {"p": 0}),
    ],
)
def test_the_pivot_of_one_relation(rules: Sequence[Rule], expected: Mapping[str, int] | None) -> None:
    assert pivot(rules, ("p",)) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule("p x z", holds("q y x"), holds("e y z")), rule("q z x", holds("p x y"), holds("e y z"))],
         {"p": 0, "q": 1}),
        ([rule("p x z", holds("q y x"), holds("e y z")), rule("q x z", holds("p x y"))], None),
        # q(x, x): either column could be the one, but p is handed on from the second alone
        ([rule("p x", holds("q x x")), rule("q z x", holds("p x"), holds("e z"))], {"p": 0, "q": 1}),
        ([rule("p x", holds("q x x"), holds("p x")), rule("q x x", holds("p x"))], {"p": 0, "q": 0}),
        ([rule("p x y", holds("q y"), holds("e x")), rule("q y", holds("p y x"))], None),
        ([rule("p x y", holds("p x y"))], None),
    ],
)  # fmt: skip
def test_the_pivots_of_two_relations(rules: Sequence[Rule], expected: Mapping[str, int] | None) -> None:
    assert pivot(rules, ("p", "q")) == expected


def test_the_pivots_of_many_relations() -> None:
    """Each determines the next, so that a long cycle is no work."""
    names = [f"r{i}" for i in range(1500)]
    rules = [rule(f"{b} x z", holds(f"{a} x y"), holds("e y z")) for a, b in pairwise(names)]
    back = rule("r0 x z", holds("r1499 x y"), holds("e y z"))
    assert pivot([*rules, back], names) == dict.fromkeys(names, 0)
    back = rule("r0 z x", holds("r1499 x y"), holds("e y z"))
    assert pivot([*rules, back], names) is None


def pivot_of(text: str) -> Mapping[str, int] | None:
    stratum = stratify(check(parse(text)))[-1]
    return pivot(stratum.recursive, stratum.relations)


def test_pivots_of_programs() -> None:
    assert pivot_of(PROGRAMS["left"]) == {"path": 0}
    assert pivot_of(PROGRAMS["right"]) == {"path": 1}
    assert pivot_of(PROGRAMS["nonlinear"]) is None
    assert pivot_of(PROGRAMS["cspa"]) is None


def test_a_task_with_a_pivot_needs_no_other() -> None:
    """Each task begins with its values of the pivot, and together they have what one would find."""
    tried = 0
    for seed in range(100):
        try:
            program = check(parse(generate(seed).text))
        except ProgramError:
            continue
        model = model_of(program)
        for stratum in stratify(program):
            columns = pivot(stratum.recursive, stratum.relations) if stratum.recursive else None
            if columns is None:
                continue
            tried += 1
            given = {f: {x.row for x in program.facts if x.relation == f} for f in stratum.relations}
            for base in stratum.base:
                given[base.head.relation].update(derived(base, model))
            values = {row[columns[name]] for name, rows in given.items() for row in rows}
            found: Model = {name: set() for name in stratum.relations}
            for value in values:
                mine = {**model}
                for name, rows in given.items():
                    mine[name] = {row for row in rows if row[columns[name]] == value}
                size = -1
                while size != (size := sum(len(mine[name]) for name in given)):
                    for r in stratum.recursive:
                        mine[r.head.relation] = mine[r.head.relation] | set(derived(r, mine))
                for name in given:
                    assert {row[columns[name]] for row in mine[name]} <= {value}
                    found[name] |= mine[name]
            assert found == {name: model[name] for name in stratum.relations}
    assert tried > 10
