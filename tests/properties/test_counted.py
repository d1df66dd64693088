"""Nonrepetition and optimality, counted: every rule instance that a commit considers is looked at.

The reference executor remembers the instances, and `counted` says what is allowed. The local executor
must count as many of them for each rule and phase, but for algorithms that may come upon tuples in
another order, and for elastic's re-discovery.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import cast

import pytest

from tests.properties.counted import Counted
from tests.properties.histories import generate_history
from tests.running import Kept
from tidelog.execute.local.keep.keeper import LocalKeeper
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.maintain.algorithms import ALGORITHMS
from tidelog.maintain.dbsp import DBSP
from tidelog.maintain.dred import DRed
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.fbf import FBF
from tidelog.maintain.protocol import Algorithm
from tidelog.plan.maintenance import Keeper

VARIANTS: dict[str, Callable[[], str | Algorithm]] = {
    **{name: partial(str, name) for name in ALGORITHMS},
    "fbf, never backward": lambda: FBF(depth=0),
    "fbf, one step": lambda: FBF(depth=1),
    "fbf, two steps": lambda: FBF(depth=2),
    "elastic, switching at once": lambda: Elastic(share=0.0, least=2),
    "dbsp, every prefix": lambda: DBSP(every=True),
    "dred, with ranks": lambda: DRed(ranks=True),
}
HISTORIES = range(10_000, 10_096)
NONRECURSIVE = range(20_000, 20_030)


@cache
def counted(seed: int, recursive: bool = True) -> Counted:
    return Counted(generate_history(seed, recursive=recursive))


def kept(case: Counted, algorithm: str | Algorithm, counts: bool = True) -> Kept:
    keeper = SubstitutionExecutor()
    keeper.remember(True)
    return Kept(case.pool, keeper, algorithm, counts=counts)


@pytest.mark.parametrize("counts", [True, False], ids=["counts", "no counts"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_instance_twice_and_none_too_many(variant: str, counts: bool) -> None:
    """Every algorithm, also where strata that are not recursive are left to it."""
    place = list(VARIANTS).index(variant)
    for seed in HISTORIES[place % 8 :: 8]:
        case = counted(seed)
        problem = case.problem(kept(case, VARIANTS[variant](), counts))
        assert problem is None, f"seed {seed}: {problem}"


def test_algorithms_take_turns() -> None:
    for seed in HISTORIES[::3]:
        case = counted(seed)
        turns = [*ALGORITHMS, *reversed(ALGORITHMS)]
        problem = case.problem(kept(case, "auto"), turns[seed % len(turns) :] + turns)
        assert problem is None, f"seed {seed}: {problem}"


@pytest.mark.parametrize("algorithm", ["counting", "auto"])
def test_counting_is_optimal_without_recursion(algorithm: str) -> None:
    """maintenance-revisited, Definition 26 and Proposition 27: exactly the instances that come or go."""
    for seed in NONRECURSIVE:
        case = counted(seed, recursive=False)
        assert case.nonrecursive
        problem = case.problem(kept(case, algorithm))
        assert problem is None, f"seed {seed}: {problem}"


@pytest.mark.parametrize("algorithm", ["recompute", "counting", "dred", "dbsp"])
def test_both_engines_count_the_same(algorithm: str) -> None:
    """Algorithms that do not depend on the order of tuples consider as many instances of each rule."""
    place = list(ALGORITHMS).index(algorithm)
    for seed in HISTORIES[place % 4 :: 4]:
        case = counted(seed)
        reference = Kept(case.pool, SubstitutionExecutor(), algorithm)
        local = Kept(case.pool, cast(Keeper, LocalKeeper()), algorithm)
        assert case.numbers(local) == case.numbers(reference), f"seed {seed}"
        local.keeper.close()
