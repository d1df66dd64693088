"""States are written when a database ends or has changed much, and loaded when it begins."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tidelog.maintain.notes import Unfit
from tidelog.program.model import Relation
from tidelog.session.backend import Outcome, Work
from tidelog.session.saved import Lasting, Saved
from tidelog.session.store.draft import folders
from tidelog.session.store.errors import damaged, said
from tidelog.session.store.manifest import Part
from tidelog.session.store.replay import changes_since
from tidelog.session.store.states import SUFFIX, State
from tidelog.session.store.store import DATA, STATES, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.schema import DataFrame

IN_SPARK = "-spark"  # in the name of what Spark has written


# --- writing ------------------------------------------------------------------------


def write_state(store: Store, saved: Saved) -> None:
    """Write what has been saved, of the last version, in place of the state that there is."""
    latest, files = store.latest, store.files
    assert latest is not None, "there is a version"
    name = f"{latest.version:08}-{store.token}"
    parts: dict[str, Part | None] = {}
    places = folders(saved.relations)
    written: list[str] = []
    try:
        for relation in saved.relations:
            table = saved.table(relation)
            there = "" if hasattr(table, "num_rows") else IN_SPARK
            written.append(f"{DATA}/{places[relation]}/{name}{there}{SUFFIX}")
            parts[relation] = _write(store, table, written[-1])
        files.settle(part.path for part in parts.values() if part is not None)
        place = f"{STATES}/{name}.json"
        state = State(place, latest.version, latest.token, saved.kind, saved.fingerprint, saved.notes, parts)
        files.publish(place, state.text().encode())
    except BaseException:
        remove_files(store, written)
        raise
    store.state = state
    remove_files(store, sorted(store.of_states() - state.paths(), reverse=True))  # first who names others


def _write(store: Store, state: pa.Table | None, path: str) -> Part | None:
    import pyarrow.parquet as pq

    if IN_SPARK in path:
        from tidelog.execute.spark.parquet import write_state as write

        return Part(path, write(cast("DataFrame", state), f"{store.files.spark}/{path}"))
    if state is None or not state.num_rows:
        return None
    store.files.write(
        path, lambda file: pq.write_table(state, file, compression="zstd", write_page_checksum=True)
    )
    return Part(path, state.num_rows)


def remove_files(store: Store, paths: Iterable[str]) -> None:
    """Remove files that nobody needs, as far as that goes."""
    for path in paths:
        with suppress(OSError):
            store.files.remove(path)


# --- loading ------------------------------------------------------------------------


def load_state(store: Store, inner: Lasting, work: Work) -> Outcome:
    """Have a backend hold what the state has, and prepare what has changed since.

    Raises Unfit where there is no such state, or StoreError; the backend is of no use then.
    """
    state, latest = store.state, store.latest
    if state is None or latest is None:
        raise Unfit("there is none")
    if state.engine == "spark" and store.spark is None:
        raise Unfit("Spark has it, and there is no session")
    then = store.manifest(state.version)
    operations = changes_since(store, then, latest)

    def table(name: str) -> pa.Table | None:
        part = state.relations[name]
        return None if part is None else _read(store, part)

    def facts(relation: Relation) -> pa.Table | None:
        entry = then.entries.get(relation.name)
        if entry is None or not entry.size:
            return None
        if state.engine == "spark" and store.in_spark(entry.tuples):
            return cast("pa.Table", store.frame(relation, entry.tuples))
        rows = store.table(relation, entry.tuples)
        return rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])

    saved = Saved(state.engine, state.fingerprint, state.notes, state.relations.keys(), table)
    inner.restore(work.new, saved, facts)
    for name, entry in then.entries.items():
        if name in latest.entries and inner.size(entry.relation) != entry.size:
            raise damaged(state.path, f"it leads to another number of tuples of {name}")
    outcome = inner.prepare(replace(work, old=work.new, operations=operations))
    for name, entry in latest.entries.items():
        before = then.entries[name].size if name in then.entries else 0
        lost, gained = outcome.changed[name][2] if name in outcome.changed else (0, 0)
        if before - lost + gained != entry.size:
            raise damaged(state.path, f"it leads to another number of tuples of {name}")
    return outcome


def _read(store: Store, part: Part) -> pa.Table:
    if IN_SPARK in part.path:
        from tidelog.execute.spark.parquet import read_state

        assert store.spark is not None
        return cast("pa.Table", read_state(store.spark, f"{store.files.spark}/{part.path}"))
    import pyarrow.parquet as pq

    opened = store.files.opened(part.path)
    where, system = opened if isinstance(opened, tuple) else (opened, None)
    try:
        table = pq.read_table(where, filesystem=system, partitioning=None, page_checksum_verification=True)
    except (OSError, ValueError, NotImplementedError) as error:  # what Arrow raises are such
        raise damaged(part.path, said(error)) from error
    if table.num_rows != part.rows:
        raise damaged(part.path, f"it has {table.num_rows:,} rows, and should have {part.rows:,}")
    return table
