"""Relations that a commit starts anew: set aside, filled by plain tasks, compared with what they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tidelog.execute.local import layout as local
from tidelog.execute.local import repeats
from tidelog.execute.local.join import MAX_ARITY
from tidelog.execute.local.keep import ending, renewal, rowmap
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep.relation import Aside, Ledger, check_rows
from tidelog.execute.local.memory import Cells, Owned, preload
from tidelog.execute.local.relation import StoredRelation
from tidelog.plan.parts import Mark
from tidelog.syntax.errors import InternalError, UnsupportedError

FEW = 8  # a renewal that moves no more than one in so many tuples leaves them where they are


class Renewals:
    """What is under way of this in a commit.

    `aside` has what was set aside, until the commit ends or it is put back for good; `explicit` the number of
    explicit facts of relations that are being filled, which come first; `noted` the number of rows that such
    a relation had when it began to be noted which rows come more than once; `former` the numbers of rows that
    have taken over new ones, with the address where they were.
    """

    def __init__(self, relations: dict[str, StoredRelation], ledgers: dict[str, Ledger]) -> None:
        self._relations, self._ledgers = relations, ledgers
        self.aside: dict[str, Aside] = {}
        self.explicit: dict[str, int] = {}
        self.noted: dict[str, int] = {}
        self.former: list[tuple[Ledger, int, Owned]] = []

    def load(self) -> None:
        """Have the kernels in memory."""
        preload(ending.hide_lost, ending.show_lost, renewal.fill_new, renewal.set_ranks)
        preload(renewal.compare, renewal.find_again, renewal.mark_moved)

    def set_aside(self, renewed: Mapping[str, Ledger]) -> None:
        """Set relations aside and start them from their explicit facts; others show what holds now."""
        for name, ledger in self._ledgers.items():
            if name not in renewed and ledger.touched:
                ending.hide_lost(ledger.stored.address)
        for name, ledger in renewed.items():
            stored = ledger.stored
            if stored.arity > MAX_ARITY:
                raise UnsupportedError(
                    f"error[TL0605]: {name} has more than {MAX_ARITY} columns: too many to keep it up to date"
                )
            if name in self.aside:
                raise InternalError(f"{name} is renewed twice in a commit")
            cells = stored.cells[np.flatnonzero(ledger.marks & np.uint16(Mark.EXPLICIT))]
            held = int(ledger.record[at.AT_BEGIN] - ledger.record[at.DEAD])
            self.aside[name] = Aside(stored, ledger, held)
            del self._ledgers[name]
            self.aside[name].take()
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

    def compare(self, ledger: Ledger) -> bool:
        """A relation is filled: mark what is lost and gained against what was set aside.

        True: that is little, so the old rows are back, with their indexes.
        """
        stored = ledger.stored
        name = stored.relation.name
        old = self.aside[name]
        del self.explicit[name]
        alike = self._take_over(old, ledger)
        if not alike:
            count = int(old.record[local.COUNT])
            ledger.need_map(count)
            rows, marks = int(old.record[local.ROWS]), int(old.ledger.record[at.MARKS])
            check_rows(int(renewal.compare(stored.address, rows, count, marks)), name)
        stored.absorb()
        return alike

    def _take_over(self, old: Aside, now: Ledger) -> bool:
        """Put the old rows back and give them the numbers of the new ones, if nearly all are the same."""
        stored, was = old.stored, old.ledger
        few, count = old.held // FEW, int(old.record[local.COUNT])
        if abs(len(stored) - old.held) > few or was.record[at.TRACES] or now.record[at.TRACES]:
            return False
        if not was.record[at.NUMBERS] or not now.record[at.NUMBERS]:
            return False
        if not rowmap.extend_map(old.address, 0):
            raise MemoryError
        numbers = Owned(8 * max(1, count))
        others = np.empty(few, np.int64)
        gained = int(renewal.find_again(old.address, stored.address, numbers.address, others))
        if gained < 0:
            return False
        rows = others[:gained]
        cells, row_numbers = stored.cells[rows], now.numbers[rows]
        name = stored.relation.name
        old.put_back(now)
        self._ledgers[name] = was
        del self.aside[name]
        done = renewal.mark_moved(stored.address, numbers.address, cells.ctypes.data, row_numbers)
        check_rows(int(done), name)
        self.former.append((was, int(was.record[at.NUMBERS]), numbers))
        was.swap_numbers(numbers, count)
        return True

    def show_lost(self) -> None:
        """Link what was hidden from the relations that were filled."""
        for ledger in self._ledgers.values():
            if ledger.record[at.HIDING] and not ending.show_lost(ledger.stored.address):
                raise MemoryError

    def take_back_numbers(self) -> None:
        """Rows that have taken over new numbers have the old ones again."""
        for ledger, address, numbers in self.former:
            if ledger.record[at.NUMBERS] != address:
                ledger.swap_numbers(numbers, len(ledger.stored))

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
        self.former.clear()

    def _forget_repeats(self, name: str) -> None:
        if self.noted.pop(name, None) is not None:
            repeats.end_filter(self._relations[name].address)

    def compact(self, name: str) -> None:
        """Write a relation's rows anew, without those that are linked nowhere."""
        stored, old = self._relations[name], self._ledgers[name]
        alive = np.flatnonzero(old.held())
        cells = stored.cells[alive]
        aside, ledger = Aside(stored, old, len(alive)), None
        try:
            aside.take()
            _insert(stored, cells)
            ledger = Ledger(stored)
            stored.wake_indexes()
            ledger.take_over(old, alive)
        except MemoryError:
            aside.put_back(ledger)  # it stays as it is
            return
        self._ledgers[name] = ledger
        aside.discard()


def _insert(stored: StoredRelation, cells: Cells) -> None:
    stored.insert([np.ascontiguousarray(cells[:, i]) for i in range(stored.arity)], len(cells))
