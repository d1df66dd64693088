"""Aggregates, group by group: only groups with lost or gained rows are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local.groups import grouped
from tidelog.execute.local.keep import group_rows
from tidelog.execute.local.keep.relation import Rows, check_rows
from tidelog.execute.local.memory import Cells
from tidelog.plan.maintenance import PhaseReport, Regroup
from tidelog.plan.parts import AFTER, BEFORE, Part

if TYPE_CHECKING:
    from tidelog.execute.local.keep.keeper import LocalKeeper

FIRST_ROOM = 256  # rows there is room for at first; if there are more, they are listed again


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
    keys = _distinct(changed)
    rows = rows_of_groups(keeper, rule.source, rule.keys, keys, AFTER)
    old = rows_of_groups(keeper, rule.head, tuple(range(len(columns))), keys, BEFORE)
    derived = [np.empty(0, np.uint32)] * head.arity
    if len(rows):
        derived = grouped(rule, source.cells[rows], source.relation, head.relation, keeper.codes)
    packed: Cells = np.zeros((len(derived[-1]), 2 * head.words), np.uint32)
    for column, cells in enumerate(derived):
        packed[:, column] = cells
    before = keeper.ledger(rule.head).touched
    check_rows(int(group_rows.replace_rows(head.address, old, packed.ctypes.data, len(packed))), rule.head)
    report.new = len(packed)
    report.instances[rule.id] = len(rows)
    report.touched = keeper.ledger(rule.head).touched - before
    return report


def _distinct(keys: Cells) -> Cells:
    """Each key once, packed: two cells a word."""
    words = (keys.shape[1] + 1) // 2
    packed: Cells = np.zeros((len(keys), 2 * words), np.uint32)
    packed[:, : keys.shape[1]] = keys
    if words == 0:
        return packed[:1]
    if words == 1:
        return np.unique(packed.view(np.uint64)).view(np.uint32).reshape(-1, 2)
    return np.unique(packed, axis=0)


def rows_of_groups(keeper: LocalKeeper, name: str, columns: tuple[int, ...], keys: Cells, part: Part) -> Rows:
    """The rows of a part whose columns have one of the packed keys; without columns, all rows of it."""
    stored, ledger = keeper.relations[name], keeper.ledger(name)
    if not columns:
        everything: Rows = np.flatnonzero(keeper.workshop.parts.table(part)[ledger.marks])
        return everything
    index, table = stored.index(columns), keeper.workshop.parts.address(part)
    rows: Rows = np.empty(FIRST_ROOM, np.int64)
    while True:
        address = stored.address
        found = int(group_rows.list_rows(address, index.address, keys.ctypes.data, len(keys), table, rows))
        if found <= len(rows):
            return rows[:found]
        rows = np.empty(found, np.int64)
