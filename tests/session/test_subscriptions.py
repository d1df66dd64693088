"""Functions that are told of changes."""

from __future__ import annotations

import logging
import threading

import pytest

from tests.session.states import GRAPH, TYPED, database
from tidelog import Changes, TidelogError, UnknownRelationError

pytestmark = pytest.mark.usefixtures("engine")


def test_subscribers_are_told() -> None:
    db = database(GRAPH)
    told: list[tuple[list[tuple[object, int]], int]] = []
    subscription = db.subscribe("path", lambda changes, version: told.append((list(changes), version)))
    db.commit(insert={"edge": [(1, 2)]})
    db.commit(insert={"colour": [(1,)]})
    db.commit(delete={"edge": [(1, 2)]})
    assert told == [([((1, 2), 1)], 1), ([((1, 2), -1)], 3)]
    subscription.cancel()
    assert repr(subscription) == "<Subscription to path, cancelled>"
    db.commit(insert={"edge": [(1, 2)]})
    assert len(told) == 2


def test_several_subscribers_in_order() -> None:
    db = database(GRAPH)
    told: list[str] = []
    db.subscribe("edge", lambda changes, version: told.append(f"first {version}"))
    db.subscribe("edge", lambda changes, version: told.append(f"second {version}"))
    db.commit(insert={"edge": [(1, 2)]})
    db.commit(insert={"edge": [(2, 3)]})
    assert told == ["first 1", "second 1", "first 2", "second 2"]


def test_a_subscriber_finds_the_commit_done() -> None:
    db = database(GRAPH)
    found: list[object] = []

    def look(changes: Changes, version: int) -> None:
        found.append((list(db["path"]), db.version, version, changes.inserted))

    db.subscribe("path", look)
    db.commit(insert={"edge": [(1, 2)]})
    assert found == [([(1, 2)], 1, 1, [(1, 2)])]


def test_a_subscriber_may_commit() -> None:
    """What it commits is told after the commit that it was told of."""
    db = database(GRAPH + "seen(0).")
    told: list[tuple[str, int]] = []

    def follow(changes: Changes, version: int) -> None:
        told.append(("follow", version))
        for row in changes.inserted:
            last = int(row[1])
            if last < 4:
                db.commit(insert={"edge": [(last, last + 1)]})
        told.append(("followed", version))

    db.subscribe("edge", follow)
    db.subscribe("edge", lambda changes, version: told.append(("after", version)))
    db.commit(insert={"edge": [(1, 2)]})
    assert list(db["edge"]) == [(1, 2), (2, 3), (3, 4)]
    assert told == [(word, version) for version in (1, 2, 3) for word in ("follow", "followed", "after")]


def test_a_failing_subscriber_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    db = database(GRAPH)
    told: list[int] = []

    def fail(changes: Changes, version: int) -> None:
        raise ValueError("no good")

    db.subscribe("edge", fail)
    db.subscribe("edge", lambda changes, version: told.append(version))
    with caplog.at_level(logging.ERROR, "tidelog"):
        db.commit(insert={"edge": [(1, 2)]})
    assert (told, list(db["path"])) == ([1], [(1, 2)])
    (record,) = caplog.records
    assert record.getMessage() == "a subscriber to edge failed on commit 1"
    assert record.exc_info is not None and str(record.exc_info[1]) == "no good"


def test_a_subscriber_that_ends_the_program_lets_the_others_hear_first() -> None:
    db = database(GRAPH)
    told: list[int] = []

    def leave(changes: Changes, version: int) -> None:
        raise SystemExit(3)

    db.subscribe("edge", leave)
    db.subscribe("path", lambda changes, version: told.append(version))
    with pytest.raises(SystemExit):
        db.commit(insert={"edge": [(1, 2)]})
    assert (told, list(db["path"])) == ([1], [(1, 2)])
    with pytest.raises(SystemExit):
        db.commit(insert={"edge": [(2, 3)]})
    assert told == [1, 2]


def test_an_interrupt_ends_a_chain_of_commits(caplog: pytest.LogCaptureFixture) -> None:
    """Two subscribers end the program, one of which has committed again: nobody is told of that one yet."""
    db = database(GRAPH)
    told: list[int] = []

    def again(changes: Changes, version: int) -> None:
        db.commit(insert={"edge": [(version, version + 1)]})
        raise KeyboardInterrupt

    def leave(changes: Changes, version: int) -> None:
        raise SystemExit(3)

    first, second = db.subscribe("edge", again), db.subscribe("edge", leave)
    db.subscribe("edge", lambda changes, version: told.append(version))
    with caplog.at_level(logging.ERROR, "tidelog"), pytest.raises(KeyboardInterrupt):
        db.commit(insert={"edge": [(0, 1)]})
    assert [record.getMessage() for record in caplog.records] == [
        "another subscriber, on commit 1: SystemExit(3)"
    ]
    assert (told, len(db["edge"])) == ([1], 2)
    first.cancel()
    second.cancel()
    db.commit(insert={"edge": [(7, 8)]})
    assert told == [1, 2, 3]


def test_a_subscriber_is_a_function() -> None:
    with pytest.raises(TypeError, match="a subscriber is a function, not NoneType"):
        database(GRAPH).subscribe("path", None)  # type: ignore[arg-type]


def test_nobody_is_told_of_what_did_not_happen() -> None:
    db = database("q(1 / x) :- p(x).")
    told: list[int] = []
    db.subscribe("p", lambda changes, version: told.append(version))
    with pytest.raises(TidelogError):
        db.commit(insert={"p": [(0,)]})
    db.commit(insert={"p": [(1,)]})
    assert told == [1]


def test_cancelled_while_waiting() -> None:
    db = database(GRAPH)
    told: list[int] = []
    second = db.subscribe("path", lambda changes, version: told.append(version))
    db.subscribe("edge", lambda changes, version: second.cancel())
    db.commit(insert={"edge": [(1, 2)]})
    assert told == []


def test_relations_that_come_later() -> None:
    db = database()
    told: list[list[tuple[object, ...]]] = []
    db.subscribe("path", lambda changes, version: told.append(list(changes.inserted)))
    db.commit(insert={"edge": [(1, 2)]})
    db.commit(add_rules=["path(x, y) :- edge(x, y)."])
    assert told == [[(1, 2)]]
    with pytest.raises(UnknownRelationError):
        database(TYPED).subscribe("path", print)


def test_a_closed_database_tells_nobody() -> None:
    db = database(GRAPH)
    db.close()
    with pytest.raises(TidelogError) as caught:
        db.subscribe("path", print)
    assert str(caught.value) == "error[TL0515]: this database is closed"


def test_commits_of_several_threads_are_told_in_order() -> None:
    db = database(GRAPH)
    told: list[int] = []
    db.subscribe("edge", lambda changes, version: told.append(version))

    def work(number: int) -> None:
        for i in range(10):
            db.commit(insert={"edge": [(1000 * number + i, -1)]})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == list(range(1, 31))
