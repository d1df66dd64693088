"""A backend whose commits are written to a store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from tidelog.maintain.notes import Unfit
from tidelog.program.model import Relation
from tidelog.session.backend import Backend, Outcome, Work
from tidelog.session.definition import Definition
from tidelog.session.report import Report, Reporting
from tidelog.session.store.draft import Draft, derived_relations
from tidelog.session.store.errors import damaged, uncertain
from tidelog.session.store.facts import Words, computed
from tidelog.session.store.manifest import Manifest
from tidelog.session.store.programs import StoredProgram
from tidelog.session.store.replay import facts_of
from tidelog.session.store.saving import load_state, write_state
from tidelog.session.store.store import Store, manifest_path

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.session.frames.held import InSpark
    from tidelog.session.saved import Lasting

LOG = logging.getLogger("tidelog")
FEW = 10_000  # rows of changes that are no reason to write a state
WORTH = 8  # at the end a state is written if more than one row in so many has changed


class Stored:
    """Another backend, and a store that has a version for each of its commits.

    `prepare` also writes the files of a version, and `commit` publishes it before anything else: from then
    on it is what a database that is opened again begins with. When a database begins with a store
    that has versions, the first commit loads what the last version has, or derives it, and writes nothing.
    """

    def __init__(self, opened: Callable[[], Backend], store: Store, source: str) -> None:
        """`opened` opens the other backend; `source` is the program that the database was opened with."""
        self._opened, self._store, self.source = opened, store, source
        inner = self.inner = opened()
        self._written: tuple[Definition, str] | None = None  # what the program in the store was made from
        self._next: tuple[Definition, str] | None = None
        self._draft: Draft | None = None
        self._first = self._idle = False
        self._sound = False  # nothing is under way, and the answers are those of the last version
        self._since = 0  # rows that have changed since the state was written,
        self._then = 0  # and how many there were then
        self._useless = False  # the state that there is cannot be loaded here
        self.in_place = inner.in_place

    def prepare(self, work: Work) -> Outcome:
        """Do the work, and write what it changes."""
        self._sound = False
        self._first = work.old is None and self._store.latest is not None
        if self._first:
            self._next = (work.new, self._store.program(self._store.manifest(work.version)).source)
            return self._begin(work)
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

    def _begin(self, work: Work) -> Outcome:
        """Load what the last version has, or derive it from its facts."""
        store, latest = self._store, self._latest
        if store.state is not None and hasattr(self.inner, "restore"):  # a `Lasting` backend
            try:
                outcome = load_state(store, cast("Lasting", self.inner), work)
                self._since = sum(sum(outcome.changed[name][2]) for name in outcome.changed)
                self._then = _rows(store.manifest(store.state.version))
                outcome.report.loaded(store.state.version)
                return outcome
            except Unfit as error:
                LOG.info("answers are derived anew, as the state in the store is not of use: %s", error)
            except Exception:  # whatever it is, there is another way
                LOG.warning("answers are derived anew, as they cannot be loaded", exc_info=True)
            self._useless = True
            self.inner.close()
            self.inner = self._opened()
        self._since = _rows(latest)
        return self.inner.prepare(replace(work, operations=facts_of(store, latest, work.new.relations)))

    def commit(self) -> None:
        """Publish the version; what was prepared is what holds."""
        if self._draft is not None:
            self._draft.publish()
        if not self._idle:
            self.inner.commit()
        if self._first:
            self._check()
        else:
            self._since += sum(level.rows for _, level in self._latest.changes.values())
        self._written, self._draft, self._first, self._idle = self._next, None, False, False
        self._sound = True

    def _check(self) -> None:
        """What has been derived is what the store says, as far as sizes tell."""
        latest = self._latest
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
        self._sound = self._written is not None

    # --- the state -----------------------------------------------------------------------

    def settle(self) -> None:
        """After a commit: write a state if more rows have changed since there was one than it had."""
        if self._since > max(FEW, self._then):
            self.save()

    def save(self) -> None:
        """Write a state, unless there is one of this version; without it answers are derived next time."""
        if not self._sound or not hasattr(self.inner, "saved"):  # a `Lasting` backend
            return
        try:
            state = self._store.state
            if state is None or self._useless or state.version != self._latest.version:
                saved = cast("Lasting", self.inner).saved()
                if saved is not None:
                    write_state(self._store, saved)
                    self._since, self._then, self._useless = 0, _rows(self._latest), False
        except Exception:
            LOG.warning("answers could not be saved: they will be derived next time", exc_info=True)

    @property
    def _latest(self) -> Manifest:
        latest = self._store.latest
        assert latest is not None, "there is a version"
        return latest

    # --- reading -------------------------------------------------------------------------

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
        """Give back what the engine holds, after writing a state if much has changed since there was one."""
        if self._sound and WORTH * self._since > _rows(self._latest):
            self.save()
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)  # what some backends have beside the protocol


def _rows(manifest: Manifest) -> int:
    return sum(entry.size for entry in manifest.entries.values())
