"""What a Spark Connect server keeps for us, and when it is told to forget.

A checkpoint stays on the server until it is told that nobody refers to it any more. PySpark tells it when
Python collects the reference (`CachedRemoteRelation.__del__`), which may be in the middle of anything: in a
thread that another call to the server has just started and waits for, while it holds the lock that this
call needs. Both then wait for ever. Here a reference that goes only leaves its name behind, which waits for
nothing. The server is told at moments when nothing else is under way: before the next checkpoint, at the
end of a commit, when an executor is closed. What goes after that stays until the session ends.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = logging.getLogger("tidelog")

_LEFT: WeakKeyDictionary[SparkSession, deque[str]] = WeakKeyDictionary()  # names of what nobody refers to


def is_connected(frame: DataFrame) -> bool:
    """Whether a DataFrame is one of Spark Connect."""
    return type(frame).__module__.startswith("pyspark.sql.connect")


def referring(checkpoint: DataFrame, spark: SparkSession) -> DataFrame:
    """A checkpoint over Spark Connect, of the session that made it, which leaves its name when it goes.

    PySpark gives it to the active session, whichever made it (4.3), and the server does not know it there.
    """
    given = cast("Any", checkpoint)._plan
    left = _LEFT.setdefault(spark, deque())
    plan = _reference()(given._relation_id, spark, left)
    given._spark_session = None  # the plan that PySpark made has nobody to tell
    return cast("DataFrame", cast("Any", type(checkpoint))(plan, spark))


@cache
def _reference() -> Any:
    from pyspark.sql.connect.plan import CachedRemoteRelation

    class Reference(CachedRemoteRelation):
        """What a DataFrame that the server keeps is known by."""

        def __init__(self, name: str, spark: Any, left: deque[str]) -> None:
            super().__init__(name, spark)
            self._left = left

        def __del__(self) -> None:
            self._left.append(self._relation_id)

    return Reference


def let_go(spark: SparkSession) -> None:
    """Tell the server to forget what nobody refers to any more; nothing is done without Spark Connect."""
    left = _LEFT.get(spark)
    if not left:
        return
    from pyspark.sql.connect import proto

    client = cast("Any", spark).client
    try:
        while left and not client.is_closed:
            command = proto.Command()
            command.remove_cached_remote_relation_command.relation.relation_id = left.popleft()
            client.execute_command(command)
    except IndexError:  # another thread has told it
        return
    except Exception as error:  # whatever needs the server next says what is wrong with it
        LOG.debug("the Spark Connect server was not told what to forget: %s", error)
    left.clear()
