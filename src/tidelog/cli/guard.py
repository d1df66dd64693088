"""How a command ends, whatever happens in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidelog.syntax.errors import InternalError, ResourceError, TidelogError

WRONG, INTERNAL, INTERRUPTED, PIPE = 1, 70, 130, 141


def guarded(work: Callable[[], None]) -> None:
    """Do the work; say what went wrong on stderr, and exit with the code for it."""
    try:
        work()
        with standard_output():
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _drop_output()  # nobody reads on (`tidelog run -D- | head`)
        sys.exit(PIPE)
    except InternalError as error:
        say(str(error))
        _bug(error)
    except TidelogError as error:
        say(str(error))
        sys.exit(WRONG)
    except MemoryError:
        say(str(ResourceError()))
        sys.exit(WRONG)
    except Exception as error:
        say(str(InternalError(f"error: {type(error).__name__}: {error}")))
        _bug(error)


@contextmanager
def standard_output() -> Iterator[None]:
    """Around writing to the terminal or wherever the shell sent it: a full disk is no bug of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        from tidelog.io.errors import data_error

        _drop_output()
        reason = error.strerror or str(error)
        raise data_error("TL0503", "cannot write to the standard output", notes=[reason]) from error


def _drop_output() -> None:
    """Let what is still to be written go nowhere, so that the flush at exit is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception) -> None:
    if os.environ.get("TIDELOG_DEBUG") == "1":
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    else:
        say("Set TIDELOG_DEBUG=1 to see where it happened.")
    sys.exit(INTERNAL)


def say(text: str) -> None:
    """A line for the user, on stderr."""
    # A program may hold characters that the terminal's encoding lacks.
    encoding = sys.stderr.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)
