"""Databases on both engines that keep answers current."""

from __future__ import annotations

import pytest

from tests.session import states


@pytest.fixture(params=["substitution", "local"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine of `states.database`; a test that uses this runs once for each."""
    monkeypatch.setattr(states, "ENGINE", request.param)
    return str(request.param)
