"""As many random programs and histories as one likes: `python -m tests.properties --cases 10000 --seed 7`.

A case is a random program, derived by every evaluator, and a random history of commits, replayed
by a few algorithms on each engine, or by the one that is asked for. The first that fails is made
small and printed as a script.
"""

import sys

from tests.properties.command import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
