"""Tidelog: Datalog for Python. Give it facts and it gives you the answers, in process or on Apache Spark.

    import tidelog

    db = tidelog.Database('''
        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).
    ''')
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
    list(db["path"])  # [(1, 2), (1, 3), (2, 3)]

The names below are imported when they are first used, so that `import tidelog` and
`tidelog --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.io.nested import Struct
    from tidelog.session.answer import Answer
    from tidelog.session.changes import Changes, ChangeSet
    from tidelog.session.database import Database
    from tidelog.session.errors import UnknownRelationError, UnknownRuleError
    from tidelog.session.report import Moment, Report
    from tidelog.session.streams import Stream, StreamError
    from tidelog.session.subscriptions import Subscription
    from tidelog.session.transaction import Transaction
    from tidelog.syntax.errors import (
        DataError,
        EvaluationError,
        InternalError,
        ProgramError,
        ResourceError,
        TidelogError,
        UnsupportedError,
    )

__version__ = "0.1.0"

_HOMES = {
    "Answer": "tidelog.session.answer",
    "ChangeSet": "tidelog.session.changes",
    "Changes": "tidelog.session.changes",
    "Database": "tidelog.session.database",
    "Moment": "tidelog.session.report",
    "Report": "tidelog.session.report",
    "Stream": "tidelog.session.streams",
    "StreamError": "tidelog.session.streams",
    "Struct": "tidelog.io.nested",
    "Subscription": "tidelog.session.subscriptions",
    "Transaction": "tidelog.session.transaction",
    "UnknownRelationError": "tidelog.session.errors",
    "UnknownRuleError": "tidelog.session.errors",
    "DataError": "tidelog.syntax.errors",
    "EvaluationError": "tidelog.syntax.errors",
    "InternalError": "tidelog.syntax.errors",
    "ProgramError": "tidelog.syntax.errors",
    "ResourceError": "tidelog.syntax.errors",
    "TidelogError": "tidelog.syntax.errors",
    "UnsupportedError": "tidelog.syntax.errors",
}

__all__ = [
    "Answer",
    "ChangeSet",
    "Changes",
    "DataError",
    "Database",
    "EvaluationError",
    "InternalError",
    "Moment",
    "ProgramError",
    "Report",
    "ResourceError",
    "Stream",
    "StreamError",
    "Struct",
    "Subscription",
    "TidelogError",
    "Transaction",
    "UnknownRelationError",
    "UnknownRuleError",
    "UnsupportedError",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidelog' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
