"""Random histories of facts and rules, on Spark; after each commit every relation is what the oracle says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.execute.spark.keep.opening import open_keeper
from tests.oracle import model_of
from tests.properties.histories import Row, generate_history
from tests.running import Kept, Pool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [
    (5, "fbf", "near"),
    (8, "fbf(2)", "near"),
    (13, "elastic", "in bulk"),
]


@pytest.mark.parametrize(("seed", "algorithm", "where"), CASES)
def test_history(spark: SparkSession, seed: int, algorithm: str, where: str) -> None:
    states = list(dict.fromkeys(generate_history(seed).states()))
    texts = [rule for state in states for rule in state.rules]
    pool = Pool("\n".join((*generate_history(seed).declarations, *dict.fromkeys(texts))))
    kept = Kept(pool, open_keeper(spark, where), algorithm)
    for state in states:
        kept.commit(state.rules, state.facts)
        facts: dict[str, list[Row]] = {}
        for relation, row in state.facts:
            facts.setdefault(relation, []).append(row)
        assert kept.relations() == model_of(pool.program_of(state.rules), facts)
