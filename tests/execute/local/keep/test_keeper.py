"""Commits on the local keeper: what is seen meanwhile, what is taken back, what it costs."""

from __future__ import annotations

import gc
import math
from collections.abc import Collection
from pathlib import Path
from typing import cast

import pytest

from tests.oracle import model_of
from tests.running import Row, rows_of
from tidelog.execute.local.keep import keeper as keepers
from tidelog.execute.local.keep import tasks
from tidelog.execute.local.keep.keeper import LocalKeeper
from tidelog.maintain.algorithms import ALGORITHMS
from tidelog.maintain.protocol import StratumChange
from tidelog.maintain.update import Maintenance
from tidelog.plan.deltas import delta_forms, whole_form
from tidelog.plan.executor import Derive, Fixpoint, Progress
from tidelog.plan.maintenance import Abandoned, Keeper, Standing, Tally
from tidelog.plan.parts import AFTER, Mark
from tidelog.plan.readings import whole
from tidelog.program.check import check
from tidelog.program.model import Column, Relation, Rule, Stratum
from tidelog.program.strata import stratify
from tidelog.program.types import S64
from tidelog.syntax.errors import EvaluationError, InternalError
from tidelog.syntax.parser import parse

HELD, FACT = Mark.HELD, Mark.HELD | Mark.EXPLICIT
CLOSURE = """
.decl e(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number)
.output p
.output q
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
q(x) :- p(x, x).
"""
State = dict[str, dict[Row, Standing]]


class Kept:
    """A program on a local keeper."""

    def __init__(self, text: str = CLOSURE, algorithm: str = "dred", **facts: Collection[Row]) -> None:
        self.program = check(parse(text))
        self.strata: tuple[Stratum, ...] = tuple(stratify(self.program))
        self.keeper = LocalKeeper()
        self.maintenance = Maintenance(cast(Keeper, self.keeper), algorithm)
        for relation in self.program.relations.values():
            self.keeper.create(relation)
        self.begin()
        for name, rows in facts.items():
            self.keeper.assert_rows(name, list(rows))
        self.maintenance.update(facts)
        self.maintenance.commit()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.program.rules

    def begin(self) -> None:
        self.maintenance.begin(self.strata)

    def change(self, delete: Collection[Row] = (), insert: Collection[Row] = ()) -> None:
        """All of a commit to e but its end."""
        self.begin()
        self.keeper.retract_rows("e", list(delete))
        self.keeper.assert_rows("e", list(insert))
        self.maintenance.update({"e"})

    def commit(self, delete: Collection[Row] = (), insert: Collection[Row] = ()) -> None:
        self.change(delete, insert)
        self.maintenance.commit()

    def rows(self, name: str) -> set[Row]:
        return rows_of(self.program.relations[name], self.keeper.table(name))

    def state(self) -> State:
        return {name: self.keeper.standing(name) for name in self.program.relations}

    def agrees(self, edges: Collection[Row]) -> None:
        """The oracle's opinion, after a commit."""
        for name, rows in model_of(self.program, {"e": set(edges)}).items():
            assert self.rows(name) == rows, name
            assert self.keeper.size(name) == len(rows), name


def chain(length: int) -> set[Row]:
    return {(i, i + 1) for i in range(length)}


def relation(name: str, arity: int) -> Relation:
    return Relation(name, tuple(Column(f"c{i}", S64) for i in range(arity)))


def test_it_is_a_keeper_that_has_one_commit_at_a_time() -> None:
    keeper = LocalKeeper()
    assert keeper.name == "local"
    keeper.begin()
    with pytest.raises(InternalError, match="a commit is under way"):
        keeper.begin()
    keeper.rollback()
    keeper.begin()


# --- what is seen meanwhile -------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_until_the_commit_the_answers_are_the_old_ones(algorithm: str) -> None:
    edges = chain(4) | {(4, 0), (7, 8)}
    kept = Kept(algorithm=algorithm, e=edges)
    old = {name: kept.rows(name) for name in kept.program.relations}
    new_edges = edges - {(4, 0)} | {(8, 7), (2, 0)}
    for end in ("rollback", "commit"):
        kept.change([(4, 0)], [(8, 7), (2, 0)])
        for name, rows in old.items():
            assert kept.rows(name) == rows, name
            assert kept.keeper.size(name) == len(rows), name
        model = model_of(kept.program, {"e": new_edges})
        for name, rows in model.items():
            delta, made = kept.keeper.delta(name), kept.program.relations[name]
            assert rows_of(made, delta.deleted) == old[name] - rows
            assert rows_of(made, delta.inserted) == rows - old[name]
            assert (delta.deleted_count, delta.inserted_count) == kept.keeper.changed(name)
        getattr(kept.maintenance, end)()
        kept.agrees(edges if end == "rollback" else new_edges)


