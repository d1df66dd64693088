"""Rules that hand on all rows of a relation, as the base rule of a closure does.

    path(x, y) :- edge(x, y).

The head, if it holds nothing yet, then has the DataFrames of the body with their columns in another order:
no Spark job, no shuffle, and nothing is stored twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.here import readable, way_to_read
from tidelog.execute.spark.state import Rows
from tidelog.program.model import Positive, Relation, Rule, Var

if TYPE_CHECKING:
    import pyarrow as pa


def columns_handed_on(rule: Rule) -> list[int] | None:
    """The column of the body that each column of the head takes.

    None if the rule does more: if it could drop rows, make two of them the same, or compute something.
    """
    if len(rule.body) != 1 or not isinstance(rule.body[0], Positive):
        return None
    terms, head = rule.body[0].atom.terms, rule.head.terms
    known = {term.name: i for i, term in enumerate(terms) if isinstance(term, Var)}
    taken = [known[term.name] for term in head if isinstance(term, Var) and term.name in known]
    each_once = len(known) == len(terms) == len(taken) == len(head) == len(set(taken))
    return taken if each_once and taken else None


def handed_on(rows: Rows, head: Relation, columns: Sequence[int]) -> Rows:
    """Rows as those of another relation, which takes these columns in this order."""
    names, taken = [f"c{i}" for i in range(len(columns))], [f"c{i}" for i in columns]
    if names == taken:
        return Rows(rows.spark, head, rows.parts, rows.sizes, rows.given)
    reordered = [F.col(old).alias(new) for old, new in zip(taken, names, strict=True)]

    def anew(table: pa.Table) -> pa.Table:
        return table.select(taken).rename_columns(names)

    def part(frame: DataFrame) -> DataFrame:
        read, frame = way_to_read(frame), frame.select(*reordered)
        return frame if read is None else readable(frame, lambda: anew(read()))

    given = None if rows.given is None else anew(rows.given)
    return Rows(rows.spark, head, tuple(map(part, rows.parts)), rows.sizes, given)
