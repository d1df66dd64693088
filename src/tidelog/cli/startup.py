"""What a short run does not wait for."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import Thread


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is not looked for here", name="pandas")
        return None


def keep_pandas_out() -> None:
    """Let this process believe that there is no pandas.

    Arrow loads it, where it is installed, the first time it makes an array or turns one
    into NumPy's, and that takes longer than a small program runs. No command needs it;
    only Spark may, so not with Spark.
    """
    sys.meta_path.insert(0, _NoPandas())


def import_meanwhile(module: str) -> None:
    """Import a module that will be needed, while this process waits for Java to start."""

    def load() -> None:
        with suppress(Exception):  # who needs it will hear of it
            import_module(module)

    Thread(target=load, daemon=True).start()
