"""The marks of rows, as kernels know them."""

from __future__ import annotations

from tidelog.execute.local.memory import kernel
from tidelog.plan.parts import Mark

EXPLICIT, HELD, DELETED, ADDED = (int(m) for m in (Mark.EXPLICIT, Mark.HELD, Mark.DELETED, Mark.ADDED))
RETRACTED, ASSERTED = int(Mark.RETRACTED), int(Mark.ASSERTED)
ON_ASSERTION = EXPLICIT | RETRACTED | ASSERTED


@kernel
def holds_after(marks: int) -> bool:
    """Whether a row with these marks holds when the commit ends."""
    return (marks & (HELD | DELETED)) == HELD or (marks & ADDED) != 0
