"""The algorithms for recursive strata, by name. `update.py` says what serves the other strata."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.maintain.auto import Auto
from tidelog.maintain.counting import Counting
from tidelog.maintain.dbsp import DBSP
from tidelog.maintain.dred import DRed
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.fbf import FBF
from tidelog.maintain.protocol import Algorithm
from tidelog.maintain.ranked import Ranked
from tidelog.maintain.seminaive import Recompute

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "recompute": Recompute,
    "counting": Counting,
    "dred": DRed,
    "fbf": FBF,
    "elastic": Elastic,
    "ranked": Ranked,
    "dbsp": DBSP,
    "auto": Auto,
}
