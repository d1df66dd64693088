"""The algorithms for recursive strata, by name. `update.py` says what serves the other strata."""

from __future__ import annotations

import re
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
EXAMPLES = {"fbf": "fbf(2), with a depth", "elastic": "elastic(0.5), with a share"}
# What may be asked for, as messages say it.
CHOICES = tuple(f"{name} (or {EXAMPLES[name]})" if name in EXAMPLES else name for name in ALGORITHMS)
_WITH_NUMBER = re.compile(r"(fbf|elastic)\((\d+(?:\.\d*)?)\)")


def named(name: str) -> Algorithm:
    """An algorithm by its name; `fbf(2)` has a depth, `elastic(0.5)` a share. Raises ValueError."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]()
    match = _WITH_NUMBER.fullmatch(name)
    if match is not None and match[1] == "elastic":
        return Elastic(share=float(match[2]))
    if match is not None and match[2].isdecimal():
        return FBF(int(match[2]))
    raise ValueError(f"no algorithm is called {name!r}; there are {', '.join(CHOICES)}")
