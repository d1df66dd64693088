"""A batch of a stream is committed once, whoever brings it."""

from __future__ import annotations

import pytest

from tests.session.states import TYPED
from tidelog import Database, DataError


@pytest.fixture
def db() -> Database:
    return Database(TYPED, engine="substitution")


def test_a_batch_is_committed_once(db: Database) -> None:
    for number in (0, 0, 3, 2):
        with db.transaction(batch=("orders", number)) as tx:
            tx.insert("Edge", [(number, db.version + 10)])
    assert list(db["Edge"]) == [(0, 10), (3, 11)]
    assert db.version == 2
    assert (len(tx.changes), tx.changes.version, tx.report.version) == (0, 2, 2)


def test_streams_are_apart(db: Database) -> None:
    for stream in ("orders", "items", "orders"):
        with db.transaction(batch=(stream, 0)) as tx:
            tx.insert("Edge", [(len(stream), db.version)])
    assert list(db["Edge"]) == [(5, 1), (6, 0)]


def test_a_batch_without_rows_is_a_commit(db: Database) -> None:
    for rows in ([], [(1, 2)]):
        with db.transaction(batch=("orders", 0)) as tx:
            tx.insert("Edge", rows)
    assert (db.version, list(db["Edge"])) == (1, [])


def test_a_batch_that_fails_may_come_again(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), db.transaction(batch=("orders", 0)) as tx:
        tx.insert("Edge", [(1 // 0, 2)])
    with db.transaction(batch=("orders", 0)) as tx:
        tx.insert("Edge", [(1, 2)])
    assert list(db["Path"]) == [(1, 2)]


@pytest.mark.parametrize("batch", ["orders", ("orders",), (17, "orders"), ("orders", -1), ("orders", True)])
def test_what_is_no_batch(db: Database, batch: object) -> None:
    with pytest.raises(DataError) as caught:
        db.transaction(batch=batch)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"error[TL0504]: {batch!r} is no batch\n"
        '  = hint: a batch is the name of a stream and a number from 0 on, as in ("orders", 17)'
    )
    db.commit(insert={"Edge": [(1, 2)]})  # nothing has been begun
