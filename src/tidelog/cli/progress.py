"""A live line on a terminal while a long run works: stratum, round, tuples so far."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidelog.session.report import Moment, Watch


def line(moment: Moment) -> str:
    """A moment of an evaluation in words."""
    names = ", ".join(moment.relations)
    shown = names if len(names) <= 40 else f"{names[:37]}..."
    return (
        f"stratum {moment.stratum} of {moment.strata} ({shown}), round {moment.round:,}, "
        f"{moment.tuples:,} tuples so far"
    )


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
        yield lambda moment: status.update(escape(line(moment)))
