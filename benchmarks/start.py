"""How long the smallest things take: `tidelog run` on a five-line program, and `tidelog --help`.

    make bench-start

The first run may have kernels to compile; the second finds them on disk.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEAT = 5

PROGRAM = """\
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
.input edge
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def seconds(command: list[str], expect: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.perf_counter() - began
    if done.returncode != 0 or expect not in done.stdout:
        sys.exit(f"{' '.join(command)} did not print {expect!r}:\n{done.stdout}{done.stderr}")
    return took


def main() -> None:
    tidelog = str(Path(sys.executable).parent / "tidelog")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "path.dl").write_text(PROGRAM)
        (directory / "edge.facts").write_text("a\tb\nb\tc\nc\td\n")
        run = [tidelog, "run", str(directory / "path.dl"), "-F", name, "-D-", "--engine", "local"]
        first = seconds(run, "a\td")
        later = [seconds(run, "a\td") for _ in range(REPEAT)]
        helps = [seconds([tidelog, "--help"], "run") for _ in range(REPEAT)]
    print(f"tidelog run, first    {first:6.2f} s")
    print(f"tidelog run, second   {later[0]:6.2f} s  (best of {REPEAT}: {min(later):.2f})")
    print(f"tidelog --help        {helps[0]:6.2f} s  (best of {REPEAT}: {min(helps):.2f})")


if __name__ == "__main__":
    main()
