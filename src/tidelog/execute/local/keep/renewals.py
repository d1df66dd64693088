"""Relations that a commit starts anew: set aside, filled by plain tasks, compared with what they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tidelog.execute.local import layout as local
from tidelog.execute.local import repeats
from tidelog.execute.local.join import MAX_ARITY
from tidelog.execute.local.keep import ending, renewal
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep.relation import Aside, Ledger, check_rows
from tidelog.execute.local.memory import Cells
from tidelog.execute.local.relation import StoredRelation
from tidelog.plan.parts import Mark
from tidelog.syntax.errors import InternalError, UnsupportedError


class Renewals:
    """What is under way of this in a commit.

    `aside` has what was set aside, until the commit ends; `explicit` the number of explicit facts of
    relations that are being filled, which come first; `noted` the number of rows that such a relation had
    when it began to be noted which rows come more than once.
    """

    def __init__(self, relations: dict[str, StoredRelation], ledgers: dict[str, Ledger]) -> None:
        self._relations, self._ledgers = relations, ledgers
        self.aside: dict[str, Aside] = {}
        self.explicit: dict[str, int] = {}
        self.noted: dict[str, int] = {}

    def set_aside(self, renewed: Mapping[str, Ledger]) -> None:
        """Set relations aside and start them from their explicit facts; others show what holds now."""
        for name, ledger in self._ledgers.items():
            if name not in renewed and ledger.touched:
                ending.hide_lost(ledger.stored.address)
                ledger.record[at.HIDING] = 1
        for name, ledger in renewed.items():
            stored = ledger.stored
            if stored.arity > MAX_ARITY:
                raise UnsupportedError(
                    f"error[TL0605]: {name} has more than {MAX_ARITY} columns: too many to keep it up to date"
                )
            if name in self.aside:
                raise InternalError(f"{name} is renewed twice in a commit")
            cells = stored.cells[np.flatnonzero(ledger.marks & np.uint16(Mark.EXPLICIT))]
            self.aside[name] = Aside(stored, ledger)
            del self._ledgers[name]
            if len(cells):
                _insert(stored, cells)
            self.explicit[name] = len(cells)

    def note_repeats(self) -> None:
        """Note from now on which rows come more than once."""
        for name in self.explicit.keys() - self.noted.keys():
            self.noted[name] = len(self._relations[name])
            repeats.begin_filter(self._relations[name].address)

    def rank(self, ledger: Ledger, before: int) -> None:
        """Give ranks to the rows of a fixpoint, by rounds, and a count to those that came once."""
        ledger.keep_numbers()
        stored = ledger.stored
        name = stored.relation.name
        renewal.set_ranks(stored.address, self.noted[name], before, stored.round_ends)
        self._forget_repeats(name)

    def compare(self, ledger: Ledger) -> None:
        """A relation is filled: mark what is lost and gained against what was set aside."""
        stored = ledger.stored
        name = stored.relation.name
        old = self.aside[name]
        count = int(old.record[local.COUNT])
        ledger.need_map(count)
        del self.explicit[name]
        rows, marks = int(old.record[local.ROWS]), int(old.ledger.record[at.MARKS])
        check_rows(int(renewal.compare(stored.address, rows, count, marks)), name)
        stored.absorb()

    def show_lost(self) -> None:
        """Link what was hidden from the relations that were filled."""
        for ledger in self._ledgers.values():
            if ledger.record[at.HIDING]:
                ledger.record[at.HIDING] = 0
                if not ending.show_lost(ledger.stored.address):
                    raise MemoryError

    def put_back(self, name: str) -> None:
        """A relation is what it was, if it was set aside."""
        aside = self.aside.pop(name, None)
        if aside is not None:
            now = self._ledgers.get(name)
            aside.put_back(None if now is aside.ledger else now)
            self._ledgers[name] = aside.ledger
            self.explicit.pop(name, None)
            self._forget_repeats(name)

    def discard(self, relations: Iterable[str]) -> None:
        """Do not need any more what was set aside of some relations."""
        for name in tuple(relations):
            aside = self.aside.pop(name, None)
            if aside is not None:
                aside.discard()

    def end(self) -> None:
        """The commit is over."""
        for name in self.noted.keys() & self._relations.keys():  # a task has failed
            self._forget_repeats(name)
        self.aside.clear()
        self.explicit.clear()
        self.noted.clear()

    def _forget_repeats(self, name: str) -> None:
        if self.noted.pop(name, None) is not None:
            repeats.end_filter(self._relations[name].address)

    def compact(self, name: str) -> None:
        """Write a relation's rows anew, without those that are linked nowhere."""
        stored, old = self._relations[name], self._ledgers[name]
        alive = np.flatnonzero(old.held())
        cells = stored.cells[alive]
        aside = Aside(stored, old)
        ledger = None
        try:
            _insert(stored, cells)
            ledger = Ledger(stored)
            ledger.take_over(old, alive)
            stored.wake_indexes()
        except MemoryError:
            aside.put_back(ledger)  # it stays as it is
            return
        self._ledgers[name] = ledger
        aside.discard()


def _insert(stored: StoredRelation, cells: Cells) -> None:
    stored.insert([np.ascontiguousarray(cells[:, i]) for i in range(stored.arity)], len(cells))
