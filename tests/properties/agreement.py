"""One program, every evaluator: where they differ, and a smaller program on which they still do."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle import count_instances, model_of
from tests.random_programs import RandomProgram
from tests.running import run
from tidelog.execute import open_executor
from tidelog.execute.local.executor import LocalExecutor
from tidelog.plan.executor import Executor
from tidelog.program.check import check
from tidelog.program.model import Program
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.parser import parse

EVALUATORS: dict[str, Callable[[], Executor]] = {
    "substitution": lambda: open_executor("substitution"),
    "local": lambda: open_executor("local"),
    "local, everything shared": lambda: LocalExecutor(2, share_from=1),
}


def checked(text: str) -> Program | None:
    """The program, or None where the checker rejects it."""
    try:
        return check(parse(text))
    except ProgramError:
        return None


def disagreement(program: Program) -> str | None:
    """How the first evaluator that differs from the oracle does, or None.

    Every relation must be the same. Every rule must have been considered for exactly
    as many instances as it has in the final model: all of them, and none twice.
    """
    model = model_of(program)
    instances = count_instances(program, model)
    for name, opened in EVALUATORS.items():
        try:
            found = run(program, opened())
        except Exception as problem:
            return f"{name} failed: {type(problem).__name__}: {problem}"
        for relation, rows in model.items():
            if found.relations[relation] != rows:
                missing = sorted(rows - found.relations[relation])
                extra = sorted(found.relations[relation] - rows)
                return f"{name}: {relation} misses {missing} and has too many {extra}"
        for rule in program.rules:
            considered = found.instances.get(rule.id, 0)
            if considered != instances[rule.id]:
                return f"{name}: {considered} instances instead of {instances[rule.id]} of {rule.text}"
    return None


def minimise(program: RandomProgram) -> RandomProgram:
    """The program without the lines that the disagreement does not need."""

    def still_fails(smaller: RandomProgram) -> bool:
        accepted = checked(smaller.text)
        return accepted is not None and disagreement(accepted) is not None

    parts = {"rules": program.rules, "facts": program.facts, "declarations": program.declarations}
    for name in parts:
        for line in reversed(parts[name]):
            fewer = {**parts, name: tuple(other for other in parts[name] if other != line)}
            smaller = RandomProgram(program.seed, fewer["declarations"], fewer["rules"], fewer["facts"])
            if still_fails(smaller):
                program, parts = smaller, fewer
    return program
