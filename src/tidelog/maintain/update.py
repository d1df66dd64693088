"""The driver: brings a whole program up to date, stratum by stratum.

    maintenance = Maintenance(keeper, "auto")
    maintenance.begin(strata)           # the strata as they are to be after the commit
    keeper.assert_rows(...)             # facts come and go
    maintenance.update({"edge"})        # names the relations whose explicit facts changed
    maintenance.commit()                # or rollback()

The first commit of a database is no different: it starts every stratum.

    Update(old strata, new strata)
    1  a relation that had rules and has none any more is a stratum without rules; these come first
    2  for each stratum, in order
    3      pass over it if neither its rules have changed, nor what it reads, nor its own explicit facts
    4      choose: an aggregate is regrouped, a stratum that is not recursive has its instances counted, and
           a recursive one is given to the algorithm that was asked for
    5      if the numbers that the stratum's tuples carry are of use to it, update; otherwise start anew

**When numbers are of use** (step 5). A relation carries the numbers of the stratum it was last
brought up to date in.

| numbers           | are of use if                                                                  |
|-------------------|--------------------------------------------------------------------------------|
| none              | always                                                                         |
| `counts`          | all relations carry counts or nothing: a count is about rules and not strata    |
| `ranks`           | all that carry something carry ranks of one stratum, or all carry counts        |
| `groups`          | the aggregate is the same                                                      |
| `trace`, `first`  | the stratum has the same relations, but for new ones that hold nothing         |
| others            | the stratum has the same relations                                             |

A relation that carries nothing holds explicit facts only, for which the first three need no
numbers. A stratum that stops being recursive goes on with the numbers it has while they are of
use: starting anew costs more than counts save. A stratum that was never brought up to date and
holds nothing is started.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from tidelog.maintain.algorithms import named
from tidelog.maintain.auto import Auto
from tidelog.maintain.counting import Counts
from tidelog.maintain.dred import DRed
from tidelog.maintain.groups import Groups
from tidelog.maintain.notes import USELESS, Note, Unfit, stratum_of
from tidelog.maintain.protocol import Algorithm, Choice, Misled, StratumChange, in_vain, renewal
from tidelog.maintain.ranked import Ranked
from tidelog.maintain.seminaive import Recompute, StratumWatch, unwatched
from tidelog.plan.executor import Progress
from tidelog.plan.executor import unwatched as unwatched_task
from tidelog.plan.maintenance import Abandoned, Keeper, PhaseReport
from tidelog.program.model import Relation, Rule, Stratum
from tidelog.program.strata import body_relations

LOG = logging.getLogger("tidelog")
WORTH_PREPARING = 10_000  # tuples
MISLED = "met values on which a rule fails, and which need not be there"


@dataclass(frozen=True)
class Upkeep:
    """What a commit did for one stratum, and why so."""

    stratum: int
    relations: tuple[str, ...]
    algorithm: str
    why: str
    phases: list[PhaseReport]


@dataclass(frozen=True, eq=False)
class _Numbers:
    """What the tuples of a stratum's relations carry, and from which algorithm."""

    kind: str
    stratum: Stratum
    algorithm: Algorithm


@dataclass(frozen=True, eq=False)
class _Concern:
    """How the rules of a stratum have changed, if at all, and what it reads of others."""

    change: StratumChange
    reads: tuple[str, ...]


