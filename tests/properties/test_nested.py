"""Arrays and structs are values like others: put numbers in their place, and nothing else changes.

Other tests say that the answers for numbers are right. Here a history of commits is run twice, the second
time with a different array or struct for each number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tidelog import Database
from tidelog.maintain.algorithms import ALGORITHMS
from tidelog.session.changes import ChangeSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl edge(x: T, y: T)
.decl closed(x: T)
.decl reach(x: T, y: T)
.decl round(x: T)
.decl apart(x: T, y: T)
.decl degree(x: T, n: number)
.output reach, round, apart, degree
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z), !closed(y).
round(x) :- reach(x, x).
apart(x, y) :- edge(x, _), edge(_, y), x != y, !reach(x, y).
degree(x, n) :- edge(x, _), n = count : { reach(x, _) }.
"""
RULE = "reach(y, x) :- edge(x, y), closed(x)."
RELATIONS = ("edge", "closed", "reach", "round", "apart", "degree")
NUMBERS = range(8)
STRUCTS: list[Any] = [
    {"at": [], "tag": ""},
    {"at": [], "tag": "[]"},
    {"at": [0.0], "tag": ""},
    {"at": [-0.0], "tag": ""},
    {"at": [float("nan")], "tag": ""},
    {"at": [0.0, float("nan")], "tag": '\t\n"\\'},
    {"at": [1e300, float("-inf")], "tag": "é\u2028"},
    {"at": [0.1, 1e-300], "tag": "{}"},
]
KINDS: dict[str, list[Any]] = {
    "{at: [float], tag: symbol}": STRUCTS,
    "[number]": [list(range(n)) for n in NUMBERS],
    "[[symbol]]": [[], [[]], [[], []], [[""]], [["a", "b"]], [["a"], ["b"]], [["ab"]], [["a,b"]]],
}
Row = tuple[Any, ...]
Sides = dict[str, tuple[set[Row], set[Row]]]
Named = Callable[[Any], Any]


def mapped(rows: Iterable[Row], relation: str, name: Named) -> list[Row]:
    """Rows with what `name` makes of their values; the number of `degree` stays."""
    if relation == "degree":
        return [(name(x), n) for x, n in rows]
    return [tuple(map(name, row)) for row in rows]


def run(history: Random, db: Database, name: Named, back: Named) -> list[Sides]:
    """What each commit of a random history changed."""
    found = []
    for commit in range(8):
        with db.transaction() as tx:
            for relation, columns in (("edge", 2), ("closed", 1)):
                for change in (tx.insert, tx.delete):
                    count = history.randrange(0, 5)
                    rows = [tuple(history.choice(NUMBERS) for _ in range(columns)) for _ in range(count)]
                    change(relation, mapped(rows, relation, name))
            if commit in (3, 5):
                (tx.add_rule if commit == 3 else tx.remove_rule)(RULE)
        found.append({r: _sides(tx.changes, r, back) for r in RELATIONS})
    return found


def _sides(changes: ChangeSet, relation: str, back: Named) -> tuple[set[Row], set[Row]]:
    sides = (changes[relation].deleted, changes[relation].inserted)
    gone, come = (mapped(side, relation, back) for side in sides)
    assert (len(gone), len(come)) == (len(set(gone)), len(set(come)))
    return set(gone), set(come)


def check(kind: str, seed: int, **options: Any) -> None:
    values = KINDS[kind]
    with Database(PROGRAM.replace("T", "number"), algorithm="recompute", engine="substitution") as plain:
        expected = run(Random(seed), plain, int, int)
    with Database(PROGRAM.replace("T", kind), **options) as db:
        with db.transaction() as tx:
            tx.insert("edge", [(v, v) for v in values])
        numbers = {repr(row[0]): n for n, row in zip(NUMBERS, _in_order(db, values), strict=True)}
        with db.transaction() as tx:
            tx.delete("edge", [(v, v) for v in values])
        assert run(Random(seed), db, values.__getitem__, lambda v: numbers[repr(v)]) == expected


def _in_order(db: Database, values: list[Any]) -> list[Row]:
    """The rows that values have become, in the order of the values."""
    rows = list(db["edge"])
    assert len(rows) == len(values)
    return [next(row for row in rows if _plain(row[0]) == repr(value)) for value in values]


def _plain(value: Any) -> str:
    def plain(value: Any) -> Any:
        if hasattr(value, "asdict"):
            return {name: plain(part) for name, part in value.asdict().items()}
        return list(map(plain, value)) if isinstance(value, tuple) else value

    return repr(plain(value))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("engine", ["local", "substitution"])
def test_any_algorithm(kind: str, algorithm: str, engine: str) -> None:
    for seed in range(3):
        check(kind, seed, algorithm=algorithm, engine=engine)


@pytest.mark.parametrize("kind", KINDS)
def test_on_spark(kind: str, spark: SparkSession) -> None:
    check(kind, 7, spark=spark)
