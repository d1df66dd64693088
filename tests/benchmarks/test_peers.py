"""The tables of `PEERS.md` are read as they are written."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import Spread, UpdateRow, read_update_peers

PAGE = """\
# How others do

| workload | answers | Soufflé |
|---|---|---|
| closure, chain | 10 | 0.5 |

## Updates

| workload | step, commits | first evaluation | delete p50 / max | insert p50 / max | impact p50 / max | MB |
|---|---|---|---|---|---|---|
| closure OL.cedge | 97, 40 | 0.14 s | 0.63 / 5.9 | 0.67 / 6.0 | 55 / 2,739 | 26 |
| CSPA cspa (row of assign) | 37, 20 | 3.15 s | 1.4 / 2,561 | 1.2 / 2,930 | 36 / 32,241 | 1,410 |

Its times cover one commit at a time.
"""


def test_update_rows(tmp_path: Path) -> None:
    page = tmp_path / "PEERS.md"
    page.write_text(PAGE, encoding="utf-8")
    assert read_update_peers(page) == (
        UpdateRow(
            *("closure OL.cedge", 97, 40, 0.14, Spread(0.63, 5.9), Spread(0.67, 6.0), Spread(55, 2739), 26.0)
        ),
        UpdateRow(
            *("CSPA cspa (row of assign)", 37, 20, 3.15),
            *(Spread(1.4, 2561), Spread(1.2, 2930), Spread(36, 32241), 1410.0),
        ),
    )
