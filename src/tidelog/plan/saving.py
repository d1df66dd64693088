"""The seam, for stores: a keeper that can go on with what another process has left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidelog.plan.maintenance import Keeper

if TYPE_CHECKING:
    import pyarrow as pa


class Saving(Keeper, Protocol):
    """A keeper whose relations can be written down with all that it knows of them, and read back.

    What the numbers of a tuple mean is a keeper's own affair: `kind` says whose they are, and only
    a keeper of the same kind is given them.
    """

    kind: str

    def state(self, relation: str) -> pa.Table:
        """The tuples held, with what `restore` needs of each; between commits.

        First come the columns of the relation, as `c0`, `c1`, ..., then `explicit`, and the numbers.
        """

    def restore(self, relation: str, state: pa.Table) -> None:
        """Fill a relation that has just been made with a `state`; between commits.

        Without the column `explicit` all tuples are. Raises ValueError where a tuple is there twice.
        """
