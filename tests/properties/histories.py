"""Random histories: a program, and a sequence of transactions that change its facts and its rules.

A history is generated with a pool of rules that fit together in any number: they keep to
the layers of the program, so that any subset of them is safe, typed and stratified. Some of
the pool are there from the beginning; transactions add others and remove some. Rules of
the pool may derive relations that no rule read or derived before.

Facts change at random, in derived relations too: inserted, deleted, deleted and inserted
again, inserted where they are already, deleted where they are not. Some transactions are rolled
back, and some fail. A seed always gives the same history.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from tests.random_programs import FLOAT, NUMBER, STRINGS, Generator, PartialRule, RandomRelation
from tidelog.program.model import Value

VARIABLE = re.compile(r"\b([nsf]\d+|[wxyz])\b")

Row = tuple[Value, ...]
Facts = frozenset[tuple[str, Row]]


@dataclass(frozen=True)
class Insert:
    relation: str
    row: Row


@dataclass(frozen=True)
class Delete:
    relation: str
    row: Row


@dataclass(frozen=True)
class AddRule:
    """Add a rule; `declarations` are of relations that come with it."""

    rule: str
    declarations: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join((*self.declarations, self.rule))


@dataclass(frozen=True)
class RemoveRule:
    rule: str


Operation = Insert | Delete | AddRule | RemoveRule
FAILING = 2  # so many operations at the end of a transaction make it fail


@dataclass(frozen=True)
class Transaction:
    """Operations, in order. They are committed, rolled back, or end in an operation that must fail.

    `turn` says which algorithm has its turn when algorithms take turns.
    """

    operations: tuple[Operation, ...]
    ending: str = "commit"  # or "rollback", or "failure"
    turn: int = 0


@dataclass(frozen=True)
class State:
    """What a transaction leaves: the rules, in the order they came, and the explicit facts.

    `missing` are the relations that have not been declared so far.
    """

    rules: tuple[str, ...]
    facts: Facts = frozenset()
    missing: frozenset[str] = frozenset()

    def after(self, operation: Operation) -> State:
        """The state that an operation makes of this one."""
        match operation:
            case Insert(relation, row):
                return replace(self, facts=self.facts | {(relation, row)})
            case Delete(relation, row):
                return replace(self, facts=self.facts - {(relation, row)})
            case AddRule(rule):
                missing = self.missing - names_in(rule)
                return replace(self, rules=(*self.rules, rule), missing=missing)
            case RemoveRule(rule):
                return replace(self, rules=tuple(other for other in self.rules if other != rule))


@dataclass(frozen=True)
class History:
    """A program and what happens to it. `declarations` are for every rule that may come.

    With `declared` false the database is not given the declarations: types come with facts and rules.
    Otherwise those of the relations in `late` come with the first rule that needs them. `facts` are
    written in the program.
    """

    seed: int
    declarations: tuple[str, ...]
    rules: tuple[str, ...]
    transactions: tuple[Transaction, ...]
    declared: bool = True
    late: frozenset[str] = frozenset()
    facts: tuple[tuple[str, Row], ...] = ()

    @property
    def text(self) -> str:
        """The program that the database begins with."""
        first = [line for line in self.declarations if self.declared and not names_in(line) & self.late]
        return "\n".join((*first, *self.rules, *(written(name, row) for name, row in self.facts), ""))

    @property
    def beginning(self) -> State:
        """The state before the first transaction."""
        return State(self.rules, frozenset(self.facts), self.late)

    def adding(self, rule: str, state: State) -> AddRule:
        """The operation that adds a rule in a state."""
        needed = names_in(rule) & state.missing
        return AddRule(rule, tuple(line for line in self.declarations if names_in(line) & needed))

    def states(self) -> list[State]:
        """The state at the beginning, and after each transaction."""

        def next_state(state: State, transaction: Transaction) -> State:
            if transaction.ending == "commit":
                for operation in transaction.operations:
                    state = state.after(operation)
            return state

        return list(accumulate(self.transactions, next_state, initial=self.beginning))

    def regrouped(self, sizes: Iterable[int]) -> History:
        """The same operations in the same order, in transactions of other sizes; the last takes the rest.

        What is rolled back or fails is left out.
        """
        committed = [t.operations for t in self.transactions if t.ending == "commit"]
        operations = list(chain.from_iterable(committed))
        groups = []
        for size in sizes:
            groups.append(tuple(operations[:size]))
            del operations[:size]
        groups.append(tuple(operations))
        turns = random.Random(self.seed)
        transactions = [Transaction(group, turn=turns.randrange(1000)) for group in groups if group]
        return replace(self, transactions=tuple(transactions))


def written(relation: str, row: Row) -> str:
    """A fact, as a program has it."""
    values = (f'"{value}"' if isinstance(value, str) else repr(value) for value in row)
    return f"{relation}({', '.join(values)})."


def names_in(text: str) -> set[str]:
    """The relations that a rule or a declaration speaks of."""
    return set(re.findall(r"\b[A-Za-z]\d?_[a-d]\b", text))


def generate_history(seed: int, *, recursive: bool = True) -> History:
    """The history of a seed; another one without recursion."""
    return _Histories(seed, recursive).history()


def splits(history: History) -> list[History]:
    """The history in other transactions: all in one, one for each operation, and at random."""
    draw = random.Random(history.seed)
    count = sum(len(t.operations) for t in history.transactions if t.ending == "commit")
    return [
        history.regrouped([]),
        history.regrouped([1] * count),
        history.regrouped([draw.randint(1, 6) for _ in range(count)]),
    ]


def _different(rules: list[str]) -> list[str]:
    """The rules without those that differ from another one only in the names of variables."""
    found: dict[str, str] = {}
    for rule in rules:
        texts = re.split(VARIABLE, rule)  # every second one is a variable
        names = list(dict.fromkeys(texts[1::2]))
        texts[1::2] = [f"v{names.index(name)}" for name in texts[1::2]]
        found.setdefault("".join(texts), rule)
    return list(found.values())


class _Histories(Generator):
    def __init__(self, seed: int, recursive: bool) -> None:
        super().__init__(seed, numbers=5, negated=0.35)
        self.recursive = recursive
        self.declared = self.souffle is False or self.random.random() < 0.6
        self.relations: list[RandomRelation] = []
        self.inputs: list[RandomRelation] = []
        self.focus: list[int] = []

    # --- the program and its pool -------------------------------------------------

    def history(self) -> History:
        self.inputs = [self.relation("e", i) for i in range(self.random.randint(2, 3))]
        below, pool, first = list(self.inputs), list[str](), list[str]()
        for layer in range(self.random.choice((1, 1, 2, 2, 3))):
            group = [self.relation(f"r{layer}", i) for i in range(self.random.choice((1, 1, 1, 2, 2, 3)))]
            for relation in group:
                own = group if self.recursive else []
                rules = [*self.rules_of(relation, below, own), *self.usual(relation, below, own)]
                pool += rules
                if self.random.random() < 0.85:  # else the whole relation comes later, if at all
                    first += [rule for rule in rules if self.random.random() < 0.8]
            below += group
        self.relations = below
        if self.random.random() < 0.1:
            first = []
        pool = _different(pool)
        first = [rule for rule in pool if rule in first]
        lines = [line for r in below for line in self.declare(r, "input" if r in self.inputs else "output")]
        late = {r.name for r in below if r not in self.inputs} - names_in(" ".join(first))
        if not self.declared or self.random.random() < 0.3:
            late = set()
        facts: list[tuple[str, Row]] = []
        if self.random.random() < 0.25:
            here = [
                r for r in below if r in self.inputs or (r.name not in late and self.random.random() < 0.2)
            ]
            facts = [(r.name, row) for r in here for row in self.rows(r, 1, 4)]
        history = History(
            self.seed, tuple(lines), tuple(first), (), self.declared, frozenset(late), tuple(facts)
        )
        return replace(history, transactions=tuple(self.transactions(history, pool)))

    def relation(self, prefix: str, index: int) -> RandomRelation:
        """Many relations are graphs: recursion is not much without them."""
        drawn = super().relation(prefix, index)
        return replace(drawn, types=(NUMBER, NUMBER)) if self.random.random() < 0.35 else drawn

    def usual(
        self, relation: RandomRelation, below: list[RandomRelation], group: list[RandomRelation]
    ) -> list[str]:
        """Rules that people write: closures, symmetry, mutual recursion. Random ones seldom are."""
        same = [r for r in below if r.types == relation.types]
        own = [r for r in group if r.types == relation.types]
        if len(relation.types) != 2 or not same or self.random.random() < 0.2:
            return []
        a, b, c = relation.name, self.random.choice(same).name, self.random.choice(own or same).name
        d, no = self.random.choice(same).name, "!" if self.souffle else "not "
        rules = [f"{a}(x, y) :- {b}(x, y)."]
        if relation.types[0] == relation.types[1]:
            closures = (
                f"{a}(x, z) :- {c}(x, y), {b}(y, z).",
                f"{a}(x, z) :- {b}(x, y), {c}(y, z).",
                f"{a}(x, z) :- {c}(x, y), {a if own else b}(y, z).",
                f"{a}(x, y) :- {c}(y, x).",
                f"{a}(x, y) :- {c}(y, x), {a if own else b}(x, x).",
                f"{a}(x, w) :- {b}(x, y), {c}(y, z), {b}(w, z).",
                f"{a}(x, z) :- {c}(x, y), {no}{d}(x, z), {b}(y, z).",
                f"{a}(x, z) :- {no}{d}(y, y), {b}(x, y), {c}(y, z).",
            )
            rules += self.random.sample(closures, self.random.randint(1, 2))
        return rules

    def variable(self, rule: PartialRule, type: str, before: dict[str, list[str]]) -> str:
        """Third atoms are joined with the others: a product of three is large even of small relations."""
        if len(rule.literals) > 1 and before[type] and self.random.random() < 0.7:
            return self.random.choice(before[type])
        return super().variable(rule, type, before)

    # --- transactions -------------------------------------------------------------

    def transactions(self, history: History, pool: list[str]) -> list[Transaction]:
        state = history.beginning
        filled: list[Operation] = [Insert(r.name, row) for r in self.inputs for row in self.rows(r, 3, 9)]
        made = [Transaction(tuple(filled), turn=self.random.randrange(1000))] if filled else []
        for operation in filled:
            state = state.after(operation)
        for _ in range(self.random.randint(3, 8) - len(made)):
            ending = self.random.choices(("commit", "rollback", "failure"), (0.86, 0.07, 0.07))[0]
            operations: list[Operation] = []
            reached = state
            self.focus = self.random.sample(self.numbers, 2)
            for _ in range(self.random.choice((1, 1, 2, 3, 4, 6))):
                for operation in self.operations(history, reached, pool):
                    operations.append(operation)
                    reached = reached.after(operation)
            if ending == "failure":
                operations += self.failing(reached)
            made.append(Transaction(tuple(operations), ending, self.random.randrange(1000)))
            state = reached if ending == "commit" else state
        return made

    def operations(self, history: History, state: State, pool: list[str]) -> list[Operation]:
        """One operation, or a few that belong together."""
        others = [rule for rule in pool if rule not in state.rules]
        chance = self.random.random()
        if chance < 0.16 and others:
            return [history.adding(self.random.choice(others), state)]
        if chance < 0.28 and state.rules:
            return [RemoveRule(self.random.choice(state.rules))]
        if chance < 0.31 and state.rules:  # taken away and put back
            rule = self.random.choice(state.rules)
            return [RemoveRule(rule), AddRule(rule)]
        derived = [r for r in self.relations if r not in self.inputs and r.name not in state.missing]
        relation = self.random.choice(self.inputs if not derived or self.random.random() < 0.8 else derived)
        known = sorted(row for name, row in state.facts if name == relation.name)
        row = self.random.choice(known) if known and self.random.random() < 0.5 else self.row(relation)
        insert, delete = Insert(relation.name, row), Delete(relation.name, row)
        if chance < 0.36:
            return [delete, insert]
        if chance < 0.41:
            return [insert, delete]
        if chance < 0.44:
            return [Delete(relation.name, row) for row in known]
        if chance < 0.52 and row and row in known:  # so that what comes back is joined with what is new
            place = self.random.randrange(len(row))
            other = (*row[:place], self.value(relation.types[place]), *row[place + 1 :])
            return [delete, Insert(relation.name, other)]
        return [delete if row in known and self.random.random() < 0.85 else insert]

    def failing(self, state: State) -> list[Operation]:
        """Operations after which the transaction cannot be committed."""
        relation = self.random.choice(self.inputs)
        derived = self.random.choice([r for r in self.relations if r.name not in state.missing])
        row = self.row(relation)
        blanks = ", ".join("_" for _ in relation.types)
        atom, head = f"{relation.name}({blanks})", f"{derived.name}({self.constants(derived)})"
        no = "!" if self.souffle else "not "
        wrong: list[Operation] = [
            Insert(relation.name, (*row, 1)),  # too many columns
            AddRule(f"{head} :- {atom}, {no}{head}."),  # not stratified
            AddRule(f"{head} :- {atom}, unbound < 3."),
            AddRule(f"{head} :- {atom[:-1]}."),  # no closing parenthesis
        ]
        if self.declared:
            wrong.append(Insert("missing", row))
        if NUMBER in relation.types:  # fails when it is evaluated, on any row
            place = relation.types.index(NUMBER)
            terms = ", ".join("x" if i == place else "_" for i in range(len(relation.types)))
            wrong += [AddRule(f"{head} :- {relation.name}({terms}), 1 / (x - x) > 0.")] * 3
        return [Insert(relation.name, row), self.random.choice(wrong)]

    def constants(self, relation: RandomRelation) -> str:
        return ", ".join(map(self.constant, relation.types))

    def rows(self, relation: RandomRelation, least: int, most: int) -> list[Row]:
        count = 0 if self.random.random() < 0.05 else self.random.randint(least, most)
        return list(dict.fromkeys(self.row(relation) for _ in range(count)))

    def row(self, relation: RandomRelation) -> Row:
        return tuple(map(self.value, relation.types))

    def value(self, type: str) -> Value:
        if type == NUMBER:  # changes of one transaction often concern the same instances
            focus = self.focus and self.random.random() < 0.6
            return self.random.choice(self.focus if focus else self.numbers)
        return self.random.choice((0.5, 1.0, 2.25)) if type == FLOAT else self.random.choice(STRINGS)
