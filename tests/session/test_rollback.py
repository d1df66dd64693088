"""All or nothing: whatever goes wrong, and wherever, the whole state is what it was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from tests.session.states import database, whole_state
from tidelog import Database, EvaluationError, TidelogError, Transaction
from tidelog.execute.uninterrupted import Uninterrupted

pytestmark = pytest.mark.usefixtures("engine")

PROGRAM = """
input relation Edge(from: s64, to: s64)
input relation Node(id: s64, weight: s64) primary key (id)
output relation Path(from: s64, to: s64)
output relation Leaf(id: s64)
output relation Total(sum: s64)
output relation Ratio(id: s64, value: s64)
Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
Leaf(x) :- Edge(_, x), not Edge(x, _).
Total(s) :- Node(_, w), var s = w.group_by(()).sum().
Ratio(x, 100 / w) :- Node(x, w), Total(_).
"""


def filled(**options: object) -> Database:
    db = database(PROGRAM, **options)
    db.commit(insert={"Edge": [(1, 2), (2, 3), (3, 1), (3, 4)], "Node": [(1, 10), (2, 20)], "Path": [(7, 8)]})
    db.commit(delete={"Edge": [(3, 1)]}, add_rules=["Leaf(y) :- Path(7, y)."])
    return db


def much(tx: Transaction) -> None:
    """A bit of everything."""
    tx.insert("Edge", [(4, 1), (4, 5)])
    tx.delete("Edge", [(1, 2)])
    tx.delete("Path", [(7, 8)])
    tx.insert_or_update("Node", [(2, 25), (3, 30)])
    tx.delete_key("Node", [1])
    tx.remove_rule("Path(x, z) :- Path(x, y), Edge(y, z).")
    tx.add_rule("relation New(x: s64)\nNew(x) :- Leaf(x), not Node(x, _).")
    tx.add_rule("Path(x, x) :- Edge(x, _), 0 < count : { Edge(x, _) }.")


def bad_row(tx: Transaction) -> None:
    tx.insert("Edge", [(0, 0)] * 999 + [(0, "x")])


def bad_key(tx: Transaction) -> None:
    tx.insert("Node", [(4, 1), (2, 99)])


def unsafe_rule(tx: Transaction) -> None:
    tx.add_rule("Leaf(z) :- Edge(x, y).")


def negative_cycle(tx: Transaction) -> None:
    tx.add_rule("Edge(x, y) :- Path(x, y), not Leaf(y).")


def wrong_type(tx: Transaction) -> None:
    tx.add_rule('Leaf(x) :- Edge(x, "a").')


def unknown_rule(tx: Transaction) -> None:
    tx.remove_rule("Leaf(x) :- Leaf(x).")


def failing_function(tx: Transaction) -> None:
    tx.insert("Node", [(50, 0)])  # Ratio is the last stratum


def overflowing_sum(tx: Transaction) -> None:
    tx.insert("Node", [(50, 2**63 - 1), (51, 2**63 - 1)])


def own_exception(tx: Transaction) -> None:
    raise RuntimeError("not ours")


def interrupt(tx: Transaction) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("algorithm", ["auto", "dred", "fbf", "counting", "elastic", "dbsp", "recompute"])
@pytest.mark.parametrize(
    "go_wrong",
    [
        bad_row,
        bad_key,
        unsafe_rule,
        negative_cycle,
        wrong_type,
        unknown_rule,
        failing_function,
        overflowing_sum,
        own_exception,
        interrupt,
    ],
)
def test_what_goes_wrong_leaves_no_trace(go_wrong: Callable[[Transaction], None], algorithm: str) -> None:
    db = filled(algorithm=algorithm)
    before, path = whole_state(db), list(db["Path"])
    with pytest.raises((TidelogError, RuntimeError, KeyboardInterrupt)), db.transaction() as tx:
        much(tx)
        go_wrong(tx)
    assert whole_state(db) == before
    assert list(db["Path"]) == path
    with db.transaction() as tx:  # and it goes on from there
        much(tx)
    other = filled(algorithm=algorithm)
    with other.transaction() as tx:
        much(tx)
    assert {name: list(db[name]) for name in db} == {name: list(other[name]) for name in other}


def test_an_error_at_the_last_of_many_rows() -> None:
    db = database("q(100 / x) :- p(x). r(x) :- q(x).")
    db.commit(insert={"p": [(1,), (2,)]})
    before = whole_state(db)
    numbers = [*range(3, 20_000), 0]
    with pytest.raises(EvaluationError) as caught:
        db.commit(insert={"p": pa.table({"c0": numbers})}, delete={"p": [(1,)]})
    assert caught.value.values == {"x": 0}
    assert whole_state(db) == before
    db.commit(insert={"p": [(5,)]})
    assert list(db["r"]) == [(20,), (50,), (100,)]


def test_when_there_is_no_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelog.maintain.update import Maintenance

    db = filled()

    def fail(self: Maintenance) -> None:
        raise MemoryError

    answer = db["Path"]
    with monkeypatch.context() as patch:
        patch.setattr(Maintenance, "rollback", fail)
        with pytest.raises(MemoryError):
            db.commit(insert={"Node": [(50, 0)]})
    with pytest.raises(TidelogError, match="TL0515"):
        db["Path"]
    with pytest.raises(TidelogError, match="TL0515"):
        list(answer)


@pytest.mark.parametrize("commit", [False, True])
def test_rows_that_end_the_transaction(commit: bool) -> None:
    """What would give rows, or keys, ends the transaction that they are for: they are not lost in silence."""
    db = filled()

    def giving(value: object) -> Iterator[object]:
        yield value
        tx.commit() if commit else tx.rollback()

    uses: list[Callable[[Transaction], None]] = [
        lambda tx: tx.insert("Edge", giving((5, 6))),
        lambda tx: tx.insert_or_update("Node", giving((1, 5))),
        lambda tx: tx.delete_key("Node", giving(1)),
    ]
    for use in uses:
        version, before = db.version, {name: list(db[name]) for name in db}
        tx = db.transaction()
        with pytest.raises(TidelogError, match="TL0508"):
            use(tx)
        assert (db.version, {name: list(db[name]) for name in db}) == (version + commit, before)
    db.commit(delete={"Node": [(1, 10)]})
    db.commit(insert={"Node": [(1, 11)]})


def test_rollback() -> None:
    db = filled()
    before = whole_state(db)
    tx = db.transaction()
    much(tx)
    tx.rollback()
    assert whole_state(db) == before


def test_errors_in_the_first_commit() -> None:
    for program in (PROGRAM, PROGRAM + "Edge(1, 2)."):
        db = database(program)
        with pytest.raises(TidelogError):
            db.commit(insert={"Edge": [(2, 3)], "Node": [(1, 0)]})
        assert (db.version, list(db["Node"])) == (0, [])
        db.commit(insert={"Edge": [(2, 3)], "Node": [(1, 1)]})
        assert list(db["Ratio"]) == [(1, 100)]


def test_a_program_that_fails_by_itself() -> None:
    db = database("p(0). q(1 / x) :- p(x).")
    for _ in range(2):
        with pytest.raises(TidelogError, match="TL0401"):
            list(db["p"])
    with pytest.raises(TidelogError, match="TL0401"):
        db.commit(delete={"p": [(0,)]})


def test_an_interrupt_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a commit is interrupted, it has either not happened or it has."""
    from tidelog.maintain.update import Maintenance
    from tidelog.session.maintained import Maintained

    places: list[tuple[type, str]] = [
        (Maintenance, "begin"),
        (Maintenance, "update"),
        (Maintained, "_apply"),
        (Maintained, "_changed"),
    ]
    for owner, name in places:
        db = filled()
        before = whole_state(db)
        work = getattr(owner, name)

        def interrupted(*args: object, work: Callable[..., object] = work) -> object:
            work(*args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupted)
            with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
                much(tx)
        assert whole_state(db) == before


