"""Databases: programs, transactions and answers together, on the reference engine."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import tidelog
from tidelog import (
    Answer,
    Database,
    DataError,
    EvaluationError,
    ProgramError,
    ResourceError,
    TidelogError,
    UnknownRelationError,
)
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64

TYPED = """
input relation Edge(from: s64, to: s64)
output relation Path(from: s64, to: s64)
Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
"""
UNTYPED = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def database(program: str | Path) -> Database:
    return Database(program, engine="substitution")


def test_insert_and_ask() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2), (2, 3)])
    assert list(db["Path"]) == [(1, 2), (1, 3), (2, 3)]
    assert list(db["Edge"]) == [(1, 2), (2, 3)]


def test_several_transactions() -> None:
    db = database(TYPED)
    for edge in [(3, 4), (1, 2), (2, 3)]:
        with db.transaction() as tx:
            tx.insert("Edge", [edge])
            tx.insert("Edge", [edge])
    assert list(db["Path"]) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_facts_of_the_program_alone() -> None:
    db = database("p(1). p(2). q(x + 1) :- p(x).")
    assert list(db["q"]) == [(2,), (3,)]


def test_a_fact_may_be_given_and_derived() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Path", [(7, 8), (1, 2)])
        tx.insert("Edge", [(1, 2), (8, 9)])
    assert list(db["Path"]) == [(1, 2), (7, 8), (7, 9), (8, 9)]


@pytest.mark.parametrize("kind", [str, Path])
def test_a_program_in_a_file(tmp_path: Path, kind: type) -> None:
    (tmp_path / "p.dl").write_text("p(1).")
    assert list(database(kind(tmp_path / "p.dl"))["p"]) == [(1,)]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TidelogError) as caught:
        database("nowhere.dl")
    assert str(caught.value) == "error[TL0510]: there is no file nowhere.dl"
    with pytest.raises(TidelogError):
        database(tmp_path / "nowhere.dl")


def test_a_wrong_program() -> None:
    with pytest.raises(ProgramError):
        database("p(x) :- q(y).")


def test_an_unknown_engine() -> None:
    with pytest.raises(TidelogError) as caught:
        Database("p(1).", engine="lokal")
    assert str(caught.value) == (
        "error[TL0509]: there is no engine 'lokal'; engines are local, spark, substitution"
    )


def test_something_that_is_no_spark_session() -> None:
    for options, message in (
        ({"spark": 5}, "error[TL0619]: spark is int, and should be a SparkSession"),
        ({"engine": "local", "spark": 5}, "error[TL0509]: the engine local does not use a Spark session"),
    ):
        with pytest.raises(TidelogError) as caught:
            Database("p(1).", **options)
        assert str(caught.value).splitlines()[0] == message


def test_an_unknown_relation() -> None:
    db = database(TYPED)
    expected = (
        "error[TL0506]: there is no relation Pth\n"
        "  = note: the relations are Edge, Path\n"
        "  = hint: did you mean Path?"
    )
    with pytest.raises(UnknownRelationError) as caught:
        db["Pth"]
    assert str(caught.value) == expected
    assert isinstance(caught.value, KeyError)
    with db.transaction() as tx:
        with pytest.raises(UnknownRelationError) as caught:
            tx.insert("Pth", [(1, 2)])
        assert str(caught.value) == expected


def test_relations() -> None:
    db = database("q(x, n) :- p(x), n = count : { p(_) }. p(1).")
    assert list(db.relations) == list(db) == ["q", "p"]
    assert "q" in db and "r" not in db
    assert repr(db) == "<tidelog.Database of q, p>"


# --- all or nothing --------------------------------------------------------------


def test_an_exception_rolls_back() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2)])
    with pytest.raises(RuntimeError), db.transaction() as tx:
        tx.insert("Edge", [(2, 3)])
        raise RuntimeError
    assert list(db["Path"]) == [(1, 2)]
    with db.transaction() as tx:
        tx.insert("Edge", [(5, 6)])
    assert list(db["Path"]) == [(1, 2), (5, 6)]


def test_a_failing_rule_leaves_the_database_as_it_was() -> None:
    db = database("q(10 / x) :- p(x).")
    with db.transaction() as tx:
        tx.insert("p", [(2,)])
    with pytest.raises(EvaluationError), db.transaction() as tx:
        tx.insert("p", [(0,)])
    assert (list(db["p"]), list(db["q"])) == ([(2,)], [(5,)])
    with db.transaction() as tx:
        tx.insert("p", [(5,)])
    assert list(db["q"]) == [(2,), (5,)]


def test_a_wrong_row_leaves_the_transaction_open_and_unchanged() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2)])
        with pytest.raises(DataError) as caught:
            tx.insert("Edge", [(2, 3), (3, "x")])
        tx.insert("Edge", [(4, 5)])
    assert str(caught.value) == (
        "error[TL0504]: cannot insert into Edge: 1 wrong row\n  --> row 2: column 2 (to): 'x' is not an s64"
    )
    assert list(db["Edge"]) == [(1, 2), (4, 5)]


def test_explicit_commit_and_rollback() -> None:
    db = database(TYPED)
    tx = db.transaction()
    tx.insert("Edge", [(1, 2)])
    tx.commit()
    tx = db.transaction()
    tx.insert("Edge", [(2, 3)])
    tx.rollback()
    assert list(db["Path"]) == [(1, 2)]
    for use in (tx.commit, tx.rollback, lambda: tx.insert("Edge", [])):
        with pytest.raises(TidelogError) as caught:
            use()
        assert str(caught.value) == (
            "error[TL0508]: this transaction has ended; begin another with db.transaction()"
        )


def test_one_transaction_at_a_time() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        with pytest.raises(TidelogError) as caught:
            db.transaction()
        tx.insert("Edge", [(1, 2)])
    assert str(caught.value) == "error[TL0508]: a transaction is open: commit it or roll it back first"


def test_an_abandoned_transaction_blocks_nobody() -> None:
    db = database(TYPED)
    db.transaction()
    abandoned = db.transaction()
    abandoned.insert("Edge", [(7, 8)])

    def work() -> None:
        with db.transaction() as tx:
            tx.insert("Edge", [(1, 2)])

    waiting = threading.Thread(target=work, daemon=True)
    waiting.start()
    del abandoned
    waiting.join(timeout=60)
    assert not waiting.is_alive()
    assert list(db["Path"]) == [(1, 2)]


def test_threads_take_turns() -> None:
    db = database(TYPED)
    barrier = threading.Barrier(4)

    def work(node: int) -> None:
        barrier.wait()
        with db.transaction() as tx:
            tx.insert("Edge", [(node, node + 1)])

    threads = [threading.Thread(target=work, args=(node,)) for node in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(db["Edge"]) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert len(db["Path"]) == 10


# --- untyped programs --------------------------------------------------------------


def test_types_come_from_the_first_facts() -> None:
    db = database(UNTYPED)
    assert list(db["path"]) == []
    with db.transaction() as tx:
        tx.insert("edge", [("a", "b")])
    assert [str(c.type) for c in db.relations["path"].columns] == ["string", "string"]
    with db.transaction() as tx:
        tx.insert("edge", [("b", "c")])
    assert list(db["path"]) == [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.parametrize("commit_between", [False, True])
def test_later_facts_must_agree(commit_between: bool) -> None:
    db = database(UNTYPED)
    tx = db.transaction()
    tx.insert("edge", [(1, 2)])
    if commit_between:
        tx.commit()
        tx = db.transaction()
    with pytest.raises(DataError) as caught:
        tx.insert("edge", [(2, 3), ("x", 3)])
    assert str(caught.value) == (
        "error[TL0505]: cannot insert into edge: 1 wrong row\n"
        "  --> row 2: column 1 (c0): 'x' is not an s64\n"
        "  = note: edge is not declared: its first facts gave its columns their types"
    )
    tx.commit()
    assert list(db["path"]) == [(1, 2)]


def test_facts_whose_types_do_not_go_together() -> None:
    db = database("both(x) :- p(x), q(x).")
    with pytest.raises(ProgramError), db.transaction() as tx:
        tx.insert("p", [(1,)])
        tx.insert("q", [("a",)])
    with db.transaction() as tx:
        tx.insert("p", [(1,)])
        tx.insert("q", [(1,)])
    assert list(db["both"]) == [(1,)]


def test_a_relation_that_no_rule_mentions() -> None:
    db = database(UNTYPED)
    with db.transaction() as tx:
        tx.insert("colour", [(1, "red")])
    assert list(db["colour"]) == [(1, "red")]


def test_rows_of_the_wrong_width() -> None:
    db = database(UNTYPED)
    with pytest.raises(DataError) as caught, db.transaction() as tx:
        tx.insert("edge", [(1, 2, 3)])
    assert str(caught.value).endswith("row 1: 3 columns instead of 2 (c0: unknown, c1: unknown)")


# --- files and reports -----------------------------------------------------------------


def test_load_and_write(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    db = database(UNTYPED)
    db.load(tmp_path)
    assert db.write(tmp_path / "out") == [tmp_path / "out/path.csv"]
    assert (tmp_path / "out/path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


def test_report() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2), (2, 3), (3, 4)])
    (line,) = db.report.strata
    assert (line.stratum, line.relations, line.tuples, line.instances) == (1, ("Path",), 6, 6)
    assert (db.report.tuples, db.report.instances) == (6, 6)
    assert line.rounds >= 3 and line.seconds >= 0 and db.report.seconds == line.seconds
    heading, row = str(db.report).splitlines()
    assert heading.split() == [
        *("stratum", "relations", "algorithm", "instances", "touched", "seconds", "phases", "why")
    ]
    assert row.split()[:3] == ["1", "Path", "auto"] and row.endswith("for the first time")
    assert db.report._repr_html_().startswith("<table><caption>commit 1</caption>")


def test_report_of_an_evaluation() -> None:
    db = Database("p(1). q(x) :- p(x).", engine="substitution", maintained=False)
    heading, row = str(db.report).splitlines()
    assert heading.split() == ["stratum", "relations", "rounds", "tuples", "instances", "seconds"]
    assert row.split()[:5] == ["1", "q", "1", "1", "1"]
    assert db.report._repr_html_().startswith("<table><caption>evaluation</caption>")


@pytest.mark.parametrize("maintained", [False, True])
def test_watch(maintained: bool) -> None:
    moments: list[tidelog.Moment] = []
    program = "b(x) :- a(x). b(x + 1) :- b(x), x < 3. c(x) :- b(x). a(1)."
    db = Database(program, engine="substitution", watch=moments.append, maintained=maintained)
    assert list(db["c"]) == [(1,), (2,), (3,)]
    assert {(m.stratum, m.strata, m.relations) for m in moments} == {(1, 2, ("b",)), (2, 2, ("c",))}
    assert [m.tuples for m in moments] == sorted(m.tuples for m in moments)
    assert moments[0].tuples == int(maintained) and moments[-1].tuples in (3, 6)


# --- answers -----------------------------------------------------------------------------


def test_an_answer_is_a_snapshot() -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2)])
    before = db["Path"]
    with db.transaction() as tx:
        tx.insert("Edge", [(2, 3)])
    assert (len(before), list(before)) == (1, [(1, 2)])
    after = db["Path"]
    db.close()
    assert len(after) == len(list(after)) == 3
    for use in (lambda: db["Path"], db.transaction, lambda: db.report):
        with pytest.raises(TidelogError) as caught:
            use()
        assert str(caught.value) == "error[TL0515]: this database is closed"


def test_closing() -> None:
    with database("p(1).") as db:
        answer = db["p"]
    assert list(answer) == [(1,)]


EVERY = """
input relation R(flag: bool, small: s8, large: u64, big: bigint, x: double, name: string)
output relation S(flag: bool, small: s8, large: u64, big: bigint, x: double, name: string)
S(a, b, c, d, e, f) :- R(a, b, c, d, e, f).
"""
ROWS = [
    (False, -1, 2**64 - 1, -(10**30), 0.5, "b"),
    (True, -1, 0, 9, 1.0, ""),
    (True, -1, 0, 10**30, float("inf"), "é"),
]


def every() -> tidelog.Answer:
    db = database(EVERY)
    with db.transaction() as tx:
        tx.insert("R", reversed(ROWS))
    return db["S"]


def test_values_are_pythons() -> None:
    answer = every()
    assert answer.to_list() == list(answer) == ROWS
    assert [[type(value) for value in row] for row in answer] == [[bool, int, int, int, float, str]] * 3


def test_membership() -> None:
    answer = every()
    assert all(row in answer for row in ROWS)
    assert list(ROWS[0]) in answer
    assert (True, -1, 0, 10, 1.0, "") not in answer
    assert (1, -1, 0, 9, 1.0, "") not in answer
    assert (True, -1, 0, 9, 1, "") in answer
    assert (True, -1) not in answer
    assert "x" not in answer


def test_nan_is_found() -> None:
    db = database("input relation R(x: double)")
    with db.transaction() as tx:
        tx.insert("R", [(float("nan"),)])
    assert (float("nan"),) in db["R"] and (1.0,) not in db["R"]


def test_arrow() -> None:
    table = every().to_arrow()
    types = [pa.bool_(), pa.int8(), pa.uint64(), pa.string(), pa.float64(), pa.string()]
    assert table.schema.names == ["flag", "small", "large", "big", "x", "name"]
    assert table.schema.types == types
    assert table.column("big").to_pylist() == [str(row[3]) for row in ROWS]


def test_pandas() -> None:
    pytest.importorskip("pandas")
    frame = every().to_pandas()
    assert list(frame.itertuples(index=False, name=None)) == ROWS
    assert list(frame.columns) == ["flag", "small", "large", "big", "x", "name"]


def test_polars() -> None:
    pytest.importorskip("polars")
    frame = every().to_polars()
    assert frame.rows() == [(*row[:3], str(row[3]), *row[4:]) for row in ROWS]


def test_no_columns() -> None:
    db = database("input relation Go()\noutput relation Went()\nWent() :- Go().")
    assert (list(db["Went"]), len(db["Went"]), () in db["Went"]) == ([], 0, False)
    with db.transaction() as tx:
        tx.insert("Go", [()])
    assert (list(db["Went"]), len(db["Went"]), () in db["Went"]) == ([()], 1, True)
    assert repr(db["Went"]) == "Went(): 1 tuple"


def test_repr() -> None:
    db = database("input relation R(n: s64, name: string)")
    assert repr(db["R"]) == "R(n: s64, name: string): 0 tuples"
    with db.transaction() as tx:
        tx.insert("R", [(n, "<b>") for n in range(1000, 1025)])
    lines = repr(db["R"]).splitlines()
    assert lines[:3] == ["R(n: s64, name: string): 25 tuples", "   n  name", "1000  <b>"]
    assert (len(lines), lines[-2:]) == (23, ["1019  <b>", "... 5 more"])


def test_html() -> None:
    db = database("input relation R(n: s64, name: string)")
    with db.transaction() as tx:
        tx.insert("R", [(n, "<b>") for n in range(25)])
    html = db["R"]._repr_html_()
    assert html.startswith(
        "<table><caption>R: 25 tuples, the first 20 shown</caption>"
        "<thead><tr><th>n: s64</th><th>name: string</th></tr></thead>"
        "<tbody><tr><td>0</td><td>&lt;b&gt;</td></tr>"
    )
    assert html.count("<tr>") == 21


def test_the_package_has_what_it_says() -> None:
    assert tidelog.__version__ == "0.1.0"
    assert set(tidelog.__all__) <= set(dir(tidelog))
    assert all(getattr(tidelog, name) is not None for name in tidelog.__all__)
    with pytest.raises(AttributeError):
        tidelog.nothing  # noqa: B018


# --- answers while the engine changes ------------------------------------------------


class Engine:
    """An engine that is gone once it is closed."""

    def __init__(self) -> None:
        self.closed = False

    def table(self) -> pa.Table:
        assert not self.closed
        return pa.table({"x": [1]})


def test_an_answer_frozen_while_a_reader_waits() -> None:
    """The reader has seen no tuples and waits for the lock; whoever holds it fixes the answer and closes."""
    engine, arrived = Engine(), threading.Event()
    taken = threading.RLock()

    class Announced:
        """The lock, with a word when the reader comes for it."""

        def __enter__(self) -> None:
            if threading.current_thread() is not threading.main_thread():
                arrived.set()
            taken.acquire()

        def __exit__(self, *_: object) -> None:
            taken.release()

    answer = Answer(Relation("p", (Column("x", S64),)), 1, engine.table, Announced())
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.extend(answer))
    with taken:
        reader.start()
        arrived.wait()
        answer.freeze()
        engine.closed = True
    reader.join()
    assert found == [(1,)]


# --- not enough memory ---------------------------------------------------------------


def test_out_of_memory_leaves_the_database_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database(TYPED)
    with db.transaction() as tx:
        tx.insert("Edge", [(1, 2)])

    def full(*_: object) -> None:
        raise MemoryError("no memory for more rows of Path")

    with monkeypatch.context() as patch:
        patch.setattr("tidelog.maintain.update.Maintenance.update", full)
        with pytest.raises(ResourceError) as caught, db.transaction() as tx:
            tx.insert("Edge", [(2, 3)])
    assert str(caught.value) == ("error[TL0601]: out of memory\n  = note: no memory for more rows of Path")
    assert list(db["Path"]) == [(1, 2)]


# --- names that nobody wrote ---------------------------------------------------------


def test_the_report_names_what_users_know() -> None:
    db = database(
        "s(x, n, m) :- p(x), n = sum y : { q(x, y), y > 1 }, m = max y : { q(x, y) }.\np(1). q(1, 2)."
    )
    lines = [(line.stratum, line.relations) for line in db.report.strata]
    assert lines == [
        (1, ("s (sum, values)",)),
        (2, ("s (sum)",)),
        (3, ("s (sum) (only column 1)",)),
        (4, ("s (sum, zeros too)",)),
        (5, ("s (max)",)),
        (6, ("s",)),
    ]


@pytest.mark.parametrize("threads", ["x", 2.5, 0, -3, True, None])
def test_threads_are_a_whole_number(threads: object) -> None:
    with pytest.raises(TidelogError) as caught:
        Database(TYPED, threads=threads)  # type: ignore[arg-type]
    message = f"error[TL0509]: no engine runs on threads={threads!r}: give a whole number from 1 on"
    assert str(caught.value) == message


def test_a_directory_is_no_program(tmp_path: Path) -> None:
    messages = []
    for program in (tmp_path, str(tmp_path)):
        with pytest.raises(TidelogError) as caught:
            Database(program)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert str(tmp_path) in messages[0]
