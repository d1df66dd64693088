"""Functions that are told of changes, commit after commit, in the order of the commits.

A commit is final before anybody is told, and nothing of the database is held meanwhile: a function
may read, and begin a transaction of its own. What it raises is logged and harms nobody; if it ends the
program (SystemExit, KeyboardInterrupt), that happens once all others have been told of the commit.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Lock

from tidelog.session.changes import Changes, ChangeSet

LOG = logging.getLogger("tidelog")

Callback = Callable[[Changes, int], object]


class Subscription:
    """The wish to be told of a relation's changes, until it is cancelled."""

    def __init__(self, relation: str, callback: Callback, home: Subscriptions) -> None:
        self.relation = relation
        self._callback = callback
        self._home = home
        self.active = True

    def cancel(self) -> None:
        """Be told of nothing more, not even of commits that are waiting to be told."""
        self.active = False
        self._home.remove(self)

    def tell(self, changes: ChangeSet) -> None:
        """Call the function, if there is something to tell."""
        if not self.active:
            return
        try:
            self._callback(changes[self.relation], changes.version)
        except Exception:
            LOG.exception("a subscriber to %s failed on commit %d", self.relation, changes.version)

    def __repr__(self) -> str:
        return f"<Subscription to {self.relation}{'' if self.active else ', cancelled'}>"


class Subscriptions:
    """The subscriptions of a database, and the commits they have not been told of yet."""

    def __init__(self) -> None:
        self._by_relation: dict[str, list[Subscription]] = {}
        self._waiting: deque[tuple[ChangeSet, list[Subscription]]] = deque()
        self._telling = Lock()

    def add(self, relation: str, callback: Callback) -> Subscription:
        """Subscribe."""
        made = Subscription(relation, callback, self)
        self._by_relation[relation] = [*self._by_relation.get(relation, ()), made]
        return made

    def remove(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        left = [s for s in self._by_relation.get(subscription.relation, ()) if s is not subscription]
        self._by_relation[subscription.relation] = left

    def concerned(self, changes: ChangeSet) -> list[Subscription]:
        """Who is to be told of a commit; asked before it is final, as it may have to be compared first."""
        by_relation = {name: listed for name, listed in self._by_relation.items() if listed}
        return [s for name in changes.among(by_relation) for s in by_relation[name]] if by_relation else []

    def put(self, changes: ChangeSet, concerned: list[Subscription]) -> None:
        """Note a commit; called while nobody else can commit, so that the order is right."""
        if concerned:
            self._waiting.append((changes, concerned))

    def deliver(self) -> None:
        """Tell what is waiting. If somebody is at it already, here or in another thread, they will."""
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                while self._waiting:
                    _tell_all(*self._waiting.popleft())
            finally:
                self._telling.release()


def _tell_all(changes: ChangeSet, concerned: list[Subscription]) -> None:
    """Tell everybody of a commit, then raise what is to end the program."""
    ending: list[BaseException] = []
    for subscription in concerned:
        try:
            subscription.tell(changes)
        except BaseException as error:
            ending.append(error)
    for other in ending[1:]:
        LOG.error("another subscriber, on commit %d: %r", changes.version, other)
    if ending:
        raise ending[0]