def test_an_interrupt_while_the_changes_become_final(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelog.session.maintained import Maintained

    db = filled()
    commit = Maintained.commit

    def interrupted(self: Maintained) -> None:
        signal.raise_signal(signal.SIGINT)
        commit(self)

    with monkeypatch.context() as patch:
        patch.setattr(Maintained, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt), db.transaction() as tx:
            much(tx)
    assert tx.changes.version == db.version == 3
    assert list(db["Node"]) == [(2, 25), (3, 30)]
    with db.transaction() as tx:
        tx.modify("Node", 2, {"weight": 5})
    assert list(db["Node"]) == [(2, 5), (3, 30)]


def test_interrupts_are_held_back() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        reached.append(1)
    assert reached == [1]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as held:
        signal.raise_signal(signal.SIGINT)
        held.poll()
        reached.append(2)
    assert reached == [1]
    other = threading.Thread(target=lambda: Uninterrupted().__enter__())
    other.start()
    other.join()


def late(*_: object) -> None:
    raise TimeoutError


@pytest.fixture
def limits() -> Iterator[None]:
    """Time limits as people make them: an alarm that raises."""
    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("limits")
def test_all_that_came_is_handled() -> None:
    with pytest.raises(TimeoutError) as caught, Uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGALRM)
    assert isinstance(caught.value.__context__, KeyboardInterrupt)
    assert signal.getsignal(signal.SIGALRM) is late


@pytest.mark.usefixtures("limits")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # while collecting garbage
def test_commits_with_a_time_limit() -> None:
    db = filled()
    draw, missed = random.Random(1), 0
    for number in range(400):
        version, before = db.version, set(db["Edge"])
        edges = {(number % 7, number % 5), (number % 3, 9)}
        insert, delete = sorted(edges - before), sorted(edges & before)
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.001))
            db.commit(insert={"Edge": insert}, delete={"Edge": delete})
            signal.setitimer(signal.ITIMER_REAL, 0)
        except TimeoutError:
            missed += 1
        assert set(db["Edge"]) == (before if db.version == version else before ^ edges)
        sources = {x for x, _ in db["Edge"]}
        assert {x for (x,) in db["Leaf"]} == {y for _, y in db["Edge"] if y not in sources} | {8}
    assert missed > 20


