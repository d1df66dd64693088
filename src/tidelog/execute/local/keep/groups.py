"""Aggregates, group by group: only groups with lost or gained rows are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local import layout as local
from tidelog.execute.local import probes
from tidelog.execute.local.groups import grouped
from tidelog.execute.local.keep import facts
from tidelog.execute.local.keep.relation import Rows, check_rows
from tidelog.execute.local.memory import Cells
from tidelog.execute.local.relation import StoredRelation
from tidelog.plan.maintenance import PhaseReport, Regroup
from tidelog.plan.parts import AFTER, BEFORE, Part

if TYPE_CHECKING:
    from tidelog.execute.local.keep.keeper import LocalKeeper


def regroup(task: Regroup, keeper: LocalKeeper) -> PhaseReport:
    """Compute the groups that have changed anew."""
    rule = task.rule
    source, head = keeper.relations[rule.source], keeper.relations[rule.head]
    lost, gained = keeper.ledger(rule.source).changed_rows()
    report = PhaseReport(1, phase=task.phase)
    columns = list(rule.keys)
    if columns:  # so that an update without changes makes what those with changes need
        source.index(tuple(columns))
        head.index(tuple(range(len(columns))))
    keeper.ledger(rule.head).need_map()
    if not len(lost) and not len(gained):
        return report
    changed = source.cells[np.concatenate([lost, gained])][:, columns]
    keys = np.unique(changed, axis=0) if columns else changed[:1]
    rows = rows_of_groups(keeper, rule.source, rule.keys, keys, AFTER)
    old = rows_of_groups(keeper, rule.head, tuple(range(len(columns))), keys, BEFORE)
    derived = [np.empty(0, np.uint32)] * head.arity
    if len(rows):
        derived = grouped(rule, source.cells[rows], source.relation, head.relation, keeper.codes)
    packed: Cells = np.zeros((len(derived[-1]), 2 * head.words), np.uint32)
    for column, cells in enumerate(derived):
        packed[:, column] = cells
    before = keeper.ledger(rule.head).touched
    replace_rows(keeper, rule.head, head, old, packed)
    report.new = len(packed)
    report.instances[rule.id] = len(rows)
    report.touched = keeper.ledger(rule.head).touched - before
    return report


def rows_of_groups(keeper: LocalKeeper, name: str, columns: tuple[int, ...], keys: Cells, part: Part) -> Rows:
    """The rows of a part whose columns have one of the keys."""
    stored, ledger = keeper.relations[name], keeper.ledger(name)
    if columns:
        index = stored.index(columns)
        packed: Cells = np.zeros((len(keys), 2 * ((len(columns) + 1) // 2)), np.uint32)
        packed[:, : len(columns)] = keys
        places, counts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        probes.find_matches(index.address, packed.ctypes.data, local.ALL, places, counts)
        total = int(counts.sum())
        left, rows = np.empty(total, np.int64), np.empty(total, np.int64)
        probes.list_matches(index.address, places, counts, left, rows)
    else:
        rows = np.arange(len(stored))
    marks = ledger.marks_of(rows)
    table = keeper.workshop.parts.table(part)
    found: Rows = rows[table[marks] != 0]
    return found


def replace_rows(
    keeper: LocalKeeper,
    name: str,
    head: StoredRelation,
    old: Rows,
    packed: Cells,
) -> None:
    """Delete the old rows of some groups and add the new ones; a row that is both stays."""
    ledger = keeper.ledger(name)
    ledger.need_map()
    check_rows(
        int(facts.replace_rows(head.address, np.ascontiguousarray(old), packed.ctypes.data, len(packed))),
        name,
    )