def test_the_old_answers_are_seen_also_in_the_middle_of_a_renewal() -> None:
    kept = Kept(e=chain(3))
    old, keeper = kept.rows("p"), kept.keeper
    kept.begin()
    keeper.retract_rows("e", [(0, 1)])
    keeper.renew(["p"])
    assert (kept.rows("p"), keeper.size("p")) == (old, 6)
    keeper.keep_going(Derive((whole_form(kept.rules[0]),)))
    assert (kept.rows("p"), keeper.size("p")) == (old, 6)
    keeper.renewed(["p"])
    assert (kept.rows("p"), keeper.size("p")) == (old, 6)
    assert keeper.changed("p") == (4, 0)
    kept.maintenance.rollback()
    assert kept.rows("p") == old


@pytest.mark.parametrize("algorithm", ["recompute", "dred", "counting"])
def test_facts_are_what_is_explicit_now(algorithm: str) -> None:
    kept = Kept(algorithm=algorithm, e={(1, 2), (2, 3)}, p={(7, 8), (1, 3)})

    def facts() -> list[set[Row]]:
        return [rows_of(kept.program.relations[n], kept.keeper.facts(n)) for n in ("e", "p", "q")]

    assert facts() == [{(1, 2), (2, 3)}, {(7, 8), (1, 3)}, set()]
    kept.change(delete={(1, 2), (9, 9)}, insert={(3, 4)})
    assert facts() == [{(2, 3), (3, 4)}, {(7, 8), (1, 3)}, set()]
    kept.maintenance.rollback()
    assert facts() == [{(1, 2), (2, 3)}, {(7, 8), (1, 3)}, set()]
    kept.commit(delete={(1, 2)})
    assert facts() == [{(2, 3)}, {(7, 8), (1, 3)}, set()]


def test_a_delta_stays_what_it_was() -> None:
    """Also once its rows are gone, and their places have been used again."""
    kept = Kept(e=chain(4))
    made = kept.program.relations["p"]
    kept.change([(3, 4)], [(0, 9)])
    delta, unread = kept.keeper.delta("p"), kept.keeper.delta("p")
    expected = {(0, 4), (1, 4), (2, 4), (3, 4)}, {(0, 9)}
    assert (rows_of(made, delta.deleted), rows_of(made, delta.inserted)) == expected
    kept.maintenance.commit()
    kept.commit([(0, 9)], [(i, i + 1) for i in range(20, 40)])
    kept.commit([(i, i + 1) for i in range(20, 40)])
    for one in (delta, unread):
        assert (rows_of(made, one.deleted), rows_of(made, one.inserted)) == expected


# --- what is taken back ------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_rollback_leaves_everything_as_it_was(algorithm: str) -> None:
    """Marks, numbers and traces; and commits go on from there."""
    edges = chain(6) | {(5, 1), (8, 8)}
    kept = Kept(algorithm=algorithm, e=edges)
    kept.commit([(2, 3)], [(2, 6)])
    edges = edges - {(2, 3)} | {(2, 6)}
    for delete, insert in (([(5, 1)], []), ([], [(6, 0)]), ([(0, 1), (8, 8)], [(9, 0), (2, 3)])):
        before = kept.state()
        kept.change(delete, insert)
        assert kept.state() != before
        kept.maintenance.rollback()
        assert kept.state() == before
        kept.agrees(edges)
        kept.commit(delete, insert)
        edges = edges - set(delete) | set(insert)
        kept.agrees(edges)