def test_an_interrupt_while_the_engine_is_imported() -> None:
    """It comes when that is done: Numba, half imported, could not be used in this process any more."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "interrupted\n[(1,)]\n", done.stderr


INTERRUPTED_IMPORT = """
import signal, sys
from tidelog import Database

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.types":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
db = Database("q(x) :- p(x).")
try:
    db.commit(insert={"p": [(1,)]})
except KeyboardInterrupt:
    print("interrupted")
db.commit(insert={"p": [(1,)]})
print(list(db["q"]))
"""


def test_readers_see_the_last_commit() -> None:
    """While others commit, a reader finds whole commits only, and answers taken stay as they were."""
    db = database("q(x) :- p(x). r(x) :- q(x).")
    db.commit(insert={"p": [(0,)]})
    wrong: list[object] = []
    end = threading.Event()

    def read() -> None:
        while not end.is_set():
            taken = [db["r"], db["q"], db["p"]]
            found = [list(answer) for answer in taken]
            if any(not rows or rows != list(taken[i]) for i, rows in enumerate(found)):
                wrong.append(found)
            if any(rows != [(n,) for n in range(len(rows))] for rows in found):
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 60):
        db.commit(insert={"p": [(number,)]})
        time.sleep(0.001)
    end.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(db["r"]) == 60


@pytest.mark.parametrize("what", ["transaction", "vacuum"])
def test_an_interrupt_when_a_transaction_begins_gives_the_turn_back(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = filled() if what == "transaction" else Database("q(x) :- p(x).", store=tmp_path / "store")
    interrupted = 0
    for at in range(1, 20):
        calls = 0

        def counted(at: int = at) -> int:
            nonlocal calls
            calls += 1
            if calls == at:
                signal.raise_signal(signal.SIGINT)
            return threading.get_ident()

        with monkeypatch.context() as patch:
            patch.setattr("tidelog.session.writer.get_ident", counted)
            try:
                db.transaction().rollback() if what == "transaction" else db.vacuum(1)
            except KeyboardInterrupt:
                interrupted += 1
        db.transaction().rollback()  # or it would have to wait
    assert interrupted >= 3


ENDING = ("transaction", "committing", "database", "keys", "writer", "uninterrupted", "weakref")


def interrupted_at(place: int, work: Callable[[], object]) -> bool:
    """Do something with Ctrl-C pressed at a line of what ends transactions; whether it has as many lines."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if Path(frame.f_code.co_filename).stem not in ENDING:
            return None
        if event == "line":
            lines += 1
            if lines == place:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except (KeyboardInterrupt, RuntimeError):
        pass
    finally:
        sys.settrace(before)
    return lines >= place


def few(tx: Transaction) -> None:
    tx.insert("Edge", [(4, 5)])
    tx.insert_or_update("Node", [(2, 25), (3, 30)])


@pytest.mark.parametrize("commit", [True, False])
def test_an_interrupt_at_the_end_of_a_transaction(commit: bool) -> None:
    """Wherever it comes, the transaction is over, or it is open and can be rolled back."""
    seen, place, reached = set(), 0, True
    while reached:
        place += 1
        db = filled()
        before = whole_state(db)
        tx = db.transaction()
        few(tx)
        reached = interrupted_at(place, tx.commit if commit else tx.rollback)
        was_open = True
        try:
            tx.rollback()
        except TidelogError:
            was_open = False
        committed = db.version == 3
        seen.add((was_open, committed))
        if committed:
            assert tx.changes.version == 3
            assert list(db["Node"]) == [(1, 10), (2, 25), (3, 30)]
        else:
            assert whole_state(db) == before
        with db.transaction() as tx:  # or it would be told that one is open
            tx.modify("Node", 2, {"weight": 5})
    assert place > 10
    outcomes = {(True, False), (False, False), (False, True)}
    assert seen == (outcomes if commit else outcomes - {(False, True)})


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_anywhere_in_a_block(fails: bool) -> None:
    """Once nobody has the transaction any more, the next one can begin."""

    def work() -> None:
        with db.transaction() as tx:
            few(tx)
            if fails:
                raise RuntimeError

    place, reached = 0, True
    while reached:
        place += 1
        db = filled()
        before = whole_state(db)
        reached = interrupted_at(place, work)
        if db.version == 3:
            assert not fails and list(db["Node"]) == [(1, 10), (2, 25), (3, 30)]
        else:
            assert whole_state(db) == before
        with db.transaction() as tx:
            tx.modify("Node", 2, {"weight": 5})
    assert place > 10


def test_an_interrupt_while_another_thread_writes() -> None:
    db = filled()
    begun, end = threading.Event(), threading.Event()

    def write() -> None:
        with db.transaction():
            begun.set()
            end.wait()

    other = threading.Thread(target=write)
    other.start()
    begun.wait()
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        db.transaction()
    end.set()
    other.join()
    db.transaction().rollback()
