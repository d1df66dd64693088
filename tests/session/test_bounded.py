"""A commit that stops when there are too many tuples, and leaves no trace."""

from __future__ import annotations

from typing import cast

import pytest

from tests.session import states
from tests.session.states import GRAPH, whole_state
from tidelog import Database
from tidelog.execute import open_executor
from tidelog.plan.executor import Progress
from tidelog.plan.maintenance import Keeper
from tidelog.program.model import Stratum
from tidelog.session.backend import Backend
from tidelog.session.bounded import Bound, Outgrown
from tidelog.session.maintained import Maintained
from tidelog.session.options import Options

pytestmark = pytest.mark.usefixtures("engine")


class Bounded(Options):
    """There are at most twenty tuples in all."""

    def keeping(self) -> Backend:
        keeper = cast(Keeper, open_executor(self.engine, keep=True))
        return Maintained(keeper, self.chosen(), self.watch, place="here", limit=20)


def bounded(program: str, algorithm: str = "auto") -> Database:
    """A database that has so many at most."""
    db = Database(program, engine=states.ENGINE, algorithm=algorithm)
    db._commits.options = Bounded(**vars(db._commits.options))
    return db


def chain(*numbers: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in numbers]


@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "recompute"])
@pytest.mark.parametrize("facts", [chain(4, 5), chain(*range(10, 27)), chain(4) + chain(*range(10, 20))])
def test_too_many(algorithm: str, facts: list[tuple[int, int]]) -> None:
    """By what follows, by facts alone, and by both."""
    db = bounded(GRAPH + "twice(x, y, z) :- path(x, y), path(y, z).", algorithm)
    db.commit(insert={"edge": chain(1, 2, 3)})  # 3 edges, 6 paths, 4 twice
    assert [line.way for line in db.report.strata] == ["here: 6 tuples", "here: 4 tuples"]
    before = whole_state(db)
    with pytest.raises(Outgrown):
        db.commit(insert={"edge": facts}, add_rules=["loop(x) :- path(x, x)."])
    assert whole_state(db) == before
    db.commit(delete={"edge": [(2, 3)]}, insert={"edge": chain(7, 8)})
    assert len(db["edge"]) + len(db["path"]) + len(db["twice"]) == 4 + 5 + 1


def test_exactly_as_many_as_may_be() -> None:
    db = bounded("p(x) :- q(x).")
    db.commit(insert={"q": [(i,) for i in range(10)]})
    with pytest.raises(Outgrown):
        db.commit(insert={"q": [(10,)]})
    db.commit(delete={"q": [(0,)]}, insert={"q": [(10,)]})
    assert (len(db["q"]), len(db["p"]), db.version) == (10, 10, 2)


def test_tuples_told_of_twice_do_not_count() -> None:
    """Tasks may tell of tuples that were there, and of the same ones again."""
    first, second = (Stratum(i, (name,), (), ()) for i, name in enumerate(("p", "q")))
    bound = Bound(20, ["p", "q"], {"p": 8, "q": 4}.__getitem__)
    bound.check()
    for stratum in (first, second) * 3:
        for round in (1, 2):
            bound(stratum, Progress(round, 8))
    bound(first, Progress(3, 16))
    with pytest.raises(Outgrown):
        bound(first, Progress(4, 17))
