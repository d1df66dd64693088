"""Changes that are taken up in portions: the same answers, and no instance twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.running import keeper_of
from tidelog import Database
from tidelog.execute.local.keep.keeper import LocalKeeper
from tidelog.plan.executor import Progress, Task, Watch
from tidelog.plan.maintenance import Maintaining, PhaseReport

PROGRAM = """
.decl edge(x: number, y: number)
.decl closed(x: number)
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z), !closed(y).
"""
NODES = 14

Pair = tuple[int, ...]
Facts = dict[str, set[Pair]]


def closure(facts: Facts) -> set[Pair]:
    paths, closed = facts["edge"] | facts["path"], {x for (x,) in facts["closed"]}
    while more := {(x, z) for x, y in paths if y not in closed for w, z in paths if w == y} - paths:
        paths = paths | more
    return paths


def phases(db: Database) -> Counter[str]:
    assert db.report is not None
    return Counter({phase.name: phase.instances for line in db.report.strata for phase in line.phases})


@pytest.mark.parametrize("seed", range(8))
def test_portions_are_all_there_is(seed: int) -> None:
    rng = random.Random(seed)
    whole, gradual = (Database(PROGRAM, algorithm="ranked") for _ in range(2))
    keeper_of(whole).gradual_from = 1000
    keeper_of(gradual).gradual_from = 1
    facts: Facts = {"edge": set(), "path": set(), "closed": set()}
    inserted = 0
    for _ in range(25):
        pairs = [(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(12)]
        new: Facts = {
            "edge": set(pairs[:8]),
            "path": set(pairs[8:10]),
            "closed": {(x,) for x, _ in pairs[11:]},
        }
        old = {name: set(rng.sample(sorted(rows), len(rows) // 3)) for name, rows in facts.items()}
        adding = rng.random() < 0.4
        if adding:
            old = {name: set() for name in facts}
            new["closed"] = set()
        elif rng.random() < 0.3:
            new = {}
        for name in facts:
            facts[name] = (facts[name] - old[name]) | new.get(name, set())
        changes = [
            db.commit(
                delete={name: sorted(rows) for name, rows in old.items()},
                insert={name: sorted(rows) for name, rows in new.items()},
            )
            for db in (whole, gradual)
        ]
        assert set(whole["path"]) == set(gradual["path"]) == closure(facts)
        assert sorted(changes[0]["path"].inserted) == sorted(changes[1]["path"].inserted)
        assert sorted(changes[0]["path"].deleted) == sorted(changes[1]["path"].deleted)
        if adding:  # nothing falls, so the instances that are new are the same
            assert phases(whole)["insert"] == phases(gradual)["insert"]
            inserted += phases(whole)["insert"]
    assert inserted > 0


def shares(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The shares of changes that tasks tell of from now on."""
    seen: list[float] = []
    keep_going = LocalKeeper.keep_going

    def watched(
        keeper: LocalKeeper, task: Maintaining | Task, watch: Watch, budget: int | None
    ) -> PhaseReport:
        def tell(progress: Progress) -> None:
            seen.append(progress.share)
            watch(progress)

        return keep_going(keeper, task, tell, budget)

    monkeypatch.setattr(LocalKeeper, "keep_going", watched)
    return seen


def test_progress_tells_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(PROGRAM, algorithm="ranked")
    edges = [(100 * i + j, 100 * i + j + 1) for i in range(70) for j in range(9)]
    db.commit(insert={"edge": edges})
    seen = shares(monkeypatch)
    db.commit(delete={"edge": edges[::9]})  # 70 changes: first of all an eighth of them
    assert seen[:3] == [1 / 4, 1 / 2, 1.0]
    assert set(seen[3:]) <= {1.0}
    seen.clear()
    db.commit(insert={"edge": edges[::9][:15]})  # too few
    assert seen == []


def test_what_is_touched_and_not_changed_makes_no_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 300 edges has two witnesses; one fact takes away one of each, and one edge loses both."""
    program = """
    .decl road(r: number, x: number, y: number)
    .decl open(r: number)
    .decl edge(x: number, y: number)
    .decl path(x: number, y: number)
    edge(x, y) :- road(r, x, y), open(r).
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    """
    db = Database(program, algorithm="ranked")
    roads = [(r, i, i + 1) for i in range(300) for r in (1, 2) if (r, i) != (2, 299)]
    db.commit(insert={"road": roads, "open": [(1,), (2,)]})
    seen = shares(monkeypatch)
    changes = db.commit(delete={"open": [(1,)]})
    assert len(changes["edge"].deleted) == 1
    assert set(seen) <= {1.0}
