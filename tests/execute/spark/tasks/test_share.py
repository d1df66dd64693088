"""Shares of a fixpoint together derive what the oracle does, in threads and in processes."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pytest

from tests.execute.spark.tasks.sharing import (
    PATIENCE,
    Processes,
    SharedExecutor,
    connected,
    everywhere,
    in_threads,
)
from tests.oracle import count_instances, model_of
from tests.properties.agreement import checked
from tests.random_programs import generate
from tests.running import Row, run, table_of
from tests.test_programs import NAMES, load, matches_expected
from tidelog.execute.spark.tasks import share as module
from tidelog.execute.spark.tasks.exchange import PeerError
from tidelog.execute.spark.tasks.share import Share
from tidelog.maintain.seminaive import tasks as tasks_of
from tidelog.plan.executor import Fixpoint, Progress, Task
from tidelog.plan.placement import Distribution
from tidelog.program.check import check
from tidelog.program.model import Program
from tidelog.program.strata import stratify
from tidelog.syntax.errors import EvaluationError
from tidelog.syntax.parser import parse

EDGE = """
    .decl edge(x: number, y: number)
    .input edge
    .decl path(x: number, y: number)
    .output path
    path(x, y) :- edge(x, y).
"""
CLOSURES = {
    "left": EDGE + "path(x, z) :- path(x, y), edge(y, z).",
    "right": EDGE + "path(x, z) :- edge(x, y), path(y, z).",
    "not linear": EDGE + "path(x, z) :- path(x, y), path(y, z).",
    "both": EDGE + "path(x, z) :- path(x, y), edge(y, z). path(x, z) :- edge(x, y), path(y, z).",
    "loops": EDGE + "path(x, x) :- path(x, y), path(y, x).",
    "a product": EDGE + "path(x, z) :- path(x, y), edge(z, z), path(y, _).",
}
SAME_GENERATION = """
    .decl parent(x: symbol, y: symbol)
    .input parent
    .decl sg(x: symbol, y: symbol)
    .output sg
    sg(x, y) :- parent(p, x), parent(p, y), x != y.
    sg(x, y) :- parent(a, x), sg(a, b), parent(b, y).
"""
CSPA = """
    .decl assign(x: number, y: number)
    .input assign
    .decl dereference(x: number, y: number)
    .input dereference
    .decl valueFlow(x: number, y: number)
    .decl valueAlias(x: number, y: number)
    .decl memoryAlias(x: number, y: number)
    .output valueFlow, valueAlias, memoryAlias
    valueFlow(y, x) :- assign(y, x).
    valueFlow(x, y) :- assign(x, z), memoryAlias(z, y).
    valueFlow(x, y) :- valueFlow(x, z), valueFlow(z, y).
    memoryAlias(x, w) :- dereference(y, x), valueAlias(y, z), dereference(z, w).
    valueAlias(x, y) :- valueFlow(z, x), valueFlow(z, y).
    valueAlias(x, y) :- valueFlow(z, x), memoryAlias(z, w), valueFlow(w, y).
    valueFlow(x, x) :- assign(x, _). valueFlow(x, x) :- assign(_, x).
    memoryAlias(x, x) :- assign(_, x). memoryAlias(x, x) :- assign(x, _).
"""
NEGATION = """
    .decl edge(x: number, y: number)
    .input edge
    .decl closed(x: number, y: number)
    .input closed
    .decl path(x: number, y: number)
    .output path
    path(x, y) :- edge(x, y), !closed(x, y).
    path(x, z) :- path(x, y), edge(y, z), !closed(y, z), !closed(z, _).
"""
COUNTING = """
    .decl step(x: number, y: number)
    .input step
    .decl reached(x: number, n: number)
    .output reached
    reached(x, 0) :- step(x, _).
    reached(y, n + w) :- reached(x, n), step(x, y), step(_, w), n < 20.
