"""Tasks that fail, and what the driver makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.plan.building import holds, rule
from tidelog.execute.spark.stage import work
from tidelog.execute.spark.stage.layout import Layout
from tidelog.execute.spark.stage.output import ThroughSpark
from tidelog.execute.spark.tasks.exchange import PeerError
from tidelog.program.model import Column, Relation
from tidelog.program.types import S64
from tidelog.syntax.errors import ResourceError, TidelogError

RULES = (rule("path x z", holds("path x y"), holds("edge y z")),)
OUTLET = ThroughSpark(Layout([Relation("path", (Column("x", S64), Column("y", S64)))]))


def failing(error: Exception) -> Iterator[pa.RecordBatch]:
    yield OUTLET.say({"rounds": 1})
    raise error


def said(error: Exception) -> list[dict[str, str]]:
    batches = list(work.explained(OUTLET, RULES, failing(error)))
    return [json.loads(batch.column("said").to_pylist()[0]) for batch in batches]


def test_out_of_memory_names_the_rules_and_says_what_to_do() -> None:
    others = said(PeerError(1, "MemoryError: "))
    found = work.failure_said([*others, *said(MemoryError()), *others])
    assert isinstance(found, ResourceError)
    assert str(found).splitlines() == [
        "error[TL0601]: out of memory",
        f"  = note: in a Spark task, with the rule {RULES[0].text}",
        f"  = hint: {work.MORE_MEMORY}",
    ]
    assert "spark.tidelog.tasks" in str(found)


def test_a_task_that_failed_without_a_word_of_its_own() -> None:
    found = work.failure_said(said(PeerError(1, "OSError: no room")))
    assert isinstance(found, TidelogError)
    assert str(found) == "error[TL0610]: task 1 of the fixpoint has failed: OSError: no room"


@pytest.mark.parametrize("error", [PeerError(1), ValueError("a mistake")])
def test_what_cannot_be_explained_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        said(error)
