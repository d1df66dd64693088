"""Random histories, stored: whenever the database is opened again it is the same, and every version stays.

After each transaction the database may be closed and opened again, on either engine. What it holds is what
the oracle says, and so is every version, read from the files alone.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.oracle import Model
from tests.properties.expected import Expected
from tests.properties.histories import generate_history, splits
from tests.properties.replay import _perform, _state_problem
from tidelog import Database, TidelogError

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_stored_histories_agree_with_the_oracle(seed: int, tmp_path: Path) -> None:
    history = generate_history(seed)
    if seed % 4 == 1:
        history = splits(history)[1]  # many small commits, whose files become one now and then
    draw = random.Random(seed)
    models = Expected(history).models
    stored: dict[int, tuple[Model, list[tuple[int, str]]]] = {}

    def again(database: Database | None, program: str) -> Database:
        """The database on either engine, the same as before."""
        if database is not None:
            before = known(database)
            database.close()
        opened = Database(program, store=tmp_path, engine=draw.choice(("local", "substitution")))
        if database is not None:
            assert known(opened) == before
        return opened

    database = again(None, history.text)
    for i, transaction in enumerate(history.transactions):
        if draw.random() < 0.4:
            database = again(database, draw.choice((history.text, "")))
        try:
            _perform(database, transaction, history.declared)
        except TidelogError:
            assert transaction.ending == "failure"
        assert _state_problem(database, models[i + 1]) is None, f"after transaction {i}"
        assert database.versions == list(range(database.version + 1))
        stored[database.version] = (models[i + 1], [(rule.id, rule.text) for rule in database.rules])
    database = again(database, "")
    for version, (model, rules) in stored.items():
        view = database.as_of(version)
        found = {name: set(view[name]) for name in view if len(view[name])}
        assert found == {name: rows for name, rows in model.items() if rows}, f"version {version}"
        assert view.rules == rules
    database.close()


def known(database: Database) -> object:
    """What users can know of a database, but for its answers."""
    keys = {name: dict(rows._rows) for name, rows in database._commits.keys._relations.items()}
    relations = dict(database.relations)
    return database.version, relations, database.rules, keys
