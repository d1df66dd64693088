"""Random programs, as text, in both dialects.

A program has input relations with facts and a few layers of derived relations.
The relations of a layer may read one another (linear, non-linear and mutual
recursion); negation and aggregates read lower layers only, so every program is
stratified. Computed numbers and strings are bounded by a condition beside them,
so every fixpoint is finite. A seed always gives the same program. `tests.properties.histories`
makes sequences of commits with the same generator.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

NUMBERS = range(7)
STRINGS = ("a", "b", "c", "ab", "")
NUMBER, STRING, FLOAT = "number", "string", "float"
LARGEST = 9


@dataclass(frozen=True)
class RandomRelation:
    name: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class RandomProgram:
    """A program as lines, so that a failing one can be made smaller by dropping some."""

    seed: int
    declarations: tuple[str, ...]
    rules: tuple[str, ...]
    facts: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join((*self.declarations, *self.rules, *self.facts)) + "\n"


@dataclass
class PartialRule:
    """A body under construction: its literals, and its variables by type."""

    literals: list[str] = field(default_factory=list)
    bound: dict[str, list[str]] = field(default_factory=lambda: {NUMBER: [], STRING: [], FLOAT: []})


def generate(seed: int) -> RandomProgram:
    """The program of a seed."""
    return Generator(seed).program()


class Generator:
    """Draws relations, facts and rules.

    The numbers among the constants are those below `numbers`; `negated` is how many of the rules
    have a negated atom.
    """

    def __init__(self, seed: int, numbers: int = len(NUMBERS), negated: float = 0.2) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.souffle = self.random.random() < 0.5
        self.numbers, self.negated = range(numbers), negated
        self.fresh = 0

    # --- the whole ---------------------------------------------------------------

    def program(self) -> RandomProgram:
        inputs = [self.relation("e", i) for i in range(self.random.randint(2, 4))]
        below, derived, rules = list(inputs), [], []
        for layer in range(self.random.randint(1, 4)):
            group = [self.relation(f"r{layer}", i) for i in range(self.random.choice((1, 1, 2, 3)))]
            for relation in group:
                rules += self.rules_of(relation, below, group)
            below += group
            derived += group
        facts = [line for relation in inputs for line in self.facts_of(relation, 5, 25)]
        if self.random.random() < 0.3:  # a relation may be both given and derived
            facts += self.facts_of(self.random.choice(derived), 1, 3)
        declarations = [line for r in inputs for line in self.declare(r, "input")]
        declarations += [line for r in derived for line in self.declare(r, "output")]
        return RandomProgram(self.seed, tuple(declarations), tuple(rules), tuple(facts))

    def relation(self, prefix: str, index: int) -> RandomRelation:
        arity = self.random.choice((1, 2, 2, 2, 3))
        if prefix != "e" and self.random.random() < 0.05:
            arity = 0
        types = tuple(self.random.choice((NUMBER, NUMBER, STRING)) for _ in range(arity))
        if prefix != "e" and self.random.random() < 0.15:  # filled by means
            types = (*types[:2], FLOAT)
        name = f"{prefix}_{'abcd'[index]}"
        return RandomRelation(name if self.souffle else name.capitalize(), types)

    def declare(self, relation: RandomRelation, role: str) -> list[str]:
        souffle = {NUMBER: "number", STRING: "symbol", FLOAT: "float"}
        ddlog = {NUMBER: "s64", STRING: "string", FLOAT: "double"}
        names = souffle if self.souffle else ddlog
        columns = ", ".join(f"c{i}: {names[t]}" for i, t in enumerate(relation.types))
        if self.souffle:
            return [f".decl {relation.name}({columns})", f".{role} {relation.name}"]
        return [f"{role} relation {relation.name}({columns})"]

    def facts_of(self, relation: RandomRelation, least: int, most: int) -> list[str]:
        count = 0 if self.random.random() < 0.03 else self.random.randint(least, most)
        lines = (f"{relation.name}({', '.join(map(self.constant, relation.types))})." for _ in range(count))
        return list(dict.fromkeys(lines))  # each line once, in the order made

    def constant(self, type: str) -> str:
        if type == NUMBER:
            return str(self.random.choice(self.numbers))
        if type == STRING:
            return f'"{self.random.choice(STRINGS)}"'
        return self.random.choice(("0.5", "1.0", "2.25"))

    # --- rules -------------------------------------------------------------------

    def rules_of(
        self, relation: RandomRelation, below: list[RandomRelation], group: list[RandomRelation]
    ) -> list[str]:
        rules = [self.rule(relation, below, [])]
        for _ in range(self.random.choice((0, 1, 1, 2))):
            recursive = self.random.random() < 0.7
            rules.append(self.rule(relation, below, group if recursive else []))
        return rules

    def rule(self, head: RandomRelation, below: list[RandomRelation], group: list[RandomRelation]) -> str:
        rule = PartialRule()
        for i in range(self.random.choice((1, 2, 2, 3))):
            pool = group if group and (i == 0 or self.random.random() < 0.3) else below
            self.atom(rule, self.random.choice(pool))
        if self.random.random() < 0.3:
            self.compute(rule)
        if self.random.random() < 0.2:
            self.compare(rule)
        if self.random.random() < self.negated:
            self.negate(rule, self.random.choice(below))
        if not group and self.random.random() < 0.35:
            self.aggregate(rule, self.random.choice(below))
        terms = [self.head_term(rule, type) for type in head.types]
        self.random.shuffle(rule.literals)
        if not self.souffle:  # `var` and group_by see what stands before them
            rule.literals.sort(key=lambda literal: literal.startswith("var "))
        return f"{head.name}({', '.join(terms)}) :- {', '.join(rule.literals)}."

    def head_term(self, rule: PartialRule, type: str) -> str:
        if rule.bound[type] and self.random.random() < 0.92:
            return self.random.choice(rule.bound[type][-4:])
        return self.constant(type)

    def variable(self, rule: PartialRule, type: str, before: dict[str, list[str]]) -> str:
        """A variable: often one of the atoms before, seldom one of the same atom."""
        known = rule.bound[type] if self.random.random() < 0.1 else before[type]
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        return self.new_variable(rule, type)

    def new_variable(self, rule: PartialRule, type: str) -> str:
        name = f"{type[0]}{self.fresh}"
        self.fresh += 1
        rule.bound[type].append(name)
        return name

    def atom(self, rule: PartialRule, relation: RandomRelation) -> None:
        terms = []
        before = {type: list(names) for type, names in rule.bound.items()}
        for type in relation.types:
            chance = self.random.random()
            if chance < 0.08:
                terms.append("_")
            elif chance < 0.11:
                terms.append(self.constant(type))
            elif chance < 0.15 and type == NUMBER and rule.bound[NUMBER]:
                terms.append(f"{self.random.choice(rule.bound[NUMBER])} {self.random.choice('+-')} 1")
            else:
                terms.append(self.variable(rule, type, before))
        rule.literals.append(f"{relation.name}({', '.join(terms)})")

    def compute(self, rule: PartialRule) -> None:
        """A new variable with a bounded value, or an expression as an argument's test."""
        numbers, strings = rule.bound[NUMBER], rule.bound[STRING]
        if numbers and (not strings or self.random.random() < 0.75):
            text = self.number_expression(numbers)
            name = self.new_variable(rule, NUMBER)
            rule.literals += [f"{name} = {text}", f"{name} >= 0", f"{name} <= {LARGEST}"]
        elif strings:
            x, y = self.random.choice(strings), self.random.choice([*strings, '"c"'])
            name = self.new_variable(rule, STRING)
            joined = f"cat({x}, {y})" if self.souffle else f"{x} ++ {y}"
            length = "strlen" if self.souffle else "string_len"
            rule.literals += [f"{name} = {joined}", f"{length}({name}) < 3"]

    def number_expression(self, numbers: list[str]) -> str:
        x = self.random.choice(numbers)
        y = self.random.choice([*numbers, *map(str, self.numbers)])
        divisor = self.random.randint(1, 4)
        return self.random.choice(
            (
                f"{x} + 1", f"{x} - 1", f"{x} + {y}", f"{x} - {y}", f"{x} * {y}", f"2 * ({x} - {y})",
                f"{x} / {divisor}", f"{x} % {divisor}", f"-{x} + {LARGEST}",
                f"min({x}, {y})", f"max({x}, {y})",
            )
        )  # fmt: skip

    def compare(self, rule: PartialRule) -> None:
        type = self.random.choice((NUMBER, NUMBER, STRING))
        names = rule.bound[type]
        if names:
            x = self.random.choice(names)
            y = self.random.choice([*names, self.constant(type), self.constant(type)])
            equal = "=" if self.souffle else "=="
            operators = (equal, "!=", "!=", "<", "<=", ">", ">=") if type == NUMBER else (equal, "!=", "!=")
            rule.literals.append(f"{x} {self.random.choice(operators)} {y}")
        if type == NUMBER and len(names) > 1 and self.random.random() < 0.2:  # guarded from zero
            x, y = self.random.sample(names, 2)
            rule.literals += [f"{x} / {y} < 3", f"{y} != 0"]

    def negate(self, rule: PartialRule, relation: RandomRelation) -> None:
        terms = []
        for type in relation.types:
            if rule.bound[type] and self.random.random() < 0.7:
                terms.append(self.random.choice(rule.bound[type]))
            else:
                terms.append(self.random.choice(("_", self.constant(type))))
        rule.literals.append(f"{'!' if self.souffle else 'not '}{relation.name}({', '.join(terms)})")

    def aggregate(self, rule: PartialRule, relation: RandomRelation) -> None:
        """An aggregate whose result may be used in the head."""
        operators = ["count"] + ["count", "sum", "min", "max", "mean"] * (NUMBER in relation.types)
        op = self.random.choice(operators)
        if self.souffle:
            inner = PartialRule(bound={type: list(names) for type, names in rule.bound.items()})
            terms, values = [], []
            for type in relation.types:
                if rule.bound[type] and self.random.random() < 0.5:
                    terms.append(self.random.choice(rule.bound[type]))
                elif type == NUMBER or self.random.random() < 0.5:
                    terms.append(self.new_variable(inner, type))
                    values += [terms[-1]] if type == NUMBER else []
                else:
                    terms.append("_")
            if not values:
                op = "count"
            body = f"{relation.name}({', '.join(terms)})"
            if values and self.random.random() < 0.3:
                body += f", {self.random.choice(values)} > {self.random.choice(self.numbers)}"
            value = "" if op == "count" else f" {self.random.choice(values)}"
            text = f"{op}{value} : {{ {body} }}"
        else:
            numbers = rule.bound[NUMBER]
            if not numbers:
                return
            value = self.random.choice(numbers)
            candidates = [name for names in (rule.bound[NUMBER], rule.bound[STRING]) for name in names]
            keys = self.random.sample(candidates, min(len(candidates), self.random.randint(1, 2)))
            rule.bound = {type: [n for n in names if n in keys] for type, names in rule.bound.items()}
            grouped = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
            text = f"{value}.group_by({grouped}).{op}()"
        name = self.new_variable(rule, FLOAT if op == "mean" else NUMBER)
        rule.literals.append(f"{name} = {text}" if self.souffle else f"var {name} = {text}")
