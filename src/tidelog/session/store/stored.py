"""A backend whose commits are written to a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidelog.program.model import Relation
from tidelog.session.backend import Backend, Outcome, Work
from tidelog.session.definition import Definition
from tidelog.session.report import Report, Reporting
from tidelog.session.store.draft import Draft, derived_relations
from tidelog.session.store.errors import damaged, uncertain
from tidelog.session.store.facts import Words, computed
from tidelog.session.store.programs import StoredProgram
from tidelog.session.store.store import Store, manifest_path

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.session.spark_frames import InSpark


class Stored:
    """Another backend, and a store that has a version for each of its commits.

    `prepare` also writes the files of a version, and `commit` publishes it before anything else: from then
    on it is what a database that is opened again begins with. When a database begins with a store
    that has versions, the first commit derives what the last version has, and writes nothing.
    """

    def __init__(self, inner: Backend, store: Store, source: str) -> None:
        """`source` is the program that the database was opened with."""
        self.inner, self._store, self.source = inner, store, source
        self._written: tuple[Definition, str] | None = None  # what the program in the store was made from
        self._next: tuple[Definition, str] | None = None
        self._draft: Draft | None = None
        self._first = self._idle = False
        self.in_place = inner.in_place

    def prepare(self, work: Work) -> Outcome:
        """Do the work, and write what it changes."""
        self._first = work.old is None and self._store.latest is not None
        if self._first:
            self._next = (work.new, self._store.program(self._store.manifest(work.version)).source)
            return self.inner.prepare(work)
        self._idle = work.old is work.new and not work.operations
        if self._idle:
            report = Report(version=work.version, ignored_deletes=work.ignored_deletes, maintained=True)
            outcome = Outcome(work.new, Reporting(report), {})
            words: Mapping[str, Words] = {}
        else:
            work, words = computed(work, derived_relations(work.new))
            outcome = self.inner.prepare(work)
        self.in_place = self.inner.in_place  # of this commit
        program = None
        self._next = (outcome.definition, self.source)
        if self._written is None or self._written[0] is not self._next[0] or self._written[1] != self.source:
            program = StoredProgram.of(outcome.definition, self.source)
        self._draft = Draft(self._store, work.version, outcome.time)
        self._draft.write(outcome.definition, outcome.changed, words, program, work.batch)
        return outcome

    def commit(self) -> None:
        """Publish the version; what was prepared is what holds."""
        if self._draft is not None:
            self._draft.publish()
        if not self._idle:
            self.inner.commit()
        if self._first:
            self._check()
        self._written, self._draft, self._first, self._idle = self._next, None, False, False

    def _check(self) -> None:
        """What has been derived is what the store says, as far as sizes tell."""
        latest = self._store.latest
        assert latest is not None
        for name, entry in latest.entries.items():
            size = self.inner.size(entry.relation)
            if size != entry.size:
                why = f"{name} has {entry.size:,} tuples in it, and {size:,} follow from its facts"
                raise damaged(manifest_path(latest.version), why)

    def rollback(self) -> None:
        """Everything is as it was before `prepare`, in the store too."""
        draft, self._draft = self._draft, None
        self._first = False
        self._next = self._written
        if draft is not None and draft.published:  # this database cannot follow
            raise uncertain(draft.version)
        if draft is not None:
            draft.discard()
        if not self._idle:
            self.inner.rollback()
        self._idle = False

    def size(self, relation: Relation) -> int:
        """The number of tuples."""
        return self.inner.size(relation)

    def table(self, relation: Relation) -> pa.Table:
        """The tuples of a relation."""
        return self.inner.table(relation)

    def held(self, relation: Relation) -> pa.Table | InSpark:
        """The tuples of a relation, where they are."""
        return self.inner.held(relation)

    def close(self) -> None:
        """Give back what the engine holds. The store is its database's affair."""
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)  # what some backends have beside the protocol
