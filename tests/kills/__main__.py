"""Kill a program that follows streams, again and again, at random moments, and check what is left.

`python -m tests.kills --kills 50 --seed 7`: a process follows two streams of files into a stored database,
with a feed of its answers. It is killed with SIGKILL, Java and all, and started again. In the end each
version of the database has to be what plain Python makes of the files that it has had, each file in exactly
one version, and the feed has to tell each change once.
"""

import sys

from tests.kills.command import main

if __name__ == "__main__":
    sys.exit(main(__doc__))
