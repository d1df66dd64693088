"""A history, replayed on a database, beside what the oracle says of each of its states."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass

from tests.oracle import Model
from tests.properties import on_spark
from tests.properties.expected import Expected
from tests.properties.histories import (
    AddRule,
    Delete,
    History,
    Insert,
    Operation,
    RemoveRule,
    Transaction,
)
from tests.properties.shrink import script
from tests.running import keeper_of
from tidelog import Database, TidelogError, UnknownRelationError
from tidelog import Transaction as Session

ENGINES = ("substitution", "local")
SPARK = "spark"
SINGLE = (
    "recompute", "counting", "dred", "fbf", "fbf(0)", "fbf(1)", "fbf(2)", "elastic", "ranked", "dbsp", "auto",
)  # fmt: skip
TURNS = "turns"  # each transaction is committed by another algorithm
ALGORITHMS = (*SINGLE, TURNS)


@dataclass(frozen=True)
class Way:
    """How a history is replayed; the last two are settings of Spark, the default ones where empty."""

    algorithm: str
    engine: str
    fixpoint: str = ""
    process: str = ""

    def algorithm_for(self, transaction: Transaction) -> str:
        return SINGLE[transaction.turn % len(SINGLE)] if self.algorithm == TURNS else self.algorithm


# --- replaying ------------------------------------------------------------------


def opened(history: History, way: Way) -> Database:
    first = way.algorithm_for(history.transactions[0]) if history.transactions else "auto"
    spark = on_spark.session(way.fixpoint, way.process) if way.engine == SPARK else None
    database = Database(history.text, algorithm=first, engine=way.engine, spark=spark)
    if way.engine == "local" and history.seed // len(ALGORITHMS) % 2:
        keeper_of(database).gradual_from = 1  # else histories are too small for it
    return database


def problem_of(history: History, way: Way, expected: Expected) -> str | None:
    """What goes wrong when a history is replayed, or None.

    After each transaction every relation must be what the oracle says, and the changes
    must be what tells the oracle's models before and after apart. A transaction that must fail must
    raise an error of ours, and change nothing.
    """
    with opened(history, way) as database:
        models = expected.models
        for i, transaction in enumerate(history.transactions):
            database.algorithm = way.algorithm_for(transaction)
            try:
                session = _perform(database, transaction, history.declared)
            except Exception as error:
                if transaction.ending != "failure" or not isinstance(error, TidelogError):
                    return f"transaction {i} fails: {type(error).__name__}: {error}"
                session = None
            else:
                if transaction.ending == "failure":
                    return f"transaction {i} should have failed"
            if problem := _state_problem(database, models[i + 1]):
                return f"after transaction {i}: {problem}"
            if session is not None and transaction.ending == "commit":
                problem = _changes_problem(session, models[i], models[i + 1])
                if problem:
                    return f"changes of transaction {i}: {problem}"
    return None


def ending_problem_of(history: History, way: Way, expected: Expected) -> str | None:
    """What is wrong with the state that a history ends in. `expected` may be of another with the same end."""
    with opened(history, way) as database:
        for i, transaction in enumerate(history.transactions):
            database.algorithm = way.algorithm_for(transaction)
            try:
                _perform(database, transaction, history.declared)
            except Exception as error:
                return f"transaction {i} fails: {type(error).__name__}: {error}"
        return _state_problem(database, expected.models[-1])


def _perform(database: Database, transaction: Transaction, declared: bool) -> Session:
    with database.transaction() as session:
        for operation in transaction.operations:
            _do(session, operation, declared)
        if transaction.ending == "rollback":
            session.rollback()
    return session


def _do(session: Session, operation: Operation, declared: bool) -> None:
    match operation:
        case Insert(relation, row):
            session.insert(relation, [row])
        case Delete(relation, row):
            # A relation that nothing speaks of is not known, and has no facts: the transaction goes on.
            with nullcontext() if declared else suppress(UnknownRelationError):
                session.delete(relation, [row])
        case AddRule():
            session.add_rule(operation.text)
        case RemoveRule(rule):
            session.remove_rule(rule)


def _state_problem(database: Database, model: Model) -> str | None:
    for relation, rows in model.items():
        given = list(database[relation]) if relation in database else []
        found = set(given)
        if len(given) != len(found):
            return f"{relation} has a row twice: {sorted(given)}"
        if found != rows:
            return f"{relation} misses {sorted(rows - found)} and has too many {sorted(found - rows)}"
    return None


def _changes_problem(session: Session, before: Model, after: Model) -> str | None:
    for relation in after:
        old, new = before.get(relation, set()), after[relation]
        try:
            changes = session.changes[relation]
        except UnknownRelationError:  # a relation that nothing has spoken of yet, or any more
            if old or new:
                return f"{relation} is not known, and goes from {sorted(old)} to {sorted(new)}"
            continue
        for what, given, wanted in (
            ("inserted", changes.inserted, new - old),
            ("deleted", changes.deleted, old - new),
        ):
            rows = list(given)
            if len(rows) != len(set(rows)) or set(rows) != wanted:
                return f"{relation}: {what} {sorted(rows)} instead of {sorted(wanted)}"
    return None


def reproduction(history: History, way: Way, expected: Expected) -> str:
    """The history as a script, with what it should print in the end."""
    turns = way.algorithm == TURNS

    def switch(transaction: Transaction) -> str | None:
        return way.algorithm_for(transaction) if turns else None

    first = way.algorithm_for(history.transactions[0]) if history.transactions else "auto"
    lines = []
    for relation, rows in expected.models[-1].items():
        lines.append(f"print({relation!r}, list(db[{relation!r}]))  # should be {sorted(rows)}")
    return script(history, f"algorithm={first!r}, engine={way.engine!r}", switch, "\n".join(lines))
