"""Answers kept current in one engine, commit after commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, cast

from tidelog.execute.uninterrupted import Uninterrupted
from tidelog.maintain.notes import Unfit, fingerprint
from tidelog.maintain.seminaive import unwatched
from tidelog.maintain.update import Maintenance, Upkeep
from tidelog.plan.executor import Progress
from tidelog.plan.maintenance import Delta, Keeper, Row
from tidelog.plan.saving import Saving
from tidelog.program.model import Relation, Stratum
from tidelog.session.backend import Changed, Operation, Outcome, Work
from tidelog.session.bounded import Bound
from tidelog.session.definition import Definition
from tidelog.session.errors import closed
from tidelog.session.frames.given import EVERYTHING
from tidelog.session.frames.held import InSpark
from tidelog.session.report import Moment, Report, Reporting, Watch, labels
from tidelog.session.saved import Facts, Saved

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.maintain.protocol import Algorithm


class Maintained:
    """An engine, and the algorithm that keeps its answers current."""

    in_place = True

    def __init__(
        self,
        keeper: Keeper,
        algorithm: str | Algorithm,
        watch: Watch | None,
        *,
        place: str = "",
        limit: int | None = None,
    ) -> None:
        """`place` is what reports say of where answers are kept, if anything.

        With a `limit`, a commit that leads to more tuples in all raises Outgrown.
        """
        self.keeper = keeper
        self._place, self._limit = place, limit
        self.maintenance = Maintenance(keeper, algorithm)
        self._watch = watch
        self._stored: dict[str, Relation] = {}
        self._next = self._stored
        self._dropping: set[str] = set()
        self._begun = self._closed = False

    def prepare(self, work: Work) -> Outcome:
        """Apply the operations, and bring every stratum up to date."""
        keeper, maintenance = self.keeper, self.maintenance
        definition, stored = work.new, self._stored
        strata = definition.strata
        with Uninterrupted():
            if self._begun:  # a second interrupt has kept the commit before from being rolled back
                self.rollback()
            self._begun = True
            maintenance.begin(strata)
        self._next = stored
        if definition is not work.old:
            live = definition.live.relations
            self._next = {name: stored.get(name) or live[name] for name in live}
            for name, relation in live.items():
                if name not in stored:
                    keeper.create(relation)
        inserts, deletes, explicit = self._apply(work.operations, definition)
        upkeep = self._update(explicit, strata)
        touched = dict.fromkeys(explicit)
        for done in upkeep:
            touched.update(dict.fromkeys(done.relations))
        changed = self._changed(touched, work)
        dropped: set[str] = set()
        if definition is not work.old:
            empty = {name for name in work.forgettable if self._size_after(name) == 0}
            definition = definition.without(empty)
            dropped = (stored.keys() | empty) - definition.live.relations.keys()
            self._dropping = dropped & stored.keys()  # they can be read until the commit is final
            self._next = {name: r for name, r in self._next.items() if name not in dropped}
        report = Report(
            version=work.version,
            ignored_inserts=inserts,
            ignored_deletes=deletes + work.ignored_deletes,
            maintained=True,
        )
        places = [self._placed(done) for done in upkeep] if self._place else ()
        return Outcome(definition, Reporting(report, upkeep, places=places), changed, frozenset(dropped))

    def _update(self, explicit: dict[str, None], strata: Sequence[Stratum]) -> list[Upkeep]:
        """Bring every stratum up to date, and tell those who watch."""
        watch = unwatched if self._watch is None else _Told(self._watch, strata)
        if self._limit is None:
            return self.maintenance.update(explicit, watch)
        bound = Bound(self._limit, self._next, self._size_after, watch)
        bound.check()
        upkeep = self.maintenance.update(explicit, bound)
        bound.check()
        return upkeep

    def _placed(self, upkeep: Upkeep) -> str:
        count = sum(map(self._size_after, upkeep.relations))
        return f"{self._place}: {count:,} tuple{'' if count == 1 else 's'}"

    def _apply(
        self, operations: Sequence[Operation], definition: Definition
    ) -> tuple[int, int, dict[str, None]]:
        """Assert and retract; the numbers of rows without effect, and the relations concerned."""
        keeper = self.keeper
        inserts = deletes = 0
        explicit: dict[str, None] = {}
        for insert, relation, rows, counted in operations:
            if insert:
                inserts += _count(rows) - keeper.assert_rows(relation, rows)
            elif relation not in self._next:  # it held nothing, and went with the last rule that spoke of it
                deletes += _count(rows) if counted else 0
                continue
            elif rows is EVERYTHING:
                keeper.retract_rows(relation, self._facts(relation))
            else:
                missed = _count(rows) - keeper.retract_rows(relation, rows)
                deletes += missed if counted else 0
            explicit[relation] = None
        return inserts, deletes, explicit

    def _changed(self, touched: dict[str, None], work: Work) -> Changed:
        found: dict[str, tuple[Relation, Delta, tuple[int, int]]] = {}
        for name in touched:
            counts = self.keeper.changed(name)
            if counts != (0, 0):
                relation = work.new.relations.get(name)
                if relation is None and work.old is not None:
                    relation = work.old.relations.get(name)
                if relation is not None:  # not a hidden one
                    found[name] = (relation, self._delta(name), counts)
        return found

    def _facts(self, name: str) -> pa.Table:
        return self.keeper.facts(name)

    def _delta(self, name: str) -> Delta:
        return self.keeper.delta(name)

    def _size_after(self, name: str) -> int:
        if name not in self._next:
            return 0
        lost, gained = self.keeper.changed(name)
        return (self.keeper.size(name) if name in self._stored else 0) - lost + gained

    def commit(self) -> None:
        """What was prepared is what holds."""
        for name in self._dropping:
            self.maintenance.drop(name)
        self.maintenance.commit()
        self._dropping = set()
        self._stored, self._begun = self._next, False

    def rollback(self) -> None:
        """Everything is as it was before."""
        self._next, self._dropping = self._stored, set()
        if self._begun:
            self.maintenance.rollback()
            self._begun = False

    def size(self, relation: Relation) -> int:
        """The number of tuples; a relation that waits for its types has none."""
        return self.keeper.size(relation.name) if relation.name in self._stored else 0

    def table(self, relation: Relation) -> pa.Table:
        """The tuples of a relation."""
        if self._closed:  # only where there was no way back, and so no time to take answers out
            raise closed()
        if relation.name in self._stored:
            return self.keeper.table(relation.name)
        from tidelog.program.arrow import arrow_schema

        return arrow_schema(relation).empty_table()

    def held(self, relation: Relation) -> pa.Table | InSpark:
        """The tuples of a relation, where they are."""
        return self.table(relation)

    # --- from one process to another ---------------------------------------------------

    def saved(self) -> Saved | None:
        """The answers with all that is known of them, between commits; None: the engine cannot tell."""
        keeper = self._saving
        if keeper is None:
            return None
        strata, owned = self.maintenance.strata, self.maintenance.owned()
        names = [name for stratum in strata for name in stratum.relations]
        fit = fingerprint(strata, self._stored)
        return Saved(keeper.kind, fit, self.maintenance.notes(), [*names, *owned], keeper.state)

    def restore(self, definition: Definition, saved: Saved, facts: Facts) -> None:
        """Hold what was saved. Raises Unfit where that is not of use here."""
        keeper, strata, live = self._saving, definition.strata, definition.live.relations
        if keeper is None or keeper.kind != saved.kind:
            raise Unfit(f"it is of the engine {saved.kind}")
        if fingerprint(strata, live) != saved.fingerprint:
            raise Unfit("the rules are others")
        owned = self.maintenance.restore(strata, saved.notes)
        derived = {name for stratum in strata for name in stratum.relations}
        if derived | owned.keys() != set(saved.relations):
            raise Unfit("the relations are others")
        for name, relation in {**live, **owned}.items():
            keeper.create(relation)
            state = saved.table(name) if name in saved.relations else facts(relation)
            if state is not None:
                keeper.restore(name, state)
        self._stored = self._next = dict(live)

    @property
    def _saving(self) -> Saving | None:
        return cast("Saving", self.keeper) if hasattr(self.keeper, "kind") else None

    @property
    def stored(self) -> Collection[str]:
        """The relations that there are, hidden ones too."""
        return self._stored.keys()

    def close(self) -> None:
        """Give back what the engine holds."""
        self._closed = True
        self.keeper.close()


def _count(rows: Sequence[Row] | pa.Table) -> int:
    """The number of rows, of this process or in Spark (`execute.spark.state.Rows`)."""
    size: int | None = getattr(rows, "size", None)
    return len(rows) if size is None else size


class _Told:
    """Tells a watcher of progress within strata; tuples are counted over all of them."""

    def __init__(self, watch: Watch, strata: Sequence[Stratum]) -> None:
        self._watch, self._total = watch, len(strata)
        self._before = self._here = self._round = 0
        self._stratum: int | None = None

    def __call__(self, stratum: Stratum, progress: Progress) -> None:
        if stratum.index != self._stratum or progress.round <= self._round:  # another task has begun
            self._before, self._stratum = self._before + self._here, stratum.index
        self._here, self._round = progress.tuples, progress.round
        tuples = self._before + self._here
        self._watch(Moment(stratum.index + 1, self._total, labels(stratum.relations), progress.round, tuples))
