"""A child for the tests of `benchmarks.supervise`: does one thing, then what its argument says."""

from __future__ import annotations

import sys
import time

from benchmarks.supervise import begin, done

if __name__ == "__main__":
    print("what is no event is passed over")
    begin("one")
    done("one", number=1)
    begin("two")
    if sys.argv[1] == "sleep":
        time.sleep(60)
    elif sys.argv[1] == "grow":
        hoard = bytearray(b"x") * 400_000_000
        time.sleep(60)
    elif sys.argv[1] == "fail":
        raise ValueError("no two")
    done("two", number=2)