def test_relations_made_and_dropped_are_taken_back() -> None:
    kept = Kept(e=chain(3))
    keeper, before, old = kept.keeper, kept.state(), kept.rows("e")
    keeper.begin()
    keeper.create(relation("new", 1))
    keeper.assert_rows("new", [(1,)])
    assert (keeper.size("new"), keeper.changed("new")) == (0, (0, 1))
    keeper.drop("e")
    keeper.create(relation("e", 1))  # it has another shape now
    assert keeper.assert_rows("e", [(7,), (8,)]) == 2
    keeper.drop("e")
    keeper.create(relation("e", 3))
    keeper.assert_rows("e", [(7, 7, 7)])
    keeper.drop("q")
    keeper.drop("new")
    keeper.create(relation("new", 2))
    keeper.rollback()
    assert kept.state() == before
    assert kept.rows("e") == old
    with pytest.raises(KeyError):
        keeper.size("new")
    kept.commit([(0, 1)], [(3, 0)])  # nothing refers to what was there for a while
    kept.agrees({(1, 2), (2, 3), (3, 0)})


def test_relations_made_and_dropped_stay_so_after_a_commit() -> None:
    keeper = LocalKeeper()
    keeper.create(relation("e", 2))
    keeper.begin()
    keeper.assert_rows("e", [(1, 2)])
    keeper.create(relation("new", 1))
    keeper.assert_rows("new", [(5,)])
    keeper.commit()
    assert keeper.standing("new") == {(5,): Standing(FACT)}
    keeper.begin()
    keeper.drop("e")
    keeper.create(relation("e", 1))
    keeper.assert_rows("e", [(3,)])
    keeper.drop("new")
    keeper.commit()
    assert keeper.standing("e") == {(3,): Standing(FACT)}
    with pytest.raises(KeyError):
        keeper.size("new")


def closure(kept: Kept, keeper: LocalKeeper) -> None:
    """Renew the closure, all but the end."""
    keeper.renew(["p"])
    keeper.keep_going(Derive((whole_form(kept.rules[0]),)))
    keeper.keep_going(Fixpoint(("p",), delta_forms(kept.rules[1], {"p"})))


@pytest.mark.parametrize("last", ["renewed", "dropped", "made anew", "renewed again"])
def test_a_renewal_is_taken_back(last: str) -> None:
    kept = Kept(e=chain(4))
    keeper, before = kept.keeper, kept.state()
    kept.begin()
    keeper.retract_rows("e", [(0, 1)])
    keeper.assert_rows("e", [(4, 5)])
    keeper.assert_rows("p", [(9, 9)])
    closure(kept, keeper)
    keeper.renewed(["p"])
    assert keeper.changed("p") == (4, 5)
    if last != "renewed":
        keeper.drop("p")
    if last in ("made anew", "renewed again"):
        keeper.create(relation("p", 2))
        keeper.assert_rows("p", [(6, 6)])
    if last == "renewed again":
        closure(kept, keeper)
        keeper.renewed(["p"])
        assert (keeper.size("p"), keeper.changed("p")) == (0, (0, 11))
    kept.maintenance.rollback()
    assert kept.state() == before
    kept.commit([(1, 2)], [(4, 0)])
    kept.agrees({(0, 1), (2, 3), (3, 4), (4, 0)})


@pytest.mark.parametrize("lost", [False, True])
def test_a_renewal_that_fails_is_taken_back(lost: bool) -> None:
    """A task stops in the middle, when rows that are lost elsewhere are hidden."""
    kept = Kept(e=chain(6))
    keeper, before = kept.keeper, kept.state()
    indexes = {key: index.keys for key, index in keeper.relations["e"].indexes.items()}

    def stop(progress: Progress) -> None:
        if progress.round >= 2:
            raise KeyboardInterrupt

    kept.begin()
    if lost:
        keeper.retract_rows("e", [(0, 1), (2, 3)])
    keeper.assert_rows("e", [(7, 8)])
    keeper.renew(["p"])
    keeper.keep_going(Derive((whole_form(kept.rules[0]),)))
    with pytest.raises(KeyboardInterrupt):
        keeper.keep_going(Fixpoint(("p",), delta_forms(kept.rules[1], {"p"})), stop)
    kept.maintenance.rollback()
    assert kept.state() == before
    for key, keys in indexes.items():
        assert keeper.relations["e"].index(key).keys == keys
    kept.commit([(2, 3)], [(6, 0)])
    kept.agrees(chain(6) - {(2, 3)} | {(6, 0)})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_failing_expression_is_taken_back(algorithm: str) -> None:
    text = """
    .decl e(x: number, y: number)
    .decl p(x: number, y: number)
    .output p
    p(x, y) :- e(x, y).
    p(x, 100 / (5 - y)) :- p(x, y), e(y, _).
    """
    kept = Kept(text, algorithm, e=[(1, 2), (2, 3), (7, 4)])
    before = kept.state()
    for _ in range(2):
        with pytest.raises(EvaluationError):
            kept.change([(1, 2)], [(4, 5), (5, 5), (1, 4)])
        kept.maintenance.rollback()
        assert kept.state() == before
    kept.commit([(1, 2)], [(4, 4)])
    kept.agrees({(2, 3), (7, 4), (4, 4)})


