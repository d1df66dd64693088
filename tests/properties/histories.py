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
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from tests.random_programs import FLOAT, NUMBER, STRINGS, Generator, PartialRule, RandomRelation
from tidelog.program.model import Value

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
    rule: str


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
    """What a transaction leaves: the rules, in the order they came, and the explicit facts."""

    rules: tuple[str, ...]
    facts: Facts

    def after(self, operation: Operation) -> State:
        """The state that an operation makes of this one."""
        match operation:
            case Insert(relation, row):
                return replace(self, facts=self.facts | {(relation, row)})
            case Delete(relation, row):
                return replace(self, facts=self.facts - {(relation, row)})
            case AddRule(rule):
                return replace(self, rules=(*self.rules, rule))
            case RemoveRule(rule):
                return replace(self, rules=tuple(other for other in self.rules if other != rule))


@dataclass(frozen=True)
class History:
    """A program and what happens to it. `declarations` are for every rule that may come.

    With `declared` false the database is not given the declarations: types come with facts and rules.
    """

    seed: int
    declarations: tuple[str, ...]
    rules: tuple[str, ...]
    transactions: tuple[Transaction, ...]
    declared: bool = True

    def states(self) -> list[State]:
        """The state at the beginning, and after each transaction."""

        def next_state(state: State, transaction: Transaction) -> State:
            if transaction.ending == "commit":
                for operation in transaction.operations:
                    state = state.after(operation)
            return state

        return list(accumulate(self.transactions, next_state, initial=State(self.rules, frozenset())))

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


def generate_history(seed: int) -> History:
    """The history of a seed."""
    return _Histories(seed).history()


def splits(history: History) -> list[History]:
    """The history in other transactions: all in one, one for each operation, and at random."""
    draw = random.Random(history.seed)
    count = sum(len(t.operations) for t in history.transactions if t.ending == "commit")
    return [
        history.regrouped([]),
        history.regrouped([1] * count),
        history.regrouped([draw.randint(1, 6) for _ in range(count)]),
    ]


class _Histories(Generator):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, numbers=5)
        self.declared = self.souffle is False or self.random.random() < 0.6
        self.relations: list[RandomRelation] = []
        self.inputs: list[RandomRelation] = []

    # --- the program and its pool -------------------------------------------------

    def history(self) -> History:
        self.inputs = [self.relation("e", i) for i in range(self.random.randint(2, 3))]
        below, pool, first = list(self.inputs), list[str](), list[str]()
        for layer in range(self.random.randint(1, 3)):
            group = [self.relation(f"r{layer}", i) for i in range(self.random.choice((1, 1, 2, 3)))]
            for relation in group:
                rules = [*self.rules_of(relation, below, group), *self.usual(relation, below, group)]
                pool += rules
                if self.random.random() < 0.85:  # else the whole relation comes later, if at all
                    first += [rule for rule in rules if self.random.random() < 0.8]
            below += group
        self.relations = below
        if self.random.random() < 0.1:
            first = []
        pool, first = list(dict.fromkeys(pool)), list(dict.fromkeys(first))
        lines = [line for r in below for line in self.declare(r, "input" if r in self.inputs else "output")]
        transactions = self.transactions(State(tuple(first), frozenset()), pool)
        return History(self.seed, tuple(lines), tuple(first), tuple(transactions), self.declared)

    def usual(
        self, relation: RandomRelation, below: list[RandomRelation], group: list[RandomRelation]
    ) -> list[str]:
        """Rules that people write: closures, symmetry, mutual recursion. Random ones seldom are."""
        same = [r for r in below if r.types == relation.types]
        own = [r for r in group if r.types == relation.types]
        if len(relation.types) != 2 or not same or self.random.random() < 0.3:
            return []
        a, b, c = relation.name, self.random.choice(same).name, self.random.choice(own).name
        rules = [f"{a}(x, y) :- {b}(x, y)."]
        if relation.types[0] == relation.types[1]:
            closures = (
                f"{a}(x, z) :- {c}(x, y), {b}(y, z).",
                f"{a}(x, z) :- {b}(x, y), {c}(y, z).",
                f"{a}(x, z) :- {c}(x, y), {a}(y, z).",
                f"{a}(x, y) :- {c}(y, x).",
                f"{a}(x, w) :- {b}(x, y), {c}(y, z), {b}(w, z).",
            )
            rules += self.random.sample(closures, self.random.randint(1, 2))
        return rules

    def variable(self, rule: PartialRule, type: str, before: dict[str, list[str]]) -> str:
        """Third atoms are joined with the others: a product of three is large even of small relations."""
        if len(rule.literals) > 1 and before[type] and self.random.random() < 0.7:
            return self.random.choice(before[type])
        return super().variable(rule, type, before)

    # --- transactions -------------------------------------------------------------

    def transactions(self, state: State, pool: list[str]) -> list[Transaction]:
        filled: list[Operation] = [Insert(r.name, row) for r in self.inputs for row in self.rows(r, 3, 9)]
        made = [Transaction(tuple(filled), turn=self.random.randrange(1000))] if filled else []
        for operation in filled:
            state = state.after(operation)
        for _ in range(self.random.randint(3, 8) - len(made)):
            ending = self.random.choices(("commit", "rollback", "failure"), (0.86, 0.07, 0.07))[0]
            operations: list[Operation] = []
            reached = state
            for _ in range(self.random.choice((1, 1, 2, 3, 4, 6))):
                for operation in self.operations(reached, pool):
                    operations.append(operation)
                    reached = reached.after(operation)
            if ending == "failure":
                operations += self.failing()
            made.append(Transaction(tuple(operations), ending, self.random.randrange(1000)))
            state = reached if ending == "commit" else state
        return made

    def operations(self, state: State, pool: list[str]) -> list[Operation]:
        """One operation, or a few that belong together."""
        others = [rule for rule in pool if rule not in state.rules]
        chance = self.random.random()
        if chance < 0.16 and others:
            return [AddRule(self.random.choice(others))]
        if chance < 0.28 and state.rules:
            return [RemoveRule(self.random.choice(state.rules))]
        if chance < 0.31 and state.rules:  # taken away and put back
            rule = self.random.choice(state.rules)
            return [RemoveRule(rule), AddRule(rule)]
        derived = [r for r in self.relations if r not in self.inputs]
        relation = self.random.choice(self.inputs if self.random.random() < 0.8 else derived)
        known = sorted(row for name, row in state.facts if name == relation.name)
        row = self.random.choice(known) if known and self.random.random() < 0.5 else self.row(relation)
        insert, delete = Insert(relation.name, row), Delete(relation.name, row)
        if chance < 0.36:
            return [delete, insert]
        if chance < 0.41:
            return [insert, delete]
        if chance < 0.44:
            return [Delete(relation.name, row) for row in known]
        return [delete if row in known and self.random.random() < 0.85 else insert]

    def failing(self) -> list[Operation]:
        """Operations after which the transaction cannot be committed."""
        relation = self.random.choice(self.inputs)
        derived = self.random.choice([r for r in self.relations if r not in self.inputs])
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
        if type == NUMBER:
            return self.random.choice(self.numbers)
        return self.random.choice((0.5, 1.0, 2.25)) if type == FLOAT else self.random.choice(STRINGS)
