"""What a commit changes in a relation, kept in Spark and fetched when it is read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.execute.spark.state import Rows


class FrameDelta:
    """What has gone from a relation and what has come, in Spark."""

    def __init__(self, gone: Rows, come: Rows) -> None:
        self.gone, self.come = gone, come

    @cached_property
    def deleted(self) -> pa.Table:
        """What has gone, on the driver."""
        return self.gone.table()

    @cached_property
    def inserted(self) -> pa.Table:
        """What has come, on the driver."""
        return self.come.table()

    def fetch(self) -> None:
        """Have it on the driver, before the session goes."""
        self.deleted, self.inserted  # noqa: B018  (kept when they are read)