"""


def random_pairs(seed: int, count: int, nodes: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    return [(draw.randrange(nodes), draw.randrange(nodes)) for _ in range(count)]


PAIRS = random_pairs(1, 60, 30)


def agrees(text: str, facts: dict[str, list[Row]], tasks: int, heavy: int = 0) -> None:
    program = check(parse(text))
    model = model_of(program, facts)
    result = run(program, SharedExecutor(tasks, heavy), facts)
    for name, rows in model.items():
        assert result.relations[name] == rows, name


# --- in threads ---------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("text", CLOSURES.values(), ids=CLOSURES)
def test_closure(text: str, tasks: int) -> None:
    agrees(text, {"edge": list(PAIRS)}, tasks)


@pytest.mark.parametrize("tasks", [2, 5])
def test_same_generation(tasks: int) -> None:
    parents = [(f"p{x}", f"p{y}") for x, y in random_pairs(2, 40, 25)]
    agrees(SAME_GENERATION, {"parent": parents}, tasks)


@pytest.mark.parametrize("tasks", [2, 3])
def test_cspa(tasks: int) -> None:
    facts = {"assign": random_pairs(3, 25, 20), "dereference": random_pairs(4, 25, 20)}
    agrees(CSPA, facts, tasks)


@pytest.mark.parametrize("tasks", [2, 3])
def test_negation(tasks: int) -> None:
    agrees(NEGATION, {"edge": list(PAIRS), "closed": random_pairs(5, 10, 30)}, tasks)


@pytest.mark.parametrize("tasks", [2, 3])
def test_computed_values(tasks: int) -> None:
    agrees(COUNTING, {"step": random_pairs(6, 12, 6)}, tasks)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("symbol", ["", "a", "ä", "\n", "x" * 300, "1"]),
        ("float", [0.0, -1.5, 0.5, float("inf"), 1e-300]),
        ("s64", [0, -1, 2**30, -(2**30) - 1, 2**63 - 1, -(2**63)]),
        ("u64", [0, 2**31, 2**63, 2**64 - 1]),
        ("u128", [0, 1, 2**64, 2**128 - 1]),
        ("bigint", [0, -1, 2**200, -(2**200)]),
        ("bool", [False, True]),
    ],
)
def test_values_of_every_type(type: str, values: list[object]) -> None:
    souffle = type in ("symbol", "float")
    text = CLOSURES["left"].replace("number", type)
    if not souffle:
        text = f"""
            input relation Edge(x: {type}, y: {type})
            output relation Path(x: {type}, y: {type})
            Path(x, y) :- Edge(x, y).
            Path(x, z) :- Path(x, y), Edge(y, z).
        """
    program = check(parse(text))
    name = "edge" if souffle else "Edge"
    facts: dict[str, list[Row]] = {name: list(zip(values, [*values[1:], values[0]], strict=True))}
    model = model_of(program, facts)
    found = run(program, SharedExecutor(3), facts).relations
    answers = name.replace("edge", "path").replace("Edge", "Path")
    assert sorted(map(repr, found[answers])) == sorted(map(repr, model[answers]))


def test_nan_is_itself() -> None:
    nan = float("nan")
    distribution, tables = fixpoint(CLOSURES["left"].replace("number", "float"), {"edge": [(1.0, nan)]})
    relation = distribution.relations["edge"]
    tables = {"path": table_of(relation, [(1.0, nan)]), "edge": table_of(relation, [(nan, 2.0), (2.0, nan)])}
    found = in_threads(distribution, tables, 3)
    rows = [row for table in found.answers["path"] for row in zip(*table.to_pydict().values(), strict=True)]
    assert rows == [(1.0, 2.0)]


def test_a_relation_without_columns() -> None:
    text = """
        .decl start(x: number)
        .input start
        .decl seen(x: number)
        .output seen
        .decl any()
        .output any
        seen(x) :- start(x).
        any() :- seen(_).
        seen(x + 1) :- any(), seen(x), x < 9.
    """
    agrees(text, {"start": [(3,), (5,)]}, 3)


@pytest.mark.parametrize("name", NAMES)
def test_golden_programs(name: str) -> None:
    program, facts = load(name)
    matches_expected(name, program, run(program, SharedExecutor(3), facts))


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_programs(first: int) -> None:
    for seed in range(first, first + 20):
        program = checked(generate(seed).text)
        if program is not None:
            found = run(program, SharedExecutor(2 + seed % 3, heavy=seed % 2)).relations
            assert found == model_of(program), f"seed {seed}"


# --- heavy keys -----------------------------------------------------------------------


@pytest.mark.parametrize("heavy", [1, 3])
@pytest.mark.parametrize("text", [*CLOSURES.values(), NEGATION], ids=[*CLOSURES, "negation"])
def test_heavy_keys(text: str, heavy: int) -> None:
    """With 1, every key that there is in the beginning is heavy."""
    agrees(text, {"edge": list(PAIRS), "closed": random_pairs(5, 10, 30)}, 3, heavy)


def test_heavy_keys_of_several_columns() -> None:
    text = """
        .decl move(x: symbol, y: number, z: symbol)
        .input move
        .decl go(x: symbol, y: number, z: symbol)
        .output go
        go(x, n, y) :- move(x, n, y).
        go(x, n, z) :- go(x, n, y), move(y, n, z).
        go(x, n, z) :- go(x, n, z), move(x, _, z), go(z, n, x).
    """
    draw = random.Random(7)
    moves: list[Row] = [(draw.choice("abcdef"), draw.randrange(3), draw.choice("abcdef")) for _ in range(40)]
    for heavy in (1, 2, 4):
        agrees(text, {"move": moves}, 3, heavy)


def test_a_hub_is_shared() -> None:
    """Without care, the task that owns the hub has nearly all edges, and finds nearly all paths."""
    facts: dict[str, list[Row]] = {"edge": [(0, i) for i in range(1, 3_000)] + [(i, 0) for i in (-1, -2, -3)]}
    program = check(parse(CLOSURES["left"]))
    for heavy, least, most in ((0, 0.9, 1.0), (500, 0.4, 0.6)):
        executor = SharedExecutor(2, heavy)
        assert run(program, executor, facts).relations == model_of(program, facts)
        [outcome] = executor.outcomes
        instances = [sum(report.instances.values()) for report in outcome.reports]
        assert least <= max(instances) / sum(instances) <= most


# --- what is counted ------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("closure", ["left", "right", "not linear", "both"])
def test_each_instance_is_considered_once(closure: str, tasks: int) -> None:
    program = check(parse(CLOSURES[closure]))
    facts: dict[str, list[Row]] = {"edge": list(PAIRS)}
    expected = count_instances(program, model_of(program, facts))
    distribution, tables = fixpoint(CLOSURES[closure], facts)
    outcome = in_threads(distribution, tables, tasks)
    assert outcome.instances == {rule.id: expected[rule.id] for rule in program.rules[1:]}
    assert outcome.new == len(model_of(program, facts)["path"]) - len(set(PAIRS))
    assert outcome.new == sum(table.num_rows for table in outcome.answers["path"])


@pytest.mark.parametrize(("enough", "most"), [(1, 1 << 20), (1 << 16, 3), (1, 1), (1 << 40, 1 << 20)])
def test_messages_may_be_small_or_late(enough: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", enough)
    monkeypatch.setattr(module, "MOST", most)
    for text in (CLOSURES["left"], CLOSURES["not linear"], CLOSURES["a product"]):
        agrees(text, {"edge": list(PAIRS)}, 3)


def test_nothing_to_do() -> None:
    agrees(CLOSURES["left"], {"edge": []}, 3)


def test_progress() -> None:
    distribution, tables = fixpoint(CLOSURES["left"], {"edge": [(i, i + 1) for i in range(50)]})
    share = Share(distribution, 0, 1)
    for name, table in tables.items():
        share.load(name, table)
    seen: list[Progress] = []
    report = share.run(seen.append)
    assert [p.round for p in seen] == sorted(p.round for p in seen)
    assert (report.rounds, report.new) == (50, 50 * 51 // 2 - 50)
    assert seen[-1].tuples <= report.new
    share.close()


# --- failures -------------------------------------------------------------------------

FAILING = """
    .decl start(x: number)
    .input start
    .decl half(x: number)
    .output half
    half(x) :- start(x).
    half(100 / (x - 3)) :- half(x), x < 50.
