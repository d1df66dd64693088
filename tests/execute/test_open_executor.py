from __future__ import annotations

import pytest

from tidelog.execute import open_executor
from tidelog.syntax.errors import UnsupportedError


@pytest.mark.parametrize("name", ["local", "substitution"])
def test_by_name(name: str) -> None:
    executor = open_executor(name)
    assert executor.name == name
    executor.close()


def test_unknown_name() -> None:
    with pytest.raises(UnsupportedError) as problem:
        open_executor("sparc")
    assert str(problem.value) == (
        "error[TL0607]: there is no executor 'sparc'; there are local, spark, substitution"
    )
