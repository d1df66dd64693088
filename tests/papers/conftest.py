"""The keepers and the algorithms that the worked examples run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from tidelog.execute import open_executor
from tidelog.maintain.counting import Counting
from tidelog.maintain.dred import DRed
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.fbf import FBF
from tidelog.maintain.protocol import Algorithm
from tidelog.maintain.ranked import Ranked
from tidelog.maintain.seminaive import Recompute
from tidelog.plan.maintenance import Keeper

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "recompute": Recompute,
    "counting": Counting,
    "elastic": Elastic,
    "dred": DRed,
    "fbf": FBF,
    "fbf to depth 1": lambda: FBF(depth=1),
    "fbf, never backward": lambda: FBF(depth=0),
    "ranked": Ranked,
}


@pytest.fixture(params=["substitution", "local"])
def keeper(request: pytest.FixtureRequest) -> Iterator[Keeper]:
    """A new, empty keeper."""
    opened = cast(Keeper, open_executor(request.param, keep=True))
    yield opened
    opened.close()


@pytest.fixture(params=ALGORITHMS)
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    """Every algorithm that works on any stratum of the examples."""
    return ALGORITHMS[request.param]()
