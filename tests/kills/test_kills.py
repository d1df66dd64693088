"""A few kills; `make kill-test` has many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills.command import run
from tests.kills.history import History
from tests.spark_session import missing


@pytest.mark.skipif(bool(missing()), reason=missing() or "")
def test_killed_and_started_again(tmp_path: Path) -> None:
    told = run(tmp_path, kills=2, seed=4)
    assert told.startswith("12 files, ")


def test_the_same_seed_brings_the_same(tmp_path: Path) -> None:
    """Otherwise a failure could not be looked at again; and what is deleted must have been there."""
    one, other = History(5), History(5)
    one.write(9, tmp_path / "one")
    other.write(4, tmp_path / "other")
    other.write(9, tmp_path / "other")
    texts = [
        {p.relative_to(root): p.read_text() for p in root.rglob("*.json")}
        for root in (tmp_path / "one", tmp_path / "other")
    ]
    assert texts[0] == texts[1]
    assert one.counts() == {"Edge": 9, "Closed": 3}
    assert sum(text.count('"delete"') for text in texts[0].values()) > 5
