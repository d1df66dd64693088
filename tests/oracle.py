"""The naive oracle: what a checked program means, computed in the most obvious way.

It reads checked programs, that is lowered ones (the dataclasses of `tidelog.program.model`):
whether lowering is right is not its question. It uses no other code of the package: its own
expressions, its own strata, its own loop. Relations are sets of tuples; every rule is
applied to everything until nothing is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tidelog.program.model import (
    AggregateRule,
    Apply,
    Atom,
    Bind,
    Const,
    Expr,
    Filter,
    Literal,
    Negative,
    Positive,
    Program,
    Rule,
    Value,
    Var,
)

Row = tuple[Value, ...]
Model = dict[str, set[Row]]
Env = dict[str, Value]
Instance = tuple[object, ...]  # rule id, head, the rows that the positive atoms of the body match

FUNCTIONS: dict[str, Callable[..., Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "mod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "neg": lambda a: -a,
    "abs": abs,
    "min": min,
    "max": max,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "if": lambda c, a, b: a if c else b,
    "concat": lambda *s: "".join(s),
    "length": len,
    "contains": lambda a, b: b in a,
    "to_string": str,
}
AGGREGATES: dict[str, Callable[[list[Value]], Value]] = {
    "count": len,
    "sum": sum,  # type: ignore[dict-item]
    "min": min,
    "max": max,
    "mean": lambda values: sum(values) / len(values),  # type: ignore[arg-type]
}


def value_of(expr: Expr, env: Env) -> Value:
    match expr:
        case Var(name):
            return env[name]
        case Const(value):
            return value
        case Apply(function, args):
            return FUNCTIONS[function](*(value_of(arg, env) for arg in args))


def variables(expr: Expr) -> set[str]:
    if isinstance(expr, Var):
        return {expr.name}
    return {name for arg in expr.args for name in variables(arg)} if isinstance(expr, Apply) else set()


def divides(literal: Literal) -> bool:
    """Divisions wait until everything that guards them has been looked at."""
    expr = (
        literal.condition
        if isinstance(literal, Filter)
        else literal.expr
        if isinstance(literal, Bind)
        else None
    )
    pending, found = [expr], False
    while pending:
        part = pending.pop()
        if isinstance(part, Apply):
            found = found or part.function in ("div", "mod")
            pending += part.args
    return found


def bindings(rule: Rule, model: Mapping[str, set[Row]]) -> list[Env]:
    """Every binding of all variables of the body, each `_` of a positive atom among them."""
    envs: list[Env] = [{}]
    bound: set[str] = set()
    atoms = list(enumerate(literal for literal in rule.body if isinstance(literal, Positive)))
    tests = [literal for literal in rule.body if not isinstance(literal, Positive)]
    while atoms or tests:
        ready = [literal for literal in tests if needed(literal) <= bound]
        chosen = next((literal for literal in ready if not divides(literal)), None)
        if chosen is None and atoms:  # products last
            place, atom = max(atoms, key=lambda entry: len(needed(entry[1]) & bound))
            atoms.remove((place, atom))
            envs = joined(envs, bound, atom.atom, f"_{place}", model)
            bound |= needed(atom)
        else:
            chosen = chosen or ready[0]
            tests.remove(chosen)
            envs = [env for env in envs if holds(chosen, env, model)]
            bound |= {chosen.var.name} if isinstance(chosen, Bind) else set()
    return envs


def joined(
    envs: list[Env], bound: set[str], atom: Atom, blank: str, model: Mapping[str, set[Row]]
) -> list[Env]:
    """Each binding extended by each row that matches the atom; a `_` gets a name that begins with `blank`."""
    names = [t if isinstance(t, Const) else t.name if isinstance(t, Var) else f"{blank}.{j}"
             for j, t in enumerate(atom.terms)]  # fmt: skip
    keys = [j for j, n in enumerate(names) if isinstance(n, Const) or n in bound]
    rows: dict[Row, list[Row]] = {}
    for row in model[atom.relation]:
        rows.setdefault(tuple(row[j] for j in keys), []).append(row)
    found = []
    for env in envs:
        key = tuple(n.value if isinstance(n, Const) else env[n] for n in (names[j] for j in keys))
        for row in rows.get(key, ()):
            new = dict(env)
            if all(
                isinstance(n, Const) or new.setdefault(n, v) == v for n, v in zip(names, row, strict=True)
            ):
                found.append(new)
    return found


def needed(literal: Literal) -> set[str]:
    if isinstance(literal, Filter):
        return variables(literal.condition)
    if isinstance(literal, Bind):
        return variables(literal.expr)
    return {term.name for term in literal.atom.terms if isinstance(term, Var)}


def holds(literal: Literal, env: Env, model: Mapping[str, set[Row]]) -> bool:
    """Whether the literal holds; a Bind adds its variable to `env`."""
    if isinstance(literal, Filter):
        return value_of(literal.condition, env) is True
    if isinstance(literal, Bind):
        value = value_of(literal.expr, env)
        return env.setdefault(literal.var.name, value) == value
    wanted = [(j, value_of(t, env)) for j, t in enumerate(literal.atom.terms) if isinstance(t, Var | Const)]
    return not any(all(row[j] == v for j, v in wanted) for row in model[literal.atom.relation])


def derived(rule: Rule | AggregateRule, model: Mapping[str, set[Row]]) -> Iterable[Row]:
    if isinstance(rule, Rule):
        return [tuple(value_of(t, env) for t in rule.head.terms if isinstance(t, Var | Const))
                for env in bindings(rule, model)]  # fmt: skip
    groups: dict[Row, list[Value]] = {}
    for row in model[rule.source]:
        groups.setdefault(tuple(row[j] for j in rule.keys), []).append(row[rule.value or 0] if row else True)
    return [(*key, AGGREGATES[rule.op.value](values)) for key, values in groups.items()]


def levels(program: Program) -> dict[str, int]:
    """The least levels at which rules only negate, and aggregate, what is finished below them."""
    level = dict.fromkeys(program.relations, 0)
    edges = [(r.head.relation, lit.atom.relation, int(isinstance(lit, Negative)))
             for r in program.rules for lit in r.body if isinstance(lit, Positive | Negative)]  # fmt: skip
    edges += [(a.head, a.source, 1) for a in program.aggregates]
    while rises := [
        (head, level[body] + step) for head, body, step in edges if level[head] < level[body] + step
    ]:
        for head, least in rises:
            level[head] = max(level[head], least)
            assert level[head] <= len(level), "the program is not stratified"
    return level


def model_of(program: Program, facts: Mapping[str, Iterable[Row]] | None = None) -> Model:
    """All relations of the program over its own facts and `facts`."""
    model: Model = {name: set((facts or {}).get(name, ())) for name in program.relations}
    for fact in program.facts:
        model[fact.relation].add(fact.row)
    level = levels(program)
    for current in sorted(set(level.values())):
        rules: list[Rule | AggregateRule] = [r for r in program.rules if level[r.head.relation] == current]
        rules += [a for a in program.aggregates if level[a.head] == current]
        size = -1
        while size != (size := sum(map(len, model.values()))):
            for rule in rules:
                model[rule.head.relation if isinstance(rule, Rule) else rule.head].update(
                    derived(rule, model)
                )
    return model


def matched(rule: Rule, env: Env) -> list[Row]:
    """The rows that the positive atoms of the body match under a binding, in the order of the body."""
    found, atoms = [], [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    for position, atom in enumerate(atoms):
        row = []
        for j, term in enumerate(atom.terms):
            blank = f"_{position}.{j}"
            row.append(value_of(term, env) if isinstance(term, Var | Const) else env[blank])
        found.append(tuple(row))
    return found


def instances(program: Program, model: Mapping[str, set[Row]]) -> set[Instance]:
    """Every instance of every rule that fires in a model: inst(Π, I) of maintenance-revisited.

    What an instance matches tells it from all others, since each variable gets its value from there.
    """
    found: set[Instance] = set()
    for rule in program.rules:
        for env in bindings(rule, model):
            head = tuple(value_of(t, env) for t in rule.head.terms if isinstance(t, Var | Const))
            found.add((rule.id, head, *matched(rule, env)))
    return found


def optimum(
    old: Program, before: Mapping[str, set[Row]], new: Program, after: Mapping[str, set[Row]]
) -> set[Instance]:
    """What an optimal algorithm considers (maintenance-revisited, Definition 26)."""
    return instances(old, before) ^ instances(new, after)


def count_instances(program: Program, model: Model) -> dict[int, int]:
    """The number of instances that each rule has in the final model."""
    return {rule.id: len(bindings(rule, model)) for rule in program.rules}
