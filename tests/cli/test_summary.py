"""The closing summary, of programs with few and with many strata; the line while a run works."""

from __future__ import annotations

import pytest

from tidelog.cli.progress import Line
from tidelog.cli.summary import Times, outputs_line, print_summary, strata_rows
from tidelog.session.report import Moment, Report, StratumLine


def report(count: int) -> Report:
    """Odd strata are slow, even ones fast."""
    return Report(
        tuple(StratumLine(n, (f"r{n}",), 1, 10, 10, 2.0 if n % 2 else 0.25) for n in range(1, count + 1))
    )


def test_up_to_twenty_strata_are_all_shown() -> None:
    rows, rest = strata_rows(report(20))
    assert [row[0] for row in rows] == [str(n) for n in range(1, 21)]
    assert rest == ""


def test_of_more_the_fifteen_slowest_are_shown_in_order() -> None:
    rows, rest = strata_rows(report(26))
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", *map(str, range(7, 27, 2))]
    assert rest == "and 11 faster strata: 110 tuples, 2.750 s"


def test_outputs() -> None:
    assert outputs_line([("a", 1000), ("b", 2)]) == "outputs: a 1,000, b 2"
    line = outputs_line([(f"r{n}", 100) for n in range(40)])
    assert line.startswith("outputs: r0 100, r1 100, ")
    assert line.endswith(", r14 100, and 25 more with 2,500 tuples")


def test_way_and_place_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = (
        StratumLine(1, ("path",), 3, 10, 12, 0.5, way="pivot: x is handed on"),
        StratumLine(2, ("ends",), 1, 1, 1, 0.25),
    )
    print_summary(Report(lines, place="kept in this process"), Times(0, 1, 0, 0.75, 0), [("ends", 1)])
    assert capsys.readouterr().err.splitlines() == [
        "stratum  relations  rounds  tuples  instances  seconds  way",
        "      1  path            3      10         12    0.500  pivot: x is handed on",
        "      2  ends            1       1          1    0.250",
        "kept in this process",
        "outputs: ends 1",
        "check 0.000 s, start 1.000 s, load 0.000 s, derive 0.750 s, write 0.000 s, total 1.750 s",
    ]


def test_progress_tells_what_is_new() -> None:
    shown: list[str] = []
    tell = Line(shown.append)
    for stratum, names, round, tuples in ((1, "path", 0, 0), (1, "path", 1, 1200), (1, "path", 1, 1200)):
        tell(Moment(stratum, 2, (names,), round, tuples))
    tell(Moment(1, 2, ("path",), 7, 5000))
    tell(Moment(2, 2, ("a" * 30, "b" * 30), 1, 5001))
    assert shown == [
        "stratum 1 of 2 (path), round 0: 0 new, 0 tuples so far",
        "stratum 1 of 2 (path), round 1: 1,200 new, 1,200 tuples so far",
        "stratum 1 of 2 (path), round 7: 3,800 new, 5,000 tuples so far",
        f"stratum 2 of 2 ({'a' * 30}, bbbbb...), round 1: 1 new, 5,001 tuples so far",
    ]
