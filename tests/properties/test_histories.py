"""The property at the heart: any algorithm, any split into commits, either engine = recompute from scratch.

A case is a random program and a random history of commits that change its facts and its rules (see
`histories`). After each commit every relation is what the naive oracle says it is, and the changes are what
tells the oracle's models apart. `make property CASES=100000 SEED=7` runs more of them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.properties.cases import failure_of, ways_of
from tests.properties.replay import ALGORITHMS, ENGINES

CASES = 1000
BATCH = 25


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_histories_agree_with_the_oracle(first: int) -> None:
    for seed in range(first, first + BATCH):
        failure = failure_of(seed)
        assert failure is None, str(failure)


def test_every_algorithm_and_engine_has_its_share() -> None:
    shares = Counter(way for seed in range(CASES) for way in ways_of(seed))
    for engine in ENGINES:
        for algorithm in ALGORITHMS:
            least = min(count for way, count in shares.items() if way.engine == engine)
            assert least >= 40, (engine, algorithm, least)
    for algorithm in ALGORITHMS:
        assert sum(count for way, count in shares.items() if way.algorithm == algorithm) >= 120, algorithm