def test_undo_leaves_assertions() -> None:
    kept = Kept(e=chain(3), p=[(0, 3), (5, 5)])
    keeper = kept.keeper
    kept.begin()
    keeper.assert_rows("p", [(0, 1), (8, 9)])
    keeper.retract_rows("p", [(5, 5)])
    asserted = keeper.standing("p")
    assert asserted[5, 5] == Standing(HELD | Mark.RETRACTED)
    assert asserted[8, 9] == Standing(Mark.EXPLICIT | Mark.ASSERTED)
    task = Tally(("p",), (), (whole(kept.rules[0], AFTER, AFTER),))
    assert keeper.keep_going(task).instances == {kept.rules[0].id: 3}
    assert keeper.changed("p") != (0, 0)
    keeper.undo(["p"])
    assert keeper.standing("p") == asserted
    assert keeper.changed("p") == (0, 0)
    kept.maintenance.update({"p"})
    kept.maintenance.commit()
    assert kept.rows("p") == {(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3), (8, 9)}


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("recompute", "dbsp")])
def test_a_task_over_its_budget_can_be_undone(algorithm: str) -> None:
    kept = Kept(algorithm=algorithm, e=chain(12) | {(12, 0)})
    keeper = kept.keeper
    before = kept.state()
    chosen = kept.maintenance._numbers["p"].algorithm
    [stratum] = [stratum for stratum in kept.strata if stratum.relations == ("p",)]
    change = StratumChange(stratum)
    for budget in (0, 1, 5, 20, 40, 80):
        kept.begin()
        keeper.retract_rows("e", [(12, 0), (4, 5)])
        keeper.assert_rows("e", [(3, 7)])
        asserted = kept.state()
        with pytest.raises(Abandoned):
            chosen.update(change, cast(Keeper, keeper), lambda progress: None, budget)
        keeper.undo(["p"])
        assert kept.state() == asserted, budget
        kept.maintenance.rollback()
        assert kept.state() == before, budget
    kept.commit([(12, 0), (4, 5)], [(3, 7)])
    kept.agrees(chain(12) - {(4, 5)} | {(3, 7)})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_progress_is_reported_and_work_can_be_stopped(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "SLICE", 10)
    edges = chain(12) | {(12, 0)}
    kept = Kept(algorithm=algorithm, e=edges)
    before = kept.state()
    reports: list[Progress] = []

    def change(stop_at: float) -> None:
        reports.clear()

        def watch(stratum: Stratum, progress: Progress) -> None:
            reports.append(progress)
            if len(reports) >= stop_at:
                raise KeyboardInterrupt

        kept.begin()
        kept.keeper.retract_rows("e", [(4, 5)])
        kept.keeper.assert_rows("e", [(3, 7)])
        kept.maintenance.update({"e"}, watch)

    change(math.inf)
    total = len(reports)
    assert total >= 3
    kept.maintenance.rollback()
    assert kept.state() == before
    for stop_at in {1, 2, total // 2, total}:
        with pytest.raises(KeyboardInterrupt):
            change(stop_at)
        kept.maintenance.rollback()
        assert kept.state() == before, stop_at
        kept.agrees(edges)
    change(math.inf)
    kept.maintenance.commit()
    kept.agrees(edges - {(4, 5)} | {(3, 7)})


# --- what it costs -------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["dred", "fbf"])
def test_no_numbers_are_kept_where_none_are_needed(algorithm: str) -> None:
    kept = Kept(algorithm=algorithm, e=chain(20) | {(20, 0)})
    kept.commit([(3, 4)], [(3, 9)])
    kept.commit([(20, 0)])
    known = kept.keeper.ledger("p").bytes
    assert (known["numbers"], known["traces"]) == (0, 0)
    assert known["marks"] == 2 * len(kept.keeper.relations["p"])
    memory = kept.keeper.memory()
    assert memory["traces"] == 0
    assert memory["numbers"] == kept.keeper.ledger("q").bytes["numbers"]  # counts of what is not recursive


@pytest.mark.parametrize(("algorithm", "traces"), [("elastic", False), ("ranked", False), ("counting", True)])
def test_two_small_integers_for_each_tuple_and_a_trace_only_where_it_is_kept(
    algorithm: str, traces: bool
) -> None:
    kept = Kept(algorithm=algorithm, e=chain(20) | {(20, 0)})
    kept.commit([(3, 4)], [(3, 9)])
    known, stored = kept.keeper.ledger("p").bytes, kept.keeper.relations["p"]
    assert known["numbers"] == 8 * len(stored)
    assert (known["traces"] > 0) == traces
    for standing in kept.keeper.standing("p").values():
        assert standing.first >= 1
        assert bool(standing.trace) == traces


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_change_over_and_over_takes_no_more_memory(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each deletion takes 25 tuples from the closure; relations are written anew now and then."""
    monkeypatch.setattr(keepers, "COMPACT_FROM", 200)
    kept = Kept(algorithm=algorithm, e=chain(10))
    before, peaks, started = kept.rows("p"), [0, 0], 0
    for turn in range(1000):
        kept.commit([(4, 5)])
        kept.commit((), [(4, 5)])
        peaks[turn // 500] = max(peaks[turn // 500], sum(kept.keeper.memory().values()))
        if turn == 499:
            started = resident()
    assert kept.rows("p") == before
    assert peaks[1] <= 1.05 * peaks[0]
    assert resident() - started < 20_000_000


TEXTS = """
.decl name(x: symbol, n: number)
.decl long(x: symbol, y: symbol, n: number)
.output long
long(x, cat(x, "!"), n * n + 1) :- name(x, n), strlen(x) > 1.
"""


def test_values_are_computed_once() -> None:
    """A kernel that misses the value of an expression asks for it; the next time it is there."""
    kept = Kept(TEXTS)
    keeper = kept.keeper

    def change(delete: list[Row], insert: list[Row]) -> list[int]:
        kept.begin()
        keeper.retract_rows("name", delete)
        keeper.assert_rows("name", insert)
        kept.maintenance.update({"name"})
        kept.maintenance.commit()
        return sorted(len(memo.stored) for memo in keeper.workshop.memos.values())

    rows: list[Row] = [(text, n) for text in ("ab", "cd", "efg", "h") for n in range(10)]
    assert change([], rows) == [3, 4, 10]  # cat of what is long enough, strlen, and the numbers
    assert kept.rows("long") == {(x, f"{x}!", n * n + 1) for x, n in rows if x != "h" and isinstance(n, int)}
    assert change(rows[:20], [("ab", 3)]) == [3, 4, 10]
    assert change([], rows[:20]) == [3, 4, 10]
    assert change([], [("ijk", 11)]) == [4, 5, 11]


def test_a_sweep_asks_once_for_each_value() -> None:
    text = """
    .decl e(x: number, y: number)
    .decl p(x: number, y: number)
    .output p
    p(x, y) :- e(x, y).
    p(x, (y * 7 + 3) % 20) :- p(x, y), x < 50.
    """
    kept = Kept(text, "dred", e=[(i, i) for i in range(10)])
    kept.commit((), [(i, i % 4) for i in range(20, 45)])
    expected = {(i, (i % 4 * 7 + 3) % 20) for i in range(20, 45)}
    assert expected <= kept.rows("p")
    for _ in range(3):
        kept.commit([(i, i % 4) for i in range(20, 45)])
        kept.commit((), [(i, i % 4) for i in range(20, 45)])
    [memo] = [memo for memo in kept.keeper.workshop.memos.values() if len(memo.stored)]
    values = {row[1] for row in kept.rows("p")}
    assert 0 < len(memo.stored) <= len(values)
