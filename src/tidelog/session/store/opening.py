"""How a database begins with a store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.io.plain import rows_of_table
from tidelog.session.backend import Backend
from tidelog.session.batches import Batch
from tidelog.session.definition import Definition
from tidelog.session.errors import UnknownRuleError
from tidelog.session.store.programs import Difference, difference
from tidelog.session.store.store import Store
from tidelog.session.store.stored import Stored
from tidelog.syntax import ast

if TYPE_CHECKING:
    from tidelog.session.database import Database
    from tidelog.session.keys import Keys


@dataclass
class Opened:
    """A store, and what a database begins with.

    `difference` is what the program that it is opened with has changed, to be committed first.
    """

    store: Store
    definition: Definition
    version: int
    source: str
    difference: Difference | None = None

    @property
    def is_new(self) -> bool:
        """Whether there are no versions yet."""
        return self.store.latest is None

    def backend(self, inner: Callable[[], Backend]) -> Stored:
        """A backend that writes to the store, around one that is opened."""
        return Stored(inner, self.store, self.source)

    def begin(self, database: Database, keys: Keys, batches: dict[str, Batch]) -> None:
        """Have a database begin: with keys and batches, a first version, or what its program has changed.

        If that fails, the database is closed.
        """
        try:
            latest = self.store.latest
            if latest is None:
                database.report  # noqa: B018  (derives what the program alone says, and so makes a version)
                return
            for stream, number in latest.batches.items():
                batches[stream] = Batch(stream, number, latest.planned.get(stream))
            for name, entry in latest.entries.items():
                relation = self.definition.relations[name]
                if relation.key:
                    table = self.store.table(relation, entry.explicit, exact=entry.facts is None)
                    keys.insert(relation, rows_of_table(table, relation.columns))
            keys.keep()
            if self.difference is not None:
                self._commit(database, self.difference)
        except BaseException:
            database.close()
            raise

    def _commit(self, database: Database, difference: Difference) -> None:
        if difference.added or difference.removed:
            with database.transaction() as tx:
                for text in difference.removed:
                    with suppress(UnknownRuleError):  # a transaction has removed it before
                        tx.remove_rule(text)
                if difference.added:
                    tx.add_rule("\n".join(difference.added))


def open_store(place: str | Path, module: ast.Module, *, spark: object | None, maintained: bool) -> Opened:
    """Open a store, or begin one. An empty program goes on with the one that is there.

    Raises StoreError, or ProgramError for a new store.
    """
    store = Store.open(place, spark)
    try:
        source = module.span.text
        latest = store.latest
        if latest is None:
            return Opened(store, Definition.first(module, maintained=maintained), 0, source)
        program = store.program(latest)
        relations = {name: entry.relation for name, entry in latest.entries.items()}
        definition = program.definition(relations, maintained=maintained)
        if not module.items or source == program.source:
            return Opened(store, definition, latest.version, program.source)
        changed = difference(program.source, module)
        return Opened(store, definition, latest.version, source, changed)
    except BaseException:
        store.close()
        raise
