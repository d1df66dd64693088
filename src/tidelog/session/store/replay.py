"""The explicit facts of a version, and what tells those of two versions apart, as operations of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from tidelog.maintain.notes import Unfit
from tidelog.program.model import Relation
from tidelog.session.backend import Operation
from tidelog.session.frames.given import GivenFrame
from tidelog.session.store.levels import folded
from tidelog.session.store.manifest import Entry, Levels, Manifest
from tidelog.session.store.rows import ArrowSets, Moves, Sets, SparkSets, T

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.session.store.store import Store

FEW = 1_000  # facts that may have changed in any case
SHARE = 4  # more may have changed if they are one in so many of all


def facts_of(store: Store, manifest: Manifest, relations: Mapping[str, Relation]) -> list[Operation]:
    """All explicit facts of a version."""
    found = []
    for name, entry in manifest.entries.items():
        if entry.explicit:
            relation, exact = relations[name], entry.facts is None
            there = store.in_spark(entry.explicit)
            rows = (store.frame if there else store.table)(relation, entry.explicit, exact=exact)
            found.append(Operation(True, name, _given(relation, rows)))
    return found


def changes_since(store: Store, then: Manifest, now: Manifest) -> list[Operation]:
    """What makes the explicit facts of a version those of a later one. Raises Unfit if it is too much."""
    found: list[Operation] = []
    for name, entry in now.entries.items():
        was = then.entries.get(name) or Entry(entry.relation)
        if was.relation.columns != entry.relation.columns:
            if was.size:
                raise Unfit(f"{name} had other columns")
            was = Entry(entry.relation)
        if was.explicit == entry.explicit:
            continue
        if store.in_spark((*was.explicit, *entry.explicit)):
            assert store.spark is not None
            in_spark = SparkSets(store.files, entry.relation, store.spark)
            found += _operations(entry.relation, _moves(was.explicit, entry.explicit, in_spark))
        else:
            sets = ArrowSets(store.files, entry.relation)
            found += _operations(entry.relation, _moves(was.explicit, entry.explicit, sets))
    changed = sum(getattr(operation.rows, "num_rows", 0) for operation in found)
    facts = sum(entry.size for entry in now.entries.values() if entry.facts is None)
    if changed > max(FEW, facts // SHARE):
        raise Unfit(f"{changed:,} facts have changed since")
    return found


def _moves(old: Levels, new: Levels, sets: Sets[T]) -> Moves[T]:
    """What goes and comes from some levels to others; some of it may be gone or there before."""
    if new[: len(old)] == old:  # which is the rule: what has come since is behind
        return folded(new[len(old) :], sets, first=False, exact=False)
    before, after = (folded(levels, sets, first=True, exact=False).come for levels in (old, new))
    if before is None or after is None:
        return Moves(before, after)
    return Moves(sets.minus(before, after), sets.minus(after, before))


def _operations(relation: Relation, moves: Moves[T]) -> list[Operation]:
    return [
        Operation(insert, relation.name, _given(relation, rows), counted=False)
        for insert, rows in ((False, moves.gone), (True, moves.come))
        if rows is not None
    ]


def _given(relation: Relation, rows: object) -> pa.Table:
    """Rows of a store as operations have them: a table, or a DataFrame of cells."""
    if hasattr(rows, "num_rows"):
        return cast("pa.Table", rows)
    heading = f"cannot read the facts of {relation.name}"
    return cast("pa.Table", GivenFrame(rows, relation.columns, heading, "TL0802", of_changes=False))  # type: ignore[arg-type]
