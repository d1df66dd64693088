"""Regroup: only groups that have lost or gained rows are computed, in one Spark job."""

from __future__ import annotations

from tidelog.execute.spark.groups import group
from tidelog.execute.spark.keep.base import only
from tidelog.execute.spark.keep.entries import Row, rows_of
from tidelog.execute.spark.keep.fetch import Outgrown, Query, fetch
from tidelog.execute.spark.keep.work import Work
from tidelog.execute.spark.types import column_names
from tidelog.plan.maintenance import Regroup
from tidelog.plan.parts import AFTER, GAINED, LOST


def regroup(task: Regroup, work: Work) -> None:
    """Compute anew the groups that have changed."""
    rule = task.rule
    source, head = work.relations[rule.source], work.relations[rule.head]
    if sum(source.changed()) > work.limits.touched:
        raise Outgrown
    driving = source.driving(LOST | GAINED)
    if driving is not None:
        lost, gained = source.changed()
        names = [f"c{i}" for i in rule.keys]
        types = [source.types[i] for i in rule.keys]
        keys = driving[0].select(*names).distinct() if names else driving[0].limit(1)
        # Spark makes a group of no rows at all, where there are no keys.
        rows = source.read(AFTER) if source.held + gained > lost else None
        queries: list[Query] = []
        if rows is not None:
            concerned = only(rows, keys, names, types) if names else rows
            queries.append((group(rule, source.relation, head.relation, concerned, work.guards), head.types))
        held = head.read(AFTER)
        if held is not None:
            renamed = keys.select(*names).toDF(*column_names(types)) if names else keys
            before = only(held, renamed, column_names(types), types) if names else held
            queries.append((before, head.types))
        tables = fetch(work.spark, queries, work.limits.touched)
        found = [dict.fromkeys(rows_of(table, head.types)) for table in tables]
        new: dict[Row, None] = found[0] if rows is not None else {}
        old: dict[Row, None] = found[-1] if held is not None else {}
        work.load({rule.head: [*old, *new]})
        for row in old:
            if row not in new:
                head.near.hold(head.near.entries[row], False)
        for row in new:
            if row not in old:
                entry = head.near.entries.get(row) or head.near.touch(row)
                work.report.new += head.near.hold(entry, True)
        width = len(rule.keys)
        work.report.details["groups"] = len({row[:width] for row in (*old, *new)})
    work.round()
