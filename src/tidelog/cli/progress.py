"""A live line on a terminal while a long run works: stratum, round, new tuples, tuples so far."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidelog.session.report import Moment, Watch


def line(moment: Moment, before: Moment | None = None) -> str:
    """A moment of an evaluation in words; what is new is new since the moment before."""
    names = ", ".join(moment.relations)
    shown = names if len(names) <= 40 else f"{names[:37]}..."
    new = moment.tuples - (before.tuples if before is not None else 0)
    return (
        f"stratum {moment.stratum} of {moment.strata} ({shown}), round {moment.round:,}: "
        f"{new:,} new, {moment.tuples:,} tuples so far"
    )


class Line:
    """The line that is shown, kept up to date."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._before: Moment | None = None

    def __call__(self, moment: Moment) -> None:
        """Show a moment; one that brings nothing new leaves the line as it is."""
        before = self._before
        if before is None or (before.stratum, before.round, before.tuples) != (
            moment.stratum,
            moment.round,
            moment.tuples,
        ):
            self._show(line(moment, before if before and before.tuples <= moment.tuples else None))
            self._before = moment


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watch | None]:
    """A watcher that keeps a line on stderr up to date; None when nobody would see it."""
    if quiet or not sys.stderr.isatty():
        logging.getLogger("tidelog").setLevel(logging.ERROR)  # nobody waits for a word on why it takes time
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    # Only the latest moment is kept; the spinner's own thread draws it a few times a second.
    with Console(stderr=True).status("reading", spinner="dots") as status:
        yield Line(lambda text: status.update(escape(text)))
