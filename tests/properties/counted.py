"""Rule instances that a commit considers, beside those that the theorems allow.

Executors remember each instance as its rule, its head and the tuples it matches; the oracle lists all
instances that fire before a commit (old) and after it (new) in the same form. What is checked is
what maintenance-revisited proves, and our own notes claim:

| algorithm         | steps                           | each instance is from    | because           |
|-------------------|---------------------------------|--------------------------|-------------------|
| counts            | count                           | old xor new; all of them | Proposition 27    |
| counting, elastic | deletion                        | old                      | Theorem 12 (b)    |
|                   | insertion                       | new                      | Theorem 12 (c)    |
| elastic           | rediscovery                     | old and new              |                   |
| dred              | overdelete                      | old                      | Theorem 19 (b)    |
|                   | rederive, insert                | new                      | Theorem 19 (c)    |
| fbf               | deletion                        | old                      | Theorem 25 (b)    |
|                   | base, forward, rederive, insert | new                      | Theorem 25 (c)    |
|                   | backward, of recursive rules    | old                      | Theorem 25 (d)    |
| ranked            | foresee                         |                          | `maintain/ranked` |
|                   | delete, but for the guard       |                          |                   |
|                   | rederive, insert                | new                      | Theorem 19 (c)    |
| dbsp              | deletion, insertion             | its own products         | Theorem 12        |
| recompute, starts | everything                      | new; all of them         | nonrepetition     |

The steps of a line together consider no instance twice. Where no instance stops firing, DRed, FBF and,
but for what it foresees, ranked consider what is new and nothing else (Proposition 32).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle

from tests.oracle import Instance, instances, model_of
from tests.properties.histories import History, Row, State
from tests.running import Kept, Pool
from tidelog.maintain.update import Upkeep
from tidelog.plan.maintenance import PhaseReport
from tidelog.program.model import Negative, Positive, Rule
from tidelog.program.strata import stratify

STARTING = ("derive", "fixpoint", "trace", "bootstrap")
OLD, NEW, BOTH, CHANGED, ANY = "old", "new", "old and new", "old xor new", "any"


@dataclass
class Firing:
    """The instances that fire before a commit and after it."""

    old: set[Instance]
    new: set[Instance]

    def of(self, source: str) -> set[Instance]:
        """The instances that a step may consider."""
        match source:
            case "old":
                return self.old
            case "new":
                return self.new
            case "old and new":
                return self.old & self.new
            case _:
                return self.old ^ self.new


@dataclass
class Steps:
    """What some steps considered together; `whole` if they must consider all that they may."""

    source: str
    whole: bool = False
    considered: list[Instance] = field(default_factory=list)


def steps_of(upkeep: Upkeep, recursive: set[int]) -> dict[str, Steps]:
    """What the work on one stratum considered, sorted by the theorems. `recursive` are rule ids."""
    found: dict[str, Steps] = {}

    def add(name: str, source: str, instance: Instance) -> None:
        found.setdefault(name, Steps(source)).considered.append(instance)

    for phase in upkeep.phases:
        if phase.phase == "count":
            anew = upkeep.why.startswith("started anew")
            found["count"] = Steps(NEW if anew else CHANGED, whole=True)
        elif phase.phase in STARTING:
            found.setdefault("start", Steps(NEW, whole=True))
        for instance, kind in _remembered(phase):
            match phase.phase, kind:
                case ("count", _):
                    add("count", CHANGED, instance)
                case (starting, _) if starting in STARTING:
                    add("start", NEW, instance)
                case ("steps" | "update", "deletion"):
                    add("deletion", OLD, instance)
                case ("steps" | "update", "insertion"):
                    add("insertion", NEW, instance)
                case ("steps" | "update", "rediscovery"):
                    add("rediscovery", BOTH, instance)
                case ("circuit", _):
                    add(f"circuit, {kind}", ANY, instance)
                case ("overdelete", _) | ("delete unproved", "deletion"):
                    add("deletion", OLD, instance)
                case ("delete unproved", "backward") if instance[0] in recursive:
                    add("backward", OLD, instance)
                case ("foresee", _):
                    add("foresight", ANY, instance)
                case ("delete", "deletion"):
                    add("deletion", ANY, instance)
                case ("delete", "backward"):
                    pass  # a tuple that is reached again is looked at again
                case ("delete unproved" | "rederive" | "insert", _):
                    add("rederivation and insertion", NEW, instance)
                case _:
                    raise AssertionError(f"not in the table above: {phase.phase}, {kind}")
    return found


def _remembered(phase: PhaseReport) -> Iterator[tuple[Instance, str]]:
    if phase.phase.endswith("abandoned"):  # it is counted, but not remembered
        return zip((), (), strict=True)
    assert len(phase.considered) == sum(phase.instances.values()), phase.phase
    return zip(phase.considered, phase.kinds, strict=True)


def stratum_problem(
    upkeep: Upkeep, rules: Mapping[int, Rule], firing: Firing, retracted: Set[str]
) -> str | None:
    """Which instance should not have been considered for a stratum, or was twice; or None.

    `retracted` are the relations from which explicit facts were taken.
    """
    own = {id: rule for id, rule in rules.items() if rule.head.relation in upkeep.relations}
    recursive = {id for id, rule in own.items() if any(map(set(upkeep.relations).__contains__, reads(rule)))}
    found = steps_of(upkeep, recursive)
    if upkeep.algorithm in ("dred", "fbf", "ranked") and "start" not in found:
        phases = [phase for phase in upkeep.phases if phase.phase != "foresee"]
        considered = [instance for phase in phases for instance in phase.considered]
        optimum = [instance for instance in firing.new - firing.old if instance[0] in own]
        increasing = firing.old <= firing.new and not retracted & set(upkeep.relations)
        if increasing and Counter(considered) != Counter(optimum):
            return f"{upkeep.algorithm}: considered {considered} where only {optimum} are new"
    for name, steps in found.items():
        what = f"{upkeep.algorithm} on {', '.join(upkeep.relations)}, {name}"
        twice = [instance for instance, times in Counter(steps.considered).items() if times > 1]
        if twice:
            return f"{what}: considered twice: {twice[:3]}"
        if steps.source == ANY:
            continue
        allowed = {instance for instance in firing.of(steps.source) if instance[0] in own}
        if wrong := set(steps.considered) - allowed:
            return f"{what}: not among the {steps.source} instances: {list(wrong)[:3]}"
        if steps.whole and (missing := allowed - set(steps.considered)):
            return f"{what}: not considered: {list(missing)[:3]}"
    return None


def reads(rule: Rule) -> list[str]:
    return [literal.atom.relation for literal in rule.body if isinstance(literal, Positive | Negative)]


class Counted:
    """A history, taken to a keeper step by step, with every instance looked at."""

    def __init__(self, history: History) -> None:
        self.states = list(dict.fromkeys(history.states()))
        texts = [rule for state in self.states for rule in state.rules]
        self.pool = Pool("\n".join((*history.declarations, *dict.fromkeys(texts))))
        self.programs = [self.pool.program_of(state.rules) for state in self.states]
        self.models = [model_of(p, _facts(s)) for p, s in zip(self.programs, self.states, strict=True)]
        self.firing = [instances(p, m) for p, m in zip(self.programs, self.models, strict=True)]

    @cached_property
    def nonrecursive(self) -> bool:
        """Whether no program of the history has a recursive stratum."""
        return not any(stratum.recursive for program in self.programs for stratum in stratify(program))

    def problem(self, kept: Kept, turns: Iterable[str] = ()) -> str | None:
        """What is wrong with the relations, or with the instances considered, after some commit.

        Before each commit the keeper is taken to another state and back again. With `turns`, another
        algorithm does each commit.
        """
        taking = cycle(turns)
        for i, state in enumerate(self.states):
            if turns:
                kept.maintenance.algorithm = next(taking)
            if problem := self._rollback_problem(kept, self.states[-i]):
                return f"before state {i}: {problem}"
            upkeeps = kept.commit(state.rules, state.facts)
            for relation, rows in kept.relations().items():
                if rows != self.models[i][relation]:
                    return f"state {i}: {relation} is {sorted(rows)}, not {sorted(self.models[i][relation])}"
            firing = Firing(self.firing[i - 1] if i else set(), self.firing[i])
            rules = {r.id: r for r in (*self.programs[max(0, i - 1)].rules, *self.programs[i].rules)}
            retracted = {name for name, _ in self.states[max(0, i - 1)].facts - state.facts}
            for upkeep in upkeeps:
                if problem := stratum_problem(upkeep, rules, firing, retracted):
                    return f"state {i}: {problem}"
            if kept.maintenance.counts and self.nonrecursive:  # Definition 26, for the program as a whole
                considered = [c for upkeep in upkeeps for phase in upkeep.phases for c in phase.considered]
                if Counter(considered) != Counter(firing.of(CHANGED)):
                    return f"state {i}: considered {len(considered)}, optimum {len(firing.of(CHANGED))}"
        return None

    def numbers(self, kept: Kept) -> list[list[tuple[object, ...]]]:
        """For each state, what was done: stratum, phase, and how many instances of each rule.

        Aggregates have no instances.
        """
        return [
            [
                (upkeep.relations, phase.phase, {rule: n for rule, n in phase.instances.items() if n})
                for upkeep in kept.commit(state.rules, state.facts)
                for phase in upkeep.phases
                if phase.phase not in ("group", "regroup")
            ]
            for state in self.states
        ]

    def _rollback_problem(self, kept: Kept, other: State) -> str | None:
        names = [*self.pool.program.relations]
        before = {name: kept.keeper.standing(name) for name in names}
        kept.commit(other.rules, other.facts, undo=True)
        different = [name for name in names if kept.keeper.standing(name) != before[name]]
        return f"a rollback has changed {different}" if different else None


def _facts(state: State) -> dict[str, list[Row]]:
    facts: dict[str, list[Row]] = {}
    for relation, row in state.facts:
        facts.setdefault(relation, []).append(row)
    return facts
