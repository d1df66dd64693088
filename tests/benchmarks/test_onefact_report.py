"""The report of the benchmark of one fact at a time: what its ratios are of."""

from __future__ import annotations

from benchmarks.onefact import Figures, goals_of, table, together
from benchmarks.peers import Spread, UpdateRow

ROW = UpdateRow("closure", 97, 2, 1.0, Spread(100.0, 200.0), Spread(50.0, 60.0), Spread(5, 9), 100.0)


def figures(algorithm: str, deletes: list[float], inserts: list[float]) -> Figures:
    return Figures("OL.cedge", algorithm, 2.0, deletes, inserts, [5, 9], [1, 1, 1, 1], megabytes=300.0)


# The dearest commit of `auto` is the second deletion. Beside recompute it is the first insertion.
RECOMPUTE = figures("recompute", [0.4, 1.0], [0.2, 0.5])
AUTO = figures("auto", [0.1, 0.8], [0.3, 0.1])


def column(text: str, algorithm: str, heading: str) -> str:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return next(row for row in rows if row[0] == algorithm)[rows[0].index(heading)]


def test_the_worst_commit_is_compared_row_by_row() -> None:
    text = table(ROW, [RECOMPUTE, AUTO])
    assert column(text, "auto", "worst ÷ recompute") == "1.50"
    assert column(text, "recompute", "worst ÷ recompute") == "1.00"
    assert goals_of(ROW, [RECOMPUTE, AUTO]) == [
        "closure: `auto` 8.00 (delete) and 6.00 (insert) times the peer's median, goal 2; "
        "1.50 times recompute with the same row at worst, goal 1.2: missed."
    ]


def test_without_recompute_there_is_no_worst() -> None:
    assert column(table(ROW, [AUTO]), "auto", "worst ÷ recompute") == ""


def test_a_run_that_was_stopped_is_compared_as_far_as_it_came() -> None:
    stopped = figures("ranked", [0.2], [])
    assert column(table(ROW, [RECOMPUTE, stopped]), "ranked", "worst ÷ recompute") == "0.50"
    nothing = figures("ranked", [], [])
    assert column(table(ROW, [RECOMPUTE, nothing]), "ranked", "worst ÷ recompute") == ""


def test_the_time_of_a_commit_is_the_median_of_its_times() -> None:
    runs = [figures("auto", [time, 1.0], [time]) for time in (0.3, 0.1, 0.2)]
    runs[1].megabytes, runs[2].stopped = 900.0, "delete 2"
    found = together(runs)
    assert (found.deletes, found.inserts) == ([0.2, 1.0], [0.2])
    assert (found.megabytes, found.stopped) == (300.0, "delete 2")
