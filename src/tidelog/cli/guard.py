"""How a command ends, whatever happens in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tidelog.syntax.errors import InternalError, ResourceError, TidelogError

WRONG, INTERNAL, INTERRUPTED, PIPE = 1, 70, 130, 141


def guarded(work: Callable[[], None]) -> None:
    """Do the work; say what went wrong on stderr, and exit with the code for it."""
    try:
        work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Nobody reads on (`tidelog run -D- | head`): also keep the flush at exit quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE)
    except InternalError as error:
        _say(str(error))
        _bug(error)
    except TidelogError as error:
        _say(str(error))
        sys.exit(WRONG)
    except MemoryError:
        _say(str(ResourceError()))
        sys.exit(WRONG)
    except Exception as error:
        _say(str(InternalError(f"error: {type(error).__name__}: {error}")))
        _bug(error)


def _bug(error: Exception) -> None:
    if os.environ.get("TIDELOG_DEBUG") == "1":
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    else:
        _say("Set TIDELOG_DEBUG=1 to see where it happened.")
    sys.exit(INTERNAL)


def _say(text: str) -> None:
    # A program may hold characters that the terminal's encoding lacks.
    encoding = sys.stderr.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)
