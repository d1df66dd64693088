"""Programs that are kept current straight through the seam, with the oracle beside them.

A program is given with all the rules that may ever be in it, so that rules keep their ids;
some of them are left out at first. After each commit the state and the changes are compared with
what the oracle says, and so are the contracts of the seam.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from tests.oracle import Model, model_of
from tests.running import Row, rows_of
from tidelog.execute import open_executor
from tidelog.maintain.protocol import Algorithm
from tidelog.maintain.update import Maintenance, Upkeep
from tidelog.plan.maintenance import Keeper, PhaseReport
from tidelog.plan.parts import LASTING, Mark
from tidelog.program.check import check
from tidelog.program.model import Program, Stratum
from tidelog.program.projections import project_negations
from tidelog.program.strata import body_relations, stratify
from tidelog.syntax.parser import parse

Facts = Mapping[str, Iterable[Row]]


def open_keeper() -> Keeper:
    keeper = cast(Keeper, open_executor("substitution"))
    keeper.remember(True)
    return keeper


def one_stratum(program: Program) -> list[Stratum]:
    """All relations in one stratum; for programs without negation."""
    heads = set(program.relations)
    rules = program.rules
    return [
        Stratum(
            0,
            tuple(program.relations),
            tuple(rule for rule in rules if heads.isdisjoint(body_relations(rule))),
            tuple(rule for rule in rules if not heads.isdisjoint(body_relations(rule))),
        )
    ]


class Live:
    """A program under maintenance, its explicit facts, and the oracle's opinion."""

    def __init__(
        self,
        text: str,
        algorithm: str | Algorithm,
        facts: Facts | None = None,
        *,
        without: Collection[str] = (),
        counts: bool = True,
        whole: bool = False,
        keeper: Keeper | None = None,
    ) -> None:
        self._all = project_negations(check(parse(text)))
        texts = {rule.text for rule in self._all.rules}
        assert set(without) <= texts, set(without) - texts
        self._absent = set(without)
        self._strata = one_stratum if whole else stratify
        self.keeper = keeper or open_keeper()
        self.maintenance = Maintenance(self.keeper, algorithm, counts)
        self.facts: dict[str, set[Row]] = {name: set() for name in self._all.relations}
        self.model: Model = {name: set() for name in self._all.relations}
        self.reports: list[Upkeep] = []
        for relation in self._all.relations.values():
            self.keeper.create(relation)
        self.commit(facts or {})

    @property
    def program(self) -> Program:
        return replace(self._all, rules=tuple(r for r in self._all.rules if r.text not in self._absent))

    def rule(self, text: str) -> int:
        """The id of a rule."""
        [found] = [rule.id for rule in self._all.rules if rule.text == text]
        return found

    def begin(
        self, insert: Facts, delete: Facts, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> None:
        """All of a commit but its end."""
        texts = {rule.text for rule in self._all.rules}
        assert set(add) <= self._absent, set(add) - self._absent
        assert set(remove) <= texts - self._absent, set(remove) - texts
        self._absent = (self._absent - set(add)) | set(remove)
        self.maintenance.begin(tuple(self._strata(self.program)))
        explicit = set()
        for name, rows in delete.items():
            gone = self.facts[name] & set(rows)
            assert self.keeper.retract_rows(name, list(rows)) == len(gone)
            self.facts[name] -= gone
            explicit.add(name)
        for name, rows in insert.items():
            new = set(rows) - self.facts[name]
            assert self.keeper.assert_rows(name, list(rows)) == len(new)
            self.facts[name] |= new
            explicit.add(name)
        self.reports = self.maintenance.update(explicit)

    def commit(
        self,
        insert: Facts | None = None,
        delete: Facts | None = None,
        add: Collection[str] = (),
        remove: Collection[str] = (),
    ) -> dict[str, tuple[set[Row], set[Row]]]:
        """Commit, compare with the oracle, and give what was deleted and inserted where anything was."""
        self.begin(insert or {}, delete or {}, add, remove)
        model = model_of(self.program, self.facts)
        changes = {}
        for name, relation in self._all.relations.items():
            delta = self.keeper.delta(name)
            deleted, inserted = rows_of(relation, delta.deleted), rows_of(relation, delta.inserted)
            assert (deleted, inserted) == (self.model[name] - model[name], model[name] - self.model[name]), (
                name
            )
            assert self.keeper.changed(name) == (len(deleted), len(inserted)), name
            assert rows_of(relation, self.keeper.facts(name)) == self.facts[name], name
            assert rows_of(relation, self.keeper.table(name)) == self.model[name], name  # as before, still
            self._no_mark_is_left(name)
            if deleted or inserted:
                changes[name] = (deleted, inserted)
        self.maintenance.commit()
        self.model = model
        self.agrees()
        return changes

    def agrees(self) -> None:
        """The keeper holds what the oracle says, and nothing of a commit is left."""
        for name, relation in self._all.relations.items():
            assert rows_of(relation, self.keeper.table(name)) == self.model[name], name
            assert rows_of(relation, self.keeper.facts(name)) == self.facts[name], name
            marks = {row: standing.marks for row, standing in self.keeper.standing(name).items()}
            assert {row for row, mark in marks.items() if mark & Mark.HELD} == self.model[name], name
            assert {row for row, mark in marks.items() if mark & Mark.EXPLICIT} == self.facts[name], name
            assert not any(mark & ~LASTING for mark in marks.values()), name

    def _no_mark_is_left(self, name: str) -> None:
        passing = Mark.QUEUED | Mark.CURRENT | Mark.PROVING
        standing = self.keeper.standing(name)
        assert [row for row, known in standing.items() if known.marks & passing] == [], name

    def ranks(self, name: str) -> dict[Row, int]:
        return {row: known.first for row, known in self.keeper.standing(name).items()}

    def phases(self, *relations: str) -> dict[str, PhaseReport]:
        """What the last commit did for the stratum of some relations, by the name of the phase."""
        [found] = [report for report in self.reports if set(relations) <= set(report.relations)]
        return {phase.phase: phase for phase in found.phases}

    def algorithms(self) -> dict[tuple[str, ...], str]:
        """Who did what in the last commit."""
        return {report.relations: report.algorithm for report in self.reports}


def instances(phases: Mapping[str, PhaseReport] | Sequence[PhaseReport]) -> int:
    """The rule instances considered in all phases."""
    reports = phases.values() if isinstance(phases, Mapping) else phases
    return sum(sum(report.instances.values()) for report in reports)
