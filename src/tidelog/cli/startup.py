"""What a short run does not wait for."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not looked for here", name="pandas")
        return None


def keep_pandas_out() -> None:
    """Let Arrow believe, in this process, that there is no pandas.

    The first time Arrow makes an array it looks for pandas, and loading that takes longer
    than a small program runs. No command needs it; only Spark may, so not with Spark.
    """
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([], pa.int64())
    finally:
        sys.meta_path.remove(finder)
