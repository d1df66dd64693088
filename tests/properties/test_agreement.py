"""Random programs: relational algebra = substitution = naive oracle, with nothing considered twice.

`python -m tests.properties --cases N --seed S` runs more of them.
"""

from __future__ import annotations

import pytest

from tests.properties.agreement import checked, disagreement, minimise
from tests.random_programs import generate

CASES = 500
BATCH = 25


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_evaluators_agree(first: int) -> None:
    for seed in range(first, first + BATCH):
        program = generate(seed)
        accepted = checked(program.text)
        if accepted is not None and (problem := disagreement(accepted)) is not None:
            pytest.fail(f"seed {seed}: {problem}\n{minimise(program).text}")


def test_few_programs_are_rejected() -> None:
    rejected = [seed for seed in range(CASES) if checked(generate(seed).text) is None]
    assert len(rejected) <= CASES // 100, rejected


def test_a_seed_is_a_program() -> None:
    assert generate(7) == generate(7)
    assert len({generate(seed).text for seed in range(CASES)}) == CASES


def test_programs_have_every_feature() -> None:
    text = "\n".join(generate(seed).text for seed in range(100))
    for feature in (
        ".decl",
        "relation ",
        "!",
        "not ",
        "count",
        "sum",
        "min",
        "max",
        "mean",
        "/",
        "%",
        "cat(",
    ):
        assert feature in text, feature
