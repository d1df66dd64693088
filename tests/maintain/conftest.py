"""Every algorithm, in every variant that it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.maintain.algorithms import ALGORITHMS
from tidelog.maintain.auto import Auto
from tidelog.maintain.dbsp import DBSP
from tidelog.maintain.dred import DRed
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.fbf import FBF
from tidelog.maintain.protocol import Algorithm

VARIANTS: dict[str, Callable[[], Algorithm]] = {
    **ALGORITHMS,
    "dred with ranks": lambda: DRed(ranks=True),
    "fbf, depth 0": lambda: FBF(0),
    "fbf, depth 1": lambda: FBF(1),
    "fbf, depth 2": lambda: FBF(2),
    "elastic, always switching": lambda: Elastic(share=0, least=0),
    "dbsp, every prefix": lambda: DBSP(every=True),
    "auto, incremental": lambda: Auto("incremental"),
    "auto, full": lambda: Auto("full"),
}


@pytest.fixture(params=VARIANTS)
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    """A test that asks for it runs once for each variant."""
    return VARIANTS[request.param]()
