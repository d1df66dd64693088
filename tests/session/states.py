"""What tests of databases share: databases on an engine, and everything there is to know of one."""

from __future__ import annotations

from typing import Any

from tidelog import Database
from tidelog.session.maintained import Maintained

ENGINE = "substitution"  # which one is up to the fixture of that name

GRAPH = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
TYPED = """
input relation Edge(from: s64, to: s64)
output relation Path(from: s64, to: s64)
Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
"""


def database(program: str = "", **options: Any) -> Database:
    return Database(program, **{"engine": ENGINE, **options})


def whole_state(db: Database) -> object:
    """All that a database holds: tuples with their marks and numbers, program, numbers, keys, report."""
    db.report  # noqa: B018  (derives what the program alone says)
    backend, definition = db._commits.backend, db._commits.state.definition
    assert isinstance(backend, Maintained)
    keeper = backend.keeper
    return (
        {name: dict(sorted(keeper.standing(name).items(), key=repr)) for name in backend._stored},
        definition.program,
        definition.strata,
        definition.given,
        db.rules,
        definition.numbers,
        definition.next_rule,
        {name: dict(rows._rows) for name, rows in db._commits.keys._relations.items()},
        backend.maintenance.strata,
        db.report,
        db.version,
    )