class Maintenance:
    """Keeps the answers of a program current on one keeper.

    `algorithm` may be set to another name, or to an `Algorithm`, between commits. With `counts=False`
    strata that are not recursive are given to it too. Any stratification will do.
    """

    def __init__(self, keeper: Keeper, algorithm: str | Algorithm = "auto", counts: bool = True) -> None:
        self.keeper = keeper
        self.counts = counts
        self.strata: tuple[Stratum, ...] = ()
        self._named: dict[str, Algorithm] = {}
        self.algorithm: str | Algorithm = algorithm
        self._asked()
        self._counts, self._groups = Counts(), Groups()
        self._dred, self._ranked = DRed(), Ranked()
        self._numbers: dict[str, _Numbers] = {}  # by relation
        self._steady: dict[tuple[str, ...], _Concern] = {}  # by relations
        self._plan: list[_Concern] | None = None  # for strata that stay as they are
        self._next: tuple[tuple[Stratum, ...], dict[str, _Numbers]] | None = None
        self._started: list[Stratum] = []  # in this commit

    def begin(self, strata: Sequence[Stratum]) -> None:
        """Begin a commit; before any fact is asserted or retracted."""
        self._prepare()  # what came with `restore`
        self.keeper.begin()
        self._next = (tuple(strata), dict(self._numbers))
        if self._next[0] is not self.strata:
            self.keeper.derives(_relations((*self.strata, *strata)))

    def commit(self) -> None:
        """What has been brought up to date is what holds."""
        assert self._next is not None, "there is a commit under way"
        strata, self._numbers = self._next
        if strata is not self.strata:
            self.keeper.derives(_relations(strata))
            present = {stratum.relations for stratum in strata}
            self._steady = {key: steady for key, steady in self._steady.items() if key in present}
            for algorithm in (*self._named.values(), self._asked()):
                if isinstance(algorithm, Auto):
                    algorithm.keep(present)
            self.strata, self._plan = strata, None
        self.keeper.commit()
        self._next = None
        self._prepare()

    def drop(self, relation: str) -> None:
        """Forget a relation that no rule reads or derives any more; after `update`, before `commit`."""
        assert self._next is not None, "there is a commit under way"
        self.keeper.drop(relation)
        self._next[1].pop(relation, None)

    def _prepare(self) -> None:
        """Make the indexes that updates of large strata need now, and not in the next commit.

        Most algorithms have an update without changes for that.
        """
        started, self._started = self._started, []
        try:
            for stratum in started:
                if stratum in self.strata:  # else its last rule has gone
                    self._prepare_one(stratum)
        except Exception:  # it only saves the next commit time, and this one stands
            LOG.warning("a stratum could not be prepared for updates", exc_info=True)
            self.keeper.rollback()

    def _prepare_one(self, stratum: Stratum) -> None:
        carried = self._numbers[stratum.relations[0]]
        algorithm = carried.algorithm
        sizes = [self.keeper.size(name) for name in (*stratum.relations, *_reads(stratum))]
        if max(sizes) < WORTH_PREPARING or isinstance(algorithm, Recompute) or carried.kind == USELESS:
            return
        if isinstance(algorithm, Auto) and algorithm.policy == "full":
            return
        self.keeper.begin()
        for name in _reads(stratum):
            self.keeper.retract_rows(name, [])
            self.keeper.assert_rows(name, [])
        change = self._steady_one(stratum).change
        if isinstance(algorithm, Ranked | Auto):  # which leave out what has nothing to do
            algorithm.prepare(change, self.keeper)
        else:
            algorithm.update(change, self.keeper, unwatched_task, None)
        self.keeper.commit()

    def rollback(self) -> None:
        """Nothing has happened."""
        self._started = []
        self.keeper.rollback()
        self.keeper.derives(_relations(self.strata))
        self._next, self._plan = None, None

    def update(self, explicit: Collection[str], watch: StratumWatch = unwatched) -> list[Upkeep]:
        """Bring every stratum up to date; `explicit` are the relations whose explicit facts changed."""
        assert self._next is not None, "there is a commit under way"
        strata, numbers = self._next
        found = []
        for one in self._changes(strata):  # steps 1 and 2
            if self._concerned(one, explicit):  # step 3
                found.append(self._bring_up_to_date(one.change, numbers, watch))
        return found

    # --- from one process to another -------------------------------------------------

    def owned(self) -> dict[str, Relation]:
        """The relations that algorithms keep for themselves; between commits."""
        found: dict[str, Relation] = {}
        for carried in dict.fromkeys(self._numbers.values()):
            if self._is_whole(carried):
                found.update(_owned(carried))
        return found

    def notes(self) -> list[Note]:
        """What the tuples of derived relations carry, for `restore`; between commits."""
        found = []
        derived = _relations(self.strata)
        for carried in dict.fromkeys(self._numbers[name] for name in derived):
            stratum, algorithm = carried.stratum, carried.algorithm
            if self._is_whole(carried):
                starting = getattr(algorithm, "starting", None)  # a `Weighing` algorithm
                cost = None if starting is None else starting(stratum)
                found.append(Note(stratum.relations, carried.kind, algorithm.name, cost))
            else:
                names = tuple(name for name in derived if self._numbers[name] is carried)
                found.append(Note(names, USELESS, self._counts.name))
        return found

    def _is_whole(self, carried: _Numbers) -> bool:
        """Whether a stratum has its numbers: rules may have moved its relations to others."""
        stratum = carried.stratum
        return stratum in self.strata and all(self._numbers[name] is carried for name in stratum.relations)

    def restore(self, strata: Sequence[Stratum], notes: Iterable[Note]) -> dict[str, Relation]:
        """Go on with what another process has left; first of all. Raises Unfit where that cannot be.

        The relations that algorithms keep for themselves, which have to be restored too.
        """
        self.strata = tuple(strata)
        owned: dict[str, Relation] = {}
        for note in notes:
            stratum, algorithm = stratum_of(note, strata), self._known(note)
            if note.cost is not None and hasattr(algorithm, "expect"):
                algorithm.expect(stratum, note.cost)
            carried = _Numbers(note.kind, stratum, algorithm)
            self._numbers.update(dict.fromkeys(note.relations, carried))
            owned.update(_owned(carried))
        missing = [name for name in _relations(strata) if name not in self._numbers]
        if missing:
            raise Unfit(f"nothing is said of {missing[0]}")
        self._started = list(self.strata)
        self.keeper.derives(_relations(self.strata))
        return owned

    def _known(self, note: Note) -> Algorithm:
        """The algorithm that a note speaks of: the one in use, if it is called so. Raises Unfit."""
        for algorithm in (self._asked(), self._counts, self._groups):
            if algorithm.name == note.algorithm and note.kind in (algorithm.state, USELESS):
                return algorithm
        try:
            other = self._named.setdefault(note.algorithm, named(note.algorithm))
        except ValueError as error:
            raise Unfit(str(error)) from None
        if other.state != note.kind:
            raise Unfit(f"{note.algorithm} does not keep {note.kind or 'nothing'}")
        return other

    # --- steps 1 and 2: what has changed in the rules -------------------------------

    def _changes(self, strata: tuple[Stratum, ...]) -> list[_Concern]:
        if strata is self.strata:
            if self._plan is None:
                self._plan = [self._steady_one(stratum) for stratum in strata]
            return self._plan
        old, new = _rules(self.strata), _rules(strata)
        removed: dict[str, list[Rule]] = {}
        for rule in old:
            if rule not in new:
                removed.setdefault(rule.head.relation, []).append(rule)
        present = set(_relations(strata))
        bare = [name for name in _relations(self.strata) if name not in present]
        found = []
        for stratum in (*(Stratum(-1, (name,), (), ()) for name in bare), *strata):
            added = tuple(rule for rule in (*stratum.base, *stratum.recursive) if rule not in old)
            gone = tuple(rule for name in stratum.relations for rule in removed.get(name, ()))
            if added or gone:
                found.append(_Concern(StratumChange(stratum, added, gone), _reads(stratum)))
            else:
                found.append(self._steady_one(stratum))
        return found

    def _steady_one(self, stratum: Stratum) -> _Concern:
        """The same object for the same rules, again and again."""
        known = self._steady.get(stratum.relations)
        if known is None or known.change.stratum != stratum:
            known = self._steady[stratum.relations] = _Concern(StratumChange(stratum), _reads(stratum))
        return known

    # --- step 3 -----------------------------------------------------------------------

    def _concerned(self, one: _Concern, explicit: Collection[str]) -> bool:
        stratum, change = one.change.stratum, one.change
        return (
            bool(change.added or change.removed)
            or any(name not in self._numbers for name in stratum.relations)
            or stratum.aggregate != self._numbers[stratum.relations[0]].stratum.aggregate
            or any(name in explicit for name in stratum.relations)
            or any(self.keeper.changed(name) != (0, 0) for name in one.reads)
        )

    # --- steps 4 and 5 ----------------------------------------------------------------

    def _bring_up_to_date(
        self, change: StratumChange, numbers: dict[str, _Numbers], watch: StratumWatch
    ) -> Upkeep:
        stratum, keeper = change.stratum, self.keeper
        carried = {numbers[name] for name in stratum.relations if name in numbers}
        algorithm, why = self._choose(stratum, carried)  # step 4
        useful = self._useful(algorithm.state, stratum, carried)
        if not carried and all(keeper.size(name) == 0 for name in stratum.relations):
            useful, why = False, "for the first time"
        elif not useful:
            why = f"started anew, as it carried no {algorithm.state or 'numbers'}"
        for old in carried:
            if not (useful and old.algorithm is algorithm):
                self._forget(old, numbers)

        def watch_task(progress: Progress) -> None:
            watch(stratum, progress)

        if useful:  # step 5
            try:
                phases = algorithm.update(change, keeper, watch_task, None)
                choice: Choice | None = getattr(algorithm, "choice", None)
                if choice is not None:
                    chosen = "" if choice.algorithm == algorithm.name else f"{choice.algorithm}: "
                    why = chosen + choice.why
            except Abandoned as given_up:  # without a budget: Misled, or it is the keeper that gives up
                keeper.undo(stratum.relations)
                phases = [in_vain(given_up), *renewal(algorithm, stratum, keeper, watch_task)]
                misled = isinstance(given_up, Misled)
                why = f"started anew, as the update {MISLED if misled else 'outgrew the driver'}"
        else:
            phases = renewal(algorithm, stratum, keeper, watch_task)
            self._started.append(stratum)
        made = _Numbers(algorithm.state, stratum, algorithm)
        numbers.update(dict.fromkeys(stratum.relations, made))
        return Upkeep(stratum.index, stratum.relations, algorithm.name, why, phases)

    def _choose(self, stratum: Stratum, carried: Set[_Numbers]) -> tuple[Algorithm, str]:
        """Who is to bring a stratum up to date, and why."""
        asked = self._asked()
        if stratum.aggregate is not None:
            return self._groups, "an aggregate"
        if not stratum.base and not stratum.recursive and stratum.index < 0:
            return self._without_rules(carried), "its last rule is gone"
        if not stratum.recursive and self.counts:
            if self._useful("counts", stratum, carried) or not self._useful(asked.state, stratum, carried):
                return self._counts, "not recursive"
            return asked, "not recursive any more"
        return asked, "as asked for"

    def _without_rules(self, carried: Set[_Numbers]) -> Algorithm:
        kinds = {old.kind for old in carried}
        if kinds == {"ranks"}:
            return self._ranked
        return self._counts if kinds <= {"counts"} else self._dred

    def _useful(self, kind: str, stratum: Stratum, carried: Set[_Numbers]) -> bool:
        """Whether numbers that a stratum's relations carry are of use where `kind` is wanted."""
        kinds = {old.kind for old in carried}
        if stratum.aggregate is not None or "groups" in kinds:
            return kinds == {"groups"} and {old.stratum.aggregate for old in carried} == {stratum.aggregate}
        if kind == "":
            return True
        if kind == "counts":
            return kinds <= {"counts"}
        if kind == "ranks":
            return kinds <= {"counts"} or (kinds == {"ranks"} and len(carried) == 1)
        if kinds != {kind} or len(carried) != 1:
            return False
        [old] = carried
        before, now = set(old.stratum.relations), set(stratum.relations)
        if kind in ("trace", "first"):
            return before <= now and all(self.keeper.size(name) == 0 for name in now - before)
        return before == now

    def _forget(self, old: _Numbers, numbers: dict[str, _Numbers]) -> None:
        """Give up what an algorithm keeps for a stratum; its other relations carry nothing of use then."""
        forget = getattr(old.algorithm, "forget", None)  # a `Forgetting` algorithm
        if forget is not None:
            forget(old.stratum, self.keeper)
            useless = _Numbers(USELESS, old.stratum, self._counts)
            numbers.update({name: useless for name, other in numbers.items() if other is old})

    def _asked(self) -> Algorithm:
        """The algorithm for recursive strata; always the same object for the same name."""
        if not isinstance(self.algorithm, str):
            return self.algorithm
        if self.algorithm not in self._named:
            self._named[self.algorithm] = named(self.algorithm)
        return self._named[self.algorithm]


def _owned(carried: _Numbers) -> Mapping[str, Relation]:
    """The relations that an algorithm keeps for itself."""
    owned = getattr(carried.algorithm, "owned", None)  # a `Forgetting` algorithm
    found: Mapping[str, Relation] = {} if owned is None else owned(carried.stratum)
    return found


def _rules(strata: Iterable[Stratum]) -> set[Rule]:
    return {rule for stratum in strata for rule in (*stratum.base, *stratum.recursive)}


def _relations(strata: Iterable[Stratum]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for stratum in strata for name in stratum.relations))


def _reads(stratum: Stratum) -> tuple[str, ...]:
    """The relations of other strata that a stratum reads."""
    read = [name for rule in (*stratum.base, *stratum.recursive) for name in body_relations(rule)]
    if stratum.aggregate is not None:
        read.append(stratum.aggregate.source)
    return tuple(name for name in dict.fromkeys(read) if name not in stratum.relations)
