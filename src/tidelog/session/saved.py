"""Answers with all that is known of them, on their way from one process to another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tidelog.maintain.notes import Note
from tidelog.program.model import Relation
from tidelog.session.backend import Backend
from tidelog.session.definition import Definition

if TYPE_CHECKING:
    import pyarrow as pa


Table = Callable[[str], "pa.Table | None"]
Facts = Callable[[Relation], "pa.Table | None"]


@dataclass(frozen=True)
class Saved:
    """What an engine can go on with: `kind` says which one, `fingerprint` with which rules.

    `relations` are those that rules derive into, with hidden ones, and those that algorithms keep for
    themselves. `table` gives what a keeper knows of one (see `Saving.state`); None: it has no tuples.
    """

    kind: str
    fingerprint: str
    notes: Sequence[Note]
    relations: Collection[str]
    table: Table


class Lasting(Backend, Protocol):
    """A backend whose answers need not be derived again in another process."""

    def saved(self) -> Saved | None:
        """What it holds, between commits; None: its engine cannot tell."""

    def restore(self, definition: Definition, saved: Saved, facts: Facts) -> None:
        """Hold what was saved, first of all; `facts` has the tuples of relations without rules, as `c0`, ...

        Raises Unfit where it cannot; it is of no use then.
        """