"""


def fails_everywhere(errors: Iterable[object]) -> None:
    for error in errors:
        assert isinstance(error, EvaluationError), error
        assert error.rule == "half(100 / (x - 3)) :- half(x), x < 50."
        assert error.values == {"x": 3}
        assert str(error).startswith("error[TL0401]: division by zero\n  --> ")


def test_a_failing_rule_fails_all_shares() -> None:
    distribution, tables = fixpoint(FAILING, {"start": [(3,), (4,)]})
    exchanges = connected(3)
    shares = [Share(distribution, task, 3, exchange) for task, exchange in enumerate(exchanges)]
    shares[0].load("half", tables["half"])

    def error_of(share: Share) -> BaseException | None:
        with pytest.raises(EvaluationError) as caught:
            share.run()
        return caught.value

    fails_everywhere(everywhere([lambda share=share: error_of(share) for share in shares]))
    everywhere([exchange.close for exchange in exchanges])
    for share in shares:
        share.close()


def test_another_failure_is_told_as_it_is() -> None:
    distribution, tables = fixpoint(CLOSURES["left"], {"edge": list(PAIRS)})
    exchanges = connected(2)
    shares = [Share(distribution, task, 2, exchange) for task, exchange in enumerate(exchanges)]
    for name, table in tables.items():
        shares[0].load(name, table)

    def stop(_: Progress) -> None:
        raise MemoryError("no room")

    def first() -> None:
        with pytest.raises(MemoryError, match="no room"):
            shares[0].run(stop)

    def second() -> None:
        with pytest.raises(PeerError, match="task 0 of the fixpoint has failed: MemoryError: no room"):
            shares[1].run()

    everywhere([first, second])
    everywhere([exchange.close for exchange in exchanges])
    for share in shares:
        share.close()


# --- in processes ---------------------------------------------------------------------


@pytest.mark.parametrize("closure", ["left", "not linear"])
def test_closure_in_processes(closure: str) -> None:
    facts: dict[str, list[Row]] = {"edge": list(PAIRS)}
    distribution, tables = fixpoint(CLOSURES[closure], facts)
    with Processes(distribution, tables, 2) as processes:
        processes.start()
        outcome = processes.outcome()
    found = [row for t in outcome.answers["path"] for row in zip(*t.to_pydict().values(), strict=True)]
    expected = model_of(check(parse(CLOSURES[closure])), facts)["path"] - set(PAIRS)
    assert (len(found), set(found)) == (len(expected), expected)


def test_strings_in_processes() -> None:
    parents: list[Row] = [(f"p{x}", f"p{y}") for x, y in random_pairs(2, 40, 25)]
    distribution, tables = fixpoint(SAME_GENERATION, {"parent": parents})
    with Processes(distribution, tables, 3) as processes:
        processes.start()
        outcome = processes.outcome()
    found = {row for t in outcome.answers["sg"] for row in zip(*t.to_pydict().values(), strict=True)}
    given = set(zip(*tables["sg"].to_pydict().values(), strict=True))
    assert found | given == model_of(check(parse(SAME_GENERATION)), {"parent": parents})["sg"]
    assert not found & given


def test_a_failing_rule_in_processes() -> None:
    distribution, tables = fixpoint(FAILING, {"start": [(3,), (4,)]})
    with Processes(distribution, tables, 2) as processes:
        processes.start()
        fails_everywhere(processes.hear(task)[1] for task in range(2))
        for process in processes.processes:
            process.join(PATIENCE)
            assert process.exitcode == 0


def test_a_killed_process_stops_the_others() -> None:
    """A long chain takes thousands of rounds: it is not over when one of the processes is killed."""
    distribution, tables = fixpoint(CLOSURES["left"], {"edge": [(i, i + 1) for i in range(20_000)]})
    with Processes(distribution, tables, 3) as processes:
        processes.start()
        assert not processes.ends[1].poll(1.0)
        processes.processes[1].kill()
        errors = [processes.hear(task)[1] for task in (0, 2)]
        assert all(isinstance(error, PeerError) for error in errors)
        assert any("task 1" in str(error) for error in errors)  # the other may miss the first to notice


# --- making distributions ---------------------------------------------------------------


def fixpoint(text: str, facts: dict[str, list[Row]]) -> tuple[Distribution, dict[str, pa.Table]]:
    """The only recursive stratum of a program, distributed, and the rows that it begins with."""
    program: Program = check(parse(text))
    executor = SharedExecutor(1)
    for relation in program.relations.values():
        executor.create(relation)
    for name, rows in facts.items():
        executor.insert(name, table_of(program.relations[name], rows))
    [task] = [task for stratum in stratify(program) for task in tasks_of(stratum) if begins(executor, task)]
    assert isinstance(task, Fixpoint)
    distribution = executor.distribution(task)
    tables = executor.tables(distribution)
    executor.close()
    return distribution, tables


def begins(executor: SharedExecutor, task: Task) -> bool:
    """Whether a task is a fixpoint; any other is run at once."""
    if not isinstance(task, Fixpoint):
        executor.run(task)
    return isinstance(task, Fixpoint)
